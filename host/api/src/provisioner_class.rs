//! `chandler.dev/v1alpha1 ProvisionerClass`: a provisioner that BundleDeployments may name.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema;

/// A provisioner: a WebAssembly component in an OCI registry that turns bundles into objects.
///
/// A BundleDeployment names the class in spec.provisionerClassName, as a claim names a StorageClass.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "ProvisionerClass",
    plural = "provisionerclasses",
    status = "ProvisionerClassStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A provisioner that BundleDeployments may name in spec.provisionerClassName.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.component.version"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerClassSpec {
    /// The reference of the component's OCI artifact, with a tag or a digest. A digest is best: it cannot move.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// The name of a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg in the controller's namespace. Its
    /// annotation chandler.dev/provisionerclasses lists the classes that may name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pull_secret: Option<String>,
    /// Which class is asked first when the format of a bundle has to be detected: the highest; equal ones by name.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// Configuration for the provisioner. What a BundleDeployment configures is laid over it, member by member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// What one call may use. The controller's own ceilings bound each of these; what is not set is at the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProvisionerLimits>,
    /// What becomes of the class when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<ClassDeletion>,
}

/// What becomes of a class that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassDeletion {
    /// What happens while BundleDeployments name the class. Stop, the default, lets it go at once: nothing is rendered with it
    /// any more, and what it rendered stays installed and is repaired. Wait keeps it, and it goes on rendering, until no
    /// BundleDeployment names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<WhileInUse>")]
    pub while_in_use: Option<WhileInUse>,
}

/// Whether a deleted class waits for those that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhileInUse {
    /// It does not.
    #[default]
    Stop,
    /// It does.
    Wait,
}

impl schema::Enumeration for WhileInUse {
    const NAMES: &[&str] = &["Stop", "Wait"];
}

/// What one call of a provisioner may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerLimits {
    /// Wall-clock time, such as 10s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: Option<String>,
    /// Memory, such as 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub memory: Option<String>,
    /// Bytes that it may read from the bundle, such as 64Mi. Reading a file again counts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub read_bytes: Option<String>,
    /// Bytes of all objects together, such as 32Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub output_bytes: Option<String>,
    /// The number of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub objects: Option<i32>,
    /// Bytes of log messages that are kept, such as 64Ki.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub log_bytes: Option<String>,
}

/// What was found at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerClassStatus {
    /// The state, by aspect: Resolved, Verified, Compatible, Compiled; Ready sums up the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The component in use. It stays while a newer one cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Component>,
}

/// A component that was pulled, checked and compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The reference of its artifact by digest.
    pub image: String,
    /// The digest of the component itself.
    pub digest: String,
    /// Its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the contract that it was built against, such as 0.1.0.
    pub contract_version: String,
    /// The bundle formats that it says it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
}
