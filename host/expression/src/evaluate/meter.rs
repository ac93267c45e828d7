//! The budget of an evaluation.
//!
//! The unit is a step of the evaluator, or a value or ten bytes of text that a step copies or compares, much as kube-apiserver counts.

use std::cell::Cell;

use cel::{Value, objects::Key};

use super::EvaluationError;

/// How many bytes of text cost as much as a step.
const TEXT: usize = 10;

/// What an evaluation has cost, and may cost.
#[derive(Debug)]
pub struct Meter {
    used: Cell<u64>,
    limit: u64,
}

impl Meter {
    /// Nothing is used yet.
    pub fn new(limit: u64) -> Self {
        Self { used: Cell::new(0), limit }
    }

    /// What was used; at most a step more than the limit.
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Takes a cost.
    ///
    /// # Errors
    /// If it is more than is left; from then on nothing is left.
    pub fn charge(&self, cost: u64) -> Result<(), EvaluationError> {
        let used = self.used.get().saturating_add(cost);
        self.used.set(used.min(self.limit.saturating_add(1)));
        if used > self.limit { Err(EvaluationError::Exhausted) } else { Ok(()) }
    }

    /// Takes the cost of a text of so many bytes.
    pub(crate) fn charge_text(&self, bytes: usize) -> Result<(), EvaluationError> {
        self.charge(as_u64(bytes / TEXT))
    }

    /// Takes the cost of copying a value.
    pub(crate) fn charge_value(&self, value: &Value) -> Result<(), EvaluationError> {
        self.charge(1)?;
        match value {
            Value::String(text) => self.charge_text(text.len()),
            Value::Bytes(bytes) => self.charge_text(bytes.len()),
            Value::List(list) => list.iter().try_for_each(|item| self.charge_value(item)),
            Value::Map(map) => map.map.iter().try_for_each(|(key, value)| {
                if let Key::String(key) = key {
                    self.charge_text(key.len())?;
                }
                self.charge_value(value)
            }),
            _ => Ok(()),
        }
    }

    /// Takes the cost of comparing two values: that of the smaller one.
    pub(crate) fn charge_comparison(&self, left: &Value, right: &Value) -> Result<(), EvaluationError> {
        match (left, right) {
            (Value::String(left), Value::String(right)) => self.charge_text(left.len().min(right.len())),
            (Value::Bytes(left), Value::Bytes(right)) => self.charge_text(left.len().min(right.len())),
            (Value::List(a), Value::List(b)) if a.len() == b.len() => self.charge_value(left),
            (Value::Map(a), Value::Map(b)) if a.map.len() == b.map.len() => self.charge_value(left),
            _ => Ok(()),
        }
    }
}

pub(crate) fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
