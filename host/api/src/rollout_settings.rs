//! How a release is rolled out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default number of revisions in the history.
pub const HISTORY_LIMIT: i32 = 5;
/// The largest number of revisions that a history may keep. It bounds the size of the status.
pub const MOST_HISTORY: i32 = 20;
/// The default time in seconds before a rollout is rolled back, the same as the progress deadline of a Deployment.
pub const ROLLBACK_DEADLINE_SECONDS: i32 = 600;

/// How a release is rolled out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSettings {
    /// The time in seconds in which a revision must become complete and healthy. After it, the revision has failed: the
    /// controller reports ProgressDeadlineExceeded and applies onFailure. Default: 600 with onFailure Rollback, otherwise no
    /// deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,
    /// The time in seconds for which objects of a complete release must be unhealthy before Healthy and Ready become False, and
    /// healthy before they become True again. Failures that cannot recover are reported at once. Default: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub health_grace_period_seconds: Option<i32>,
    /// What the controller does about a revision that failed. Hold, the default, keeps trying. Rollback returns to the last
    /// revision that succeeded, and does not retry the failed one until the spec or the content changes. If no revision
    /// has succeeded, Rollback is the same as Hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::enumeration::<OnFailure>")]
    pub on_failure: Option<OnFailure>,
    /// What the controller does about an object whose immutable fields a new revision changes, such as the selector of a
    /// Deployment. Default: it refuses the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_immutable: Option<OnImmutable>,
    /// The number of revisions in status.history, including the current one. Default: 5. The controller always keeps the
    /// current revision, the last one that succeeded, one that was rolled back, and the one that toRevision names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub history_limit: Option<i32>,
    /// The number of a revision in status.history to roll back to. The controller renders its release again, and the result
    /// must be the same. While this is set, changes of source, class and configuration have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub to_revision: Option<i64>,
}

/// What the controller does about objects that only a new object can replace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnImmutable {
    /// The action for kinds that are not listed. Refuse, the default, refuses the revision before anything is written. Recreate
    /// deletes the object and creates it again. Default never recreates what may hold data: PersistentVolumeClaims,
    /// PersistentVolumes, Namespaces, CustomResourceDefinitions, custom resources, and StatefulSets that delete their
    /// PersistentVolumeClaims. List these kinds to recreate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::enumeration::<ImmutableAction>")]
    pub default: Option<ImmutableAction>,
    /// The actions for kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub kinds: Vec<ImmutableKind>,
}

/// What the controller does about objects of one kind that only a new object can replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImmutableKind {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The action: Refuse or Recreate.
    #[schemars(schema_with = "crate::schema::enumeration::<ImmutableAction>")]
    pub action: ImmutableAction,
}

/// What the controller does about an object that only a new object can replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImmutableAction {
    /// It refuses the revision.
    #[default]
    Refuse,
    /// It deletes the object and creates it again.
    Recreate,
}

impl crate::schema::Enumeration for ImmutableAction {
    const NAMES: &[&str] = &["Refuse", "Recreate"];
}

/// What the controller does about a revision that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// It keeps trying.
    #[default]
    Hold,
    /// It returns to the last revision that succeeded.
    Rollback,
}

impl crate::schema::Enumeration for OnFailure {
    const NAMES: &[&str] = &["Hold", "Rollback"];
}
