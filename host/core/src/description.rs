//! The metadata of a bundle, for administrators and for dependency resolution.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The identity of a bundle, and what it provides and requires. It is not part of the release and does not affect its objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The name of this version of the bundle, such as `argocd-operator.v0.6.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The version of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the bundle provides and requires, in the order of the provisioner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// The number of properties that were dropped because there were too many or they were too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// One property, in the form of OLM's file-based catalogs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// The type, such as `olm.gvk.required`. It determines the form of the value.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value.
    pub value: Value,
}

impl Description {
    /// Whether no metadata is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
