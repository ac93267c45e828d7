//! A change that was rolled out.
//!
//! Nothing big is kept: a revision says from what its release was made and what came out, by digest. Since rendering is a
//! pure function, the release can be made again, and its digest tells whether it is the same one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{bundle_deployment::ProvisionerInUse, schema, source::BundleSource};

/// The longest configuration that a revision keeps, in bytes of JSON.
pub const KEPT_CONFIG_BYTES: usize = 4096;
/// The longest message of a revision, in bytes.
pub const REVISION_MESSAGE_BYTES: usize = 1024;

/// A change that was rolled out: what it was made from, what came out, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The number: one more than that of the revision before.
    #[schemars(range(min = 1))]
    pub number: i64,
    /// The generation of the spec that asked for it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The revision whose release this one brought back, where it is a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<i64>,
    /// The source with everything that can move pinned; certificates are left out.
    pub source: BundleSource,
    /// The digest of the unpacked content.
    pub content_digest: String,
    /// The provisioner that made the release.
    pub provisioner: ProvisionerInUse,
    /// The version of the bundle, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace for objects that name none.
    pub install_namespace: String,
    /// The digest of the configuration, that of the class included.
    pub config_digest: String,
    /// The configuration, that of the class included, where it is small. One of more than 4096 bytes is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub config: Option<Map<String, Value>>,
    /// The digest over the objects, stages and probes of the release.
    pub release_digest: String,
    /// The approval by which it was rolled out, where spec.approval is Manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovedChange>,
    /// How it went: RollingOut, Succeeded, Failed, or Superseded where another one began before it was complete.
    #[schemars(schema_with = "schema::enumeration::<Outcome>")]
    pub outcome: Outcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When its rollout began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it had its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
}

/// A change that was approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedChange {
    /// The digest of the change.
    pub change: String,
    /// The user who approved it, as the ChangeApproval says.
    pub approved_by: String,
    /// The digest of what the spec let the rollout do when the change was approved. Where it lets it do something else, the rollout
    /// needs another approval to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
}

/// How the rollout of a revision went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It goes on.
    #[default]
    RollingOut,
    /// It was complete and healthy.
    Succeeded,
    /// It was not complete and healthy in time, or could not be applied.
    Failed,
    /// Another one began before it was complete.
    Superseded,
}

impl schema::Enumeration for Outcome {
    const NAMES: &[&str] = &["RollingOut", "Succeeded", "Failed", "Superseded"];
}

impl Outcome {
    /// The name as it is written in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RollingOut => "RollingOut",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Superseded => "Superseded",
        }
    }
}
