//! How a release reaches the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many revisions the history keeps where nothing else is said.
pub const HISTORY_LIMIT: i32 = 5;
/// The most revisions that a history may keep; it bounds the size of the status.
pub const MOST_HISTORY: i32 = 20;
/// How long a rollout may take, in seconds, before it is rolled back, where nothing else is said: as long as that of a
/// Deployment may.
pub const ROLLBACK_DEADLINE_SECONDS: i32 = 600;

/// How a release reaches the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSettings {
    /// After how many seconds a revision that is not complete and healthy has failed: it is reported as
    /// ProgressDeadlineExceeded, and onFailure says what is done. Where this is not set, 600 with onFailure Rollback, and
    /// never otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
    /// For how many seconds the objects of a complete release must have been out of order before Healthy and Ready become
    /// False, and in order again before they become True. What cannot mend itself is told at once. 30 where this is not
    /// set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub health_grace_period_seconds: Option<i32>,
    /// What is done about a revision that failed. Hold, the default, goes on trying it. Rollback brings back the last
    /// revision that succeeded, and does not try the failed one again until the spec or the content changes. Where no
    /// revision ever succeeded, it is the same as Hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::enumeration::<OnFailure>")]
    pub on_failure: Option<OnFailure>,
    /// How many revisions status.history keeps, the current one included. Default 5. The current one, the last one that
    /// succeeded, one that failed and was rolled back, and the one that toRevision names are kept in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub history_limit: Option<i32>,
    /// The number of a revision of status.history that is to run, whatever the rest of the spec says. Its release is made
    /// again and has to come out the same. While this is set, changes of source, class and configuration wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub to_revision: Option<i64>,
}

/// What is done about a revision that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Go on trying.
    #[default]
    Hold,
    /// Bring back the last revision that succeeded.
    Rollback,
}

impl crate::schema::Enumeration for OnFailure {
    const NAMES: &[&str] = &["Hold", "Rollback"];
}
