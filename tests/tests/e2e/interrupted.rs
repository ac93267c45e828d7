//! A controller that dies anywhere: the next one comes to the same end, and nothing is there twice or left over.
//!
//! The course is an installation, an upgrade, an upgrade that fails and is rolled back, the repair of what somebody changed, a
//! new version that cannot be had while what runs is repaired, a change that waits for approval and is approved, one that is taken
//! back after the controller died over it, a deletion that leaves everything behind and is seen too late, a BundleDeployment of
//! the same name that takes it back, a deletion, and an installation that is given up like the change. It is run once without a death, to see what it comes to and how many places
//! there are to die at; then again and again with a death in each leg. By default a few places are chosen, evenly;
//! `CHANDLER_CUTS=all` visits every one, a number so many of each leg. `CHANDLER_SEED` shifts which they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use chandler_api::BundleDeployment;
use chandler_tests::{
    Cluster, Cut, Interruption, Mortal, World, buoys,
    lifeline::Life,
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

/// How many places of each leg are visited unless the environment says otherwise.
const ROUNDS: usize = 8;

/// How many courses are run side by side where each has a cluster of its own.
const GROUNDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Install,
    Upgrade,
    RollBack,
    Repair,
    Refuse,
    Propose,
    Approve,
    Withdraw,
    Orphan,
    Return,
    Delete,
    GiveUp,
}

const LEGS: [Leg; 12] = [
    Leg::Install,
    Leg::Upgrade,
    Leg::RollBack,
    Leg::Repair,
    Leg::Refuse,
    Leg::Propose,
    Leg::Approve,
    Leg::Withdraw,
    Leg::Orphan,
    Leg::Return,
    Leg::Delete,
    Leg::GiveUp,
];

/// What every release of the course holds, and what is made for it.
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

impl Leg {
    /// The objects that are there after it, whatever happened on the way.
    fn objects(self) -> BTreeSet<&'static str> {
        let own: &[&str] = match self {
            Self::Install | Self::Approve | Self::Withdraw | Self::Orphan | Self::Return => {
                &["ConfigMap old", "ServiceAccount old"]
            }
            Self::Upgrade | Self::RollBack | Self::Repair | Self::Refuse | Self::Propose => {
                &["ConfigMap new", "Lease new"]
            }
            Self::Delete | Self::GiveUp => return BTreeSet::new(),
        };
        ALWAYS.iter().chain(own).copied().collect()
    }
}

/// What a leg came to.
struct Outcome {
    state: State,
    /// What was done by the controller that died.
    life: Life,
    /// The paths of what was deleted.
    deleted: BTreeSet<String>,
}

/// A cluster on which courses are run one after the other.
struct Ground {
    world: World,
    images: [String; 3],
}

impl Ground {
    async fn on(cluster: Cluster) -> Self {
        let world = World::without_controller(cluster).await;
        let namespace = world.namespace.clone();
        let mut images = Vec::new();
        for bundle in [buoys::first(&namespace), buoys::second(&namespace), buoys::broken(&namespace)] {
            images.push(world.push(&bundle).await);
        }
        Self { world, images: images.try_into().expect("three images") }
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

    /// What somebody asks for, or does to what is there.
    async fn begin(&self, leg: Leg) {
        let mut spec = self.world.spec(PLAIN, &self.images[0]);
        match leg {
            Leg::Install | Leg::Return | Leg::GiveUp => {}
            Leg::Withdraw => spec = self.world.spec(PLAIN, &self.images[2]),
            Leg::Upgrade => spec = self.world.spec(PLAIN, &self.images[1]),
            Leg::RollBack => {
                spec = self.world.spec(PLAIN, &self.images[2]);
                spec["rollout"] = json!({"progressDeadlineSeconds": 1, "onFailure": "Rollback"});
            }
            Leg::Repair => {
                let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
                self.maps().patch("chart", &PatchParams::default(), &edit).await.expect("it can be edited");
                self.maps().delete("steady", &DeleteParams::default()).await.expect("it can be deleted");
                return;
            }
            Leg::Refuse => {
                let (repository, _) = self.images[1].rsplit_once('@').expect("a digest");
                spec = self.world.spec(PLAIN, &format!("{repository}:typo"));
                self.maps().delete("steady", &DeleteParams::default()).await.expect("it can be deleted");
                // Nobody sees that what is added here is not of the release, but by asking the API server.
                let added = Patch::Merge(json!({"spec": {"selector": {"added": "by-somebody"}}}));
                let manager = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
                self.services().patch("keeper", &manager, &added).await.expect("it can be edited");
            }
            Leg::Orphan => {
                self.world.deployments().delete(&self.name(), &DeleteParams::orphan()).await.expect("it is there");
                // Whoever has not heard of the deletion would put this right, and take the object back.
                let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
                self.maps().patch("chart", &PatchParams::default(), &edit).await.expect("it can be edited");
                let decided = |found: Option<&BundleDeployment>| {
                    found.is_none_or(|found| !found.finalizers().iter().any(|finalizer| finalizer == "orphan"))
                };
                wait::until(&self.world.deployments(), &self.name(), "orphaned", decided).await;
                return;
            }
            Leg::Propose => spec["approval"] = json!("Manual"),
            Leg::Approve => {
                let deployment = self.world.deployments().get(&self.name()).await.expect("it is there");
                let pending = deployment.status.and_then(|status| status.pending_change).expect("what waits");
                drop(self.world.approve(&self.name(), &pending.digest).await);
                return;
            }
            Leg::Delete => return self.delete().await,
        }
        self.world.apply(&self.name(), spec).await;
    }

    async fn delete(&self) {
        self.world.deployments().delete(&self.name(), &DeleteParams::default()).await.expect("it is there");
    }

    /// Waits until what was asked for has come as far as it can.
    async fn go(&self, leg: Leg) {
        match leg {
            // Of all that can be seen of it, what is written last.
            Leg::Withdraw => drop(self.world.condition(&self.name(), "Healthy", "False", "Unhealthy").await),
            Leg::GiveUp => drop(self.world.ready(&self.name()).await),
            leg => self.end(leg).await,
        }
    }

    /// What somebody thinks better of while nobody works on it.
    async fn reconsider(&self, leg: Leg) {
        match leg {
            Leg::Withdraw => drop(self.world.apply(&self.name(), self.world.spec(PLAIN, &self.images[0])).await),
            Leg::GiveUp => self.delete().await,
            _ => {}
        }
    }

    /// Waits for the end of a leg.
    async fn end(&self, leg: Leg) {
        match leg {
            Leg::Install | Leg::Upgrade | Leg::Approve | Leg::Withdraw | Leg::Return => {
                drop(self.world.ready(&self.name()).await);
            }
            Leg::Refuse => {
                drop(self.world.condition(&self.name(), "Unpacked", "False", "UnpackFailed").await);
                wait::until(&self.maps(), "steady", "there again", |map| map.is_some()).await;
                let reset = |service: Option<&Service>| {
                    let selector = service.and_then(|service| service.spec.as_ref()?.selector.as_ref());
                    selector.is_some_and(|selector| selector.len() == 1)
                };
                wait::until(&self.services(), "keeper", "put right", reset).await;
            }
            Leg::Repair => {
                let depth = |map: &ConfigMap| map.data.as_ref()?.get("depth").cloned();
                let repaired = |map: Option<&ConfigMap>| map.and_then(depth).as_deref() == Some("20");
                wait::until(&self.maps(), "chart", "repaired", repaired).await;
                wait::until(&self.maps(), "steady", "there again", |map| map.is_some()).await;
            }
            Leg::Propose => drop(self.world.condition(&self.name(), "Progressing", "False", "ApprovalRequired").await),
            Leg::RollBack => drop(self.world.condition(&self.name(), "Progressing", "False", "RolledBack").await),
            Leg::Orphan | Leg::Delete | Leg::GiveUp => {
                drop(wait::until(&self.world.deployments(), &self.name(), "gone", |found| found.is_none()).await);
            }
        }
    }

    /// One leg, with a controller that dies and one that comes after it.
    async fn run(&self, leg: Leg, cut: Cut) -> Outcome {
        let interruption = Interruption::of("/bundledeployments");
        let doomed = if leg == Leg::Orphan {
            // It has seen the BundleDeployment, and does not see its deletion.
            let doomed = Mortal::start_with(self.world.config(), self.world.options(), cut, &interruption);
            let looks = || doomed.life().requests.iter().any(|request| request == "GET /api/v1/services");
            tokio::select! {
                () = doomed.ended() => {}
                () = wait::eventually("it has looked", || async { looks() }) => {}
            }
            interruption.begin();
            self.begin(leg).await;
            interruption.end();
            doomed
        } else {
            self.begin(leg).await;
            Mortal::start(self.world.config(), self.world.options(), cut)
        };
        tokio::select! {
            () = doomed.ended() => {}
            () = self.go(leg) => {}
        }
        let life = doomed.kill().await;
        self.reconsider(leg).await;
        let heir = Mortal::start(self.world.config(), self.world.options(), Cut::Never);
        self.end(leg).await;
        let after = heir.stop().await;
        let mut state = State::of(&self.world, &self.name()).await;
        if leg == Leg::Withdraw {
            // How much is known of what was taken back depends on when that was.
            state.deployment = Value::Null;
        }
        without_causes(&mut state.deployment);
        let deleted = life.writes.iter().chain(&after.writes).filter_map(|write| write.strip_prefix("DELETE "));
        // What the controller keeps for itself comes and goes.
        let deleted = deleted.filter(|path| !path.contains(&self.world.system_namespace));
        let deleted = deleted.map(|path| path.replace(&self.world.namespace, "NAMESPACE")).collect();
        Outcome { state, life, deleted }
    }

    /// Nothing may be left of a course.
    async fn clean(&self) {
        wait::eventually("the namespace is empty", || async {
            state::content_of(&self.world.client, &self.world.namespace).await.is_empty()
        })
        .await;
        wait::eventually("no record is left over", || async {
            state::content_of(&self.world.client, &self.world.system_namespace).await.is_empty()
        })
        .await;
        let cache = self.world.cache();
        wait::eventually("no file is left over", || async { unfinished(cache).is_empty() }).await;
        // The next course fetches and renders again what it needs. Only compiled code stays, which takes long to make.
        for entry in fs::read_dir(cache).expect("the cache is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("code") {
                fs::remove_dir_all(path).expect("a cache can be removed");
            }
        }
    }
}

/// What stands in the directories, at any depth, in which caches make things ready.
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

/// What a failed revision was waiting for when its time was over depends on when that was.
fn without_causes(deployment: &mut Value) {
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

/// What is wrong with an outcome; nothing where it is as it should be.
fn faults(leg: Leg, outcome: &Outcome, before: &State, reference: &Outcome) -> String {
    let mut faults = vec![outcome.state.difference(&reference.state)];
    let (expected, found) = (leg.objects(), outcome.state.objects.keys().map(String::as_str).collect());
    faults.extend(expected.difference(&found).map(|key| format!("{key} is missing\n")));
    faults.extend(found.difference(&expected).map(|key| format!("{key} is left over\n")));
    if !matches!(leg, Leg::Repair | Leg::Refuse) {
        for (key, uid) in &outcome.state.uids {
            if before.uids.get(key).is_some_and(|before| before != uid) {
                faults.push(format!("{key} was made again\n"));
            }
        }
    }
    for path in outcome.deleted.difference(&reference.deleted) {
        faults.push(format!("{path} was deleted\n"));
    }
    faults.concat()
}

/// The places to die at in a leg that did so much without a death.
fn cuts(life: &Life) -> Vec<Cut> {
    let requests = life.requests.len() as u64;
    let before = (0..requests).map(Cut::Before);
    let after = (0..requests).map(Cut::After);
    before.chain(after).chain((0..life.waits).map(Cut::Waiting)).collect()
}

/// The places to die at, for each course one in each leg.
fn courses(references: &[Outcome]) -> Vec<Vec<Cut>> {
    let all: Vec<Vec<Cut>> = references.iter().map(|reference| cuts(&reference.life)).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or_default();
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let every = env::var("CHANDLER_CUTS").is_ok_and(|text| text == "all");
    let rounds = if every { longest } else { number("CHANDLER_CUTS").unwrap_or(ROUNDS).min(longest) };
    let seed = number("CHANDLER_SEED").unwrap_or_default();
    let place = |round: usize, count: usize| if every { round } else { (seed + round * count / rounds) % count };
    let course = |round| {
        all.iter().map(|cuts| cuts.get(place(round, cuts.len())).copied().unwrap_or(Cut::Never)).collect::<Vec<_>>()
    };
    for (leg, (cuts, reference)) in LEGS.iter().zip(all.iter().zip(references)) {
        let (requests, waits) = (reference.life.requests.len(), reference.life.waits);
        eprintln!(
            "{leg:?}: {requests} requests, {waits} waits, {} places, {} visited",
            cuts.len(),
            rounds.min(cuts.len())
        );
    }
    (0..rounds).map(course).collect()
}

/// What the courses of one cluster found.
#[derive(Default)]
struct Report {
    failures: Vec<String>,
    visited: BTreeMap<&'static str, usize>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_dies_anywhere_is_followed_by_one_that_comes_to_the_same_end() {
    let begin = Instant::now();
    let first = Arc::new(Box::pin(Ground::on(Cluster::acquire().await)).await);
    let mut references: Vec<Outcome> = Vec::new();
    for leg in LEGS {
        let reference = first.run(leg, Cut::Never).await;
        let faults = faults(leg, &reference, &State::default(), &reference);
        assert!(faults.is_empty(), "{leg:?} without a death:\n{faults}");
        references.push(reference);
    }
    first.clean().await;
    let courses = Arc::new(Mutex::new(courses(&references).into_iter()));
    let references = Arc::new(references);
    let mut grounds = vec![first];
    if grounds[0].world.is_embedded() {
        for _ in 1..GROUNDS {
            grounds.push(Arc::new(Box::pin(Ground::on(Cluster::acquire().await)).await));
        }
    }
    let tasks = grounds.into_iter().map(|ground| {
        let (courses, references) = (Arc::clone(&courses), Arc::clone(&references));
        tokio::spawn(async move {
            let mut report = Report::default();
            loop {
                let Some(course) = courses.lock().expect("nobody panics").next() else { break };
                if let Err(failure) = one(Arc::clone(&ground), &course, &references, &mut report).await {
                    report.failures.push(failure);
                    // What it left would only fail again.
                    return report;
                }
            }
            let ground = Arc::try_unwrap(ground).ok().expect("nobody else holds it");
            ground.world.finish().await;
            report
        })
    });
    let mut all = Report::default();
    for report in futures::future::join_all(tasks).await {
        let report = report.expect("a course does not panic");
        all.failures.extend(report.failures);
        for (what, count) in report.visited {
            *all.visited.entry(what).or_default() += count;
        }
    }
    eprintln!("deaths: {:?}, in {:.0?}", all.visited, begin.elapsed());
    assert!(all.failures.is_empty(), "{}", all.failures.join("\n"));
    let died: usize = all.visited.iter().filter(|(what, _)| **what != "none").map(|(_, count)| count).sum();
    assert!(died > all.visited.values().sum::<usize>() / 2, "most places are met: {:?}", all.visited);
}

/// One course; what was wrong with it.
async fn one(ground: Arc<Ground>, course: &[Cut], references: &[Outcome], report: &mut Report) -> Result<(), String> {
    let mut before = State::default();
    for ((leg, cut), reference) in LEGS.into_iter().zip(course.iter().copied()).zip(references) {
        let place = format!("{leg:?}, death at {cut:?}");
        let run = {
            let ground = Arc::clone(&ground);
            tokio::spawn(async move { ground.run(leg, cut).await })
        };
        let outcome = run.await.map_err(|error| format!("{place}: {error}"))?;
        let kind = match cut {
            _ if !outcome.life.cut => "none",
            Cut::Never => "none",
            Cut::Before(_) => "before a request",
            Cut::After(_) => "after a request",
            Cut::Waiting(_) => "while waiting",
        };
        *report.visited.entry(kind).or_default() += 1;
        let faults = faults(leg, &outcome, &before, reference);
        if !faults.is_empty() {
            return Err(format!("{place}:\n{faults}"));
        }
        before = outcome.state;
    }
    let clean = tokio::spawn(async move { ground.clean().await });
    clean.await.map_err(|error| format!("after {course:?}: {error}"))
}
