//! Debounces health: when reported health follows observed health.
//!
//! While a pod of a complete release moves to another node, the release is unhealthy for some seconds, and no user has to act.
//! Reported health changes only after observed health has differed from it for a grace period without a break, in either
//! direction. A permanent failure, which lasts until a user changes something, is reported at once.
//!
//! So reported health changes at most `2 * (elapsed / grace + 1)` times in any period, and at most `elapsed / grace + 1` times
//! without permanent failures.

use std::time::Duration;

/// The default grace period. It is longer than a container takes to restart or a pod to move to another node, and shorter than
/// alerts usually wait.
pub const GRACE: Duration = Duration::from_secs(30);

/// Health as observed at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observed {
    /// All objects are healthy.
    Healthy,
    /// An object is unhealthy and may recover by itself.
    Unhealthy,
    /// An object stays unhealthy until a user changes something.
    Failed,
}

/// What earlier observations left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debounce {
    /// The health that was reported, or `None` if there is no valid report.
    pub reported: Option<bool>,
    /// Since when observed health has differed from reported health, on any monotonic clock.
    pub differs_since: Option<Duration>,
}

/// The result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The health to report.
    pub healthy: bool,
    /// The state for the next observation.
    pub next: Debounce,
    /// When to observe again if no change is seen before, or `None` if there is nothing to wait for.
    pub recheck_after: Option<Duration>,
}

/// Decides what to report after an observation.
pub fn debounce(before: Debounce, observed: Observed, now: Duration, grace: Duration) -> Decision {
    let healthy = observed == Observed::Healthy;
    let settled = |healthy| Decision {
        healthy,
        next: Debounce { reported: Some(healthy), differs_since: None },
        recheck_after: None,
    };
    match before.reported {
        Some(reported) if reported != healthy && observed != Observed::Failed => {
            // A clock that was set back must not extend the grace period.
            let since = before.differs_since.unwrap_or(now).min(now);
            let left = grace.saturating_sub(now.saturating_sub(since));
            if left.is_zero() {
                return settled(healthy);
            }
            Decision {
                healthy: reported,
                next: Debounce { reported: Some(reported), differs_since: Some(since) },
                recheck_after: Some(left),
            }
        }
        _ => settled(healthy),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// What is reported after each observation.
    fn run(looks: &[(u64, Observed)], grace: Duration) -> Vec<bool> {
        let mut before = Debounce::default();
        let decide = |(at, found): &(u64, Observed)| {
            let decision = debounce(before, *found, seconds(*at), grace);
            before = decision.next;
            decision.healthy
        };
        looks.iter().map(decide).collect()
    }

    #[test]
    fn a_short_failure_is_not_reported_and_a_long_one_is() {
        use Observed::{Failed, Healthy, Unhealthy};
        let grace = seconds(30);
        for (looks, want) in [
            (vec![(0, Healthy), (5, Unhealthy), (20, Healthy)], vec![true, true, true]),
            (vec![(0, Healthy), (5, Unhealthy), (34, Unhealthy), (35, Unhealthy)], vec![true, true, true, false]),
            // A healthy observation restarts the grace period.
            (vec![(0, Healthy), (5, Unhealthy), (30, Healthy), (31, Unhealthy), (60, Unhealthy)], vec![true; 5]),
            // A permanent failure is reported at once, and recovery as late as any other.
            (vec![(0, Healthy), (5, Failed), (6, Healthy), (36, Healthy)], vec![true, false, false, true]),
            // A pod that crashes repeatedly is not reported healthy in between.
            (
                vec![(0, Healthy), (5, Unhealthy), (35, Unhealthy), (40, Healthy), (50, Unhealthy), (79, Healthy)],
                vec![true, true, false, false, false, false],
            ),
            // The first observation is reported as it is.
            (vec![(0, Unhealthy), (1, Healthy), (31, Healthy)], vec![false, false, true]),
        ] {
            assert_eq!(run(&looks, grace), want, "{looks:?}");
        }
    }

    #[test]
    fn the_decision_says_when_to_check_again() {
        let healthy = Debounce { reported: Some(true), differs_since: None };
        let first = debounce(healthy, Observed::Unhealthy, seconds(100), seconds(30));
        assert_eq!((first.healthy, first.recheck_after), (true, Some(seconds(30))));
        let second = debounce(first.next, Observed::Unhealthy, seconds(120), seconds(30));
        assert_eq!(second.recheck_after, Some(seconds(10)));
        let third = debounce(second.next, Observed::Unhealthy, seconds(130), seconds(30));
        assert_eq!((third.healthy, third.recheck_after, third.next.differs_since), (false, None, None));
        // The clock was set back.
        let back = debounce(second.next, Observed::Unhealthy, seconds(3), seconds(30));
        assert_eq!(back.recheck_after, Some(seconds(30)));
    }

    #[test]
    fn without_a_grace_period_every_change_is_reported_at_once() {
        use Observed::{Healthy, Unhealthy};
        assert_eq!(run(&[(0, Healthy), (0, Unhealthy), (0, Healthy)], Duration::ZERO), [true, false, true]);
    }

    fn looks() -> impl Strategy<Value = Vec<(u64, Observed)>> {
        let found =
            prop_oneof![3 => Just(Observed::Healthy), 3 => Just(Observed::Unhealthy), 1 => Just(Observed::Failed)];
        prop::collection::vec((0_u64..40, found), 1..200).prop_map(|steps| {
            let mut now = 0;
            let step = |(pause, found)| {
                now += pause;
                (now, found)
            };
            steps.into_iter().map(step).collect()
        })
    }

    fn flips(reported: &[bool]) -> u64 {
        reported.windows(2).filter(|pair| pair.first() != pair.last()).count() as u64
    }

    proptest! {
        #[test]
        fn reports_change_at_most_once_per_grace_period(looks in looks(), grace in 1_u64..60) {
            let elapsed = looks.last().unwrap().0 - looks.first().unwrap().0;
            let flips = flips(&run(&looks, seconds(grace)));
            let bound = elapsed / grace + 1;
            prop_assert!(flips <= 2 * bound, "{flips} changes in {elapsed} s");
            if looks.iter().all(|(_, observed)| *observed != Observed::Failed) {
                prop_assert!(flips <= bound, "{flips} changes in {elapsed} s");
            }
        }

        #[test]
        fn health_that_lasts_is_reported(looks in looks(), grace in 1_u64..60, last in prop_oneof![Just(Observed::Healthy), Just(Observed::Unhealthy)]) {
            let mut looks = looks;
            let end = looks.last().unwrap().0;
            looks.push((end, last));
            looks.push((end + grace, last));
            let reported = run(&looks, seconds(grace)).pop();
            prop_assert_eq!(reported, Some(last == Observed::Healthy));
        }
    }
}
