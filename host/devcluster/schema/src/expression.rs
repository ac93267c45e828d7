//! Expressions in the Common Expression Language, compiled within limits.

use cel::{
    Program,
    common::ast::{EntryExpr, Expr},
};

/// Longest expression that is compiled, in bytes.
const LONGEST: usize = 16 * 1024;
/// Deepest nesting of brackets and most operators of an expression: the parser and the interpreter recurse over them.
const DEEPEST: usize = 64;
const MOST_OPERATORS: usize = 500;
/// The stack of the parser, in bytes.
const STACK: usize = 64 << 20;

/// A rule, ready to run.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    /// What must hold.
    pub(crate) program: Program,
    /// What yields the message.
    pub(crate) message: Option<Program>,
    /// How deep loops nest: the exponent of the cost.
    pub(crate) loops: u32,
    /// Whether it compares with what is stored.
    pub(crate) uses_old_self: bool,
}

/// Compiles the expressions of a rule: the one that must hold, and the one that yields the message.
pub(crate) fn compile(rule: &str, message: Option<&str>) -> Result<CompiledRule, String> {
    let program = expression(rule)?;
    let message = message.map(expression).transpose()?;
    let uses_old_self = program.references().has_variable("oldSelf");
    let loops = loops(&program.expression().expr);
    Ok(CompiledRule { program, message, loops, uses_old_self })
}

fn expression(text: &str) -> Result<Program, String> {
    let depth = text.chars().try_fold((0_usize, 0_usize), |(depth, deepest), character| match character {
        '(' | '[' | '{' => Some((depth + 1, deepest.max(depth + 1))),
        ')' | ']' | '}' => Some((depth.saturating_sub(1), deepest)),
        _ => Some((depth, deepest)),
    });
    let operators = text.bytes().filter(|byte| b"+-*/%?:!<>=&|.".contains(byte)).count();
    if text.len() > LONGEST || depth.is_some_and(|(_, deepest)| deepest > DEEPEST) || operators > MOST_OPERATORS {
        return Err(format!(
            "expressions may have {LONGEST} bytes, {MOST_OPERATORS} operators, and brackets nested {DEEPEST} deep"
        ));
    }
    // The parser recurses, some tens of kilobytes for each bracket: on a stack of its own, where a panic ends nothing else.
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(STACK);
        let parser = parser.spawn_scoped(scope, || Program::compile(text).map_err(|error| error.to_string()));
        let parser = parser.map_err(|error| format!("cannot be parsed now: {error}"))?;
        parser.join().map_err(|_| "cannot be parsed".to_owned())?
    })
}

/// How deep the loops (`all`, `exists`, `map`, ...) of an expression nest.
fn loops(expression: &Expr) -> u32 {
    match expression {
        Expr::Comprehension(comprehension) => {
            let inside = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
            let inside = inside.into_iter().map(|inner| loops(&inner.expr)).max().unwrap_or(0);
            loops(&comprehension.iter_range.expr).max(inside + 1)
        }
        Expr::Call(call) => {
            let target = call.target.as_deref().map_or(0, |target| loops(&target.expr));
            call.args.iter().map(|argument| loops(&argument.expr)).max().unwrap_or(0).max(target)
        }
        Expr::List(list) => list.elements.iter().map(|element| loops(&element.expr)).max().unwrap_or(0),
        Expr::Select(select) => loops(&select.operand.expr),
        Expr::Map(map) => entries(map.entries.iter().map(|entry| &entry.expr)),
        Expr::Struct(object) => entries(object.entries.iter().map(|entry| &entry.expr)),
        _ => 0,
    }
}

fn entries<'a>(entries: impl Iterator<Item = &'a EntryExpr>) -> u32 {
    let depth = |entry: &EntryExpr| match entry {
        EntryExpr::MapEntry(entry) => loops(&entry.key.expr).max(loops(&entry.value.expr)),
        EntryExpr::StructField(field) => loops(&field.value.expr),
    };
    entries.map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_take_no_stack_of_ours() {
        let brackets = |count: usize| format!("{}1{} == 1", "(".repeat(count), ")".repeat(count));
        assert!(compile(&brackets(DEEPEST), None).is_ok());
        let refused = compile(&brackets(DEEPEST + 1), None).unwrap_err();
        assert!(refused.contains("brackets nested 64 deep"), "{refused}");
    }
}
