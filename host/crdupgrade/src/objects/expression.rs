//! Bounds on rules in CEL: they come from a bundle, and the interpreter cannot be interrupted.

use std::collections::BTreeSet;

use chandler_expression::{compile, depth, loops};
use serde_json::Value;

use crate::finding::cut;

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
/// large, as `compile` is.
fn bounded(text: &str) -> Option<u32> {
    let program = compile(text).ok()?;
    let tree = &program.expression().expr;
    (depth(tree) <= TREE_DEPTH).then(|| loops(tree))
}
