//! Bounds rules in CEL: they come from a bundle, and the interpreter cannot be interrupted.

use std::collections::BTreeSet;

use chandler_expression::{Patterns, compile, depth, loops};
use serde_json::Value;

use crate::finding::cut;

/// The deepest tree that is evaluated: the interpreter recurses over it on the caller's stack.
const TREE_DEPTH: u32 = 40;
/// The maximum cost of all rules for one object; the unit is a visited value.
const BUDGET: u64 = 10_000_000;
/// The bytes of a pattern that are compiled in the time of a step.
const BYTES_PER_STEP: usize = 256;
/// The maximum depth of the walk over a schema.
const SCHEMA_DEPTH: usize = 100;

/// The rules of a schema.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

/// The cost of an expression.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The nesting of its loops, which is the exponent.
    loops: u32,
    /// The cost of its patterns in steps: the interpreter compiles a pattern on every call.
    patterns: u64,
}

impl Rules {
    /// The schema without rules that cannot be evaluated, which are noted, and the cost of the others.
    pub(super) fn of(schema: &Value, notes: &mut BTreeSet<String>) -> (Value, Self) {
        let mut schema = schema.clone();
        let mut rules = Self::default();
        rules.walk(&mut schema, notes, 0);
        (schema, rules)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The cost of all rules for an object of this size; none if it exceeds the limit.
    pub(super) fn cost(&self, size: usize) -> Option<u64> {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let cost = |rule: &Rule| size.saturating_pow(rule.loops.max(1)).saturating_mul(rule.patterns);
        let cost = self.rules.iter().map(cost).fold(0_u64, u64::saturating_add);
        (cost <= BUDGET).then_some(cost)
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
        let costs: Option<Vec<Rule>> =
            expressions.iter().filter(|text| !text.is_empty()).map(|text| bounded(text)).collect();
        if let Some(costs) = costs {
            self.rules.extend(costs);
            return true;
        }
        notes.insert(format!("the validation rule {:?} could not be evaluated", cut(text("rule"), 100)));
        false
    }
}

/// The cost of an expression; none if it cannot be compiled within bounds. Call this on a large stack, like `compile`.
fn bounded(text: &str) -> Option<Rule> {
    let program = compile(text).ok()?;
    let tree = &program.expression().expr;
    let bytes = Patterns::of(tree).total(tree);
    let patterns = 1 + u64::try_from(bytes / BYTES_PER_STEP).unwrap_or(u64::MAX);
    (depth(tree) <= TREE_DEPTH).then(|| Rule { loops: loops(tree), patterns })
}
