//! API server faults: whatever fails, the controller reaches the same result.
//!
//! The scenario is an installation, an upgrade, a rollback, a repair, an approval and a deletion. It runs once without faults, and
//! once for each fault profile. Faults affect only the controller, and are injected anew in every step. After each step the cluster
//! must be in the same state as without faults.

use std::time::Duration;

use chandler_devcluster::{
    DevCluster, Effect, Fault,
    faults::{Verb, effect::When},
};
use chandler_tests::{Cluster, World, bundles::Bundle, buoys, container, state::State, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

/// The controller's user agent, so that faults affect only the controller.
const CONTROLLER: &str = "e2e-controller";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Install,
    Upgrade,
    GoBack,
    GoOn,
    Repair,
    Approve,
    Delete,
}

const STEPS: [Step; 7] =
    [Step::Install, Step::Upgrade, Step::GoBack, Step::GoOn, Step::Repair, Step::Approve, Step::Delete];

/// The faults that are injected in every step.
fn profiles() -> Vec<(&'static str, Vec<Fault>)> {
    let second = Duration::from_secs(1);
    let writes = |effect| Verb::WRITES.iter().fold(Fault::new(effect), |fault, verb| fault.verb(*verb));
    vec![
        ("no fault", vec![]),
        ("429 with Retry-After", vec![Fault::new(Effect::TooManyRequests { retry_after: second }).every(5).times(3)]),
        (
            "500 and 503",
            vec![
                Fault::new(Effect::InternalError).every(7).times(2),
                Fault::new(Effect::Unavailable).every(11).times(1),
            ],
        ),
        ("500 after the write", vec![writes(Effect::InternalErrorAfterWrite).every(3).times(3)]),
        (
            "connections that break off",
            vec![Fault::new(Effect::Reset).every(9).times(2), writes(Effect::ResetAfterWrite).every(4).times(2)],
        ),
        ("conflicts", vec![writes(Effect::Conflict).every(3).times(3)]),
        (
            "watches that end",
            vec![
                Fault::new(Effect::DropWatch(When::Events(1))),
                Fault::new(Effect::ResetWatch(When::Events(2))).every(2).times(3),
                Fault::new(Effect::ExpireWatch(When::Events(1))).every(3).times(3),
            ],
        ),
        (
            "slowness",
            vec![
                Fault::new(Effect::EstablishedDelay { delay: 2 * second }),
                Fault::new(Effect::SlowWatch { delay: second / 4 }),
                Fault::latency(second / 100),
                Fault::new(Effect::Stale { revisions: 20 }),
            ],
        ),
    ]
}

struct Scenario {
    world: World,
    first: String,
    second: String,
}

impl Scenario {
    async fn start(cluster: Cluster) -> Self {
        let mut world = World::without_controller(cluster).await;
        world.start_controller_as(CONTROLLER);
        let push = |bundle: Bundle| {
            let world = &world;
            async move { world.push(&bundle).await }
        };
        let (first, second) = (push(buoys::first(&world.namespace)).await, push(buoys::second(&world.namespace)).await);
        Self { world, first, second }
    }

    fn cluster(&self) -> &DevCluster {
        self.world.embedded().expect("only the embedded control plane injects faults")
    }

    async fn merge(&self, patch: Value) {
        let patched =
            self.world.deployments().patch(&self.world.name(), &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("the object is accepted");
    }

    async fn run(&self, step: Step) {
        let spec = |image: &str| self.world.spec(PLAIN, image);
        match step {
            Step::Install => drop(self.world.apply(&self.world.name(), spec(&self.first)).await),
            Step::Upgrade => drop(self.world.apply(&self.world.name(), spec(&self.second)).await),
            Step::GoBack => self.merge(json!({"spec": {"rollout": {"toRevision": 1}}})).await,
            Step::GoOn => self.merge(json!({"spec": {"rollout": {"toRevision": null}}})).await,
            Step::Repair => return self.repair().await,
            Step::Approve => self.approve().await,
            Step::Delete => return self.world.delete(&self.world.name()).await,
        }
        self.world.ready(&self.world.name()).await;
    }

    /// A user edits one object and deletes another.
    async fn repair(&self) {
        let maps: Api<ConfigMap> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let before = maps.get("chart").await.expect("the ConfigMap");
        let deleted = maps.delete("steady", &DeleteParams::default()).await.expect("the deletion is accepted");
        let deleted = deleted.left().and_then(|map| map.metadata.uid);
        let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
        maps.patch("chart", &PatchParams::default(), &edit).await.expect("the edit is accepted");
        wait::until(&maps, "chart", "repaired", |map| map.is_some_and(|map| map.data == before.data)).await;
        wait::until(&maps, "steady", "created again", |map| map.is_some_and(|map| map.metadata.uid != deleted)).await;
        // The status reports it, too.
        self.world.ready(&self.world.name()).await;
    }

    /// A change is pending approval, and is approved.
    async fn approve(&self) {
        let mut spec = self.world.spec(PLAIN, &self.first);
        spec["approval"] = json!("Manual");
        self.world.apply(&self.world.name(), spec).await;
        let pending = self.world.pending(&self.world.name()).await;
        self.world.approve(&self.world.name(), &pending.digest).await;
    }
}

/// Runs the scenario. Returns the state after each step.
async fn run_scenario(name: &'static str, faults: Vec<Fault>) -> Vec<State> {
    let course = Box::pin(Scenario::start(Cluster::acquire().await)).await;
    let (mut states, mut struck) = (Vec::new(), 0);
    for step in STEPS {
        for fault in &faults {
            course.cluster().inject(fault.clone().client(container::agent(CONTROLLER)));
        }
        course.run(step).await;
        struck += course.cluster().clear_faults().iter().map(|report| report.struck).sum::<u64>();
        states.push(State::of(&course.world, &course.world.name()).await);
    }
    assert!(faults.is_empty() || struck >= 5, "{name}: only {struck} requests were affected");
    eprintln!("{name}: {struck} requests were affected");
    course.world.finish().await;
    states
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_api_fault_leads_to_the_same_result() {
    if !Cluster::acquire().await.is_embedded() {
        eprintln!("skipped: only the embedded control plane injects faults");
        return;
    }
    let courses = profiles().into_iter().map(|(name, faults)| {
        let task = tokio::spawn(run_scenario(name, faults));
        async move { (name, task.await) }
    });
    let mut courses = futures::future::join_all(courses).await.into_iter();
    let reference = courses.next().expect("the scenario without faults").1.expect("the scenario without faults");
    assert!(
        reference.iter().take(STEPS.len() - 1).all(|state| state.objects.len() > 6),
        "the reference states contain objects"
    );
    let mut differences = Vec::new();
    for (name, states) in courses {
        match states {
            Ok(states) => {
                for ((step, state), reference) in STEPS.iter().zip(&states).zip(&reference) {
                    let difference = state.difference(reference);
                    if !difference.is_empty() {
                        differences.push(format!("{name}, {step:?}:\n{difference}"));
                    }
                }
            }
            Err(error) => differences.push(format!("{name}: {error}")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
