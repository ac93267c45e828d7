//! Kinds of objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind that a bundle provides or requires, or that the cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Kind {
    /// A kind of these parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// Parses `GROUP/VERSION/KIND`, or `VERSION/KIND` for the core group; none for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (group, version, kind) = match text.split('/').collect::<Vec<_>>().as_slice() {
            [group, version, kind] => (*group, *version, *kind),
            [version, kind] => ("", *version, *kind),
            _ => return None,
        };
        (!version.is_empty() && !kind.is_empty()).then(|| Self::new(group, version, kind))
    }

    /// Reads the value of a property, which may have more fields.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| text.len() <= 253);
        let required = |field: &str| text(field).filter(|text| !text.is_empty()).ok_or(format!("it has no {field}"));
        Ok(Self::new(text("group").unwrap_or_default(), required("version")?, required("kind")?))
    }

    /// The name of what has one owner in a cluster: a CRD holds all versions of a kind.
    pub fn owned(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        if group.is_empty() { write!(to, "{version}/{kind}") } else { write!(to, "{group}/{version}/{kind}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_a_group_or_none() {
        assert_eq!(Kind::parse("apps/v1/Deployment"), Some(Kind::new("apps", "v1", "Deployment")));
        assert_eq!(Kind::parse("v1/Pod"), Some(Kind::new("", "v1", "Pod")));
        assert_eq!(Kind::parse("Pod"), None);
    }
}
