//! What a candidate does about a Lease that it sees. No I/O and no clock.
//!
//! The rules are from client-go: another holder's Lease has expired when it has not changed for its duration, measured by the
//! candidate's own clock from when it first saw it. So clocks that differ do no harm.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp};

/// How often a Lease is renewed, and when it counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long other candidates wait for a renewal. Whole seconds, since the Lease stores it so. Default 15 s.
    pub duration: Duration,
    /// The writes of a leader wait when its last renewal is older. Less than `duration`, so that they end before another candidate
    /// becomes the leader. Default 10 s.
    pub deadline: Duration,
    /// The time between two renewals. Default 5 s.
    pub renewal: Duration,
    /// The time between two attempts to acquire the Lease, or to renew it after a failure. Default 2 s.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), deadline: seconds(10), renewal: seconds(5), retry: seconds(2) }
    }
}

impl Timing {
    /// The times of a Lease that lasts this many times as long, and is renewed as much less often.
    pub(super) fn stretched(self, factor: u32) -> Self {
        Self {
            duration: self.duration * factor,
            deadline: self.deadline * factor,
            renewal: self.renewal * factor,
            retry: self.retry,
        }
    }

    /// The time from the beginning of a renewal, which took this long, to the beginning of the next one. A slow API server gets the next
    /// renewal earlier, so that its answer arrives before the deadline.
    pub(super) fn interval(&self, took: Duration) -> Duration {
        self.renewal.min(self.deadline.saturating_sub(took * 2)).max(took)
    }

    /// How long a candidate may leave a Lease of another holder unread that has not changed for `unchanged`: until it can be taken at the
    /// latest. A watch shows each renewal; when it shows none for longer than a renewal takes, it may be broken. Without one, the Lease is
    /// read again and again.
    pub(super) fn look_again(&self, lease: Option<&LeaseSpec>, unchanged: Duration, watched: bool) -> Duration {
        let longest = if watched { self.renewal + self.retry } else { self.retry };
        let lasts = lease.map_or(self.duration, |lease| duration(lease, self));
        longest.min(lasts.saturating_sub(unchanged))
    }

    /// Whether a Lease whose last renewal began this long ago is renewed now, and not in the next round, which follows after `round`.
    pub(super) fn is_due(&self, elapsed: Duration, round: Duration) -> bool {
        elapsed + round / 2 >= self.renewal
    }
}

/// What to do about a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It does not exist: create it.
    Create,
    /// It has no holder, or its holder did not renew it: take it.
    Take,
    /// This candidate holds it: renew it.
    Renew,
    /// Another process holds it.
    Wait {
        /// The identity of that process.
        holder: String,
    },
}

/// Decides what to do about a Lease that has not changed for this long.
pub(super) fn decide(lease: Option<&LeaseSpec>, unchanged: Duration, identity: &str, timing: &Timing) -> Action {
    let Some(lease) = lease else { return Action::Create };
    match lease.holder_identity.as_deref() {
        None | Some("") => Action::Take,
        Some(holder) if holder == identity => Action::Renew,
        Some(_) if unchanged >= duration(lease, timing) => Action::Take,
        Some(holder) => Action::Wait { holder: holder.to_owned() },
    }
}

fn duration(lease: &LeaseSpec, timing: &Timing) -> Duration {
    let seconds = lease.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(timing.duration, Duration::from_secs)
}

/// The Lease that this candidate holds from now on. `previous` is what it replaces.
pub(super) fn held(previous: Option<&LeaseSpec>, identity: &str, now: Timestamp, timing: &Timing) -> LeaseSpec {
    let previous = previous.cloned().unwrap_or_default();
    let own = previous.holder_identity.as_deref() == Some(identity);
    let transitions = previous.lease_transitions.unwrap_or_default();
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(timing.duration.as_secs()).ok(),
        acquire_time: previous.acquire_time.filter(|_| own).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if own { transitions } else { transitions.saturating_add(1) }),
        ..previous
    }
}

/// Whether a Lease that was read is what this candidate wrote: its answer was lost, and the write arrived.
pub(super) fn is_own_write(sent: &LeaseSpec, found: &LeaseSpec) -> bool {
    // The API server stores microseconds.
    let renewed = |lease: &LeaseSpec| lease.renew_time.as_ref().map(|time| time.0.as_microsecond());
    sent.holder_identity == found.holder_identity && renewed(sent).is_some() && renewed(sent) == renewed(found)
}

/// The annotations of a Lease with these values instead of the ones that it has by the same names. Without a value, an annotation is removed.
pub(super) fn annotated(
    mut annotations: BTreeMap<String, String>,
    values: &BTreeMap<String, Option<String>>,
) -> BTreeMap<String, String> {
    for (name, value) in values {
        match value {
            Some(value) => drop(annotations.insert(name.clone(), value.clone())),
            None => drop(annotations.remove(name)),
        }
    }
    annotations
}

/// The Lease that its holder releases: another candidate may take it at once.
pub(super) fn released(previous: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..previous.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: Option<&str>, seconds: Option<i32>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: seconds,
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_when_its_holder_has_released_it_or_has_not_renewed_it() {
        let waits = || Action::Wait { holder: "other".to_owned() };
        for (lease, unchanged, expected) in [
            (None, 0, Action::Create),
            (Some(lease(None, None)), 0, Action::Take),
            (Some(lease(Some(""), Some(15))), 0, Action::Take),
            (Some(lease(Some("me"), Some(15))), 0, Action::Renew),
            (Some(lease(Some("me"), Some(15))), 1000, Action::Renew),
            (Some(lease(Some("other"), Some(15))), 0, waits()),
            (Some(lease(Some("other"), Some(15))), 14, waits()),
            (Some(lease(Some("other"), Some(15))), 15, Action::Take),
            (Some(lease(Some("other"), Some(60))), 15, waits()),
            // Without a duration, or with one that the API server would refuse, ours counts.
            (Some(lease(Some("other"), None)), 14, waits()),
            (Some(lease(Some("other"), None)), 15, Action::Take),
            (Some(lease(Some("other"), Some(-1))), 14, waits()),
        ] {
            let decided = decide(lease.as_ref(), Duration::from_secs(unchanged), "me", &Timing::default());
            assert_eq!(decided, expected, "{lease:?} unchanged for {unchanged} s");
        }
    }

    #[test]
    fn a_lease_that_may_be_taken_is_read_at_once_and_a_watched_one_only_when_the_watch_is_silent() {
        let other = lease(Some("other"), Some(15));
        let after = |unchanged: Duration, watched| Timing::default().look_again(Some(&other), unchanged, watched);
        for (unchanged, watched, polled) in [
            (0, 7_000, 2_000),
            (7_000, 7_000, 2_000),
            (10_000, 5_000, 2_000),
            (14_500, 500, 500),
            (15_000, 0, 0),
            (20_000, 0, 0),
        ] {
            let [unchanged, watched, polled] = [unchanged, watched, polled].map(Duration::from_millis);
            assert_eq!((after(unchanged, true), after(unchanged, false)), (watched, polled), "{unchanged:?}");
            // It is read again exactly when it can be taken, so nothing adds to the 15 seconds.
            let action = decide(Some(&other), unchanged + watched, "me", &Timing::default());
            assert_eq!(action == Action::Take, unchanged + watched >= Duration::from_secs(15), "{unchanged:?}");
        }
        let long = lease(Some("other"), Some(60));
        assert_eq!(Timing::default().look_again(Some(&long), Duration::from_secs(14), true).as_secs(), 7);
        assert_eq!(Timing::default().look_again(None, Duration::from_secs(14), true).as_secs(), 1);
    }

    #[test]
    fn annotations_of_others_stay() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<_, _> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let before = of(&[("other", "a"), ("ours", "old"), ("stale", "b")]);
        let values = BTreeMap::from([("ours".to_owned(), Some("new".to_owned())), ("stale".to_owned(), None)]);
        assert_eq!(annotated(before, &values), of(&[("other", "a"), ("ours", "new")]));
    }

    #[test]
    fn a_renewal_keeps_when_the_lease_was_acquired_and_a_takeover_counts() {
        let (timing, start) = (Timing::default(), Timestamp::UNIX_EPOCH);
        let first = held(None, "me", start, &timing);
        assert_eq!((first.lease_duration_seconds, first.lease_transitions), (Some(15), Some(1)));
        let later = start + Duration::from_secs(5);
        let renewed = held(Some(&first), "me", later, &timing);
        assert_eq!(renewed.acquire_time, Some(MicroTime(start)));
        assert_eq!((renewed.renew_time.clone(), renewed.lease_transitions), (Some(MicroTime(later)), Some(1)));
        let taken = held(Some(&released(&renewed, later)), "other", later, &timing);
        assert_eq!(taken.acquire_time, Some(MicroTime(later)));
        assert_eq!((taken.holder_identity.as_deref(), taken.lease_transitions), (Some("other"), Some(2)));
    }

    #[test]
    fn a_slow_api_server_gets_the_next_renewal_earlier() {
        let timing = Timing::default();
        let seconds = Duration::from_secs;
        for (took, expected) in [(0, 5), (1, 5), (2, 5), (3, 4), (4, 4), (9, 9)] {
            assert_eq!(timing.interval(seconds(took)), seconds(expected), "{took}");
        }
        // A server that always takes as long never lets the deadline pass.
        for took in (0..5000).map(Duration::from_millis) {
            assert!(timing.interval(took) + took <= timing.deadline, "{took:?}");
        }
    }

    #[test]
    fn a_lease_that_lasts_longer_is_renewed_in_every_fourth_round() {
        let (timing, round) = (Timing::default().stretched(4), Timing::default().renewal);
        let due = |elapsed: f64| timing.is_due(Duration::from_secs_f64(elapsed), round);
        assert_eq!([5.0, 10.0, 15.1, 19.9, 20.0, 21.0].map(due), [false, false, false, true, true, true]);
        assert!(Timing::default().is_due(round, round));
    }

    #[test]
    fn a_write_whose_answer_was_lost_is_recognised_by_its_time() {
        let (timing, start) = (Timing::default(), Timestamp::UNIX_EPOCH);
        let sent = held(None, "me", start + Duration::from_nanos(1_500), &timing);
        let stored = LeaseSpec { renew_time: Some(MicroTime(start + Duration::from_micros(1))), ..sent.clone() };
        assert!(is_own_write(&sent, &stored));
        let earlier = LeaseSpec { renew_time: Some(MicroTime(start)), ..sent.clone() };
        let other = LeaseSpec { holder_identity: Some("other".to_owned()), ..stored.clone() };
        let timeless = LeaseSpec { renew_time: None, ..sent.clone() };
        assert!(!is_own_write(&sent, &earlier) && !is_own_write(&sent, &other) && !is_own_write(&timeless, &timeless));
    }

    #[test]
    fn the_writes_of_a_leader_end_before_another_candidate_takes_the_lease() {
        for timing in [Timing::default(), Timing::default().stretched(4)] {
            let Timing { duration, deadline, renewal, retry } = timing;
            assert!(renewal + 2 * retry < deadline, "a renewal may fail twice");
            assert!(deadline < duration && duration.subsec_nanos() == 0);
        }
    }
}
