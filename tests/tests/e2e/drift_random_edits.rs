//! Drift is exactly what the API server's dry run of an apply would change: tried with random edits of objects of every built-in
//! kind and of real CRDs.
//!
//! | environment | meaning |
//! |---|---|
//! | `CHANDLER_DRIFT_SECONDS` | how long to try edits; by default a few for each kind, always the same |
//! | `CHANDLER_DRIFT_SEED` | the seed that a failure printed, or `random` |
//! | `CHANDLER_DRIFT_KINDS` | only kinds with these names, separated by commas |

mod generate;
mod kinds;
mod samples;

use std::{
    collections::BTreeMap,
    env,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use chandler_api::BundleDeployment;
use chandler_core::{Object, Release};
use chandler_rollout::{InMemory, Options, Owner, Rollout, RolloutError, RolloutRequest};
use chandler_test_support::needs::fixture;
use chandler_tests::World;
use futures::FutureExt as _;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use self::{
    generate::{edit_specification, value},
    kinds::Kind,
};
use crate::random::Random;

/// How often a random object or edit may be refused before another one is tried.
const TRIES: usize = 15;

/// The marks of the rollout on an object.
const APPLIED: &str = "chandler.dev/applied";
const SEAL: &str = "chandler.dev/seal";
/// The outcome of a case that panicked.
const FAILED: &str = "FAILED";

/// Everything that one edit needs.
struct Harness {
    world: World,
    rollout: Rollout,
    random: Random,
    number: u64,
    outcomes: BTreeMap<String, BTreeMap<&'static str, usize>>,
}

/// The result of a dry run of an apply.
#[derive(Debug, Clone, PartialEq)]
enum DryRun {
    Nothing,
    Change(Box<Value>),
    Refused(String),
}

/// How often each kind is tried by default.
const ROUNDS: usize = 3;

/// How long to try edits, if the environment says so.
fn seconds() -> Option<Duration> {
    env::var("CHANDLER_DRIFT_SECONDS").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs)
}

/// A fixed seed by default, so that CI and developers run the same cases.
fn seed() -> u64 {
    match env::var("CHANDLER_DRIFT_SEED").as_deref() {
        Ok("random") => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs()),
        Ok(text) => text.parse().expect("CHANDLER_DRIFT_SEED is a number or `random`"),
        Err(_) => 1,
    }
}

async fn harness() -> Harness {
    let world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    let seed = seed();
    eprintln!("CHANDLER_DRIFT_SEED={seed}");
    let rollout = Rollout::new(world.client.clone(), Options::default());
    Harness { rollout, world, random: Random(seed), number: 0, outcomes: BTreeMap::new() }
}

/// Tries one kind after the other, each at least once.
async fn try_all(mut harness: Harness, kinds: &[Kind]) {
    let only = env::var("CHANDLER_DRIFT_KINDS").unwrap_or_default();
    let chosen = |kind: &&Kind| only.is_empty() || only.split(',').any(|name| name == kind.resource.kind);
    let kinds: Vec<&Kind> = kinds.iter().filter(chosen).collect();
    let begin = Instant::now();
    let is_over = |round| seconds().map_or(round >= ROUNDS, |seconds| begin.elapsed() >= seconds);
    for round in 0.. {
        for kind in &kinds {
            if round > 0 && is_over(round) {
                break;
            }
            harness.number += 1;
            // A failure is printed at once, and the other kinds are still tried.
            let outcome = AssertUnwindSafe(harness.try_kind(kind)).catch_unwind().await.unwrap_or(FAILED);
            let kind = format!("{} {}", kind.resource.api_version, kind.resource.kind);
            *harness.outcomes.entry(kind).or_default().entry(outcome).or_default() += 1;
        }
        if is_over(round + 1) {
            break;
        }
    }
    let mut total: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, outcomes) in &harness.outcomes {
        eprintln!("{kind}: {outcomes:?}");
        for (outcome, count) in outcomes {
            *total.entry(outcome).or_default() += count;
        }
    }
    eprintln!("{} kinds: {total:?}", harness.outcomes.len());
    assert!(!total.contains_key(FAILED), "{total:?}");
    assert!(total.contains_key("repaired"), "some edits must have been drift");
    harness.world.finish().await;
}

impl Harness {
    /// Creates an object, edits it, and compares the reported drift with a dry run of the API server. Returns the outcome.
    async fn try_kind(&mut self, kind: &Kind) -> &'static str {
        let Some(object) = self.legal_object(kind).await else { return "no legal object" };
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let deployment = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": format!("{}-{}", self.world.namespace, self.number)},
            "spec": self.world.spec("none", "example.com/none:v1")});
        let made: BundleDeployment = self.world.create(deployment).await;
        let owner = Owner::of(&made, &self.world.namespace).expect("a stored object");
        let owner = owner.recorded_in(Arc::new(InMemory::new(made.metadata.uid.as_deref().unwrap_or_default())));
        let release = Release::new(
            vec![Object::parse(object.to_string().as_bytes(), 0, None).expect("an object")],
            vec![],
            vec![],
        );
        let case = Case { rollout: &self.rollout, kind, api: self.api(kind), owner, release, name };
        let outcome = case.run(&object, &mut self.random).await;
        let _ = case.api.delete(&case.name, &DeleteParams::background()).await;
        let _ = self.world.deployments().delete(&case.owner.name, &DeleteParams::background()).await;
        outcome
    }

    fn api(&self, kind: &Kind) -> Api<DynamicObject> {
        if kind.namespaced {
            Api::namespaced_with(self.world.client.clone(), &self.world.namespace, &kind.resource)
        } else {
            Api::all_with(self.world.client.clone(), &kind.resource)
        }
    }

    /// A sample or a generated object with a few edits, which the API server would create.
    async fn legal_object(&mut self, kind: &Kind) -> Option<Value> {
        let ApiResource { api_version, kind: name, version, .. } = &kind.resource;
        let metadata = json!({
            "name": samples::name(name, self.number).unwrap_or_else(|| format!("{}-{}", self.world.namespace, self.number)),
            "labels": {"drift": "none"},
        });
        let whole = |mut object: Value| {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(name);
            object["metadata"] = metadata.clone();
            object
        };
        let mut legal = None;
        match samples::sample(name, version) {
            Some(sample) => legal = Some(whole(sample)),
            None => {
                for _ in 0..TRIES {
                    let mut generated = value(&kind.schema, &mut self.random, 0);
                    generated.as_object_mut()?.remove("status");
                    let generated = whole(generated);
                    if self.is_legal(kind, &generated).await {
                        legal = Some(generated);
                        break;
                    }
                }
            }
        }
        let mut legal = legal?;
        for _ in 0..self.random.below(5) {
            let mut edited = legal.clone();
            edit_specification(&kind.schema, &mut edited, &mut self.random);
            if self.is_legal(kind, &edited).await {
                legal = edited;
            }
        }
        Some(legal)
    }

    /// Whether the API server would create it, and then accept an apply.
    async fn is_legal(&self, kind: &Kind, object: &Value) -> bool {
        let Ok(typed) = serde_json::from_value::<DynamicObject>(object.clone()) else { return false };
        let api = self.api(kind);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut apply = PatchParams::apply("chandler").force();
        apply.dry_run = true;
        api.create(&PostParams { dry_run: true, ..PostParams::default() }, &typed).await.is_ok()
            && api.patch(name, &apply, &Patch::Apply(object)).await.is_ok()
    }
}

/// An object of a release.
struct Case<'a> {
    rollout: &'a Rollout,
    kind: &'a Kind,
    api: Api<DynamicObject>,
    owner: Owner,
    release: Release,
    name: String,
}

impl Case<'_> {
    async fn run(&self, object: &Value, random: &mut Random) -> &'static str {
        self.advance().await.unwrap_or_else(|error| panic!("failed to create {object}: {error}"));
        let made = self.live().await.expect("the created object exists");
        // What the rollout applies internally: with its marks, and without fields that would delete a Job.
        let mut desired = object.clone();
        if let Some(spec) = desired.get_mut("spec").and_then(Value::as_object_mut).filter(|_| object["kind"] == "Job") {
            spec.remove("ttlSecondsAfterFinished");
        }
        let marks = &made["metadata"]["annotations"];
        desired["metadata"]["annotations"] = json!({APPLIED: marks[APPLIED], SEAL: marks[SEAL]});
        for member in ["namespace", "labels", "ownerReferences", "uid"] {
            if let Some(value) = made["metadata"].get(member) {
                desired["metadata"][member] = value.clone();
            }
        }
        if random.percent(50) {
            // This makes the managedFields entry one of an apply.
            self.patch("first-edit", &json!({"metadata": {"labels": {"drift": "some"}}})).await.expect("a label");
            if let Err(error) = self.advance().await {
                // Some servers accept values at creation that they reject in an update.
                let live = self.live().await.expect("the object still exists");
                let dry_run = self.dry_run(&desired, &live).await;
                assert!(matches!(dry_run, DryRun::Refused(_)), "{object}: failed to repair a label: {error}");
                return "cannot be repaired";
            }
        }
        let before = self.live().await.expect("the object still exists");
        if let DryRun::Refused(_) = self.dry_run(&desired, &before).await {
            // As above, even without an edit: an empty selector of a Job, which the API server defaults.
            return "cannot be repaired";
        }
        let Some(edit) = self.edit(&before, random).await else { return "no legal edit" };
        self.compare(&desired, &before, &edit).await
    }

    /// Compares the reported drift of an edited object with a dry run of an apply, then does the same after the repair.
    async fn compare(&self, desired: &Value, before: &Value, edit: &str) -> &'static str {
        let mut last = String::new();
        // Simulated controllers may write between the requests.
        for _ in 0..3 {
            let Some(live) = self.live().await else { return "gone" };
            let dry_run = self.dry_run(desired, &live).await;
            let observed = self
                .rollout
                .observe(&RolloutRequest::new(&self.owner, &self.release))
                .await
                .expect("the release can be observed");
            let reported: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
            // A rejection because of additions by other managers, while all fields of the release are present, changes nothing.
            let is_whole = matches!(dry_run, DryRun::Refused(_)) && holds(&live, desired);
            if reported.is_empty() != (dry_run == DryRun::Nothing) && !(reported.is_empty() && is_whole) {
                last = format!(
                    "desired {desired}\nbefore {before}\nedit {edit}\nlive {live}\na dry run: {dry_run:?}\nreported: {reported:?}"
                );
                continue;
            }
            return match dry_run {
                DryRun::Nothing => "as in the release",
                DryRun::Refused(_) if reported.is_empty() => "as in the release",
                DryRun::Refused(refusal) => self.repair(desired, edit, Some(refusal)).await,
                DryRun::Change(_) => self.repair(desired, edit, None).await,
            };
        }
        panic!("{} {}: the reported drift differs from a dry run\n{last}", self.kind.resource.kind, self.name)
    }

    async fn repair(&self, desired: &Value, edit: &str, refused: Option<String>) -> &'static str {
        let context = || format!("desired {desired}\nedit {edit}\n");
        match (self.advance().await, &refused) {
            (Ok(()), _) => {}
            (Err(RolloutError::Objects(_)), Some(_)) => return "cannot be repaired",
            (Err(error), _) => panic!("{}the repair failed: {error}", context()),
        }
        let live = self.live().await.expect("the object still exists");
        let dry_run = self.dry_run(desired, &live).await;
        assert_eq!(dry_run, DryRun::Nothing, "{}after the repair a dry run changes {live}", context());
        if refused.is_some() { "replaced" } else { "repaired" }
    }

    /// Rolls out as the controller does: conflicts with other clients are retried.
    async fn advance(&self) -> Result<(), RolloutError> {
        let mut tries = TRIES;
        loop {
            match self.rollout.advance(&RolloutRequest::new(&self.owner, &self.release)).await {
                Err(error) if error.is_transient() && tries > 0 => tries -= 1,
                result => return result.map(drop),
            }
        }
    }

    async fn live(&self) -> Option<Value> {
        let found = self.api.get_opt(&self.name).await.expect("the API server answers")?;
        Some(serde_json::to_value(found).expect("an object is JSON"))
    }

    /// What an apply would change, according to a dry run.
    async fn dry_run(&self, desired: &Value, live: &Value) -> DryRun {
        let mut parameters = PatchParams::apply("chandler").force();
        parameters.dry_run = true;
        match self.api.patch(&self.name, &parameters, &Patch::Apply(desired)).await {
            Ok(applied) => {
                let applied = normalized(serde_json::to_value(applied).expect("an object is JSON"));
                if applied == normalized(live.clone()) { DryRun::Nothing } else { DryRun::Change(Box::new(applied)) }
            }
            Err(error) => DryRun::Refused(error.to_string()),
        }
    }

    /// Makes an edit that the API server accepts, with an update or an apply. Returns the request.
    async fn edit(&self, live: &Value, random: &mut Random) -> Option<String> {
        for _ in 0..TRIES {
            let mut edited = live.clone();
            edit_specification(&self.kind.schema, &mut edited, random);
            if edited == *live {
                continue;
            }
            let applies = random.percent(30);
            let sent = if applies { declared(live, &edited) } else { merge_patch(live, &edited) };
            let result = if applies { self.apply(&sent).await } else { self.patch("kubectl-edit", &sent).await };
            let Ok(after) = result else { continue };
            let after = normalized(serde_json::to_value(after).expect("an object is JSON"));
            if after != normalized(live.clone()) {
                return Some(format!("{} {sent}", if applies { "apply" } else { "patch" }));
            }
        }
        None
    }

    async fn patch(&self, manager: &str, patch: &Value) -> kube::Result<DynamicObject> {
        let user = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api.patch(&self.name, &user, &Patch::Merge(patch)).await
    }

    async fn apply(&self, declared: &Value) -> kube::Result<DynamicObject> {
        self.api.patch(&self.name, &PatchParams::apply("gitops").force(), &Patch::Apply(declared)).await
    }
}

/// Whether the live object certainly contains everything desired. Defaults may change which list items match.
fn holds(live: &Value, desired: &Value) -> bool {
    match desired {
        Value::Null => true,
        Value::Array(items) if items.is_empty() => true,
        Value::Array(items) => items.iter().all(Value::is_string) && live == desired,
        Value::Object(members) => {
            members.iter().all(|(name, desired)| holds(live.get(name).unwrap_or(&Value::Null), desired))
        }
        scalar => live == scalar,
    }
}

/// The object without what an apply does not set.
fn normalized(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(member);
        }
    }
    object
}

/// The top-level members that differ, each as a whole.
fn declared(live: &Value, edited: &Value) -> Value {
    let mut declared = json!({"apiVersion": live["apiVersion"], "kind": live["kind"]});
    for (name, value) in edited.as_object().into_iter().flatten() {
        if live.get(name) != Some(value) {
            declared[name] = value.clone();
        }
    }
    declared
}

fn merge_patch(live: &Value, edited: &Value) -> Value {
    let (Value::Object(live), Value::Object(edited)) = (live, edited) else { return edited.clone() };
    let gone = live.keys().filter(|name| !edited.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = edited.iter().filter(|(name, value)| live.get(*name) != Some(value)).map(|(name, value)| {
        let value = live.get(name).map_or_else(|| value.clone(), |live| merge_patch(live, value));
        (name.clone(), value)
    });
    Value::Object(gone.chain(changed).collect::<Map<String, Value>>())
}

#[tokio::test]
async fn random_edits_of_built_in_kinds_are_drift_if_an_apply_would_revert_them() {
    let harness = harness().await;
    let kinds = kinds::built_in(&harness.world.client).await;
    Box::pin(try_all(harness, &kinds)).await;
}

#[tokio::test]
async fn random_edits_of_custom_resources_are_drift_if_an_apply_would_revert_them() {
    let Some(corpus) = fixture("corpus/bundles") else { return };
    let mut harness = harness().await;
    let (kinds, names) = kinds::custom(&harness.world, &corpus, &mut harness.random).await;
    let client = harness.world.client.clone();
    Box::pin(try_all(harness, &kinds)).await;
    kinds::remove(&client, &names).await;
}
