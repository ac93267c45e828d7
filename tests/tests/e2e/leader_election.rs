//! Of several controllers with the same objects one works. The others wait, and one of them continues when it ends.

use std::time::Duration;

use chandler_controller::{ControllerError, Election, ElectionError, Options, Timing, options::LEASE};
use chandler_tests::{
    Cluster, World,
    bundles::Bundle,
    controller_thread::ControllerThread,
    crash_point::{Activity, CrashInjector, CrashPoint},
    in_process::{self, InProcess},
    interruption::Interruption,
    wait,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

/// Times for a test in which a Lease expires.
pub(crate) const SHORT: Timing = Timing {
    duration: Duration::from_secs(3),
    deadline: Duration::from_secs(2),
    renewal: Duration::from_millis(500),
    retry: Duration::from_millis(200),
};

pub(crate) async fn world() -> World {
    World::without_controller(Cluster::acquire().await).await
}

pub(crate) fn candidate(world: &World, client: Client, identity: &str, timing: Timing) -> Options {
    let connect = move || Ok(client.clone());
    let election = Election::new(connect, &world.system_namespace, LEASE, identity.to_owned()).with_timing(timing);
    Options { leader_election: Some(election), ..world.options() }
}

fn start(world: &World, identity: &str, timing: Timing) -> ControllerThread {
    let options = candidate(world, world.client.clone(), identity, timing);
    ControllerThread::start(world.config(), options, CrashPoint::Never)
}

pub(crate) fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.client.clone(), &world.system_namespace)
}

pub(crate) async fn leads(world: &World, identity: &str) -> Lease {
    let held = |lease: Option<&Lease>| {
        lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref()) == Some(identity)
    };
    let found = wait::until(&leases(world), LEASE, &format!("held by {identity:?}"), held).await;
    found.expect("a Lease with a holder exists")
}

pub(crate) async fn bundle(world: &World, depth: &str) -> String {
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: chart}}\ndata: {{depth: '{depth}'}}\n");
    world.push(&Bundle::empty().with("manifests/map.yaml", &map)).await
}

#[tokio::test]
async fn a_second_controller_waits_and_continues_at_once_when_the_first_stops() {
    let world = world().await;
    let first = start(&world, "first", Timing::default());
    leads(&world, "first").await;
    let second = start(&world, "second", Timing::default());
    world.deploy(&world.name(), PLAIN, &bundle(&world, "10").await).await;
    world.ready(&world.name()).await;
    assert_eq!(second.activity(), Activity { idle_periods: second.activity().idle_periods, ..Activity::default() });

    first.stop().await;
    let lease = leads(&world, "second").await.spec.expect("a spec");
    assert_eq!((lease.lease_transitions, lease.lease_duration_seconds), (Some(2), Some(15)));
    world.deploy(&world.name(), PLAIN, &bundle(&world, "20").await).await;
    world.ready(&world.name()).await;
    second.stop().await;
    leads(&world, "").await;
    world.finish().await;
}

#[tokio::test]
async fn a_controller_that_waits_stops_when_it_is_told_to() {
    let world = world().await;
    let first = start(&world, "first", Timing::default());
    leads(&world, "first").await;
    start(&world, "second", Timing::default()).stop().await;
    leads(&world, "first").await;
    first.stop().await;
    world.finish().await;
}

#[tokio::test]
async fn after_a_crash_the_next_controller_takes_over() {
    let world = world().await;
    let first = start(&world, "first", SHORT);
    leads(&world, "first").await;
    let second = start(&world, "second", SHORT);
    world.deploy(&world.name(), PLAIN, &bundle(&world, "10").await).await;
    first.kill().await;
    leads(&world, "second").await;
    world.ready(&world.name()).await;
    second.stop().await;
    world.finish().await;
}

#[tokio::test]
async fn a_leader_that_cannot_renew_its_lease_writes_nothing_beside_its_successor_and_ends() {
    let world = world().await;
    let (reach, caches) = (Interruption::of_kind("leases"), tempfile::tempdir().expect("a directory"));
    let options = candidate(&world, reach.client(world.config()), "first", SHORT);
    let requests = CrashInjector::new(CrashPoint::Never);
    let client = chandler_client::builder(world.config()).expect("a configuration").with_layer(&requests).build();
    in_process::note(Some(InProcess::Lease));
    let first = tokio::spawn(chandler_controller::run(client, options, std::future::pending()));
    let elected = leads(&world, "first").await;
    // It knows that it is the leader once it renews the Lease: the interruption may cut off the answer to its first write.
    wait::until(&leases(&world), LEASE, "renewed", |lease| {
        lease.is_some_and(|lease| lease.metadata.resource_version != elected.metadata.resource_version)
    })
    .await;
    reach.begin();
    let mut options = candidate(&world, world.client.clone(), "second", SHORT);
    options.cache_directory = caches.path().to_path_buf();
    let second = ControllerThread::start(world.config(), options, CrashPoint::Never);
    leads(&world, "second").await;

    // Both see the new object.
    world.deploy(&world.name(), PLAIN, &bundle(&world, "10").await).await;
    world.ready(&world.name()).await;
    assert!(!first.is_finished(), "it does not know its successor");
    assert_eq!(requests.activity().writes, [""; 0]);
    reach.end();
    let ended = tokio::time::timeout(wait::PATIENCE, first).await.expect("it ends").expect("it does not panic");
    match ended {
        Err(ControllerError::Election(ElectionError::Lost { holder, .. })) => assert_eq!(holder, "second"),
        other => panic!("{other:?}"),
    }
    second.stop().await;
    world.finish().await;
}

#[tokio::test]
async fn a_leader_keeps_a_lease_that_a_user_deleted_or_edited() {
    let world = world().await;
    let first = start(&world, "first", SHORT);
    let uid = leads(&world, "first").await.metadata.uid;
    leases(&world).delete(LEASE, &kube::api::DeleteParams::default()).await.expect("the Lease exists");
    wait::until(&leases(&world), LEASE, "created again", |lease| lease.is_some_and(|lease| lease.metadata.uid != uid))
        .await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let edited = leases(&world).patch(LEASE, &PatchParams::default(), &label).await.expect("the Lease exists");
    wait::until(&leases(&world), LEASE, "renewed", |lease| {
        lease.is_some_and(|lease| lease.metadata.resource_version != edited.metadata.resource_version)
    })
    .await;
    first.stop().await;
    world.finish().await;
}

#[tokio::test]
async fn without_permission_for_the_lease_the_controller_ends_with_the_reason() {
    let world = world().await;
    let mut config = world.config();
    config.auth_info.impersonate = Some("nobody-with-rights".to_owned());
    let options = candidate(&world, Client::try_from(config).expect("a client"), "first", Timing::default());
    in_process::note(Some(InProcess::Observes));
    let ended = chandler_controller::run(world.client.clone(), options, std::future::pending()).await;
    match ended {
        Err(ControllerError::Election(error @ ElectionError::Refused { .. })) => {
            assert_eq!(error.to_string(), format!("failed to hold the Lease {}/{LEASE}", world.system_namespace));
        }
        other => panic!("{other:?}"),
    }
    world.finish().await;
}
