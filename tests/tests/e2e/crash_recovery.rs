//! Crash recovery: wherever the controller crashes, its successor reaches the same result, without duplicates or leftovers.
//!
//! The scenario consists of the steps of [`Step`], from an installation to a deletion. It runs once without a crash, which yields
//! the expected results and the number of crash points; then again and again with a crash in each step. By default a few evenly
//! spaced crash points of each step are tested. `CHANDLER_CRASH_POINTS=all` tests every one, and a number tests that many for each
//! step. `CHANDLER_SEED` shifts the selection.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use chandler_api::BundleDeployment;
use chandler_tests::{
    Cluster, ControllerThread, CrashPoint, Interruption, World, buoys,
    crash_point::Activity,
    state::{self, State},
    wait,
};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

/// How many crash points of each step are tested by default.
const ROUNDS: usize = 8;

/// How many scenarios run in parallel where each has its own cluster.
const PARALLEL: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Install,
    Upgrade,
    /// An upgrade fails and is rolled back.
    RollBack,
    /// An object is edited and another one deleted; both are repaired.
    Repair,
    /// The new version cannot be pulled, while the current release is repaired.
    FailPull,
    /// A change waits for approval.
    AwaitApproval,
    Approve,
    /// The user reverts a change after the controller crashed.
    RevertChange,
    /// A deletion leaves all objects behind; the controller sees it late.
    Orphan,
    /// A BundleDeployment with the same name adopts the orphaned objects.
    Adopt,
    /// An immutable field changes, so that an object is deleted and created again.
    Recreate,
    Delete,
    /// The user deletes the BundleDeployment after the controller crashed during the installation.
    CancelInstall,
}

const STEPS: [Step; 13] = [
    Step::Install,
    Step::Upgrade,
    Step::RollBack,
    Step::Repair,
    Step::FailPull,
    Step::AwaitApproval,
    Step::Approve,
    Step::RevertChange,
    Step::Orphan,
    Step::Adopt,
    Step::Recreate,
    Step::Delete,
    Step::CancelInstall,
];

/// The objects of every release of the scenario, including those that the controller generates.
const ALWAYS: [&str; 8] = [
    "Buoy outer",
    "ConfigMap chart",
    "ConfigMap steady",
    "CustomResourceDefinition buoys.moorings.example.com",
    "Deployment keeper",
    "Secret keeper-tls",
    "Service keeper",
    "ValidatingWebhookConfiguration buoys.moorings.example.com",
];

impl Step {
    /// The objects that must exist after this step, whatever happened during it.
    fn objects(self) -> BTreeSet<&'static str> {
        let own: &[&str] = match self {
            Self::Install | Self::Approve | Self::RevertChange | Self::Orphan | Self::Adopt | Self::Recreate => {
                &["ConfigMap old", "ServiceAccount old"]
            }
            Self::Upgrade | Self::RollBack | Self::Repair | Self::FailPull | Self::AwaitApproval => {
                &["ConfigMap new", "Lease new"]
            }
            Self::Delete | Self::CancelInstall => return BTreeSet::new(),
        };
        ALWAYS.iter().chain(own).copied().collect()
    }
}

/// The result of a step.
struct Outcome {
    state: State,
    /// What the controller did that crashed.
    activity: Activity,
    /// The paths of the deleted objects.
    deleted: BTreeSet<String>,
}

/// A cluster and the bundles of the scenario. Scenarios run on it one after another.
struct Scenario {
    world: World,
    images: [String; 4],
}

impl Scenario {
    async fn on(cluster: Cluster) -> Self {
        let world = World::without_controller(cluster).await;
        let namespace = world.namespace.clone();
        let mut images = Vec::new();
        for bundle in [
            buoys::first(&namespace),
            buoys::second(&namespace),
            buoys::broken(&namespace),
            buoys::with_other_selector(&namespace),
        ] {
            images.push(world.push(&bundle).await);
        }
        Self { world, images: images.try_into().expect("four images") }
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    fn name(&self) -> String {
        self.world.name()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    /// Makes the user's change that starts the step.
    async fn begin(&self, step: Step) {
        let mut spec = self.world.spec(PLAIN, &self.images[0]);
        match step {
            Step::Install | Step::Adopt | Step::CancelInstall => {}
            Step::RevertChange => spec = self.world.spec(PLAIN, &self.images[2]),
            Step::Upgrade => spec = self.world.spec(PLAIN, &self.images[1]),
            Step::RollBack => {
                spec = self.world.spec(PLAIN, &self.images[2]);
                spec["rollout"] = json!({"progressDeadlineSeconds": 1, "onFailure": "Rollback"});
            }
            Step::Recreate => {
                spec = self.world.spec(PLAIN, &self.images[3]);
                spec["rollout"] = json!({"onImmutable": {"default": "Recreate"}});
            }
            Step::Repair => {
                let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
                self.maps().patch("chart", &PatchParams::default(), &edit).await.expect("the edit is accepted");
                self.maps().delete("steady", &DeleteParams::default()).await.expect("the deletion is accepted");
                return;
            }
            Step::FailPull => {
                let (repository, _) = self.images[1].rsplit_once('@').expect("a digest");
                spec = self.world.spec(PLAIN, &format!("{repository}:typo"));
                self.maps().delete("steady", &DeleteParams::default()).await.expect("the deletion is accepted");
                // The added entry has no counterpart in the release: only a dry run on the API server shows the difference.
                let added = Patch::Merge(json!({"spec": {"selector": {"added": "by-another-manager"}}}));
                let manager =
                    PatchParams { field_manager: Some("another-manager".to_owned()), ..PatchParams::default() };
                self.services().patch("keeper", &manager, &added).await.expect("the edit is accepted");
            }
            Step::Orphan => {
                self.world
                    .deployments()
                    .delete(&self.name(), &DeleteParams::orphan())
                    .await
                    .expect("the object exists");
                let decided = |found: Option<&BundleDeployment>| {
                    found.is_none_or(|found| !found.finalizers().iter().any(|finalizer| finalizer == "orphan"))
                };
                wait::until(&self.world.deployments(), &self.name(), "orphaned", decided).await;
                // A controller that has not seen the deletion must not repair this edit, and adopt the object again.
                let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
                self.maps().patch("chart", &PatchParams::default(), &edit).await.expect("the edit is accepted");
                return;
            }
            Step::AwaitApproval => spec["approval"] = json!("Manual"),
            Step::Approve => {
                let deployment = self.world.deployments().get(&self.name()).await.expect("the object exists");
                let pending = deployment.status.and_then(|status| status.pending_change).expect("a pending change");
                drop(self.world.approve(&self.name(), &pending.digest).await);
                return;
            }
            Step::Delete => return self.delete().await,
        }
        self.world.apply(&self.name(), spec).await;
    }

    async fn delete(&self) {
        self.world.deployments().delete(&self.name(), &DeleteParams::default()).await.expect("the object exists");
    }

    /// Waits until the step has progressed as far as it can before [`Self::reconsider`].
    async fn progress(&self, step: Step) {
        match step {
            // The controller writes this condition last.
            Step::RevertChange => drop(self.world.condition(&self.name(), "Healthy", "False", "Unhealthy").await),
            Step::CancelInstall => drop(self.world.ready(&self.name()).await),
            step => self.finish(step).await,
        }
    }

    /// Makes the user's change of mind, while no controller runs.
    async fn reconsider(&self, step: Step) {
        match step {
            Step::RevertChange => drop(self.world.apply(&self.name(), self.world.spec(PLAIN, &self.images[0])).await),
            Step::CancelInstall => self.delete().await,
            _ => {}
        }
    }

    /// Waits until the step is complete.
    async fn finish(&self, step: Step) {
        match step {
            Step::Install | Step::Upgrade | Step::Approve | Step::RevertChange | Step::Adopt | Step::Recreate => {
                drop(self.world.ready(&self.name()).await);
            }
            Step::FailPull => {
                drop(self.world.condition(&self.name(), "Unpacked", "False", "UnpackFailed").await);
                wait::until(&self.maps(), "steady", "created again", |map| map.is_some()).await;
                let reset = |service: Option<&Service>| {
                    let selector = service.and_then(|service| service.spec.as_ref()?.selector.as_ref());
                    selector.is_some_and(|selector| selector.len() == 1)
                };
                wait::until(&self.services(), "keeper", "repaired", reset).await;
            }
            Step::Repair => {
                let depth = |map: &ConfigMap| map.data.as_ref()?.get("depth").cloned();
                let repaired = |map: Option<&ConfigMap>| map.and_then(depth).as_deref() == Some("20");
                wait::until(&self.maps(), "chart", "repaired", repaired).await;
                wait::until(&self.maps(), "steady", "created again", |map| map.is_some()).await;
            }
            Step::AwaitApproval => {
                drop(self.world.condition(&self.name(), "Progressing", "False", "ApprovalRequired").await);
            }
            Step::RollBack => drop(self.world.condition(&self.name(), "Progressing", "False", "RolledBack").await),
            Step::Orphan | Step::Delete | Step::CancelInstall => {
                drop(wait::until(&self.world.deployments(), &self.name(), "gone", |found| found.is_none()).await);
            }
        }
    }

    /// Runs one step, with a controller that crashes and a successor.
    async fn run(&self, step: Step, crash_point: CrashPoint) -> Outcome {
        let interruption = Interruption::of("/bundledeployments");
        let crashing = if step == Step::Orphan {
            // This controller has seen the BundleDeployment, and does not see its deletion.
            let crashing =
                ControllerThread::start_with(self.world.config(), self.world.options(), crash_point, &interruption);
            let has_listed = || crashing.activity().requests.iter().any(|request| request == "GET /api/v1/services");
            tokio::select! {
                () = crashing.crashed() => {}
                () = wait::eventually("the controller has listed services", || async { has_listed() }) => {}
            }
            interruption.begin();
            self.begin(step).await;
            interruption.end();
            crashing
        } else {
            self.begin(step).await;
            ControllerThread::start(self.world.config(), self.world.options(), crash_point)
        };
        tokio::select! {
            () = crashing.crashed() => {}
            () = self.progress(step) => {}
        }
        let activity = crashing.kill().await;
        self.reconsider(step).await;
        let successor = ControllerThread::start(self.world.config(), self.world.options(), CrashPoint::Never);
        self.finish(step).await;
        let after = successor.stop().await;
        let mut state = State::of(&self.world, &self.name()).await;
        if step == Step::RevertChange {
            // How much the status reports about the reverted change depends on when it was reverted.
            state.deployment = Value::Null;
        }
        if matches!(step, Step::RevertChange | Step::Orphan) {
            // As does how many revisions there were.
            state.objects.values_mut().for_each(remove_revision_of_seal);
        }
        remove_timing_dependent_messages(&mut state.deployment);
        if step == Step::Recreate {
            remove_recreation_warning(&mut state.deployment);
            state.objects.values_mut().for_each(remove_predecessor_of_seal);
        }
        if step == Step::FailPull {
            join_retrying_and_stalled(&mut state.deployment);
        }
        let deleted = activity.writes.iter().chain(&after.writes).filter_map(|write| write.strip_prefix("DELETE "));
        // The controller creates and deletes its own records as needed.
        let deleted = deleted.filter(|path| !path.contains(&self.world.system_namespace));
        let deleted = deleted.map(|path| path.replace(&self.world.namespace, "NAMESPACE")).collect();
        Outcome { state, activity, deleted }
    }

    /// Waits until the scenario has left nothing behind, and clears the cache.
    async fn assert_clean(&self) {
        wait::eventually("the namespace is empty", || async {
            state::content_of(&self.world.client, &self.world.namespace).await.is_empty()
        })
        .await;
        wait::eventually("no record is left over", || async {
            state::content_of(&self.world.client, &self.world.system_namespace).await.is_empty()
        })
        .await;
        let cache = self.world.cache();
        wait::eventually("no temporary file is left over", || async { unfinished(cache).is_empty() }).await;
        // The next scenario pulls and renders again. Only compiled code stays, since compiling takes long.
        for entry in fs::read_dir(cache).expect("the cache is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("code") {
                fs::remove_dir_all(path).expect("a cache can be removed");
            }
        }
    }
}

/// The files in the `work` directories of the caches, at any depth: caches prepare entries there.
fn unfinished(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let directories = entries.filter(|path| path.is_dir());
    directories
        .flat_map(|path| {
            let work = path.ends_with("work");
            let inside = fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
            if work { inside.collect() } else { unfinished(&path) }
        })
        .collect()
}

/// Removes the warning that an object was recreated: the record has no trace of the deletion, so a successor does not know of it
/// (docs/contributing/interruption-tests.md).
fn remove_recreation_warning(deployment: &mut Value) {
    let Some(release) = deployment.pointer_mut("/status/release").and_then(Value::as_object_mut) else { return };
    let warnings = release.remove("warnings").unwrap_or_default();
    let mut others = warnings.as_array().cloned().unwrap_or_default();
    others.retain(|warning| warning["code"] != "ObjectRecreated");
    if !others.is_empty() {
        release.insert("warnings".to_owned(), others.into());
    }
}

/// Removes from the seal of an object which revision wrote it.
fn remove_revision_of_seal(object: &mut Value) {
    if let Some(seal) = object.pointer_mut("/metadata/annotations/chandler.dev~1seal") {
        *seal = json!(seal.as_str().and_then(|seal| seal.split_once('.')).map(|(_, digits)| digits));
    }
}

/// Removes from the seal of an object which deleted one it replaces: a successor that finds the object absent may drop it from the record before it
/// creates it again, and then announces the creation in the record instead.
fn remove_predecessor_of_seal(object: &mut Value) {
    if let Some(seal) = object.pointer_mut("/metadata/annotations/chandler.dev~1seal") {
        let text = seal.as_str().unwrap_or_default().replace(".UID.", ".");
        *seal = json!(text);
    }
}

/// Removes messages about what a failed revision was waiting for at its deadline: they depend on timing.
fn remove_timing_dependent_messages(deployment: &mut Value) {
    for revision in deployment.pointer_mut("/status/history").and_then(Value::as_array_mut).into_iter().flatten() {
        revision.as_object_mut().expect("a revision").remove("message");
    }
    for condition in deployment.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let message = condition["message"].as_str().unwrap_or_default();
        if let (Some(start), Some(end)) = (message.find(" failed: "), message.find("; revision")) {
            condition["message"] = json!(format!("{} ... {}", &message[..start], &message[end..]));
        }
    }
}

/// A bundle that cannot be pulled is retried, and after ten seconds that is called stalled. A slow machine has both results.
fn join_retrying_and_stalled(deployment: &mut Value) {
    for condition in deployment.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if condition["type"] == "Reconciling" || condition["type"] == "Stalled" {
            condition["type"] = json!("Reconciling or Stalled");
        }
    }
}

/// The differences between an outcome and the expected one; empty if there are none.
fn violations(step: Step, outcome: &Outcome, before: &State, expected: &Outcome) -> String {
    let mut violations = vec![outcome.state.difference(&expected.state)];
    let (wanted, found) = (step.objects(), outcome.state.objects.keys().map(String::as_str).collect());
    violations.extend(wanted.difference(&found).map(|key| format!("{key} is missing\n")));
    violations.extend(found.difference(&wanted).map(|key| format!("{key} is left over\n")));
    if !matches!(step, Step::Repair | Step::FailPull) {
        let recreated = |key: &str| step == Step::Recreate && key == "Deployment keeper";
        for (key, uid) in outcome.state.uids.iter().filter(|(key, _)| !recreated(key)) {
            if before.uids.get(key).is_some_and(|before| before != uid) {
                violations.push(format!("{key} was deleted and created again\n"));
            }
        }
    }
    for path in outcome.deleted.difference(&expected.deleted) {
        violations.push(format!("{path} was deleted\n"));
    }
    violations.concat()
}

/// The crash points of a step, given the activity of a run without a crash.
fn crash_points(activity: &Activity) -> Vec<CrashPoint> {
    let requests = activity.requests.len() as u64;
    let before = (0..requests).map(CrashPoint::BeforeRequest);
    let after = (0..requests).map(CrashPoint::AfterRequest);
    before.chain(after).chain((0..activity.idle_periods).map(CrashPoint::Idle)).collect()
}

/// The rounds to run: each has one crash point for each step.
fn rounds(references: &[Outcome]) -> Vec<Vec<CrashPoint>> {
    let all: Vec<Vec<CrashPoint>> = references.iter().map(|reference| crash_points(&reference.activity)).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or_default();
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let every = env::var("CHANDLER_CRASH_POINTS").is_ok_and(|text| text == "all");
    let rounds = if every { longest } else { number("CHANDLER_CRASH_POINTS").unwrap_or(ROUNDS).min(longest) };
    let seed = number("CHANDLER_SEED").unwrap_or_default();
    let index = |round: usize, count: usize| if every { round } else { (seed + round * count / rounds) % count };
    let crash_points_of = |round| {
        let at = |points: &Vec<CrashPoint>| points.get(index(round, points.len())).copied();
        all.iter().map(|points| at(points).unwrap_or(CrashPoint::Never)).collect::<Vec<_>>()
    };
    for (step, (points, reference)) in STEPS.iter().zip(all.iter().zip(references)) {
        let (requests, idle_periods) = (reference.activity.requests.len(), reference.activity.idle_periods);
        eprintln!(
            "{step:?}: {requests} requests, {idle_periods} idle periods, {} crash points, {} tested",
            points.len(),
            rounds.min(points.len())
        );
    }
    (0..rounds).map(crash_points_of).collect()
}

/// The results of the rounds of one cluster.
#[derive(Default)]
struct Report {
    failures: Vec<String>,
    crashes: BTreeMap<&'static str, usize>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_anywhere_the_next_controller_reaches_the_same_result() {
    let begin = Instant::now();
    let first = Arc::new(Box::pin(Scenario::on(Cluster::acquire().await)).await);
    let mut references: Vec<Outcome> = Vec::new();
    for step in STEPS {
        let reference = first.run(step, CrashPoint::Never).await;
        let violations = violations(step, &reference, &State::default(), &reference);
        assert!(violations.is_empty(), "{step:?} without a crash:\n{violations}");
        references.push(reference);
    }
    first.assert_clean().await;
    let rounds = Arc::new(Mutex::new(rounds(&references).into_iter()));
    let references = Arc::new(references);
    let mut scenarios = vec![first];
    if scenarios[0].world.is_embedded() {
        for _ in 1..PARALLEL {
            scenarios.push(Arc::new(Box::pin(Scenario::on(Cluster::acquire().await)).await));
        }
    }
    let tasks = scenarios.into_iter().map(|scenario| {
        let (rounds, references) = (Arc::clone(&rounds), Arc::clone(&references));
        tokio::spawn(async move {
            let mut report = Report::default();
            loop {
                let Some(round) = rounds.lock().expect("no other task panics").next() else { break };
                if let Err(failure) = run_round(Arc::clone(&scenario), &round, &references, &mut report).await {
                    report.failures.push(failure);
                    // The leftovers would make the next round fail, too.
                    return report;
                }
            }
            let scenario = Arc::try_unwrap(scenario).ok().expect("the last reference");
            scenario.world.finish().await;
            report
        })
    });
    let mut all = Report::default();
    for report in futures::future::join_all(tasks).await {
        let report = report.expect("a round does not panic");
        all.failures.extend(report.failures);
        for (what, count) in report.crashes {
            *all.crashes.entry(what).or_default() += count;
        }
    }
    eprintln!("crashes: {:?}, in {:.0?}", all.crashes, begin.elapsed());
    assert!(all.failures.is_empty(), "{}", all.failures.join("\n"));
    let crashed: usize = all.crashes.iter().filter(|(what, _)| **what != "none").map(|(_, count)| count).sum();
    assert!(crashed > all.crashes.values().sum::<usize>() / 2, "most crash points are reached: {:?}", all.crashes);
}

/// Runs all steps, each with its crash point. The error says what was wrong.
async fn run_round(
    scenario: Arc<Scenario>,
    round: &[CrashPoint],
    references: &[Outcome],
    report: &mut Report,
) -> Result<(), String> {
    let mut before = State::default();
    for ((step, crash_point), reference) in STEPS.into_iter().zip(round.iter().copied()).zip(references) {
        let label = format!("{step:?}, crash at {crash_point:?}");
        let run = {
            let scenario = Arc::clone(&scenario);
            tokio::spawn(async move { scenario.run(step, crash_point).await })
        };
        let outcome = run.await.map_err(|error| format!("{label}: {error}"))?;
        let kind = match crash_point {
            _ if !outcome.activity.crashed => "none",
            CrashPoint::Never => "none",
            CrashPoint::BeforeRequest(_) => "before a request",
            CrashPoint::AfterRequest(_) => "after a request",
            CrashPoint::Idle(_) => "while idle",
        };
        *report.crashes.entry(kind).or_default() += 1;
        let violations = violations(step, &outcome, &before, reference);
        if !violations.is_empty() {
            return Err(format!("{label}:\n{violations}"));
        }
        before = outcome.state;
    }
    let clean = tokio::spawn(async move { scenario.assert_clean().await });
    clean.await.map_err(|error| format!("after {round:?}: {error}"))
}
