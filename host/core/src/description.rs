//! What a bundle says of itself, for the administrator and for whoever resolves dependencies.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a bundle is, and what it provides and needs. No part of a release: nothing of it reaches the cluster's objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The name of this version of it, such as `argocd-operator.v0.6.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package that it is a version of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it provides and needs, in the order of the provisioner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// How many properties were dropped because there were too many, or because they were too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// One property, in the form of OLM's file-based catalogs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// What the value means, such as `olm.gvk.required`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value; its form depends on the type.
    pub value: Value,
}

impl Description {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
