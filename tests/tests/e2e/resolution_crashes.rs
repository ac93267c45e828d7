//! Wherever the controller crashes on the way from a wish to a set, its successor reaches the same set, with one decision for each
//! answer and no member created twice.
//!
//! Each step runs once without a crash, then with crashes at evenly spaced points. `CHANDLER_CRASH_POINTS` sets their number, or `all`.

use std::{collections::BTreeMap, fmt};

use chandler_api::{BundleDeployment, ConditionType, PlatformOperator, Resolution, find_condition};
use chandler_tests::{
    Cluster, ControllerThread, CrashPoint, World,
    crash_point::{self, Activity},
    wait,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::shop::{Shop, catalog};

/// How many crash points of each step are tested by default.
const POINTS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Install,
    /// What is wanted changes: one package goes, one comes, one stays.
    Pivot,
    /// Back to the first decision.
    RollBack,
    Delete,
    /// An installation through a PlatformOperator.
    Platform,
    /// Another PlatformOperator, whose package needs one more.
    Second,
    RemoveSecond,
    RemovePlatform,
}

const STEPS: [Step; 8] = [
    Step::Install,
    Step::Pivot,
    Step::RollBack,
    Step::Delete,
    Step::Platform,
    Step::Second,
    Step::RemoveSecond,
    Step::RemovePlatform,
];

impl Step {
    /// The packages that are installed afterwards.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Install | Self::RollBack => &["app", "base"],
            Self::Pivot => &["base", "extra"],
            Self::Delete | Self::RemovePlatform => &[],
            Self::Platform | Self::RemoveSecond => &["extra"],
            Self::Second => &["app", "base", "extra"],
        }
    }

    /// The number of decisions that are kept afterwards.
    fn decisions(self) -> usize {
        match self {
            Self::Install | Self::Platform => 1,
            Self::Pivot | Self::RollBack | Self::Second => 2,
            Self::RemoveSecond => 3,
            Self::Delete | Self::RemovePlatform => 0,
        }
    }
}

/// The packages, and the names of what the steps create.
pub(crate) struct Scenario<'a> {
    pub(crate) shop: &'a Shop<'a>,
    pub(crate) wish: String,
}

impl Scenario<'_> {
    fn world(&self) -> &World {
        self.shop.world
    }

    fn resolutions(&self) -> Api<Resolution> {
        Api::all(self.world().client.clone())
    }

    fn platform(&self) -> Api<PlatformOperator> {
        Api::all(self.world().client.clone())
    }

    fn wanted(&self, packages: &[&str]) -> Value {
        packages.iter().map(|package| json!({"name": self.shop.name(package)})).collect()
    }

    /// Makes the user's change that starts the step.
    pub(crate) async fn begin(&self, step: Step) {
        let patch = async |spec: Value| {
            let patch = Patch::Merge(json!({"spec": spec}));
            self.resolutions().patch(&self.wish, &PatchParams::default(), &patch).await.expect("the spec is accepted");
        };
        match step {
            Step::Install => {
                let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": self.world().namespace}});
                let spec = json!({"packages": self.wanted(&["app"]), "output": output});
                let _: Resolution = self.world().create(json!({"metadata": {"name": self.wish}, "spec": spec})).await;
            }
            Step::Pivot => patch(json!({"packages": self.wanted(&["base", "extra"])})).await,
            Step::RollBack => patch(json!({"output": {"resolveSet": {"toDecision": 1}}})).await,
            Step::Delete => {
                self.resolutions().delete(&self.wish, &DeleteParams::default()).await.expect("the Resolution exists");
            }
            Step::Platform | Step::Second => {
                let package = if step == Step::Platform { "extra" } else { "app" };
                let spec =
                    json!({"package": {"name": self.shop.name(package)}, "installNamespace": self.world().namespace});
                let object = json!({"metadata": {"name": self.operator(step)}, "spec": spec});
                let _: PlatformOperator = self.world().create(object).await;
            }
            Step::RemovePlatform | Step::RemoveSecond => {
                self.platform().delete(&self.operator(step), &DeleteParams::default()).await.expect("it exists");
            }
        }
    }

    /// The PlatformOperator of a step.
    fn operator(&self, step: Step) -> String {
        match step {
            Step::Second | Step::RemoveSecond => format!("{}-second", self.wish),
            _ => self.wish.clone(),
        }
    }

    /// Waits until the step is complete.
    pub(crate) async fn finish(&self, step: Step) {
        let ready = |resolution: Option<&Resolution>| {
            let status = resolution.and_then(|resolution| {
                let status = resolution.status.as_ref()?;
                (status.observed_generation == resolution.metadata.generation).then_some(status)
            });
            let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
            ready.is_some_and(|ready| ready.status == "True")
        };
        match step {
            Step::Install | Step::Pivot | Step::RollBack => {
                wait::until(&self.resolutions(), &self.wish, "ready", ready).await;
            }
            Step::Delete => {
                wait::until(&self.resolutions(), &self.wish, "gone", |found| found.is_none()).await;
            }
            Step::Platform | Step::Second => {
                wait::until(&self.platform(), &self.operator(step), "installed", |found| {
                    let conditions = found.and_then(|found| found.status.as_ref()).map(|status| &status.conditions);
                    conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Installed" && it.status == "True"))
                })
                .await;
            }
            Step::RemoveSecond => {
                wait::until(&self.platform(), &self.operator(step), "gone", |found| found.is_none()).await;
                wait::eventually("its package and what it needs are deleted", || async {
                    self.members().await.keys().copied().eq(["extra"])
                })
                .await;
            }
            Step::RemovePlatform => {
                wait::until(&self.platform(), &self.wish, "gone", |found| found.is_none()).await;
                // The set goes with the Resolution, once the last PlatformOperator is gone.
                wait::eventually("no decision is left", || async { self.decisions().await.is_empty() }).await;
            }
        }
    }

    /// Runs one step, with a controller that crashes and a successor.
    async fn run(&self, step: Step, crash_point: CrashPoint) -> Activity {
        self.begin(step).await;
        let crashing = ControllerThread::start(self.world().config(), self.world().options(), crash_point);
        tokio::select! {
            () = crashing.crashed() => {}
            () = self.finish(step) => {}
        }
        let activity = crashing.kill().await;
        let successor = ControllerThread::start(self.world().config(), self.world().options(), CrashPoint::Never);
        self.finish(step).await;
        successor.stop().await;
        activity
    }

    pub(crate) async fn decisions(&self) -> Vec<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.world().client.clone(), &self.world().system_namespace);
        let selected = ListParams::default().labels("resolution.chandler.dev/name");
        let maps = maps.list(&selected).await.expect("the API server answers");
        maps.items.iter().map(kube::ResourceExt::name_any).collect()
    }

    /// The UIDs of the members, by package.
    pub(crate) async fn members(&self) -> BTreeMap<&'static str, String> {
        let all = self.world().deployments().list(&ListParams::default()).await.expect("an answer");
        let uid = |package: &'static str| {
            let name = self.shop.name(package);
            let is_of = |it: &&BundleDeployment| it.annotations().get("resolution.chandler.dev/package") == Some(&name);
            Some((package, all.iter().find(is_of)?.uid()?))
        };
        ["app", "base", "extra"].into_iter().filter_map(uid).collect()
    }

    pub(crate) async fn check(&self, step: Step, point: impl fmt::Debug, before: &BTreeMap<&'static str, String>) {
        let after = self.members().await;
        let installed: Vec<&str> = after.keys().copied().collect();
        assert_eq!(installed, step.packages(), "{step:?} {point:?}");
        for (package, uid) in &after {
            let is_same = before.get(package).is_none_or(|before| before == uid);
            assert!(is_same, "{step:?} {point:?}: {package} was deleted and created again");
        }
        assert_eq!(self.decisions().await.len(), step.decisions(), "{step:?} {point:?}");
    }
}

/// Some of the points at which a controller with this activity can crash. `seed` differs from step to step.
fn points(activity: &Activity) -> Vec<CrashPoint> {
    let requests = activity.requests.len() as u64;
    let before = (0..requests).map(CrashPoint::BeforeRequest);
    let after = (0..requests).map(CrashPoint::AfterRequest);
    let all: Vec<CrashPoint> = before.chain(after).collect();
    let count = crash_point::count(POINTS, all.len());
    (0..count).map(|index| all[index * all.len() / count]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_survives_crashes_at_any_request() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    world.start_controller();
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let Shop { packages, .. } = shop;
    world.stop_controller().await;
    let mut shop = Shop::new(&world);
    shop.packages = packages;
    let scenario = Scenario { shop: &shop, wish: format!("{}-wish", world.run()) };
    let mut activities = Vec::new();
    for step in STEPS {
        let before = scenario.members().await;
        activities.push(scenario.run(step, CrashPoint::Never).await);
        scenario.check(step, CrashPoint::Never, &before).await;
    }
    let all: Vec<Vec<CrashPoint>> = activities.iter().map(points).collect();
    for round in 0..all.iter().map(Vec::len).max().unwrap_or_default() {
        for (step, points) in STEPS.into_iter().zip(&all) {
            let point = points.get(round).copied().unwrap_or(CrashPoint::Never);
            let before = scenario.members().await;
            scenario.run(step, point).await;
            scenario.check(step, point, &before).await;
        }
    }
    world.finish().await;
}
