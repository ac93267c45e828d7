//! What to do about each object: first the situation is named, then one table decides.

use std::cmp::Reverse;

use chandler_core::{ObjectKey, order};
use serde_json::Value;

use crate::{
    desired::{APPLIED, Desired},
    difference::difference,
    live::{annotation, foreign_owner, is_terminating},
    owner::Owner,
};

/// How an object in the cluster stands to the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// It does not exist.
    Absent,
    /// It is ours and as released.
    Equal,
    /// It is ours and seems to differ at this place; a dry run tells.
    SeemsChanged(String),
    /// It is ours and somebody changed it at this place.
    Changed(String),
    /// It is ours and from another release, or was made by the predecessor.
    Outdated,
    /// It is ours and being deleted. Nothing can be done about it until it is gone.
    Terminating,
    /// It is somebody else's.
    Foreign(String),
}

/// What to do about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create it by POST: applying would adopt what somebody else made in between.
    Create,
    /// Bring it from another release to this one.
    Update,
    /// Undo what somebody changed.
    Recover,
    /// Leave it alone.
    Keep,
    /// Come back when it is gone.
    Wait,
    /// Do not go on at all.
    Refuse,
}

impl Situation {
    /// The situation of an object, as far as it can be told without asking the API server again.
    pub(crate) fn of(desired: &Desired, live: Option<&Value>, owner: &Owner) -> Self {
        let Some(live) = live else { return Self::Absent };
        if let Some(other) = foreign_owner(live, owner) {
            return Self::Foreign(other);
        }
        if is_terminating(live) {
            return Self::Terminating;
        }
        if annotation(live, APPLIED) != Some(desired.digest.as_str()) {
            return Self::Outdated;
        }
        difference(&desired.value, live).map_or(Self::Equal, Self::SeemsChanged)
    }

    /// The table.
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Absent => Action::Create,
            Self::Equal => Action::Keep,
            Self::SeemsChanged(_) | Self::Changed(_) => Action::Recover,
            Self::Outdated => Action::Update,
            Self::Terminating => Action::Wait,
            Self::Foreign(_) => Action::Refuse,
        }
    }
}

/// The order of deletion: the reverse of the order in which objects are applied. Within the workloads, custom resources go
/// first, so that the controllers that are deleted with them can still clean up behind them.
pub(crate) fn deletion_rank(key: &ObjectKey) -> (Reverse<order::Phase>, bool) {
    let custom = key.group.contains('.') && !key.group.ends_with(".k8s.io");
    (Reverse(order::phase_of(key)), !custom)
}

/// Which of the owner's objects the release does not hold.
pub(crate) fn stale<'a>(
    members: impl IntoIterator<Item = &'a ObjectKey>,
    desired: &[Desired],
) -> impl Iterator<Item = &'a ObjectKey> {
    members.into_iter().filter(|member| !desired.iter().any(|desired| desired.key.same_object(member)))
}
