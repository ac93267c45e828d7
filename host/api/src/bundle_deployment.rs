//! `core.rukpak.io/v1alpha2 BundleDeployment`: a bundle that is to be installed.

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
};

/// What is to be installed, from where, by which provisioner.
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
    doc = "A bundle of Kubernetes objects that is installed and kept installed.",
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
    /// The namespace for the objects of the bundle that name none. It must exist. A bundle may hold objects that are
    /// cluster-scoped or name another namespace.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub install_namespace: String,
    /// The provisioner that turns the content into objects: the name of a ProvisionerClass or one of the built-in classes
    /// core-rukpak-io-plain and core-rukpak-io-registry.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub provisioner_class_name: String,
    /// Where the content of the bundle comes from.
    pub source: BundleSource,
    /// Configuration for the provisioner. What it may hold is the provisioner's affair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// Checks that are made before anything is written to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
    /// Leave everything as it is: nothing is fetched, rendered, changed or corrected while this is true. Deletion still
    /// removes the objects.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
    /// How a release reaches the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSettings>,
    /// Whether a new revision waits for approval. Automatic, the default, does not. With Manual the controller writes to
    /// status.pendingChange what it would do, and goes on when a ChangeApproval names its digest. Going back to a revision
    /// that ran before needs no approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<Approval>")]
    pub approval: Option<Approval>,
    /// What objects of the release must show before the rollout goes on, beyond what is known of their kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// What is done about objects of a complete release that are not as released, because somebody changed or deleted them.
    /// Repair, the default, puts them right. Report tells in status.drift and in the condition Drifted, and leaves them as
    /// they are until the next revision. Ignore does not compare them. Health is reported in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<DriftPolicy>")]
    pub drift: Option<DriftPolicy>,
    /// Fields that are left to others, such as the replicas that an autoscaler sets. Of an object that exists, what stands
    /// there is neither compared nor changed; an object that is created gets what the bundle says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoredDifference>,
    /// The ServiceAccount on whose behalf the objects of the bundle are read, written, watched and deleted. The controller
    /// then uses no right of its own on them, and tells which rights the account lacks before it writes anything. Where
    /// this is not set, the controller uses its own rights, unless it requires an account or has a default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountReference>,
    /// What is done about objects of the bundle that exist already and are somebody else's. Prevent, the default, refuses the
    /// release before anything is written. IfNoController takes over what no controller and no other BundleDeployment or
    /// ApplySet holds, also what Helm or kubectl made. None takes over everything; whoever controls an object is released
    /// first, and may try to get it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<CollisionProtection>")]
    pub collision_protection: Option<CollisionProtection>,
    /// Existing objects of the bundle that are taken over, whoever made or controls them, whatever collisionProtection says.
    /// Each is named with its UID, so that no other object of its name is taken; `chandler adopt` writes this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub adopt: Vec<AdoptedObject>,
    /// What becomes of the objects when this is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Deletion>,
}

/// Checks that are made before anything is written to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    /// The check that a new version of a CustomResourceDefinition keeps clients and stored objects working.
    #[serde(default, rename = "crdUpgradeSafety", skip_serializing_if = "Option::is_none")]
    pub crd_upgrade_safety: Option<CrdUpgradeSafety>,
}

/// A ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountReference {
    /// Its name.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(max = 253))]
    pub name: String,
    /// Its namespace. Default: installNamespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub namespace: Option<String>,
}

/// What was found at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentStatus {
    /// The state, by aspect. Ready sums up the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The source with everything that can move pinned: an image by its digest, a git reference by its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<BundleSource>,
    /// Where the unpacked content can be downloaded.
    #[serde(default, rename = "contentURL", skip_serializing_if = "Option::is_none")]
    pub content_url: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the unpacked content, the same for the same files whatever their source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<String>,
    /// What the bundle that is installed says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleDescription>,
    /// The bundle that the spec describes, where it is another one than the one that is installed: it waits for approval, or
    /// was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<BundleCandidate>,
    /// What is odd about the bundle or its configuration without standing in the way. The first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BundleWarning>,
    /// The provisioner that made the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<ProvisionerInUse>,
    /// The release that is installed or being rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseInUse>,
    /// The number of the revision that is installed or being rolled out: the last one of the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The changes that were rolled out, the oldest first. spec.rollout.historyLimit says how many are kept. It is a copy for
    /// people: the controller reads its own record, in the system namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub history: Vec<Revision>,
    /// The change that waits for approval, where spec.approval is Manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_change: Option<PendingChange>,
    /// The objects that are not as released and are left so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// The value of the annotation reconcile.chandler.dev/requestedAt that was acted upon last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What spec.serviceAccount may not do and the release needs; `chandler rbac` prints it as roles. Nothing where it may
    /// do everything, and cut where it is very long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_permissions: Vec<MissingPermissions>,
}

/// The provisioner that made a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvisionerInUse {
    /// The class by which it was chosen.
    pub class: String,
    /// Its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the component.
    pub digest: String,
}

/// A release in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInUse {
    /// The digest over its objects, stages and probes.
    pub digest: String,
    /// How many objects it has.
    pub objects: i64,
    /// How many stages it has.
    pub stages: i64,
    /// When its rollout began; rollout.progressDeadlineSeconds counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// What was found unsafe before its rollout began and by spec.preflight did not stop it, and which fields it took over
    /// from others who apply them, too. The first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BundleWarning>,
}
