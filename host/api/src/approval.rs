//! Changes that are pending approval.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{bundle_deployment::ProvisionerInUse, schema};

/// The most objects that a pending change lists.
pub const LISTED_CHANGES: usize = 50;
/// The most findings that a pending change lists.
pub const LISTED_FINDINGS: usize = 10;
/// The most refusals that a pending change lists.
pub const LISTED_REFUSALS: usize = 10;
/// The longest refusal of a pending change, in bytes.
pub const REFUSAL_BYTES: usize = 2048;
/// The longest line of a pending change, in bytes.
pub const LINE_BYTES: usize = 512;

/// Whether changes need approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approval {
    /// The controller rolls out changes at once.
    #[default]
    Automatic,
    /// The controller waits for a ChangeApproval.
    Manual,
}

impl schema::Enumeration for Approval {
    const NAMES: &[&str] = &["Automatic", "Manual"];
}

/// What a change comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeCause {
    /// The spec of the BundleDeployment, the content of its bundle, or the cluster.
    #[default]
    Spec,
    /// A newer component or configuration of the provisioner class. The installed release matches the spec.
    Provisioner,
}

impl schema::Enumeration for ChangeCause {
    const NAMES: &[&str] = &["Spec", "Provisioner"];
}

/// The provisioner of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvisionerChange {
    /// The provisioner that rendered the installed release. A new installation has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<ProvisionerInUse>,
    /// The provisioner that rendered the change.
    pub new: ProvisionerInUse,
}

/// A change that is pending approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// The digest that a ChangeApproval must name: it covers the release, its namespace, the number of its revision, and the
    /// changes to objects.
    pub digest: String,
    /// The digest of the release that is rolled out after approval.
    pub release_digest: String,
    /// What the change comes from: Spec, the default, or Provisioner, for a newer component or configuration of the provisioner class
    /// alone. The installed release then matches the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<ChangeCause>")]
    pub cause: Option<ChangeCause>,
    /// The provisioner that rendered the installed release, and the one that rendered the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<ProvisionerChange>,
    /// The number of objects to create.
    pub created: i64,
    /// The number of objects to change, including objects that another field manager changed.
    pub changed: i64,
    /// The number of objects to delete.
    pub removed: i64,
    /// The changes to objects and their fields. At most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// The number of objects that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<i64>,
    /// Why the controller would refuse the change if it rolled it out now. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Findings of checks that do not stop the rollout. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// When the change became pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}
