//! When the component of a class is not called for a while.
//!
//! A component whose calls crash, time out or exceed limits for several requesters, and that renders no bundle at all, is quarantined: calls
//! would only cost time. Three rules keep a tenant from taking a class away from others with hostile bundles:
//!
//! - the failures of one requester count once, however many bundles it has;
//! - a component that renders some bundle is never quarantined;
//! - during a quarantine, each requester gets one call with inputs that have not failed. If it succeeds, the quarantine ends.
//!
//! So a component that works is called for each tenant, and one that works for none is called once for each of them. Quarantines that follow
//! each other become longer, up to a limit.
//!
//! Calls that ask whether a component recognises content count when they fail, as the ones that render do. When they succeed, they say nothing
//! about rendering, and neither end nor use up anything: a requester's content is looked at during a quarantine as long as that works.
//!
//! A requester is a namespace of accounts, as where requesters take turns: users who may create accounts there gain nothing by more of them. Where only
//! accounts of certain namespaces install bundles (`--accounts-in`), administrators create the accounts, and each counts for itself ([`requester`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chandler_core::Digest;
use chandler_permissions::AccountPolicy;
use chandler_turns::Requester;

/// For how many requesters calls must fail.
const REQUESTERS: usize = 3;
/// How long the first quarantine is. Each one that follows is twice as long.
const SHORTEST: Duration = Duration::from_mins(5);
/// How long a quarantine is at most.
pub const LONGEST: Duration = Duration::from_hours(1);
/// How many BundleDeployments are remembered for one component. If there are more, the failures of the others do not count.
const DEPLOYMENTS: usize = 16 * 1024;

/// A call of a component.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The name of the BundleDeployment that it renders.
    pub deployment: &'a str,
    /// On whose behalf, from [`requester`].
    pub requester: &'a str,
    /// The digest of everything that the author of the bundle decides: the content and the configuration.
    pub inputs: &'a Digest,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a component is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To say whether it recognises content.
    Detect,
    /// To render a bundle.
    Render,
}

/// Whether a component may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is not quarantined.
    Free,
    /// It is quarantined, and this call may end that.
    Trial,
    /// It is quarantined until this time, or until a call of another requester succeeds.
    Refused(Duration),
}

/// What is known of the calls of one component. Times are counted from any fixed beginning.
#[derive(Debug, Default)]
pub struct Quarantine {
    deployments: BTreeMap<String, Results>,
    /// How many quarantines followed each other.
    strikes: u32,
    period: Option<Period>,
}

/// What the component did with the bundles of a BundleDeployment.
#[derive(Debug)]
struct Results {
    requester: String,
    /// The last inputs that it rendered, unless it failed with the same ones since.
    rendered: Option<Digest>,
    /// The inputs of the last call to render, if it failed.
    failed: Option<Digest>,
    /// The inputs of the last call to detect, if it failed.
    failed_to_detect: Option<Digest>,
}

impl Results {
    fn failed(&mut self, purpose: Purpose) -> &mut Option<Digest> {
        match purpose {
            Purpose::Detect => &mut self.failed_to_detect,
            Purpose::Render => &mut self.failed,
        }
    }
}

/// A quarantine.
#[derive(Debug)]
struct Period {
    until: Duration,
    /// The requesters that had their call to render.
    tried: BTreeSet<String>,
    /// The requesters that had a call to detect that failed.
    undetected: BTreeSet<String>,
    /// The BundleDeployments that wait for its end.
    waiting: BTreeSet<String>,
}

impl Period {
    /// Whether a requester may have another call.
    fn admits(&mut self, call: Call<'_>) -> bool {
        match call.purpose {
            Purpose::Detect => !self.undetected.contains(call.requester),
            Purpose::Render => self.tried.insert(call.requester.to_owned()),
        }
    }

    fn wait(&mut self, deployment: &str) {
        if self.waiting.len() < DEPLOYMENTS {
            self.waiting.insert(deployment.to_owned());
        }
    }
}

impl Quarantine {
    /// Until when the component is quarantined.
    pub fn until(&self, now: Duration) -> Option<Duration> {
        self.period.as_ref().map(|period| period.until).filter(|until| *until > now)
    }

    /// Whether the component may be called. Each call that may begin ends with [`rendered`](Self::rendered), [`looked`](Self::looked),
    /// [`failed`](Self::failed) or [`ended`](Self::ended).
    pub fn admit(&mut self, call: Call<'_>, now: Duration) -> Admission {
        self.period.take_if(|period| period.until <= now);
        let Some(period) = &mut self.period else { return Admission::Free };
        let results = self.deployments.get_mut(call.deployment);
        let has_failed = results.is_some_and(|results| results.failed(call.purpose).as_ref() == Some(call.inputs));
        if !has_failed && period.admits(call) {
            return Admission::Trial;
        }
        period.wait(call.deployment);
        Admission::Refused(period.until)
    }

    /// Notes that the component rendered a bundle, which ends a quarantine. Returns the BundleDeployments that waited for that.
    pub fn rendered(&mut self, call: Call<'_>) -> BTreeSet<String> {
        if !self.deployments.contains_key(call.deployment) && self.deployments.len() >= DEPLOYMENTS {
            let failed = self.deployments.iter().find(|(_, results)| results.rendered.is_none());
            if let Some(name) = failed.map(|(name, _)| name.clone()) {
                self.deployments.remove(&name);
            }
        }
        if let Some(results) = self.results(call) {
            results.rendered = Some(call.inputs.clone());
            results.failed = None;
            results.failed_to_detect = None;
        }
        self.strikes = 0;
        self.period.take().map(|period| period.waiting).unwrap_or_default()
    }

    /// Notes that the component said whether it recognises content.
    pub fn looked(&mut self, call: Call<'_>) {
        if let Some(results) = self.deployments.get_mut(call.deployment) {
            results.failed_to_detect = None;
        }
    }

    /// Notes that the component crashed, or exceeded a limit. Returns the end of the quarantine that is in force afterwards.
    pub fn failed(&mut self, call: Call<'_>, now: Duration) -> Option<Duration> {
        if let Some(results) = self.results(call) {
            *results.failed(call.purpose) = Some(call.inputs.clone());
            results.rendered.take_if(|rendered| rendered == call.inputs);
        }
        self.period.take_if(|period| period.until <= now);
        if let Some(period) = &mut self.period {
            // The trial failed: the next call of this BundleDeployment waits as well.
            period.wait(call.deployment);
            if call.purpose == Purpose::Detect {
                period.undetected.insert(call.requester.to_owned());
            }
        } else if self.fails_for_all() {
            let until = now.saturating_add(length(self.strikes));
            self.strikes = self.strikes.saturating_add(1);
            let [tried, undetected, waiting] = [const { BTreeSet::new() }; 3];
            self.period = Some(Period { until, tried, undetected, waiting });
        }
        self.until(now)
    }

    /// Notes that a call ended without a result that counts: it was cancelled, or the component refused the bundle.
    pub fn ended(&mut self, call: Call<'_>) {
        if let Some(period) = self.period.as_mut().filter(|_| call.purpose == Purpose::Render) {
            period.tried.remove(call.requester);
        }
    }

    /// Ends a quarantine, and forgets the failures before it. Returns the BundleDeployments that waited for that.
    pub fn release(&mut self) -> BTreeSet<String> {
        self.deployments.retain(|_, results| results.rendered.is_some());
        self.strikes = 0;
        self.period.take().map(|period| period.waiting).unwrap_or_default()
    }

    /// Forgets a BundleDeployment.
    pub fn forget(&mut self, deployment: &str) {
        self.deployments.remove(deployment);
        if let Some(period) = &mut self.period {
            period.waiting.remove(deployment);
        }
    }

    /// The results of a BundleDeployment; `None` if too many are remembered.
    fn results(&mut self, call: Call<'_>) -> Option<&mut Results> {
        if !self.deployments.contains_key(call.deployment) && self.deployments.len() >= DEPLOYMENTS {
            return None;
        }
        let new = || Results { requester: String::new(), rendered: None, failed: None, failed_to_detect: None };
        let results = self.deployments.entry(call.deployment.to_owned()).or_insert_with(new);
        call.requester.clone_into(&mut results.requester);
        Some(results)
    }

    /// Whether the component renders nothing, and fails for several requesters.
    fn fails_for_all(&self) -> bool {
        let mut failing = BTreeSet::new();
        for results in self.deployments.values() {
            if results.rendered.is_some() {
                return false;
            }
            if results.failed.is_some() || results.failed_to_detect.is_some() {
                failing.insert(results.requester.as_str());
            }
        }
        failing.len() >= REQUESTERS
    }
}

/// The name under which the calls on behalf of an account count: its namespace, or with `--accounts-in` the account itself.
pub fn requester(account: &Requester, policy: &AccountPolicy) -> String {
    if policy.namespaces.is_empty() || account.account().is_empty() {
        return account.namespace().to_owned();
    }
    // No namespace contains a slash.
    format!("{}/{}", account.namespace(), account.account())
}

/// The length of a quarantine after so many others.
fn length(strikes: u32) -> Duration {
    SHORTEST.saturating_mul(2_u32.saturating_pow(strikes)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const START: Duration = Duration::from_hours(24);

    fn call<'a>(deployment: &'a str, requester: &'a str, inputs: &'a Digest) -> Call<'a> {
        Call { deployment, requester, inputs, purpose: Purpose::Render }
    }

    fn look<'a>(deployment: &'a str, requester: &'a str, inputs: &'a Digest) -> Call<'a> {
        Call { purpose: Purpose::Detect, ..call(deployment, requester, inputs) }
    }

    /// A component that failed for three requesters.
    fn quarantined(inputs: &Digest) -> (Quarantine, Duration) {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.failed(call("a", "north", inputs), START), None);
        assert_eq!(quarantine.failed(call("b", "south", inputs), START), None);
        let until = quarantine.failed(call("c", "east", inputs), START).unwrap();
        assert_eq!(until, START + SHORTEST);
        (quarantine, until)
    }

    #[test]
    fn failures_for_three_requesters_stop_the_calls_for_a_time_that_grows_to_a_limit() {
        let inputs = Digest::of(b"x");
        let (mut quarantine, mut until) = quarantined(&inputs);
        let mut lengths = vec![];
        for _ in 0..6 {
            let now = until.saturating_sub(Duration::from_secs(1));
            assert_eq!(quarantine.admit(call("a", "north", &inputs), now), Admission::Refused(until));
            assert_eq!(quarantine.admit(call("a", "north", &inputs), until), Admission::Free, "it is over");
            let next = quarantine.failed(call("a", "north", &inputs), until).unwrap();
            lengths.push(next.saturating_sub(until).as_secs() / 60);
            until = next;
        }
        assert_eq!(lengths, [10, 20, 40, 60, 60, 60]);
    }

    #[test]
    fn accounts_of_one_namespace_count_once_unless_only_administrators_create_them() {
        let inputs = Digest::of(b"x");
        let accounts = ["north", "south", "east"].map(|name| Requester::new("accounts", name));
        let begins = |policy: &AccountPolicy| {
            let mut quarantine = Quarantine::default();
            for account in &accounts {
                let requester = requester(account, policy);
                quarantine.failed(call(account.account(), &requester, &inputs), START);
            }
            quarantine.until(START).is_some()
        };
        let within = AccountPolicy::REQUIRED.within(["accounts".to_owned()]).unwrap();
        assert_eq!((begins(&AccountPolicy::REQUIRED), begins(&within)), (false, true));
        // Users of a namespace without an account are one requester with any policy.
        let unnamed = Requester::new("shop", "");
        assert_eq!([&AccountPolicy::OPTIONAL, &within].map(|policy| requester(&unnamed, policy)), ["shop", "shop"]);
    }

    #[test]
    fn each_requester_gets_one_call_and_a_success_ends_the_quarantine_for_all() {
        let (bad, good) = (Digest::of(b"bad"), Digest::of(b"good"));
        let (mut quarantine, until) = quarantined(&bad);
        assert_eq!(quarantine.admit(call("a", "north", &bad), START), Admission::Refused(until), "it failed");
        assert_eq!(quarantine.admit(call("d", "west", &bad), START), Admission::Trial);
        assert_eq!(quarantine.failed(call("d", "west", &bad), START), Some(until), "it does not become longer");
        assert_eq!(quarantine.admit(call("e", "west", &good), START), Admission::Refused(until));
        assert_eq!(
            quarantine.admit(call("f", "north", &good), START),
            Admission::Trial,
            "another bundle of a requester"
        );
        let woken: Vec<_> = quarantine.rendered(call("f", "north", &good)).into_iter().collect();
        assert_eq!((woken, quarantine.until(START)), (["a", "d", "e"].map(str::to_owned).to_vec(), None));
        for requester in ["1", "2", "3", "4"] {
            assert_eq!(quarantine.failed(call(requester, requester, &bad), START), None, "it renders for north");
        }
    }

    #[test]
    fn a_component_that_fails_with_what_it_rendered_renders_it_no_more() {
        let (inputs, other) = (Digest::of(b"x"), Digest::of(b"y"));
        let mut quarantine = Quarantine::default();
        quarantine.rendered(call("works", "west", &inputs));
        let fail = |quarantine: &mut Quarantine| {
            ["north", "south", "east"]
                .map(|it| quarantine.failed(call(it, it, &other), START))
                .last()
                .copied()
                .flatten()
        };
        assert_eq!(fail(&mut quarantine), None);
        assert_eq!(quarantine.failed(call("works", "west", &other), START), None, "an update that fails");
        assert!(quarantine.failed(call("works", "west", &inputs), START).is_some());
        quarantine.forget("works");
        assert_eq!(quarantine.release().len(), 0);
        assert_eq!(
            (quarantine.until(START), quarantine.admit(call("north", "north", &other), START)),
            (None, Admission::Free)
        );
    }

    #[test]
    fn calls_to_detect_count_when_they_fail_and_end_no_quarantine_when_they_succeed() {
        let (bad, good) = (Digest::of(b"bad"), Digest::of(b"good"));
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.failed(look("a", "north", &bad), START), None);
        assert_eq!(quarantine.failed(call("a", "north", &bad), START), None, "one requester counts once");
        assert_eq!(quarantine.failed(call("b", "south", &bad), START), None);
        quarantine.failed(look("c", "east", &bad), START).unwrap();
        let until = quarantine.until(START).unwrap();

        // What an honest requester has is looked at, however often, and rendered.
        for name in ["d", "e", "d"] {
            assert_eq!(quarantine.admit(look(name, "west", &good), START), Admission::Trial);
            quarantine.looked(look(name, "west", &good));
        }
        assert_eq!(quarantine.until(START), Some(until), "it says nothing about rendering");
        assert_eq!(quarantine.admit(call("d", "west", &good), START), Admission::Trial);
        quarantine.ended(call("d", "west", &good));

        // One failure is enough for a requester.
        assert_eq!(quarantine.admit(look("c", "east", &bad), START), Admission::Refused(until), "it failed with it");
        assert_eq!(quarantine.admit(look("f", "far", &bad), START), Admission::Trial);
        quarantine.failed(look("f", "far", &bad), START);
        assert_eq!(quarantine.admit(look("g", "far", &good), START), Admission::Refused(until));
        let woken: Vec<_> = quarantine.rendered(call("d", "west", &good)).into_iter().collect();
        assert_eq!(woken, ["c", "f", "g"].map(str::to_owned));
    }

    #[test]
    fn content_that_is_looked_at_in_the_end_did_not_fail() {
        let (bad, good) = (Digest::of(b"bad"), Digest::of(b"good"));
        let mut quarantine = Quarantine::default();
        for name in ["a", "b"] {
            quarantine.failed(look(name, name, &bad), START);
        }
        quarantine.looked(look("a", "a", &good));
        assert_eq!(quarantine.failed(look("c", "c", &bad), START), None);
        assert!(quarantine.failed(look("d", "d", &bad), START).is_some());
    }

    #[test]
    fn a_trial_without_a_result_is_not_lost() {
        let (bad, good) = (Digest::of(b"bad"), Digest::of(b"good"));
        let (mut quarantine, _) = quarantined(&bad);
        assert_eq!(quarantine.admit(call("d", "west", &good), START), Admission::Trial);
        quarantine.ended(call("d", "west", &good));
        assert_eq!(quarantine.admit(call("d", "west", &good), START), Admission::Trial);
    }

    /// What a requester does, at what distance in minutes from what was before.
    #[derive(Clone, Debug)]
    struct Act {
        requester: u8,
        deployment: u8,
        inputs: u8,
        outcome: u8,
        minutes: u16,
        purpose: Purpose,
    }

    fn acts(requesters: u8) -> impl Strategy<Value = Vec<Act>> {
        let purpose = prop_oneof![Just(Purpose::Detect), Just(Purpose::Render)];
        let act = (0..requesters, 0..4_u8, 0..3_u8, 0..4_u8, 0..40_u16, purpose);
        let act = act.prop_map(|(requester, deployment, inputs, outcome, minutes, purpose)| Act {
            requester,
            deployment,
            inputs,
            outcome,
            minutes,
            purpose,
        });
        vec(act, 0..60)
    }

    /// Performs acts, and returns the time after them. `check` sees each answer, with the act.
    fn perform(
        quarantine: &mut Quarantine,
        acts: &[Act],
        mut check: impl FnMut(&Act, Admission, Duration),
    ) -> Duration {
        let mut now = START;
        for act in acts {
            now += Duration::from_secs(u64::from(act.minutes) * 60);
            let requester = format!("r{}", act.requester);
            let deployment = format!("{requester}-{}", act.deployment);
            let inputs = Digest::of(&[act.inputs]);
            let call = Call { purpose: act.purpose, ..call(&deployment, &requester, &inputs) };
            let admission = quarantine.admit(call, now);
            check(act, admission, now);
            if matches!(admission, Admission::Refused(_)) {
                continue;
            }
            match act.outcome {
                0 if act.purpose == Purpose::Detect => quarantine.looked(call),
                0 => drop(quarantine.rendered(call)),
                1 => quarantine.ended(call),
                _ => {
                    quarantine.failed(call, now);
                }
            }
        }
        now
    }

    proptest! {
        #[test]
        fn requesters_below_the_number_never_stop_the_calls(acts in acts(2)) {
            let mut refused = 0;
            perform(&mut Quarantine::default(), &acts, |_, admission, _| {
                refused += usize::from(admission != Admission::Free);
            });
            prop_assert_eq!(refused, 0);
        }

        #[test]
        fn whatever_others_do_a_requester_whose_bundle_did_not_fail_is_called_and_ends_the_quarantine(
            before in acts(6),
            after in acts(6),
        ) {
            let (mut quarantine, inputs) = (Quarantine::default(), Digest::of(b"honest"));
            let now = perform(&mut quarantine, &before, |_, _, _| {});
            let honest = call("honest", "honest", &inputs);
            let detected = look("honest", "honest", &inputs);
            prop_assert!(!matches!(quarantine.admit(detected, now), Admission::Refused(_)));
            quarantine.looked(detected);
            prop_assert!(!matches!(quarantine.admit(honest, now), Admission::Refused(_)));
            quarantine.rendered(honest);
            let mut refused = 0;
            perform(&mut quarantine, &after, |_, admission, _| refused += usize::from(admission != Admission::Free));
            prop_assert_eq!(refused, 0, "it works for the honest requester");
        }

        #[test]
        fn a_quarantine_is_bounded_and_costs_each_requester_one_call(acts in acts(8)) {
            let mut trials: BTreeSet<(Duration, u8, bool)> = BTreeSet::new();
            let mut current = None;
            perform(&mut Quarantine::default(), &acts, |act, admission, now| match admission {
                Admission::Refused(until) => {
                    assert!(until > now && until.saturating_sub(now) <= LONGEST);
                    current = Some(until);
                }
                Admission::Trial if act.outcome > 1 => {
                    if let Some(until) = current.filter(|until| *until > now) {
                        let trial = (until, act.requester, act.purpose == Purpose::Detect);
                        assert!(trials.insert(trial), "a second call of one requester");
                    }
                }
                Admission::Free => {
                    trials.clear();
                    current = None;
                }
                Admission::Trial => {}
            });
        }
    }
}
