//! `spec.probes`: what objects must show before a rollout goes on, beyond what is known of their kinds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The most probes of one BundleDeployment.
pub const PROBES: usize = 64;

/// A rule that objects of the release must meet before the rollout goes on, and afterwards to count as healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Which objects of the release the rule is about.
    pub selector: ProbeSelector,
    /// A CEL expression over self, the live object, that must be true, with the functions that Kubernetes adds to CEL. A
    /// field that does not exist yet means that the rule is not met yet.
    #[schemars(length(min = 1, max = 2048))]
    pub rule: String,
    /// What to say while the rule is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message: Option<String>,
    /// A CEL expression over self that gives the text to say while the rule is not met. Where it gives none, message is
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub message_expression: Option<String>,
}

/// Which objects of the release a probe is about. Every field that is set must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSelector {
    /// The API group of the objects; empty for the core group. Objects are seen in the version that the release names.
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
    /// The name of the one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Labels that the objects carry in the cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
}
