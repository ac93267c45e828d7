//! What was found, and what becomes of it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::{Enforcement, Rule};

/// How many findings a message lists.
const LISTED: usize = 10;
/// The longest text that a message quotes of a value, in bytes.
const QUOTED: usize = 200;

/// What a change does to what is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Something that was legal is not any more.
    Tightens,
    /// Everything that was legal still is, and more is.
    Loosens,
    /// Neither, or it cannot be told.
    Alters,
}

/// A change that may break clients or stored objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule that found it.
    pub rule: Rule,
    /// What becomes of it.
    pub enforcement: Enforcement,
    /// The name of the CustomResourceDefinition.
    pub crd: String,
    /// The version that it is about, as `v1`, or as `v1 -> v2` two that are served side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The field, as `^.spec.replicas`; `items` and `additionalProperties` are steps of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The JSON pointer of the place in the new CRD, or in the old one where the new one no longer has it.
    pub pointer: String,
    /// What stood there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What stands there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// What the change does to what is legal.
    pub effect: Effect,
    /// What changed.
    pub message: String,
}

impl fmt::Display for Finding {
    /// `validating upgrade for CRD "widgets.example.com": v1: ^.spec.size: type: type changed : "string" -> "integer"`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "validating upgrade for CRD {:?}: ", self.crd)?;
        for part in [&self.version, &self.property].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        // Who knows the reference looks for this word.
        let rule = self.rule.family().unwrap_or(self.rule);
        write!(f, "{rule}: {}", self.message)
    }
}

/// What was found about one upgrade, by what becomes of it, in a stable order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Why the upgrade is refused.
    pub refusals: Vec<Finding>,
    /// What is only told.
    pub warnings: Vec<Finding>,
    /// What was not looked at, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty() && self.warnings.is_empty() && self.notes.is_empty()
    }

    /// Adds what was found about another upgrade, or elsewhere about this one.
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

/// Why upgrades are refused, and what helps: the first findings, one a line, and what to do about the first of them.
pub fn explain(refusals: &[Finding]) -> String {
    let mut lines: Vec<String> = refusals.iter().take(LISTED).map(ToString::to_string).collect();
    if refusals.len() > LISTED {
        lines.push(format!("and {} more", refusals.len() - LISTED));
    }
    if let Some(Finding { rule, crd, .. }) = refusals.first() {
        lines.push(format!(
            "help: {}; spec.preflight.crdUpgradeSafety lets it pass with crds: [{{name: {crd}, rules: [{{name: {rule}, \
             enforcement: Warn}}]}}]",
            rule.help()
        ));
    }
    lines.join("\n")
}

/// A value as JSON, cut where it is long.
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
