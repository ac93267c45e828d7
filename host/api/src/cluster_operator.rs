//! `config.openshift.io/v1 ClusterOperator`: what a component reports to the platform. The kind belongs to OpenShift: Chandler has no CRD for
//! it to install, and writes objects only where the API is served.
//!
//! Source: `openshift/api config/v1 types_cluster_operator.go`. Conditions have neither `observedGeneration` nor required reasons, so that
//! they are not `metav1.Condition`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema;

/// The spec is required and empty.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ClusterOperator",
    plural = "clusteroperators",
    shortname = "co",
    status = "ClusterOperatorStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What a component reports to the platform."
)]
pub struct ClusterOperatorSpec {}

/// What a component reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOperatorStatus {
    /// Conditions, by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ClusterOperatorCondition>,
    /// Versions of what is completely rolled out. The version of the operator itself has the name `operator`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<OperandVersion>,
    /// Objects of interest, for tools that collect data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
    /// Further information.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::free_object")]
    pub extension: Map<String, Value>,
}

/// A condition of a ClusterOperator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOperatorCondition {
    /// The type: Available, Progressing, Degraded, Upgradeable.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// The reason, in one CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The version of an operand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperandVersion {
    /// The name of the operand.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// An object of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct RelatedObject {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, in the plural.
    pub resource: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name; empty for all objects of the resource.
    pub name: String,
}
