//! `spec.probes`: health rules beyond those that Chandler knows for a kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The most probes of a BundleDeployment.
pub const PROBES: usize = 64;

/// A rule that objects of the release must meet before the rollout continues, and to stay healthy afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The objects of the release that the rule applies to.
    pub selector: ProbeSelector,
    /// A CEL expression over self, the live object, that must be true. The functions that Kubernetes adds to CEL are available.
    /// If the expression reads a field that does not exist, the rule is not met.
    #[schemars(length(min = 1, max = 2048))]
    pub rule: String,
    /// The message while the rule is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message: Option<String>,
    /// A CEL expression over self that returns the message while the rule is not met. If it returns none, message is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub message_expression: Option<String>,
}

/// Selects objects of the release. Every field that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSelector {
    /// The API group of the objects; empty for the core group. The rule reads objects in the version that the release names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The kind of the objects.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The namespace of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// The name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Labels that the live objects have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
}
