//! `platform.openshift.io/v1alpha1 PlatformOperator`: a package that an administrator wants for the platform.
//!
//! Every field of `openshift/api platform/v1alpha1` keeps its name and meaning. The optional fields of the spec, and the fields of the
//! status beside `conditions` and `activeBundleDeployment`, are additions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{resolution::CatalogSelector, schema};

/// A package for the platform. All PlatformOperators are resolved together.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "platform.openshift.io",
    version = "v1alpha1",
    kind = "PlatformOperator",
    plural = "platformoperators",
    status = "PlatformOperatorStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A package for the platform: the controller chooses a version that fits with the packages of all other PlatformOperators, and installs it.",
    printcolumn = r#"{"name": "Package", "type": "string", "jsonPath": ".spec.package.name"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.version"}"#,
    printcolumn = r#"{"name": "Installed", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Installed\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Installed\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Installed\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PlatformOperatorSpec {
    /// The package that is wanted.
    pub package: PlatformPackage,
    /// The versions that are wanted, such as `>=1.2, <2`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// The channels. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub channels: Vec<String>,
    /// The catalogs to choose from, by their labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<CatalogSelector>,
    /// The configuration of the package: what spec.config of a BundleDeployment may have.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Map<String, Value>,
    /// The namespace that the package is installed in. Default: the one that its bundle suggests, or else the name of the package. The
    /// controller creates it if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub install_namespace: Option<String>,
}

/// The package of a PlatformOperator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformPackage {
    /// The name of the package in a catalog.
    #[schemars(regex(pattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"), length(max = 56))]
    pub name: String,
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformOperatorStatus {
    /// Conditions. Installed: the package is installed as the spec asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The BundleDeployment that installs the package. Absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_bundle_deployment: Option<ActiveBundleDeployment>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace of the package. If the controller created it for the package and nothing is left in it, it goes with the
    /// PlatformOperator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The BundleDeployment of a PlatformOperator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveBundleDeployment {
    /// Its name.
    pub name: String,
}
