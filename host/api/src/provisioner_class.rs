//! `chandler.dev/v1alpha1 ProvisionerClass`: a provisioner that BundleDeployments can use.

use std::collections::BTreeMap;

use chandler_verify::Verification;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema;

/// A provisioner: a WebAssembly component in an OCI registry that renders bundles into objects.
///
/// A BundleDeployment names the class in spec.provisionerClassName, as a claim names a StorageClass. If it names none, the class is
/// used whose provisioner recognises the content.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "ProvisionerClass",
    plural = "provisionerclasses",
    status = "ProvisionerClassStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A provisioner that BundleDeployments can use, by naming it in spec.provisionerClassName or because it recognises their content.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.component.version"}"#,
    printcolumn = r#"{"name": "Uses", "type": "integer", "jsonPath": ".status.uses.total"}"#,
    printcolumn = r#"{"name": "Updated", "type": "integer", "jsonPath": ".status.uses.updated"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Policy", "type": "string", "jsonPath": ".spec.updatePolicy", "priority": 1}"#,
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image", "priority": 1}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "jsonPath": ".spec.priority", "priority": 1}"#,
    printcolumn = r#"{"name": "Calls", "type": "integer", "jsonPath": ".status.calls.total", "priority": 1}"#,
    printcolumn = r#"{"name": "P99 ms", "type": "integer", "jsonPath": ".status.calls.p99Milliseconds", "priority": 1}"#,
    printcolumn = r#"{"name": "Schema", "type": "boolean", "jsonPath": ".status.calls.configurationSchema", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerClassSpec {
    /// The reference of the component's OCI artifact, with a tag or a digest. Prefer a digest, which cannot move.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// The name of a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg in the controller's namespace. Its
    /// annotation chandler.dev/provisionerclasses lists the classes that may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pull_secret: Option<String>,
    /// The signatures that the component's artifact must have, in the forms of cosign. A component without them is neither pulled nor run,
    /// and one that is in use is verified again when this changes. The rules of the administrator (--image-verification) hold as well. If
    /// neither demands a signature, the class is used only by a controller with --allow-unsigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Decides between the classes that recognise the content of a BundleDeployment without spec.provisionerClassName: the highest
    /// priority wins. Several classes with the highest priority are an error. The built-in classes have priority 0.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// When installed BundleDeployments get a newer component or configuration of the class. With Manual, the default, each keeps
    /// those that its release was rendered with: status.pendingChange of the BundleDeployment describes the update, and a
    /// ChangeApproval approves it. WhenUnchanged updates those at once whose release stays the same, object by object; the others wait
    /// as with Manual. Staged updates a few at a time, in the order of spec.staged, until one fails. Automatic updates all at once. New
    /// installations, and new content or configuration of a BundleDeployment, always use the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<UpdatePolicy>")]
    pub update_policy: Option<UpdatePolicy>,
    /// How the updatePolicy Staged proceeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedUpdate>,
    /// Keeps the component that is in use: no newer one is loaded, and no installed BundleDeployment is updated, whatever updatePolicy
    /// says. Other changes of this spec wait as well, except verification. Installed releases are looked after.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
    /// Configuration for the provisioner. The configuration of a BundleDeployment is merged over it, member by member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// The limits of one call. The controller has a ceiling for each limit, which also applies to limits that are not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProvisionerLimits>,
    /// What happens when the class is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<ClassDeletion>,
}

/// When installed BundleDeployments get a newer component or configuration of their class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdatePolicy {
    /// When the update of this BundleDeployment is approved.
    #[default]
    Manual,
    /// At once.
    Automatic,
    /// At once if the newer component renders the installed release, else when the update is approved.
    WhenUnchanged,
    /// A few at a time, until one fails.
    Staged,
}

impl schema::Enumeration for UpdatePolicy {
    const NAMES: &[&str] = &["Manual", "Automatic", "WhenUnchanged", "Staged"];
}

/// How an update of a class with the policy Staged proceeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedUpdate {
    /// The labels of the BundleDeployments that are updated first. The others follow once these succeeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub match_labels: BTreeMap<String, String>,
    /// How many percent of the BundleDeployments that use the class are updated at once, at least one. The default is 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<i32>,
}

/// What happens when a class is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassDeletion {
    /// What happens while BundleDeployments use the class. Stop, the default, deletes it at once: the controller no longer
    /// renders with it, and keeps and repairs the releases that are installed. Wait keeps the class usable until no
    /// BundleDeployment uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<WhileInUse>")]
    pub while_in_use: Option<WhileInUse>,
}

/// Whether the deletion of a class waits for the BundleDeployments that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhileInUse {
    /// The deletion does not wait.
    #[default]
    Stop,
    /// The deletion waits.
    Wait,
}

impl schema::Enumeration for WhileInUse {
    const NAMES: &[&str] = &["Stop", "Wait"];
}

/// The limits of one call of a provisioner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerLimits {
    /// The time that the provisioner computes and waits for itself, such as 10s. A call that takes 30 times as long because the machine is
    /// busy is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: Option<String>,
    /// Memory, such as 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub memory: Option<String>,
    /// Bytes read from the bundle, such as 64Mi. Reading a file again counts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub read_bytes: Option<String>,
    /// Total bytes of all objects, such as 32Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub output_bytes: Option<String>,
    /// The number of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub objects: Option<i32>,
    /// Bytes of log messages, such as 64Ki. Further messages are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub log_bytes: Option<String>,
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerClassStatus {
    /// Conditions: Resolved, Verified, Compatible, Compiled, Ready, which summarizes these, and Updated: whether the BundleDeployments
    /// that use the class have its component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last value of the annotation reconcile.chandler.dev/requestedAt that the controller handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The component of new installations. It stays in use while a newer one is not available. With the updatePolicy Manual, installed
    /// BundleDeployments may use an earlier one, which their status names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Component>,
    /// How many BundleDeployments use the class, and how far the update to its component is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<ClassUses>,
    /// What calls of the component showed. The numbers are at most an hour old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<ClassCalls>,
}

/// What calls of a component showed, since the controller started. It names no BundleDeployment, and nothing of a bundle but kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassCalls {
    /// The digest of the component.
    pub component: String,
    /// How many calls rendered a bundle, refused it, or failed. A release that comes from the cache needs no call.
    pub total: i64,
    /// How many calls crashed or exceeded a limit.
    #[serde(default, skip_serializing_if = "schema::is_nought")]
    pub failed: i64,
    /// The median of the time that the last 256 calls used, in milliseconds.
    pub median_milliseconds: i64,
    /// The 99th percentile of the time that the last 256 calls used, in milliseconds.
    pub p99_milliseconds: i64,
    /// Whether the component returned a schema of the configuration for a bundle.
    pub configuration_schema: bool,
    /// The kinds of the objects that it rendered, each with its group; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// When these figures were taken.
    pub observed: Time,
}

/// How many BundleDeployments use a class, by what they do with its component. It names none of them: who may read a class need not be
/// allowed to read all BundleDeployments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassUses {
    /// All that use the class.
    pub total: i64,
    /// Those whose release the component of the class rendered.
    pub updated: i64,
    /// Those whose update is pending approval.
    #[serde(default, skip_serializing_if = "schema::is_nought")]
    pub waiting: i64,
    /// The waiting ones whose objects would change.
    #[serde(default, skip_serializing_if = "schema::is_nought")]
    pub changing: i64,
    /// Those whose update failed: the component does not render their bundle, or what it rendered did not become healthy in time.
    #[serde(default, skip_serializing_if = "schema::is_nought")]
    pub failed: i64,
}

/// A component that was pulled, checked and compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The reference of its artifact by digest.
    pub image: String,
    /// The digest of the component itself.
    pub digest: String,
    /// The name of the provisioner, from the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of the provisioner, from the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the provisioner contract that the component was built against, such as 0.1.0.
    pub contract_version: String,
    /// The bundle formats that the component declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
}
