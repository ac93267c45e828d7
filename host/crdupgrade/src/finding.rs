//! Findings and their enforcement.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::{Enforcement, Rule};

/// The longest value that a message quotes, in bytes.
const QUOTED: usize = 200;

/// The effect of a change on validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Some values that were valid are invalid now.
    Tightens,
    /// All values that were valid still are, and more are.
    Loosens,
    /// Neither, or unknown.
    Alters,
}

/// A change that may break clients or stored objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The enforcement.
    pub enforcement: Enforcement,
    /// The name of the CustomResourceDefinition.
    pub crd: String,
    /// The version, as `v1`, or a pair of served versions, as `v1 -> v2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The field, as `^.spec.replicas`; `items` and `additionalProperties` are path elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The JSON pointer in the new CRD, or in the old one if the new one does not have the place.
    pub pointer: String,
    /// The old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// The effect of the change on validation.
    pub effect: Effect,
    /// The message.
    pub message: String,
}

impl fmt::Display for Finding {
    /// `validating upgrade for CRD "widgets.example.com": v1: ^.spec.size: type: type changed : "string" -> "integer"`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "validating upgrade for CRD {:?}: ", self.crd)?;
        for part in [&self.version, &self.property].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        // Users of crdify search for this word.
        let rule = self.rule.family().unwrap_or(self.rule);
        write!(f, "{rule}: {}", self.message)
    }
}

/// The findings of one upgrade by enforcement, in a stable order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The findings for which the upgrade is refused.
    pub refusals: Vec<Finding>,
    /// The findings that are only reported.
    pub warnings: Vec<Finding>,
    /// What was not checked, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the report is empty.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty() && self.warnings.is_empty() && self.notes.is_empty()
    }

    /// Adds the findings of another upgrade, or further ones of this upgrade.
    pub fn extend(&mut self, other: Self) {
        self.refusals.extend(other.refusals);
        self.warnings.extend(other.warnings);
        self.notes.extend(other.notes);
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        match finding.enforcement {
            Enforcement::None => {}
            Enforcement::Warn => self.warnings.push(finding),
            Enforcement::Strict => self.refusals.push(finding),
        }
    }
}

/// A value as JSON, truncated.
pub(crate) fn shown(value: &Value) -> String {
    cut(&value.to_string(), QUOTED)
}

/// The first bytes of a text.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}
