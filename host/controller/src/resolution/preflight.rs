//! All members of a decision are fetched, rendered and checked before the first of them is written. Refusals are remembered.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::Digest;
use chandler_decisions::account::requester;
use chandler_resolution::{Manifests, checks::Refusal, installation::Placement};
use chandler_runtime::Jobs;
use kube::ResourceExt as _;
use parking_lot::{Mutex, MutexGuard};

use super::member_checks::{Unsettled, refusals, unsettled};
use crate::bundle_deployment::Installer;

/// The maximum number of rounds of a reconcile. One or two are usually enough: a round finds all refusals of its members.
pub(super) const ROUNDS: usize = 10;
/// How long members that were refused wait for the next check. A permission that is granted and an image that is pushed change no object
/// that the controller watches.
pub(super) const CHECK_AGAIN: Duration = Duration::from_secs(30);
/// The longest such wait. It doubles while a check finds the same refusals as the check before.
const LONGEST_WAIT: Duration = Duration::from_mins(8);

/// The checks of the Resolutions: a job for each round of each.
#[derive(Default)]
pub(super) struct Preflights {
    jobs: Jobs<Vec<Refusal>>,
    /// What was refused, by the name of the job.
    refused: Mutex<HashMap<String, Refused>>,
}

/// What was refused, and when.
#[derive(Clone)]
struct Refused {
    inputs: Digest,
    refusals: Vec<Refusal>,
    at: Instant,
    /// How long it waits for the next check, if nothing changes that may help.
    wait: Duration,
    occasion: Occasion,
}

/// What makes a new check worthwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Occasion {
    /// The user's last request for a reconcile. It is met at once.
    pub(super) requested: Option<String>,
    /// The kinds that the cluster serves. They change again and again while a set is installed.
    pub(super) kinds: Option<Digest>,
}

impl Refused {
    /// How long to wait for the next check.
    fn wait(&self, occasion: &Occasion) -> Duration {
        let wait = if self.occasion.requested != occasion.requested {
            Duration::ZERO
        } else if self.occasion.kinds != occasion.kinds {
            CHECK_AGAIN
        } else {
            self.wait
        };
        wait.saturating_sub(self.at.elapsed())
    }

    /// How long to wait after a check with these refusals.
    fn wait_after(before: Option<&Self>, refusals: &[Refusal], occasion: &Occasion) -> Duration {
        let same = before.filter(|it| it.refusals == refusals && it.occasion == *occasion);
        same.map_or(CHECK_AGAIN, |it| (it.wait * 2).min(LONGEST_WAIT))
    }
}

/// The decision that is checked.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) resolution: &'a str,
    pub(super) round: usize,
    pub(super) manifests: &'a Manifests,
    pub(super) occasion: &'a Occasion,
    /// The members that other Resolutions give up. They are checked even if nothing has to be written: it is unknown whether this
    /// Resolution may install them.
    pub(super) taken_over: &'a BTreeMap<String, Placement>,
}

/// What is known about the checks of a decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Preflight {
    /// Nothing refuses the members.
    Passed,
    /// They are being fetched, rendered and checked.
    Running,
    /// Why members would be refused.
    Refused {
        /// At least one.
        refusals: Vec<Refusal>,
        /// When they are checked again.
        again: Duration,
    },
}

impl Preflights {
    /// Checks the members of a decision that are new or changed. If that takes longer, `wake` is called when it ends. A member that was
    /// refused stays refused until a later check accepts it.
    pub(super) async fn check(
        &self,
        installer: &Arc<Installer>,
        check: Check<'_>,
        wake: impl FnOnce() + Send + 'static,
    ) -> Preflight {
        let members = unsettled(installer, check.manifests, check.taken_over);
        let job = job(check.resolution, check.round);
        let Some(first) = members.first() else {
            self.refused().remove(&job);
            return Preflight::Passed;
        };
        // All members of a set have one account.
        let requester = requester(&first.member, &installer.cluster.options.accounts);
        let inputs = inputs(installer, check.manifests, &members);
        let known = self.known(&job, &inputs);
        if let Some(known) = &known {
            let again = known.wait(check.occasion);
            if !again.is_zero() {
                return Preflight::Refused { refusals: known.refusals.clone(), again };
            }
        }
        let (installer, resolution) = (Arc::clone(installer), check.resolution.to_owned());
        let work = move || refusals(installer, resolution, members);
        let refusals = match self.jobs.outcome(&requester, &job, &inputs, work, wake).await {
            Some(Ok(refusals)) => refusals,
            Some(Err(_)) => vec![Refusal {
                packages: Vec::new(),
                message: "the controller panicked while it checked the members: its log says more".to_owned(),
                excludes: None,
            }],
            None => {
                let refused = |known: Refused| Preflight::Refused { refusals: known.refusals, again: CHECK_AGAIN };
                return known.map_or(Preflight::Running, refused);
            }
        };
        if refusals.is_empty() {
            self.refused().remove(&job);
            return Preflight::Passed;
        }
        let wait = Refused::wait_after(known.as_ref(), &refusals, check.occasion);
        let occasion = check.occasion.clone();
        let refused = Refused { inputs, refusals: refusals.clone(), at: Instant::now(), wait, occasion };
        self.refused().insert(job, refused);
        Preflight::Refused { refusals, again: wait }
    }

    /// Whether the last check of the same decision refused members.
    pub(super) fn is_refused(&self, installer: &Installer, check: Check<'_>) -> bool {
        let members = unsettled(installer, check.manifests, check.taken_over);
        !members.is_empty()
            && self.known(&job(check.resolution, check.round), &inputs(installer, check.manifests, &members)).is_some()
    }

    /// Ends the checks of the rounds after this one.
    pub(super) fn forget_after(&self, resolution: &str, round: usize) {
        for later in round + 1..ROUNDS {
            let job = job(resolution, later);
            self.jobs.end(&job);
            self.refused().remove(&job);
        }
    }

    /// Ends the checks of a Resolution.
    pub(super) fn end(&self, resolution: &str) {
        for round in 0..ROUNDS {
            self.refused().remove(&job(resolution, round));
        }
        self.jobs.end(resolution);
    }

    /// What was refused for the same inputs.
    fn known(&self, job: &str, inputs: &Digest) -> Option<Refused> {
        self.refused().get(job).filter(|known| known.inputs == *inputs).cloned()
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<String, Refused>> {
        self.refused.lock()
    }
}

/// The name of the job of a round.
fn job(resolution: &str, round: usize) -> String {
    format!("{resolution}/{round}")
}

/// What the checks depend on, except the objects of the cluster. The state of the members is not part of it: it changes all the time while
/// they are installed.
fn inputs(installer: &Installer, manifests: &Manifests, members: &[Unsettled]) -> Digest {
    let approved = members.iter().map(|Unsettled { member, .. }| {
        let stored = installer.deployments.get(&member.name_any())?;
        Some(installer.approvals.upgrades(&stored)).filter(|approved| !approved.is_empty())
    });
    Digest::of_json(&(&manifests.0, approved.flatten().collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(inputs: &Digest) -> Refused {
        let (refusals, occasion) = (Vec::new(), Occasion::default());
        Refused { inputs: inputs.clone(), refusals, at: Instant::now(), wait: CHECK_AGAIN, occasion }
    }

    #[test]
    fn checks_that_find_the_same_become_rarer() {
        let refusal =
            |message: &str| vec![Refusal { packages: vec!["app".into()], message: message.into(), excludes: None }];
        let occasion = Occasion::default();
        let mut known = Refused { refusals: refusal("no permission"), ..refused(&Digest::of(b"decision")) };
        let mut waits = Vec::new();
        for _ in 0..6 {
            known.wait = Refused::wait_after(Some(&known), &refusal("no permission"), &occasion);
            waits.push(known.wait.as_secs());
        }
        assert_eq!(waits, [60, 120, 240, 480, 480, 480]);
        let other = Occasion { kinds: Some(Digest::of(b"more")), ..occasion.clone() };
        for (refusals, occasion) in [(refusal("quota"), &occasion), (refusal("no permission"), &other)] {
            assert_eq!(Refused::wait_after(Some(&known), &refusals, occasion), CHECK_AGAIN);
        }
        assert_eq!(Refused::wait_after(None, &refusal("quota"), &occasion), CHECK_AGAIN);
    }

    #[test]
    fn new_kinds_and_requests_do_not_wait_for_long() {
        let known = Refused { wait: LONGEST_WAIT, ..refused(&Digest::of(b"decision")) };
        let occasion = Occasion::default();
        assert!(known.wait(&occasion) > CHECK_AGAIN);
        let more = Occasion { kinds: Some(Digest::of(b"more")), ..occasion.clone() };
        let wait = known.wait(&more);
        assert!(!wait.is_zero() && wait <= CHECK_AGAIN);
        assert!(known.wait(&Occasion { requested: Some("now".into()), ..more }).is_zero());
    }

    #[test]
    fn the_checks_of_later_rounds_and_of_gone_resolutions_are_forgotten() {
        let preflights = Preflights::default();
        let inputs = Digest::of(b"decision");
        for name in ["shop/0", "shop/1", "shop/2", "shop-two/1"] {
            preflights.refused().insert(name.to_owned(), refused(&inputs));
        }
        let known = |name: &str, inputs: &Digest| preflights.known(name, inputs).is_some();
        preflights.forget_after("shop", 0);
        let left = ["shop/0", "shop/1", "shop/2", "shop-two/1"].map(|name| known(name, &inputs));
        assert_eq!(left, [true, false, false, true]);
        assert!(!known("shop/0", &Digest::of(b"another decision")));
        preflights.end("shop");
        assert_eq!(["shop/0", "shop-two/1"].map(|name| known(name, &inputs)), [false, true]);
    }
}
