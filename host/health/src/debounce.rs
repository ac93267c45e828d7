//! When what is reported follows what is found.
//!
//! A complete release whose pod is moved to another node is not well for some seconds, and nobody has to do anything about
//! it. What is reported changes only when what is found has differed from it for a grace period without a break, in either
//! direction. What stays broken until somebody acts is reported at once.
//!
//! So there are at most `2 * (elapsed / grace + 1)` changes in any time, and at most `elapsed / grace + 1` without permanent
//! failures.

use std::time::Duration;

/// The grace period where nothing else is set. Longer than a container takes to start again, or a pod to move to another
/// node; shorter than alerts usually wait.
pub const GRACE: Duration = Duration::from_secs(30);

/// What is found at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// Everything works.
    Healthy,
    /// Something does not work, and may mend itself.
    Unhealthy,
    /// Something stays broken until somebody acts.
    Failed,
}

/// What is known from before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steadiness {
    /// Whether it was reported as healthy; none where nothing was reported that still counts.
    pub reported: Option<bool>,
    /// Since when, on any clock that does not go back, what is found has differed from what is reported.
    pub differs_since: Option<Duration>,
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is to be reported as healthy.
    pub healthy: bool,
    /// What is to be known the next time.
    pub next: Steadiness,
    /// After which time to look again though nothing is seen to change; none where there is nothing to wait for.
    pub look_again: Option<Duration>,
}

/// What to report after this was found now.
pub fn steady(before: Steadiness, found: Found, now: Duration, grace: Duration) -> Decision {
    let healthy = found == Found::Healthy;
    let settled = |healthy| Decision {
        healthy,
        next: Steadiness { reported: Some(healthy), differs_since: None },
        look_again: None,
    };
    match before.reported {
        Some(reported) if reported != healthy && found != Found::Failed => {
            // A clock that went back must not make it wait for longer than the grace period.
            let since = before.differs_since.unwrap_or(now).min(now);
            let left = grace.saturating_sub(now.saturating_sub(since));
            if left.is_zero() {
                return settled(healthy);
            }
            Decision {
                healthy: reported,
                next: Steadiness { reported: Some(reported), differs_since: Some(since) },
                look_again: Some(left),
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

    /// What is reported after each look.
    fn run(looks: &[(u64, Found)], grace: Duration) -> Vec<bool> {
        let mut before = Steadiness::default();
        let decide = |(at, found): &(u64, Found)| {
            let decision = steady(before, *found, seconds(*at), grace);
            before = decision.next;
            decision.healthy
        };
        looks.iter().map(decide).collect()
    }

    #[test]
    fn a_short_failure_is_not_reported_and_a_long_one_is() {
        use Found::{Failed, Healthy, Unhealthy};
        let grace = seconds(30);
        for (looks, want) in [
            (vec![(0, Healthy), (5, Unhealthy), (20, Healthy)], vec![true, true, true]),
            (vec![(0, Healthy), (5, Unhealthy), (34, Unhealthy), (35, Unhealthy)], vec![true, true, true, false]),
            // A break starts the period anew.
            (vec![(0, Healthy), (5, Unhealthy), (30, Healthy), (31, Unhealthy), (60, Unhealthy)], vec![true; 5]),
            // What stays broken is told at once, and recovers as everything does.
            (vec![(0, Healthy), (5, Failed), (6, Healthy), (36, Healthy)], vec![true, false, false, true]),
            // A pod that crashes again and again is not well in between.
            (
                vec![(0, Healthy), (5, Unhealthy), (35, Unhealthy), (40, Healthy), (50, Unhealthy), (79, Healthy)],
                vec![true, true, false, false, false, false],
            ),
            // What was never reported is told as it is.
            (vec![(0, Unhealthy), (1, Healthy), (31, Healthy)], vec![false, false, true]),
        ] {
            assert_eq!(run(&looks, grace), want, "{looks:?}");
        }
    }

    #[test]
    fn it_tells_when_to_look_again() {
        let healthy = Steadiness { reported: Some(true), differs_since: None };
        let first = steady(healthy, Found::Unhealthy, seconds(100), seconds(30));
        assert_eq!((first.healthy, first.look_again), (true, Some(seconds(30))));
        let second = steady(first.next, Found::Unhealthy, seconds(120), seconds(30));
        assert_eq!(second.look_again, Some(seconds(10)));
        let third = steady(second.next, Found::Unhealthy, seconds(130), seconds(30));
        assert_eq!((third.healthy, third.look_again, third.next.differs_since), (false, None, None));
        // The clock went back.
        let back = steady(second.next, Found::Unhealthy, seconds(3), seconds(30));
        assert_eq!(back.look_again, Some(seconds(30)));
    }

    #[test]
    fn without_a_grace_period_everything_is_told_at_once() {
        use Found::{Healthy, Unhealthy};
        assert_eq!(run(&[(0, Healthy), (0, Unhealthy), (0, Healthy)], Duration::ZERO), [true, false, true]);
    }

    fn looks() -> impl Strategy<Value = Vec<(u64, Found)>> {
        let found = prop_oneof![3 => Just(Found::Healthy), 3 => Just(Found::Unhealthy), 1 => Just(Found::Failed)];
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
        fn changes_are_rarer_than_the_grace_period(looks in looks(), grace in 1_u64..60) {
            let elapsed = looks.last().unwrap().0 - looks.first().unwrap().0;
            let flips = flips(&run(&looks, seconds(grace)));
            let bound = elapsed / grace + 1;
            prop_assert!(flips <= 2 * bound, "{flips} changes in {elapsed} s");
            if looks.iter().all(|(_, found)| *found != Found::Failed) {
                prop_assert!(flips <= bound, "{flips} changes in {elapsed} s");
            }
        }

        #[test]
        fn what_lasts_is_reported(looks in looks(), grace in 1_u64..60, last in prop_oneof![Just(Found::Healthy), Just(Found::Unhealthy)]) {
            let mut looks = looks;
            let end = looks.last().unwrap().0;
            looks.push((end, last));
            looks.push((end + grace, last));
            let reported = run(&looks, seconds(grace)).pop();
            prop_assert_eq!(reported, Some(last == Found::Healthy));
        }
    }
}
