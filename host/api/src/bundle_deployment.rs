//! `core.rukpak.io/v1alpha2 BundleDeployment`: a bundle to install.

use chandler_core::crd_upgrade::Policy as CrdUpgradeSafety;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    approval::{Approval, PendingChange},
    bundle::{BundleCandidate, BundleDescription, BundleWarning},
    drift::{DriftPolicy, Drifted, IgnoredDifference},
    ownership::{AdoptedObject, CollisionProtection, Deletion},
    permissions::MissingPermissions,
    probe::Probe,
    revision::Revision,
    rollout_settings::RolloutSettings,
    schema,
    source::BundleSource,
    values::ValuesReference,
};

/// The bundle to install, its provisioner, and how it is installed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.rukpak.io",
    version = "v1alpha2",
    kind = "BundleDeployment",
    plural = "bundledeployments",
    shortname = "bd",
    shortname = "bds",
    status = "BundleDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A bundle of Kubernetes objects that the controller installs and keeps installed.",
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.bundle.version"}"#,
    printcolumn = r#"{"name": "Pending", "type": "string", "jsonPath": ".status.candidate.version"}"#,
    printcolumn = r#"{"name": "Install State", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Installed\")].reason"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Revision", "type": "integer", "jsonPath": ".status.revision"}"#,
    printcolumn = r#"{"name": "Drifted", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Drifted\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Provisioner", "type": "string", "jsonPath": ".spec.provisionerClassName", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentSpec {
    /// The namespace for objects of the bundle that name none. It must exist. A bundle may contain cluster-scoped objects and
    /// objects in other namespaces.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub install_namespace: String,
    /// The provisioner that renders the content into objects: the name of a ProvisionerClass, or one of the built-in classes
    /// core-rukpak-io-plain, core-rukpak-io-registry and core-rukpak-io-resolveset. Without it, the class that recognises the content;
    /// of several, the one with the highest priority. status.provisioner names it. An installed release keeps its class until another
    /// one is named here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub provisioner_class_name: String,
    /// Where the content of the bundle comes from.
    pub source: BundleSource,
    /// Configuration for the provisioner, which defines the valid fields. Do not put passwords here: it is not secret;
    /// valuesFrom takes them from Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// Values for the configuration from ConfigMaps and Secrets of the install namespace. They are merged in this order, and config
    /// over them: maps member by member, everything else as a whole. They are read with the permissions that install the bundle, which are
    /// serviceAccount's if it is set. A change of an object is rolled out as a new revision. Values of Secrets are neither in the status
    /// nor in the history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values_from: Vec<ValuesReference>,
    /// Checks before the controller writes anything to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
    /// Suspend the BundleDeployment: while this is true, the controller does not fetch, render, change or repair anything.
    /// Deletion still deletes the objects.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
    /// How a release is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSettings>,
    /// Whether a new revision needs approval. Automatic, the default, needs none. With Manual, the controller writes the
    /// planned changes to status.pendingChange and waits until a ChangeApproval names their digest. A rollback to an earlier
    /// revision needs no approval. An update of the provisioner needs approval as updatePolicy of its class says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<Approval>")]
    pub approval: Option<Approval>,
    /// Rules that objects of the release must meet before the rollout continues, in addition to the health rules of their kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// What the controller does about objects of a complete release that were changed or deleted. Repair, the default, restores
    /// them. Report lists them in status.drift, sets the condition Drifted, and leaves them unchanged until the next revision.
    /// Ignore does not compare them. The controller reports health in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<DriftPolicy>")]
    pub drift: Option<DriftPolicy>,
    /// Fields that other field managers own, such as replicas that an autoscaler sets. The controller neither compares nor
    /// changes these fields of existing objects. New objects get the values of the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoredDifference>,
    /// The ServiceAccount that the controller impersonates to read, write, watch and delete the objects of the bundle. The
    /// controller then uses none of its own permissions on them, and reports missing permissions before it writes anything.
    /// If this is not set, the controller uses its own permissions, unless it requires an account or has a default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountReference>,
    /// What the controller does about objects of the bundle that already exist and have another owner. Prevent, the default,
    /// refuses the release before anything is written. IfNoController adopts objects that no controller and no other
    /// BundleDeployment or ApplySet owns, including objects that Helm or kubectl created. None adopts every object; it
    /// removes the reference to a previous controller, which may try to take the object back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<CollisionProtection>")]
    pub collision_protection: Option<CollisionProtection>,
    /// Existing objects of the bundle to adopt, whatever their owner and collisionProtection. Each entry has the UID of the
    /// object, so that a new object of the same name is not adopted. `chandler adopt` writes this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub adopt: Vec<AdoptedObject>,
    /// What happens to the objects when the BundleDeployment is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Deletion>,
    /// The cluster into which the controller installs the bundle: the cluster of a kubeconfig, with the permissions of its user. Default:
    /// the cluster of the BundleDeployment. The administrator must allow other clusters (--target-clusters). It can be neither added nor
    /// removed later, and the kubeconfig may change but must lead to the same cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,
}

/// Where the kubeconfig of another cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigReference {
    /// The Secret with the kubeconfig. It is read with the permissions that read valuesFrom, which are serviceAccount's if it is set.
    pub secret_ref: KubeConfigSecret,
}

/// A Secret of the install namespace, and its key with a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubeConfigSecret {
    /// The name of the Secret, in the install namespace.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(max = 253))]
    pub name: String,
    /// The key with the kubeconfig. Default: value, or value.yaml if the Secret has no key value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[-._a-zA-Z0-9]+$"), length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// Checks before the controller writes anything to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    /// The check that a new version of a CustomResourceDefinition breaks neither clients nor stored objects.
    #[serde(default, rename = "crdUpgradeSafety", skip_serializing_if = "Option::is_none")]
    pub crd_upgrade_safety: Option<CrdUpgradeSafety>,
}

/// A reference to a ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountReference {
    /// The name of the ServiceAccount.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(max = 253))]
    pub name: String,
    /// The namespace of the ServiceAccount. Default: installNamespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub namespace: Option<String>,
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentStatus {
    /// Conditions. Ready summarizes the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The pinned source: an image by its digest, a git reference by its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<BundleSource>,
    /// The URL of the unpacked content.
    #[serde(default, rename = "contentURL", skip_serializing_if = "Option::is_none")]
    pub content_url: Option<String>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the unpacked content. It depends only on the files, not on their source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<String>,
    /// The metadata of the installed bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleDescription>,
    /// The bundle that the spec describes, if it is not installed because it is pending approval or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<BundleCandidate>,
    /// Warnings about the bundle or its configuration. They do not stop the installation. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BundleWarning>,
    /// The provisioner that rendered the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<ProvisionerInUse>,
    /// The release that is installed or being rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseInUse>,
    /// The number of the revision that is installed or being rolled out: the last one in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The revisions, oldest first. spec.rollout.historyLimit sets their number. This is a copy for people: the controller
    /// reads its own record in the system namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub history: Vec<Revision>,
    /// The change that is pending approval: a new revision, if spec.approval is Manual, or an update of the provisioner, if the
    /// updatePolicy of its class is Manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_change: Option<PendingChange>,
    /// The objects that differ from the release and are not repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// The last value of the annotation reconcile.chandler.dev/requestedAt that the controller handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Permissions that the release needs and spec.serviceAccount lacks, or the user of spec.kubeConfig in its cluster. `chandler rbac`
    /// prints them as roles for an account. A very long list is truncated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_permissions: Vec<MissingPermissions>,
}

/// The provisioner that rendered a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvisionerInUse {
    /// The name of its class.
    pub class: String,
    /// The name of the provisioner, from the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of the provisioner, from the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the component.
    pub digest: String,
    /// The reference of the component's artifact by digest. A built-in provisioner has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The format that the provisioner recognised, where the spec names no class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// A release in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInUse {
    /// The digest of its objects, stages and probes.
    pub digest: String,
    /// The number of objects.
    pub objects: i64,
    /// The number of stages.
    pub stages: i64,
    /// When its rollout began. rollout.progressDeadlineSeconds counts from this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Findings of preflight checks that spec.preflight allows, and fields that the release took over from other field managers.
    /// At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BundleWarning>,
}
