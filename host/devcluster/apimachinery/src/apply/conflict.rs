//! Conflicts between managers, in kube-apiserver's words.

use std::{collections::BTreeMap, fmt};

use crate::apply::managers::Operation;

/// A field that the applied object sets to another value than its owner did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: String,
    /// Whether it owns the field by `Apply` or `Update`.
    pub operation: Operation,
    /// The version in which it owns the field.
    pub api_version: String,
    /// The subresource through which it owns the field; empty for the object itself.
    pub subresource: String,
    /// The field, e.g. `.spec.containers[name="a"].image`.
    pub field: String,
}

impl Conflict {
    /// The owner as shown in messages, e.g. `"kubectl" with subresource "status" using v1`.
    pub fn owner(&self) -> String {
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        let version = match self.operation {
            Operation::Apply => String::new(),
            Operation::Update => format!(" using {}", self.api_version),
        };
        format!("{:?}{subresource}{version}", self.manager)
    }

    /// The message of this conflict's cause in `details.causes[]` (its reason is `FieldManagerConflict`, its field
    /// [`Conflict::field`]).
    pub fn cause_message(&self) -> String {
        format!("conflict with {}", self.owner())
    }
}

/// Writes conflicts by owner: `conflicts with "a" using v1: .spec.replicas`, several fields or owners on lines of their own.
pub(crate) fn write_conflicts(conflicts: &[Conflict], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut by_owner: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        by_owner.entry(conflict.owner()).or_default().push(&conflict.field);
    }
    let plural = if conflicts.len() == 1 { "" } else { "s" };
    write!(f, "Apply failed with {} conflict{plural}: ", conflicts.len())?;
    if let [only] = conflicts {
        return write!(f, "conflict with {}: {}", only.owner(), only.field);
    }
    let mut messages = by_owner.into_iter().map(|(owner, mut fields)| {
        fields.sort_unstable();
        format!("conflicts with {owner}:\n- {}", fields.join("\n- "))
    });
    if let Some(first) = messages.next() {
        f.write_str(&first)?;
    }
    messages.try_for_each(|message| write!(f, "\n{message}"))
}
