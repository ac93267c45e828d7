//! A leader that stops for longer than its Lease lasts, and then continues beside its successor, writes nothing any more. Whatever it was doing, its
//! successor reaches the result that there would have been without it.
//!
//! Each step runs once without a stop, then with stops before and after evenly spaced writes. `CHANDLER_CRASH_POINTS` sets their number, or
//! `all`.

use std::{future::Future, time::Duration};

use chandler_api::{Catalog, ConditionType, Resolution, find_condition, names::REQUESTED_AT_ANNOTATION};
use chandler_controller::{ControllerError, ElectionError, Options, Timing};
use chandler_tests::{
    Cluster, ControllerThread, CrashPoint, World, buoys, crash_point,
    former_leader::{FormerLeader, Sent, Stop, StopPoint},
    state::State,
    wait,
    world::empty_cache,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    PLAIN, leader_election,
    resolution_crashes::{self, Scenario},
    shop::{Shop, catalog},
};

/// How many points of each step are tested by default.
const POINTS: usize = 3;

/// A Lease that expires soon.
const BRIEF: Timing = Timing {
    duration: Duration::from_millis(1500),
    deadline: Duration::from_secs(1),
    renewal: Duration::from_millis(250),
    retry: Duration::from_millis(100),
};

/// Runs one step under a leader that stops, and its successor. Returns the requests of the leader, and whether it stopped.
async fn run(
    world: &World,
    (stop, point): (Stop, StopPoint),
    begin: impl Future<Output = ()>,
    finish: impl AsyncFn(),
) -> (Vec<Sent>, bool) {
    begin.await;
    let former = FormerLeader::start(world.config(), world.options(), ("former", BRIEF), stop, point);
    let has_stopped = tokio::select! {
        () = former.stopped() => true,
        () = finish() => false,
    };
    let requests = former.requests();
    if !has_stopped {
        former.shut_down().await.result.expect("it works until it is shut down");
        return (requests, false);
    }
    let cache = empty_cache();
    let mut options = leader_election::candidate(world, world.client.clone(), "successor", BRIEF);
    options.cache_directory = cache.path().to_owned();
    let successor = ControllerThread::start(world.config(), options, CrashPoint::Never);
    leader_election::leads(world, "successor").await;
    finish().await;
    former.resume();
    let ended = former.ended().await;
    match ended.result {
        Err(ControllerError::Election(ElectionError::Lost { holder, .. })) => assert_eq!(holder, "successor"),
        other => panic!("{stop:?} {point:?}: {other:?}"),
    }
    assert_eq!(ended.late_writes, [""; 0], "{stop:?} {point:?}");
    finish().await;
    successor.stop().await;
    (requests, true)
}

/// Some points before and after writes.
fn points(requests: &[Sent]) -> Vec<StopPoint> {
    let writes: Vec<usize> = (0..requests.len()).filter(|number| requests[*number].writes).collect();
    let all: Vec<StopPoint> = writes
        .iter()
        .flat_map(|number| [StopPoint::BeforeRequest(*number), StopPoint::AfterRequest(*number)])
        .collect();
    let count = crash_point::count(POINTS, all.len());
    // Numbers of both kinds, whatever the count is.
    (0..count).map(|index| all[((index * all.len() / count) & !1) + index % 2]).collect()
}

/// The steps of a BundleDeployment.
#[derive(Clone, Copy, Debug)]
enum Step {
    Install,
    Upgrade,
    Delete,
}

const STEPS: [Step; 3] = [Step::Install, Step::Upgrade, Step::Delete];

async fn deployments(stop: Stop) {
    let world = World::without_controller(Cluster::acquire().await).await;
    let name = world.name();
    let images =
        [world.push(&buoys::first(&world.namespace)).await, world.push(&buoys::second(&world.namespace)).await];
    let begin = async |step: Step| match step {
        Step::Install => drop(world.deploy(&name, PLAIN, &images[0]).await),
        Step::Upgrade => drop(world.deploy(&name, PLAIN, &images[1]).await),
        Step::Delete => {
            world.deployments().delete(&name, &DeleteParams::default()).await.expect("it exists");
        }
    };
    let finish = async |step: Step| match step {
        Step::Install | Step::Upgrade => drop(world.ready(&name).await),
        Step::Delete => drop(wait::until(&world.deployments(), &name, "gone", |found| found.is_none()).await),
    };
    let run = async |step: Step, point: StopPoint| {
        let (requests, stopped) = run(&world, (stop, point), begin(step), async || finish(step).await).await;
        (requests, stopped, State::of(&world, &name).await)
    };
    let mut references = Vec::new();
    for step in STEPS {
        let (requests, _, state) = run(step, StopPoint::Never).await;
        references.push((points(&requests), state));
    }
    assert!(references[2].1.objects.is_empty(), "{}", references[2].1);
    let mut reached = 0;
    for round in 0..references.iter().map(|(points, _)| points.len()).max().unwrap_or_default() {
        let mut before = State::default();
        for (step, (points, reference)) in STEPS.into_iter().zip(&references) {
            let point = points.get(round).copied().unwrap_or(StopPoint::Never);
            let (_, stopped, state) = run(step, point).await;
            reached += usize::from(stopped);
            let difference = state.difference(reference);
            assert!(difference.is_empty(), "{step:?}, {stop:?} {point:?}:\n{difference}");
            for (key, uid) in &state.uids {
                let same = before.uids.get(key).is_none_or(|before| before == uid);
                assert!(same, "{step:?}, {stop:?} {point:?}: {key} was deleted and created again");
            }
            before = state;
        }
    }
    assert!(reached > references.len(), "most points are reached: {reached}");
    world.finish().await;
}

async fn sets(how: Stop) {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    world.start_controller();
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let Shop { packages, .. } = shop;
    world.stop_controller().await;
    let shop = Shop::reopened(&world, packages);
    let scenario = Scenario { shop: &shop, wish: format!("{}-wish", world.run()) };
    let steps = [resolution_crashes::Step::Install, resolution_crashes::Step::Pivot, resolution_crashes::Step::Delete];
    let run =
        async |step, point| run(&world, (how, point), scenario.begin(step), async || scenario.finish(step).await).await;
    let mut all = Vec::new();
    for step in steps {
        all.push(points(&run(step, StopPoint::Never).await.0));
    }
    let mut reached = 0;
    for round in 0..all.iter().map(Vec::len).max().unwrap_or_default() {
        for (step, points) in steps.into_iter().zip(&all) {
            let point = points.get(round).copied().unwrap_or(StopPoint::Never);
            let before = scenario.members().await;
            reached += usize::from(run(step, point).await.1);
            scenario.check(step, (how, point), &before).await;
        }
    }
    assert!(reached > steps.len(), "most points are reached: {reached}");
    world.finish().await;
}

/// A replica that takes over has read no catalog and fetched no bundle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_with_an_empty_cache_changes_nothing() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    world.start_controller();
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    let name = catalog(&shop).await;
    let Shop { packages, .. } = shop;
    let shop = Shop::reopened(&world, packages);
    let scenario = Scenario { shop: &shop, wish: format!("{}-wish", world.run()) };
    for step in [resolution_crashes::Step::Install, resolution_crashes::Step::Platform] {
        scenario.begin(step).await;
        scenario.finish(step).await;
    }
    let resolutions: Api<Resolution> = Api::all(world.client.clone());
    wait::until(&resolutions, &world.platform(), "ready", |found| {
        let conditions = found.and_then(|found| Some(found.status.as_ref()?.conditions.as_slice()));
        find_condition(conditions.unwrap_or_default(), ConditionType::Ready).is_some_and(|it| it.status == "True")
    })
    .await;
    let wish = scenario.wish.clone();
    let packages = shop.packages;
    world.stop_controller().await;
    let shop = Shop::reopened(&world, packages);
    let scenario = Scenario { shop: &shop, wish };
    let (members, decisions) = (scenario.members().await, scenario.decisions().await);
    assert_eq!(decisions.len(), 2, "of the Resolution, and of the one for PlatformOperators");

    let cache = empty_cache();
    let options = Options { cache_directory: cache.path().to_owned(), ..world.options() };
    let successor = ControllerThread::start(world.config(), options, CrashPoint::Never);
    let catalogs: Api<Catalog> = Api::all(world.client.clone());
    let request = Patch::Merge(json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: "now"}}}));
    catalogs.patch(&name, &PatchParams::default(), &request).await.expect("the Catalog exists");
    wait::until(&catalogs, &name, "read", |found| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("now"))
    })
    .await;
    // A new generation with the same meaning: once it was observed, the Resolution was decided with all catalogs.
    let spec = Patch::Merge(json!({"spec": {"prereleases": false}}));
    resolutions.patch(&scenario.wish, &PatchParams::default(), &spec).await.expect("the Resolution exists");
    scenario.finish(resolution_crashes::Step::Install).await;

    assert_eq!((scenario.members().await, scenario.decisions().await), (members, decisions));
    let mut writes = successor.stop().await.writes;
    // The status of a Resolution names the catalogs that are in use.
    writes.retain(|write| !["/catalogs/", "/resolutions/", "/events"].iter().any(|path| write.contains(path)));
    let decision = format!("configmaps/resolveset-{}-1", scenario.wish);
    let wanted = format!("PATCH /api/v1/namespaces/{}/{decision}", world.system_namespace);
    assert_eq!(writes, [wanted], "the decision is of the new generation");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_leader_of_a_rollout_writes_nothing_afterwards() {
    Box::pin(deployments(Stop::Paused)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_leader_of_a_rollout_writes_nothing_afterwards() {
    Box::pin(deployments(Stop::Partitioned)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_leader_of_a_set_writes_nothing_afterwards() {
    Box::pin(sets(Stop::Paused)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_leader_of_a_set_writes_nothing_afterwards() {
    Box::pin(sets(Stop::Partitioned)).await;
}
