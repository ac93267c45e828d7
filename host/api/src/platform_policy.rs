//! `chandler.dev/v1alpha1 PlatformPolicy`: which packages PlatformOperators may want, and what must hold for all of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    resolution::{CatalogSelector, SetConstraint},
    schema,
};

/// The most constraints of a policy.
pub const CONSTRAINTS: usize = 64;

/// Limits for PlatformOperators. A controller reads the policy that has the name of its Resolution of PlatformOperators.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "PlatformPolicy",
    plural = "platformpolicies",
    status = "PlatformPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Limits for PlatformOperators: the packages that they may want, and what must hold for the whole set. The controller reads the policy with the name of its platform Resolution (platform-operators by default).",
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Accepted\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Accepted\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PlatformPolicySpec {
    /// The only packages that new PlatformOperators may want. Default: all packages of all catalogs. An empty list allows none. Installed
    /// packages stay, and follow their catalog within the version, channels and catalogs of its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub packages: Option<Vec<PolicyPackage>>,
    /// Whether new PlatformOperators may only want platform operators: packages whose newest version has the property
    /// chandler.dev/platform-operator with the value true.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub require_platform_property: bool,
    /// What must hold for all packages of the platform together, in addition to the constraints of their Resolution: the constraints of
    /// bundles, with the same types and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub constraints: Vec<SetConstraint>,
}

/// A package that PlatformOperators may want, within these limits. A PlatformOperator may limit it further.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPackage {
    /// The name of the package.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(max = 253))]
    pub name: String,
    /// The versions, such as `>=1.2, <2`, `~1.4` or `1.x || 3.x`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// The channels. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub channels: Vec<String>,
    /// The catalogs, by their labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<CatalogSelector>,
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformPolicyStatus {
    /// Conditions. Accepted: the policy is in force. Stalled: it is not, and needs a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
