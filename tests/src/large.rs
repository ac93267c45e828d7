//! Large releases, and what they cost: an installation, a reconcile without changes, an upgrade of one object, a deletion.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt::{self, Write as _},
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, names::REQUESTED_AT_ANNOTATION};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::{ControllerThread, CrashPoint, World, bundles::Bundle, crash_point::Activity, wait, world::condition};

/// How long one step may take before the measurement fails.
const PATIENCE: Duration = Duration::from_mins(10);

/// After how many polls without a new request a controller counts as idle.
const IDLE_POLLS: u32 = 5;

/// How many objects one file of a bundle contains.
const OBJECTS_PER_FILE: usize = 100;

/// A bundle with `count` objects. `last` is a value in the last one.
pub fn objects(count: usize, last: &str) -> Bundle {
    let numbers: Vec<usize> = (0..count).collect();
    numbers.chunks(OBJECTS_PER_FILE).enumerate().fold(Bundle::empty(), |bundle, (file, numbers)| {
        let text = numbers.iter().fold(String::new(), |mut text, number| {
            let value = if number + 1 == count { last } else { "some text" };
            let _ = writeln!(text, "---\n{}", object(*number, value));
            text
        });
        bundle.with(&format!("manifests/objects-{file:03}.yaml"), &text)
    })
}

fn object(number: usize, value: &str) -> String {
    match number % 4 {
        0 => format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: large-{number}}}"),
        1 => format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: large-{number}}}\n\
             rules: [{{apiGroups: [''], resources: [configmaps], verbs: [get]}}]"
        ),
        _ => format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: large-{number}}}\ndata: {{number: '{number}', value: '{value}'}}"
        ),
    }
}

/// A bundle with `count` CRDs, ten in each API group, and a custom resource of each in a later stage. `last` is a value in the last
/// custom resource.
pub fn crds(count: usize, last: &str) -> Bundle {
    (0..count).fold(Bundle::empty(), |bundle, number| {
        let value = if number + 1 == count { last } else { "some text" };
        let group = format!("group{}.large.example.com", number / 10);
        let crd = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: kinds{number}.{group}}}\n\
             spec:\n  group: {group}\n  scope: Namespaced\n  \
             names: {{kind: Kind{number}, listKind: Kind{number}List, plural: kinds{number}, singular: kind{number}}}\n  \
             versions:\n  - name: v1\n    served: true\n    storage: true\n    \
             schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{value: {{type: string}}}}}}}}}}}}\n"
        );
        let resource = format!(
            "apiVersion: {group}/v1\nkind: Kind{number}\nmetadata: {{name: large-{number}}}\nspec: {{value: '{value}'}}\n"
        );
        bundle
            .with(&format!("manifests/0000_10_large_{number:03}-definition.yaml"), &crd)
            .with(&format!("manifests/0000_20_large_{number:03}-resource.yaml"), &resource)
    })
}

/// What one step cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Which step.
    pub step: &'static str,
    /// The time from the request to its completion.
    pub time: Duration,
    /// The requests of the controller: `METHOD path`, with `(dry run)` appended to dry runs.
    pub requests: Vec<String>,
    /// Its successful writes.
    pub writes: Vec<String>,
    /// How often a provisioner was called.
    pub provisioner_calls: u64,
}

impl fmt::Display for Cost {
    /// One line: the time, and the number of requests by verb.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut verbs: BTreeMap<String, usize> = BTreeMap::new();
        for request in &self.requests {
            let verb = request.split(' ').next().unwrap_or_default();
            let dry_run = if request.ends_with("(dry run)") { " (dry run)" } else { "" };
            *verbs.entry(format!("{verb}{dry_run}")).or_default() += 1;
        }
        let verbs: Vec<String> = verbs.into_iter().map(|(verb, count)| format!("{count} {verb}")).collect();
        let Self { step, time, requests, provisioner_calls, .. } = self;
        write!(
            f,
            "{step:<20} {time:>8.2?} {:>6} requests ({}), {provisioner_calls} provisioner calls",
            requests.len(),
            verbs.join(", ")
        )
    }
}

/// Takes a release through all steps; the second bundle is the first with one object changed.
pub async fn measure(world: &World, class: &str, first: &Bundle, second: &Bundle) -> Vec<Cost> {
    let controller = ControllerThread::start(world.config(), world.options(), CrashPoint::Never);
    let mut meter = Meter { controller, before: Activity::default(), costs: Vec::new() };

    let image = world.push(first).await;
    let begin = Instant::now();
    world.deploy(&world.name(), class, &image).await;
    ready(world).await;
    meter.record("installation", begin).await;

    let request = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: "now"}}});
    let begin = Instant::now();
    world
        .deployments()
        .patch(&world.name(), &PatchParams::default(), &Patch::Merge(request))
        .await
        .expect("a reconcile can be requested");
    wait::within(PATIENCE, &world.deployments(), &world.name(), "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("now"))
    })
    .await;
    meter.record("nothing to do", begin).await;

    let image = world.push(second).await;
    let begin = Instant::now();
    world.deploy(&world.name(), class, &image).await;
    ready(world).await;
    meter.record("one object changed", begin).await;

    let begin = Instant::now();
    world.deployments().delete(&world.name(), &DeleteParams::default()).await.expect("the BundleDeployment exists");
    wait::within(PATIENCE, &world.deployments(), &world.name(), "gone", |deployment| deployment.is_none()).await;
    meter.record("deletion", begin).await;
    meter.controller.stop().await;
    meter.costs
}

struct Meter {
    controller: ControllerThread,
    before: Activity,
    costs: Vec<Cost>,
}

impl Meter {
    /// Records the cost since the previous step. Requests that the final status update triggers count, too.
    async fn record(&mut self, step: &'static str, begin: Instant) {
        let time = begin.elapsed();
        let seen = Cell::new((0, 0));
        wait::eventually("the controller is idle", || async {
            let (before, times) = seen.get();
            let now = self.controller.activity().requests.len();
            seen.set((now, if now == before { times + 1 } else { 0 }));
            times >= IDLE_POLLS
        })
        .await;
        let activity = self.controller.activity();
        let since = |all: &[String], before: &[String]| all.get(before.len()..).unwrap_or_default().to_vec();
        self.costs.push(Cost {
            step,
            time,
            requests: since(&activity.requests, &self.before.requests),
            writes: since(&activity.writes, &self.before.writes),
            provisioner_calls: activity.provisioner_calls - self.before.provisioner_calls,
        });
        self.before = activity;
    }
}

async fn ready(world: &World) {
    let ready = |deployment: &BundleDeployment| {
        condition(deployment, "Ready")
            .is_some_and(|ready| ready.status == "True" && ready.observed_generation == deployment.metadata.generation)
    };
    wait::within(PATIENCE, &world.deployments(), &world.name(), "ready", |deployment| deployment.is_some_and(ready))
        .await;
}
