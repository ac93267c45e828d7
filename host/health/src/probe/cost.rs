//! The number of steps that an expression can take over an object, computed before it runs.
//!
//! Each evaluation of a part of the tree is one step. A loop multiplies the steps of its body. A function that walks over a
//! text or a list costs its size, in units that can be copied or compared in about the time of a step.

use cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr},
};
use chandler_expression::Patterns;
use serde_json::Value;

use super::compile::{Expression, is_linear};

/// The bytes of a text that are processed in the time of a step.
const BYTES_PER_STEP: u64 = 64;
/// The bytes of a regular expression that are compiled in the time of a step.
const PATTERN_BYTES_PER_STEP: usize = 256;

/// The maximum number of steps of an expression over this object.
pub(super) fn cost(expression: &Expression, object: &Value) -> u64 {
    let measure = Measure::of(object, &expression.patterns);
    steps(&expression.tree.expr, &measure)
}

/// The sizes of an object on which the cost depends.
struct Measure<'a> {
    /// The most entries of a list or an object within it; for functions that split texts, also the most bytes of a text.
    widest: u64,
    /// The steps for copying or comparing the whole object.
    whole: u64,
    /// The cost of the regular expressions.
    patterns: &'a Patterns,
}

impl<'a> Measure<'a> {
    fn of(value: &Value, patterns: &'a Patterns) -> Self {
        let mut measure = Self { widest: 1, whole: 0, patterns };
        measure.add(value);
        measure
    }

    fn add(&mut self, value: &Value) {
        self.whole = self.whole.saturating_add(1);
        match value {
            Value::Array(items) => {
                self.widest = self.widest.max(items.len() as u64);
                for item in items {
                    self.add(item);
                }
            }
            Value::Object(map) => {
                self.widest = self.widest.max(map.len() as u64);
                for item in map.values() {
                    self.add(item);
                }
            }
            Value::String(text) => self.whole = self.whole.saturating_add(text.len() as u64 / BYTES_PER_STEP),
            _ => {}
        }
    }
}

fn steps(expression: &Expr, measure: &Measure<'_>) -> u64 {
    let sum = |parts: &mut dyn Iterator<Item = &IdedExpr>| {
        parts.fold(1_u64, |sum, part| sum.saturating_add(steps(&part.expr, measure)))
    };
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 1,
        Expr::Select(select) => steps(&select.operand.expr, measure).saturating_add(1),
        Expr::Call(call) => {
            let parts = sum(&mut call.target.as_deref().into_iter().chain(&call.args));
            // Only a value that is composed of several parts of the object is larger than the object, and there are no more
            // such parts than operators.
            let literal = |part: &IdedExpr| matches!(part.expr, Expr::Literal(_));
            let bounded = call.args.iter().any(literal) || call.target.as_deref().is_some_and(literal);
            let own = if is_linear(&call.func_name) && !bounded { measure.whole } else { 0 };
            let own = if call.func_name == "split" { measure.whole.saturating_mul(BYTES_PER_STEP) } else { own };
            // The interpreter compiles a pattern on every call, and compares each character with each of its states.
            let pattern = wide(measure.patterns.bytes(call) / PATTERN_BYTES_PER_STEP);
            parts.saturating_add(own).saturating_add(pattern)
        }
        Expr::Comprehension(loops) => {
            let once = [&loops.loop_cond, &loops.loop_step];
            let inside = sum(&mut once.into_iter());
            let around = sum(&mut [&loops.iter_range, &loops.accu_init, &loops.result].into_iter());
            around.saturating_add(inside.saturating_mul(widest(&loops.iter_range.expr, measure)))
        }
        Expr::List(list) => sum(&mut list.elements.iter()),
        Expr::Map(map) => {
            map.entries.iter().fold(1, |total, entry| total.saturating_add(entry_steps(&entry.expr, measure)))
        }
        Expr::Struct(object) => {
            object.entries.iter().fold(1, |total, entry| total.saturating_add(entry_steps(&entry.expr, measure)))
        }
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn entry_steps(entry: &EntryExpr, measure: &Measure<'_>) -> u64 {
    match entry {
        EntryExpr::MapEntry(entry) => steps(&entry.key.expr, measure).saturating_add(steps(&entry.value.expr, measure)),
        EntryExpr::StructField(field) => steps(&field.value.expr, measure),
    }
}

/// The most entries that the range of a loop can have.
fn widest(range: &Expr, measure: &Measure<'_>) -> u64 {
    match range {
        Expr::List(list) => list.elements.len() as u64,
        Expr::Map(map) => map.entries.len() as u64,
        Expr::Call(call) => match call.func_name.as_str() {
            // The parts of a text of the object.
            "split" | "find" => measure.whole.saturating_mul(BYTES_PER_STEP),
            // Concatenated lists.
            _ => call
                .target
                .as_deref()
                .into_iter()
                .chain(&call.args)
                .fold(0_u64, |sum, part| sum.saturating_add(widest(&part.expr, measure)))
                .max(1),
        },
        // The result of a loop has no more entries than the loop has iterations.
        Expr::Comprehension(loops) => {
            widest(&loops.iter_range.expr, measure).saturating_mul(widest(&loops.loop_step.expr, measure).max(1))
        }
        _ => measure.widest,
    }
}
