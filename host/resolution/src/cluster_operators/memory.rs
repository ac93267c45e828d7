//! Since when something is wrong: a failure that passes soon is not reported.

use std::{collections::BTreeMap, time::Duration};

use chandler_api::ClusterOperatorStatus;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::report;

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Something that was tried does not succeed.
    Failure,
    /// The installed package does not work.
    Outage,
}

/// Since when something is wrong, for one ClusterOperator. It may be lost: what the ClusterOperator reports shows then what has lasted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// When something was observed last.
    last: Option<Timestamp>,
    since: BTreeMap<(Trouble, String), Timestamp>,
}

impl Memory {
    /// Notes what is wrong now, and forgets everything else. `reported` is since when a trouble must have lasted for what the ClusterOperator
    /// reports.
    pub(crate) fn observe(
        &mut self,
        troubles: impl IntoIterator<Item = (Trouble, String)>,
        reported: impl Fn(Trouble) -> Option<Timestamp>,
        now: Timestamp,
    ) {
        // A clock that goes back changes no duration.
        let back = self.last.map(|last| last.duration_since(now)).filter(|back| *back > SignedDuration::ZERO);
        let shifted = |since: Timestamp| since.checked_sub(back.unwrap_or_default()).unwrap_or(Timestamp::MIN);
        let since = troubles.into_iter().map(|trouble| {
            let known = self.since.get(&trouble).copied().map(shifted);
            let reported = || if self.last.is_none() { reported(trouble.0) } else { None };
            let began = known.or_else(reported).unwrap_or(now);
            (trouble, began)
        });
        self.since = since.collect();
        self.last = Some(now);
    }

    /// Whether something has been wrong for so long.
    pub(crate) fn lasts(&self, trouble: Trouble, name: &str, least: Duration, now: Timestamp) -> bool {
        let since = self.since.get(&(trouble, name.to_owned()));
        since.is_some_and(|since| now.duration_since(*since) >= signed(least))
    }

    /// When something will next have been wrong for one of these times.
    pub(crate) fn next(&self, times: impl Fn(Trouble) -> Vec<Duration>, now: Timestamp) -> Option<Timestamp> {
        let due = self.since.iter().flat_map(|((trouble, _), since)| {
            times(*trouble).into_iter().filter_map(|time| since.checked_add(signed(time)).ok())
        });
        due.filter(|due| *due > now).min()
    }
}

pub(crate) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Since when a trouble has lasted, if it was reported after so long, by this condition with this status.
pub(crate) fn reported(
    before: Option<&ClusterOperatorStatus>,
    (kind, status): (&str, &str),
    after: Duration,
    now: Timestamp,
) -> Option<Timestamp> {
    let condition = report::find(before, kind).filter(|condition| condition.status == status)?;
    let changed = condition.last_transition_time.0.min(now);
    Some(changed.checked_sub(signed(after)).unwrap_or(Timestamp::MIN))
}
