//! Wherever the controller crashes while it installs, changes or removes the set of a decision, its successor completes the step: it knows the
//! set for its own, and creates no member twice.

use std::collections::BTreeMap;

use chandler_tests::{Cluster, ControllerThread, CrashPoint, World, crash_point::Activity};
use kube::ResourceExt as _;

use crate::decision_maps::{Resolver, namespaces};

/// How many crash points of each step are tested.
const POINTS: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Step {
    Install,
    Pivot,
    Remove,
}

const STEPS: [Step; 3] = [Step::Install, Step::Pivot, Step::Remove];

impl Step {
    async fn begin(self, world: &World, resolver: &Resolver) {
        match self {
            Self::Install => resolver.decide(world, "1", &[("app", &["base"]), ("base", &[])]).await,
            Self::Pivot => resolver.decide(world, "2", &[("base", &[]), ("extra", &[])]).await,
            Self::Remove => {
                resolver.withdraw("1").await;
                resolver.withdraw("2").await;
            }
        }
    }

    async fn finish(self, world: &World, resolver: &Resolver) {
        match self {
            Self::Install => resolver.installed(world, "1", &["app", "base"]).await,
            Self::Pivot => resolver.installed(world, "2", &["base", "extra"]).await,
            Self::Remove => resolver.gone(world).await,
        }
    }

    /// Runs the step, with a controller that crashes and a successor.
    async fn run(self, world: &World, resolver: &Resolver, point: CrashPoint) -> Activity {
        let before = uids(world, resolver).await;
        self.begin(world, resolver).await;
        let crashing = ControllerThread::start(world.config(), world.options(), point);
        tokio::select! {
            () = crashing.crashed() => {}
            () = self.finish(world, resolver) => {}
        }
        let activity = crashing.kill().await;
        let successor = ControllerThread::start(world.config(), world.options(), CrashPoint::Never);
        self.finish(world, resolver).await;
        successor.stop().await;
        for (name, uid) in uids(world, resolver).await {
            let is_same = before.get(&name).is_none_or(|before| *before == uid);
            assert!(is_same, "{self:?} {point:?}: {name} was deleted and created again");
        }
        activity
    }
}

/// The UIDs of the set and its members, by name.
async fn uids(world: &World, resolver: &Resolver) -> BTreeMap<String, Option<String>> {
    let mut names = resolver.members(world).await;
    names.push(resolver.deployment());
    let mut uids = BTreeMap::new();
    for name in names {
        if let Some(found) = world.deployments().get_opt(&name).await.expect("an answer") {
            uids.insert(name, found.uid());
        }
    }
    uids
}

/// The points before and after writes of ConfigMaps and BundleDeployments.
fn points(activity: &Activity) -> Vec<CrashPoint> {
    let is_write = |request: &str| {
        let is_object = request.contains("/configmaps") || request.contains("/bundledeployments");
        !request.starts_with("GET") && is_object && !request.contains("/status")
    };
    let writes = (0_u64..).zip(&activity.requests).filter(|(_, request)| is_write(request));
    let all: Vec<CrashPoint> =
        writes.flat_map(|(index, _)| [CrashPoint::BeforeRequest(index), CrashPoint::AfterRequest(index)]).collect();
    let count = POINTS.min(all.len());
    (0..count).map(|index| all[index * all.len() / count]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_set_of_a_decision_survives_crashes_at_any_write() {
    let world = World::without_controller(Cluster::acquire().await).await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app", "base", "extra"]).await;
    let mut all = Vec::new();
    for step in STEPS {
        let activity = step.run(&world, &resolver, CrashPoint::Never).await;
        assert!(!points(&activity).is_empty(), "{step:?} writes: {:?}", activity.requests);
        all.push(points(&activity));
    }
    for round in 0..POINTS {
        for (step, points) in STEPS.into_iter().zip(&all) {
            let point = points.get(round).copied().unwrap_or(CrashPoint::Never);
            step.run(&world, &resolver, point).await;
        }
    }
    world.finish().await;
}
