//! Expressions in the Common Expression Language, compiled within limits.

use cel::Program;
use chandler_expression::{loops, on_large_stack};

/// A rule, ready to run.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    /// The rule.
    pub(crate) program: Program,
    /// The expression for the message.
    pub(crate) message: Option<Program>,
    /// How deep loops nest: the exponent of the cost.
    pub(crate) loops: u32,
    /// Whether it refers to the stored object.
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
    let compiled = on_large_stack(|| chandler_expression::compile(text)).map_err(|error| error.to_string())?;
    compiled.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use chandler_expression::compile::BRACKETS;

    use super::*;

    #[test]
    fn brackets_take_no_stack_of_ours() {
        let brackets = |count: usize| format!("{}1{} == 1", "(".repeat(count), ")".repeat(count));
        assert!(compile(&brackets(BRACKETS), None).is_ok());
        let refused = compile(&brackets(BRACKETS + 1), None).unwrap_err();
        assert!(refused.contains("brackets nested 64 deep"), "{refused}");
    }
}
