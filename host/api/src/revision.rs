//! A change that was rolled out.
//!
//! A revision is small: it holds the inputs of its release, and the digest of the result. Rendering is a pure function, so the
//! release can be rendered again, and its digest shows whether it is the same.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{bundle_deployment::ProvisionerInUse, schema, source::BundleSource, values::ValuesInUse};

/// The longest configuration that a revision holds, in bytes of JSON.
pub const KEPT_CONFIG_BYTES: usize = 4096;
/// The longest message of a revision, in bytes.
pub const REVISION_MESSAGE_BYTES: usize = 1024;

/// A change that was rolled out: the inputs of its release, the release, and the outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The number of the revision: the number of the previous revision plus one.
    #[schemars(range(min = 1))]
    pub number: i64,
    /// The last generation of the spec that describes this revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The number of the revision that this one returned to, for a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<i64>,
    /// The pinned source: an image by its digest. It holds no certificates.
    pub source: BundleSource,
    /// The digest of the unpacked content.
    pub content_digest: String,
    /// The provisioner that rendered the release.
    pub provisioner: ProvisionerInUse,
    /// The version of the bundle, if the bundle states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace for objects that name none.
    pub install_namespace: String,
    /// The digest of the configuration, merged with the configuration of the class. It covers the versions of Secrets, but not their
    /// values.
    pub config_digest: String,
    /// The digest of the configuration without the class's part, which shows whether the BundleDeployment or the class changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_config_digest: Option<String>,
    /// The digest of spec.config and spec.valuesFrom, without the values of the objects that these name. It shows whether the author of the
    /// BundleDeployment changed the configuration, or a writer of these objects. Absent without spec.valuesFrom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_config_digest: Option<String>,
    /// The objects of spec.valuesFrom, in the versions whose values are part of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<ValuesInUse>,
    /// The configuration, merged with the configuration of the class. It is absent if it is longer than 4096 bytes, or if values of Secrets
    /// are part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// The digest over the objects, stages and probes of the release.
    pub release_digest: String,
    /// The approval of this revision, if it needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovedChange>,
    /// The outcome: RollingOut, Succeeded, Failed, or Superseded if another revision began before this one was complete.
    #[schemars(schema_with = "schema::enumeration::<Outcome>")]
    pub outcome: Outcome,
    /// Why the revision failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the rollout began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the rollout ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
}

/// A change that was approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedChange {
    /// The digest of the change.
    pub change: String,
    /// The user who approved the change, from the ChangeApproval.
    pub approved_by: String,
    /// The digest of the settings of the spec that limit what the rollout may do, at the time of the approval. If these settings
    /// change, the rollout needs a new approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
}

/// The outcome of the rollout of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The rollout is in progress.
    #[default]
    RollingOut,
    /// The revision became complete and healthy.
    Succeeded,
    /// The revision did not become complete and healthy in time, or could not be applied.
    Failed,
    /// Another revision began before this one was complete.
    Superseded,
}

impl schema::Enumeration for Outcome {
    const NAMES: &[&str] = &["RollingOut", "Succeeded", "Failed", "Superseded"];
}

impl Outcome {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RollingOut => "RollingOut",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Superseded => "Superseded",
        }
    }
}
