//! A change of one keyword, without its place and enforcement.

use serde_json::Value;

use crate::{Enforcement, Rule, finding::Effect};

/// A change that may break clients or stored objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) rule: Rule,
    pub(crate) effect: Effect,
    /// The default enforcement.
    pub(crate) default: Enforcement,
    pub(crate) message: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

impl Change {
    pub(crate) fn new(rule: Rule, effect: Effect, message: impl Into<String>) -> Self {
        Self { rule, effect, default: Enforcement::Strict, message: message.into(), old: None, new: None }
    }

    /// A change from one value to another.
    pub(crate) fn of(mut self, old: Option<&Value>, new: Option<&Value>) -> Self {
        self.old = old.cloned();
        self.new = new.cloned();
        self
    }

    pub(crate) fn by_default(mut self, default: Enforcement) -> Self {
        self.default = default;
        self
    }
}
