//! What the status says about a bundle itself: what it is, what it provides and needs, and what is odd about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// How many warnings a status holds.
pub const WARNINGS: usize = 10;

/// What a bundle says of itself, as its provisioner read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDescription {
    /// The name of this version of it, such as argocd-operator.v0.6.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package that it is a version of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it provides and needs, by type: olm.gvk, olm.gvk.required, olm.package.required, olm.constraint,
    /// olm.maxOpenShiftVersion and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<BundleProperty>,
    /// How many more properties there are that found no place here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_properties: Option<i64>,
}

/// A bundle that is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleCandidate {
    /// The name of this version of it, such as argocd-operator.v0.6.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package that it is a version of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the release that it would install.
    pub release_digest: String,
}

/// Something that a bundle says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BundleProperty {
    /// What the value means.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value; its form depends on the type.
    #[schemars(schema_with = "schema::any_value")]
    pub value: Value,
}

/// Something odd about a bundle that did not stop its installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleWarning {
    /// What kind of warning it is, in one CamelCase word that programs may match.
    pub code: String,
    /// What is odd, where, and what would mend it.
    pub message: String,
}
