//! The budget of an evaluation, in steps and in memory.
//!
//! The unit of the cost is a step of the evaluator, or a value or ten bytes of text that a step copies or compares, much as kube-apiserver
//! counts. Memory is counted in bytes, before it is allocated. The memory of a part of an expression is released when that part evaluates
//! to a scalar, since only the scalar is left then.

use std::{cell::Cell, mem::size_of};

use cel::{
    Value,
    objects::{Key, OptionalValue},
};

use super::EvaluationError;

/// How many bytes of text cost as much as a step.
const TEXT: usize = 10;
/// The memory of the values that an evaluation has made and may still use, in bytes.
pub const MEMORY: usize = 32 << 20;
/// The memory of a value in a list that is still growing: the list is moved to one twice as long.
pub(super) const ITEM: usize = 3 * size_of::<Value>();
/// The memory of a text, list or map besides what it holds.
pub(super) const HEAD: usize = 64;
/// The memory of an entry of a map, in a table that is at least half full.
pub(super) const ENTRY: usize = 3 * (size_of::<Key>() + size_of::<Value>());

/// What an evaluation has cost, and may cost.
#[derive(Debug)]
pub struct Meter {
    used: Cell<u64>,
    limit: u64,
    taken: Cell<usize>,
    memory: usize,
}

impl Meter {
    /// Nothing is used yet. The memory is at most [`MEMORY`].
    pub fn new(limit: u64) -> Self {
        Self { used: Cell::new(0), limit, taken: Cell::new(0), memory: MEMORY }
    }

    /// Sets another limit of memory, in bytes.
    #[must_use]
    pub fn with_memory(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// The memory of the values that are in use, in bytes; those that the caller gave do not count.
    pub fn memory(&self) -> usize {
        self.taken.get()
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
        if used > self.limit {
            return Err(EvaluationError::Exhausted);
        }
        if self.taken.get() > self.memory { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// Takes memory. Call this before it is allocated.
    ///
    /// # Errors
    /// If it is more than is left; from then on nothing is left.
    pub fn take(&self, bytes: usize) -> Result<(), EvaluationError> {
        self.taken.set(self.taken.get().saturating_add(bytes));
        if self.taken.get() > self.memory { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// Gives back the memory that was taken since only so much was, unless it was too much.
    pub(crate) fn give_back(&self, before: usize) {
        if self.taken.get() <= self.memory {
            self.taken.set(self.taken.get().min(before));
        }
    }

    fn out_of_memory(&self) -> EvaluationError {
        EvaluationError::OutOfMemory { limit: self.memory }
    }

    /// Takes the cost of a text of so many bytes.
    ///
    /// # Errors
    /// If it is more than is left; from then on nothing is left.
    pub fn charge_text(&self, bytes: usize) -> Result<(), EvaluationError> {
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
            Value::Opaque(_) => held(value).map_or(Ok(()), |held| self.charge_value(held)),
            _ => Ok(()),
        }
    }

    /// Charges the cost of comparing two values: the size of the smaller one.
    pub(crate) fn charge_comparison(&self, left: &Value, right: &Value) -> Result<(), EvaluationError> {
        match (left, right) {
            (Value::String(left), Value::String(right)) => self.charge_text(left.len().min(right.len())),
            (Value::Bytes(left), Value::Bytes(right)) => self.charge_text(left.len().min(right.len())),
            (Value::List(a), Value::List(b)) if a.len() == b.len() => self.charge_value(left),
            (Value::Map(a), Value::Map(b)) if a.map.len() == b.map.len() => self.charge_value(left),
            (Value::Opaque(_), Value::Opaque(_)) => self.charge_value(left),
            _ => Ok(()),
        }
    }
}

/// The size of a value, as if nothing of it were shared. Charge for the value first, since one that shares its parts is larger than it
/// looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// The values, itself included.
    pub(super) values: usize,
    /// The bytes of texts.
    pub(super) text: usize,
}

impl Extent {
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut extent = Self::default();
        for value in values {
            extent.add(value);
        }
        extent
    }

    /// The memory of the values.
    pub(super) fn bytes(self) -> usize {
        /// The memory of one: an entry of a map, and its text.
        const VALUE: usize = ENTRY + HEAD;
        self.values.saturating_mul(VALUE).saturating_add(self.text)
    }

    fn add(&mut self, value: &Value) {
        self.values = self.values.saturating_add(1);
        match value {
            Value::String(text) => self.text = self.text.saturating_add(text.len()),
            Value::Bytes(bytes) => self.text = self.text.saturating_add(bytes.len()),
            Value::List(list) => list.iter().for_each(|item| self.add(item)),
            Value::Map(map) => {
                for (key, value) in map.map.iter() {
                    if let Key::String(key) = key {
                        self.text = self.text.saturating_add(key.len());
                    }
                    self.add(value);
                }
            }
            Value::Opaque(_) => {
                if let Some(held) = held(value) {
                    self.add(held);
                }
            }
            _ => {}
        }
    }
}

/// What an optional value holds.
fn held(value: &Value) -> Option<&Value> {
    <&OptionalValue>::try_from(value).ok()?.value()
}

/// Whether a value refers to no memory.
pub(super) fn is_scalar(value: &Value) -> bool {
    matches!(
        value,
        Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
    )
}

pub(crate) fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
