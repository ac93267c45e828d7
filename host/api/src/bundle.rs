//! The metadata of a bundle in the status: its name, what it provides and requires, and warnings about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// The most warnings that a status holds.
pub const WARNINGS: usize = 10;

/// The metadata of a bundle, as its provisioner read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDescription {
    /// The name of this version of the bundle, such as argocd-operator.v0.6.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The version of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the bundle provides and requires, by type: olm.gvk, olm.gvk.required, olm.package.required, olm.constraint,
    /// olm.maxOpenShiftVersion and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<BundleProperty>,
    /// The number of properties that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_properties: Option<i64>,
}

/// A bundle that is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleCandidate {
    /// The name of this version of the bundle, such as argocd-operator.v0.6.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The version of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the release that was rendered from the bundle.
    pub release_digest: String,
}

/// A property of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BundleProperty {
    /// The type of the property, which determines the form of its value.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value.
    #[schemars(schema_with = "schema::any_value")]
    pub value: Value,
}

/// A warning about a bundle. It does not stop the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleWarning {
    /// The kind of warning, in one CamelCase word that programs may match.
    pub code: String,
    /// The warning, where it applies, and how to fix it.
    pub message: String,
}
