//! Changes that wait for approval.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many objects a pending change lists.
pub const LISTED_CHANGES: usize = 50;
/// How many findings a pending change lists.
pub const LISTED_FINDINGS: usize = 10;
/// How many refusals a pending change lists.
pub const LISTED_REFUSALS: usize = 10;
/// The longest refusal of a pending change, in bytes.
pub const REFUSAL_BYTES: usize = 2048;
/// The longest line of a pending change, in bytes.
pub const LINE_BYTES: usize = 512;

/// Whether changes wait for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approval {
    /// They do not.
    #[default]
    Automatic,
    /// They do.
    Manual,
}

impl crate::schema::Enumeration for Approval {
    const NAMES: &[&str] = &["Automatic", "Manual"];
}

/// A change that waits for approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// What a ChangeApproval has to name for it to be rolled out: a digest over the release, its namespace, the number of its
    /// revision, and what would be done to which objects.
    pub digest: String,
    /// The digest of the release that would be rolled out.
    pub release_digest: String,
    /// How many objects would be created.
    pub created: i64,
    /// How many objects would be changed, those that somebody edited included.
    pub changed: i64,
    /// How many objects would be deleted.
    pub removed: i64,
    /// What would be done to which objects, and to which of their fields. The first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// How many objects are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<i64>,
    /// What it would be refused for if it were rolled out now. The first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// What checks have found that stops nothing. The first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Since when it has been waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}
