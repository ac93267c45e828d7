//! Random histories of PlatformOperators drive the proxy. After every step, the cluster-version operator judges its ClusterOperator, and
//! the judgement must fit what happened.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod operator;

use std::{collections::BTreeMap, time::Duration};

use chandler_api::{ClusterOperatorCondition, ClusterOperatorStatus, OperandVersion};
use chandler_resolution::cluster_operators::{
    Derived, Memory, Package, Packages, Platform, Thresholds,
    judge::{Effect, Mode, is_progressing, judge, permits_minor_update},
    related,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use self::operator::{Life, Operator};

const OUTAGE: i64 = 60;
const FAILURE: i64 = 300;

/// One step of a history. Numbers select a PlatformOperator.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u8),
    Advance(u8),
    Fail(u8),
    Recover(u8),
    Sicken(u8),
    Upgrade(u8),
    Wait(u8),
    Delete(u8),
    /// The highest version of OpenShift that the next bundle runs on, as an offset; none is unlimited, and the second is unreadable.
    Limit(u8, Option<i64>, bool),
    /// The controller restarts and forgets what it remembers.
    Restart,
    /// A new controller restarts.
    Release,
    OpenShift,
    /// The cluster-version operator has installed the cluster.
    Installed,
    Clock(i64),
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_u8..3;
    prop_oneof![
        3 => which.clone().prop_map(Step::Create),
        9 => which.clone().prop_map(Step::Advance),
        3 => which.clone().prop_map(Step::Fail),
        3 => which.clone().prop_map(Step::Recover),
        2 => which.clone().prop_map(Step::Sicken),
        3 => which.clone().prop_map(Step::Upgrade),
        1 => which.clone().prop_map(Step::Wait),
        1 => which.clone().prop_map(Step::Delete),
        1 => (which, proptest::option::of(-1_i64..2), any::<bool>())
            .prop_map(|(which, most, broken)| Step::Limit(which, most, broken)),
        2 => Just(Step::Restart),
        1 => Just(Step::Release),
        1 => Just(Step::OpenShift),
        1 => Just(Step::Installed),
        8 => prop_oneof![1_i64..20, Just(59), Just(60), Just(299), Just(300), Just(4000), Just(-700)].prop_map(Step::Clock),
        1 => Just(Step::Look),
    ]
}

/// The cluster, the proxy, and what is true of both.
struct World {
    operators: BTreeMap<u8, Operator>,
    now: Timestamp,
    minor: i64,
    release: u32,
    memory: Memory,
    status: Option<ClusterOperatorStatus>,
    /// Since when each operator has failed or not worked, as an outsider sees it.
    bad: BTreeMap<u8, Timestamp>,
    /// When the controller started.
    started: Timestamp,
    /// Whether the cluster-version operator is installing the cluster.
    is_installing: bool,
    /// Whether a first rollout was complete once.
    was_complete: bool,
    /// Whether something was initializing before the last step.
    was_initializing: bool,
}

impl World {
    fn new() -> Self {
        let now = Timestamp::from_second(1_000_000).unwrap();
        Self {
            operators: BTreeMap::new(),
            now,
            minor: 18,
            release: 1,
            memory: Memory::default(),
            status: None,
            bad: BTreeMap::new(),
            started: now,
            is_installing: false,
            was_complete: false,
            was_initializing: false,
        }
    }

    /// A cluster that is being installed.
    fn installing() -> Self {
        Self { is_installing: true, ..Self::new() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create(which) => drop(self.operators.entry(which).or_insert_with(|| Operator::new(which))),
            Step::Limit(which, most, broken) => {
                let limit = most.map(|most| if broken { Err(()) } else { Ok(self.minor + most) });
                self.change(which, |it| it.limit = limit);
            }
            Step::Advance(which) => {
                self.change(which, Operator::advance);
                self.operators.retain(|_, it| it.life != Life::Gone);
            }
            Step::Fail(which) => self.change(which, Operator::fail),
            Step::Recover(which) => self.change(which, Operator::recover),
            Step::Sicken(which) => self.change(which, Operator::sicken),
            Step::Upgrade(which) => self.change(which, Operator::upgrade),
            Step::Wait(which) => self.change(which, Operator::wait),
            Step::Delete(which) => self.change(which, Operator::delete),
            Step::Restart => self.restart(),
            Step::Release => {
                self.release += 1;
                self.restart();
            }
            Step::OpenShift => self.minor += 1,
            Step::Installed => self.is_installing = false,
            Step::Clock(seconds) => {
                let step = SignedDuration::from_secs(seconds);
                self.now += step;
                if seconds < 0 {
                    // What lasted before has lasted as long.
                    self.started += step;
                    self.bad.values_mut().for_each(|since| *since += step);
                }
            }
            Step::Look => {}
        }
        let now = self.now;
        self.bad.retain(|which, _| self.operators.get(which).is_some_and(Operator::is_bad));
        for (which, _) in self.operators.iter().filter(|(_, it)| it.is_bad()) {
            self.bad.entry(*which).or_insert(now);
        }
    }

    fn change(&mut self, which: u8, change: impl FnOnce(&mut Operator)) {
        if let Some(operator) = self.operators.get_mut(&which) {
            change(operator);
        }
    }

    fn restart(&mut self) {
        self.memory = Memory::default();
        self.started = self.now;
    }

    fn version(&self) -> String {
        format!("0.{}.0", self.release)
    }

    /// What the proxy derives at a time, from these memories.
    fn derive(&self, before: Option<&ClusterOperatorStatus>, memory: &mut Memory, now: Timestamp) -> Derived {
        let packages: Vec<Package> = self.operators.values().map(Operator::package).collect();
        let platform = Platform {
            is_openshift: true,
            openshift: Some(format!("4.{}.3", self.minor)),
            kubernetes: Some("v1.31.0".to_owned()),
            is_installing: self.is_installing,
            deprecated_blocks: false,
        };
        let version = self.version();
        let thresholds =
            Thresholds { installation: seconds(OUTAGE), outage: seconds(OUTAGE), failure: seconds(FAILURE) };
        let seen: Vec<&Package> = packages.iter().collect();
        let input = Packages { packages: &seen, platform: &platform, version: Some(&version), thresholds };
        let related = related::all(&packages, "chandler-system", Some("platform-operators"));
        input.status(related, before, memory, now)
    }

    /// The operators that have been bad for so long, and would be known to be although the controller restarted.
    fn bad_for(&self, least: i64, only_out: bool) -> bool {
        self.bad.iter().any(|(which, since)| {
            let lasted = self.now.duration_since(*since) >= SignedDuration::from_secs(least);
            lasted && (!only_out || self.operators[which].is_out())
        })
    }

    /// Whether a package that was never installed makes the ClusterOperator unavailable.
    fn is_initializing(&self) -> bool {
        let is_pending = self.operators.values().any(Operator::is_pending);
        is_pending && (self.is_installing || !self.was_complete)
    }

    fn all(&self, holds: impl Fn(&Operator) -> bool) -> bool {
        self.operators.values().all(holds)
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs())
}

fn find<'a>(status: &'a ClusterOperatorStatus, kind: &str) -> &'a ClusterOperatorCondition {
    status.conditions.iter().find(|it| it.kind == kind).unwrap_or_else(|| panic!("{kind} is missing: {status:?}"))
}

fn is_true(status: &ClusterOperatorStatus, kind: &str) -> bool {
    find(status, kind).status == "True"
}

/// All conditions are there once, with a reason and a sentence; times change only with a status, and never go back.
fn check_form(before: Option<&ClusterOperatorStatus>, status: &ClusterOperatorStatus) {
    let kinds: Vec<&str> = status.conditions.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["Available", "Progressing", "Degraded", "Upgradeable"]);
    for condition in &status.conditions {
        assert!(!condition.reason.is_empty() && !condition.message.is_empty(), "{condition:?}");
        let Some(before) = before.map(|before| find(before, &condition.kind)) else { continue };
        let (old, new) = (&before.last_transition_time, &condition.last_transition_time);
        assert!(new >= old, "{condition:?}");
        if before.status == condition.status {
            assert_eq!(old, new, "{condition:?}");
        }
    }
}

/// The judgement fits what happened.
fn check_truth(world: &World, before: Option<&ClusterOperatorStatus>, status: &ClusterOperatorStatus) {
    let version = |version: String| OperandVersion { name: "operator".to_owned(), version };
    let expected = [version(world.version())];
    let verdict = judge(&expected, status, Mode::Updating);
    let is_settled = world.all(Operator::is_settled);
    if is_settled {
        assert_eq!(verdict, Ok(()), "{status:#?}");
        assert!(!is_progressing(status), "{status:#?}");
    } else {
        // A version is reported once all is rolled out, and stays until the next one is.
        let before = before.map(|before| before.versions.clone()).unwrap_or_default();
        assert_eq!(status.versions, before);
    }
    if world.is_initializing() {
        // The cluster-version operator must not take the cluster for installed.
        for mode in [Mode::Initializing, Mode::Updating] {
            let verdict = judge(&expected, status, mode);
            assert_eq!(verdict.map_err(|it| it.reason), Err("ClusterOperatorNotAvailable"), "{status:#?}");
        }
    } else if world.bad.is_empty() {
        // Progress never fails an update, however long it takes.
        assert!(verdict.clone().err().is_none_or(|it| it.effect == Effect::None), "{verdict:?} {status:#?}");
        assert_eq!(judge(&expected, status, Mode::Initializing), Ok(()));
    }
    if world.operators.values().any(Operator::is_moving) {
        assert!(is_progressing(status), "{status:#?}");
    } else if world.bad.is_empty() {
        assert!(!is_progressing(status), "{status:#?}");
    }
    let permits = world.all(|it| it.permits(world.minor + 1));
    assert_eq!(permits_minor_update(status).is_ok(), permits, "{status:#?}");
}

/// Conditions about what is wrong change late to the bad, and only with the truth.
fn check_hysteresis(world: &World, before: Option<&ClusterOperatorStatus>, status: &ClusterOperatorStatus) {
    let was = |kind, bad: bool| before.is_some_and(|before| is_true(before, kind) == bad);
    let uptime = world.now.duration_since(world.started);
    for (kind, bad, least, only_out) in [("Degraded", true, FAILURE, false), ("Available", false, OUTAGE, true)] {
        let is = is_true(status, kind) == bad;
        if kind == "Available" && (world.is_initializing() || world.was_initializing) {
            continue;
        }
        let lasts = world.bad_for(least, only_out);
        match (was(kind, bad), is) {
            (false, true) => assert!(lasts, "{kind} came too early: {status:#?}"),
            (true, false) => assert!(!lasts, "{kind} went too early: {status:#?}"),
            (_, false) => {
                // A controller that has not run for so long may not know.
                let knows = uptime >= SignedDuration::from_secs(least);
                assert!(!(lasts && knows), "{kind} is missing: {status:#?}");
            }
            (true, true) => {
                let is_any = world.operators.values().any(|it| if only_out { it.is_out() } else { it.is_bad() });
                assert!(is_any, "{kind} stays: {status:#?}");
            }
        }
    }
}

fn run(steps: &[Step]) {
    drive(World::new(), steps);
}

fn drive(mut world: World, steps: &[Step]) {
    for step in steps {
        world.was_initializing = world.is_initializing();
        world.take(*step);
        world.was_complete |= !world.operators.values().any(Operator::is_pending);
        let before = world.status.take();
        let mut memory = world.memory.clone();
        let derived = world.derive(before.as_ref(), &mut memory, world.now);
        let status = &derived.status;
        check_form(before.as_ref(), status);
        check_truth(&world, before.as_ref(), status);
        check_hysteresis(&world, before.as_ref(), status);

        // Looking again changes nothing, and neither does time until the deadline.
        assert_eq!(world.derive(Some(status), &mut memory.clone(), world.now), derived);
        let quiet = derived
            .again
            .map_or(world.now + SignedDuration::from_hours(24), |again| again - SignedDuration::from_secs(1));
        assert_eq!(world.derive(Some(status), &mut memory.clone(), quiet).status, *status, "until {quiet}");
        if let Some(again) = derived.again {
            assert!(again > world.now);
        }
        world.memory = memory;
        world.status = Some(derived.status);
    }
}

proptest! {
    #[test]
    fn the_cluster_version_operator_accepts_every_history(steps in prop::collection::vec(step(), 1..60)) {
        run(&steps);
    }

    #[test]
    fn no_history_of_a_cluster_that_is_being_installed_ends_before_its_packages_are(steps in prop::collection::vec(step(), 1..60)) {
        drive(World::installing(), &steps);
    }
}

#[test]
fn nothing_is_available_before_the_first_rollout_and_everything_is_on_the_second_day() {
    use Step::{Advance, Clock, Create, Fail, Installed, Recover, Restart, Upgrade, Wait};
    let first = [Create(0), Clock(4000), Restart, Advance(0), Create(1), Advance(0), Advance(0), Wait(0), Restart];
    let rest =
        [Upgrade(0), Advance(1), Fail(1), Recover(1), Advance(1), Advance(1), Restart, Create(2), Restart, Clock(10)];
    let last = [Advance(2), Installed, Restart, Advance(2), Advance(2), Clock(10)];
    let steps: Vec<Step> = first.into_iter().chain(rest).chain(last).collect();
    run(&steps);
    drive(World::installing(), &steps);
}

#[test]
fn an_upgrade_that_takes_an_hour_and_restarts_is_never_degraded() {
    use Step::{Advance, Clock, Create, OpenShift, Release, Restart, Upgrade};
    run(&[
        Create(0),
        Clock(10),
        Advance(0),
        Clock(10),
        Advance(0),
        Clock(10),
        Advance(0),
        Release,
        OpenShift,
        Upgrade(0),
        Clock(4000),
        Restart,
        Clock(4000),
        Advance(0),
        Clock(1),
    ]);
}

#[test]
fn a_failure_is_reported_after_five_minutes_and_kept_over_a_restart() {
    use Step::{Advance, Clock, Create, Fail, Look, Recover, Restart, Upgrade};
    run(&[
        Create(0),
        Advance(0),
        Advance(0),
        Advance(0),
        Upgrade(0),
        Fail(0),
        Clock(299),
        Restart,
        Clock(1),
        Clock(299),
        Look,
        Restart,
        Look,
        Clock(-700),
        Restart,
        Recover(0),
        Fail(0),
        Clock(299),
        Clock(1),
    ]);
}
