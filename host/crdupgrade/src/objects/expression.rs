//! Bounds on rules in CEL: they come from a bundle, and the interpreter cannot be interrupted.

use std::collections::BTreeSet;

use cel::{
    Program,
    common::ast::{EntryExpr, Expr},
};
use serde_json::Value;

use crate::finding::cut;

/// Longest expression that is run, in bytes.
const LONGEST: usize = 16 * 1024;
/// Deepest nesting of brackets and most operators of an expression: the parser and the interpreter recurse over them.
const DEEPEST: usize = 64;
const MOST_OPERATORS: usize = 500;
/// Deepest tree that is run: the interpreter recurses over it on the stack of whoever asks.
const TREE_DEPTH: u32 = 40;
/// What all rules may cost on one object; the unit is a visited value.
const BUDGET: u64 = 10_000_000;
/// How deep a schema is walked.
const SCHEMA_DEPTH: usize = 100;

/// The rules of a schema: for each, how deep its loops nest, which is the exponent of its cost.
#[derive(Debug, Default)]
pub(super) struct Rules {
    loops: Vec<u32>,
}

impl Rules {
    /// The schema without the rules that cannot be run, which are noted, and what the others cost.
    pub(super) fn of(schema: &Value, notes: &mut BTreeSet<String>) -> (Value, Self) {
        let mut schema = schema.clone();
        let mut rules = Self::default();
        rules.walk(&mut schema, notes, 0);
        (schema, rules)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Whether all rules may be run on an object of this size.
    pub(super) fn affordable(&self, size: usize) -> bool {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let cost = self.loops.iter().fold(0_u64, |sum, loops| sum.saturating_add(size.saturating_pow((*loops).max(1))));
        cost <= BUDGET
    }

    fn walk(&mut self, schema: &mut Value, notes: &mut BTreeSet<String>, depth: usize) {
        let Value::Object(keywords) = schema else { return };
        if depth > SCHEMA_DEPTH {
            keywords.remove("x-kubernetes-validations");
            return;
        }
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("x-kubernetes-validations", Value::Array(rules)) => rules.retain(|rule| self.admit(rule, notes)),
                ("properties", Value::Object(fields)) => {
                    fields.values_mut().for_each(|field| self.walk(field, notes, depth + 1));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    for branch in branches {
                        self.walk(branch, notes, depth + 1);
                    }
                }
                ("items" | "additionalProperties" | "not", child) => self.walk(child, notes, depth + 1),
                _ => {}
            }
        }
    }

    fn admit(&mut self, rule: &Value, notes: &mut BTreeSet<String>) -> bool {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let expressions = [text("rule"), text("messageExpression")];
        let loops: Option<Vec<u32>> =
            expressions.iter().filter(|text| !text.is_empty()).map(|text| bounded(text)).collect();
        if let Some(loops) = loops {
            self.loops.extend(loops);
            return true;
        }
        notes.insert(format!("the validation rule {:?} could not be evaluated", cut(text("rule"), 100)));
        false
    }
}

/// How deep the loops of an expression nest; none where it cannot be compiled within bounds. To be called where the stack is
/// large: the parser takes tens of kilobytes for each bracket.
fn bounded(text: &str) -> Option<u32> {
    let mut open = 0_usize;
    let mut deepest = 0_usize;
    for character in text.chars() {
        match character {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    let operators = text.bytes().filter(|byte| b"+-*/%?:!<>=&|.".contains(byte)).count();
    if text.len() > LONGEST || deepest > DEEPEST || operators > MOST_OPERATORS {
        return None;
    }
    let program = Program::compile(text).ok()?;
    let tree = &program.expression().expr;
    (depth(tree) <= TREE_DEPTH).then(|| loops(tree))
}

/// How deep a tree is.
fn depth(expression: &Expr) -> u32 {
    let deepest = |children: &mut dyn Iterator<Item = &Expr>| children.map(depth).max().unwrap_or(0);
    1 + match expression {
        Expr::Comprehension(comprehension) => deepest(
            &mut [
                &comprehension.iter_range,
                &comprehension.accu_init,
                &comprehension.loop_cond,
                &comprehension.loop_step,
                &comprehension.result,
            ]
            .into_iter()
            .map(|child| &child.expr),
        ),
        Expr::Call(call) => {
            deepest(&mut call.target.iter().map(|target| &target.expr).chain(call.args.iter().map(|child| &child.expr)))
        }
        Expr::List(list) => deepest(&mut list.elements.iter().map(|child| &child.expr)),
        Expr::Select(select) => depth(&select.operand.expr),
        Expr::Map(map) => deepest(&mut map.entries.iter().flat_map(|entry| parts(&entry.expr))),
        Expr::Struct(object) => deepest(&mut object.entries.iter().flat_map(|entry| parts(&entry.expr))),
        _ => 0,
    }
}

fn parts(entry: &EntryExpr) -> impl Iterator<Item = &Expr> {
    let (key, value) = match entry {
        EntryExpr::MapEntry(entry) => (Some(&entry.key.expr), &entry.value.expr),
        EntryExpr::StructField(field) => (None, &field.value.expr),
    };
    key.into_iter().chain([value])
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
