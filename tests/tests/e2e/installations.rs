//! Two controllers with different system namespaces and the same objects: one works, and the other one writes nothing.

use chandler_controller::{ControllerError, Election, ElectionError, Options, options::LEASE};
use chandler_tests::{
    World,
    controller_thread::ControllerThread,
    crash_point::{Activity, CrashPoint},
    in_process::{self, InProcess},
    interruption::Interruption,
    wait,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    PLAIN,
    leader_election::{SHORT, bundle, world},
};

/// The Lease that the installations of a test have in common. In a cluster, it is in a namespace of administrators.
const COMMON: &str = "installations";

/// An installation with a system namespace and a cache of its own.
struct Installation {
    system_namespace: String,
    cache: TempDir,
}

impl Installation {
    async fn new(world: &World, name: &str) -> Self {
        let system_namespace = format!("{}-{name}", world.system_namespace);
        let _: Namespace = world.create(json!({"metadata": {"name": system_namespace}})).await;
        Self { system_namespace, cache: tempfile::tempdir().expect("a directory") }
    }

    /// Its options, with this client for the Leases.
    fn options(&self, world: &World, client: Client) -> Options {
        let connect = move || Ok(client.clone());
        let election = Election::new(connect, &self.system_namespace, LEASE, self.system_namespace.clone())
            .with_timing(SHORT)
            .among_installations(&world.namespace, COMMON, &self.system_namespace);
        Options {
            leader_election: Some(election),
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache.path().to_path_buf(),
            ..world.options()
        }
    }

    fn start(&self, world: &World) -> ControllerThread {
        ControllerThread::start(world.config(), self.options(world, world.client.clone()), CrashPoint::Never)
    }

    /// Waits until it holds the Lease of its own system namespace.
    async fn elects(&self, world: &World) {
        holds(world, &self.system_namespace, LEASE, &self.system_namespace).await;
    }

    /// Waits until it holds the Lease that all installations have in common.
    async fn works(&self, world: &World) {
        holds(world, &world.namespace, COMMON, &self.system_namespace).await;
    }
}

async fn holds(world: &World, namespace: &str, lease: &str, holder: &str) -> Option<Lease> {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), namespace);
    wait::until(&leases, lease, &format!("held by {holder}"), |lease| {
        lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref()) == Some(holder)
    })
    .await
}

/// Waits until a Lease is renewed, after which its holder knows that it works: the answer to its first write may be cut off.
async fn renews(world: &World, namespace: &str, lease: &str, holder: &str) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), namespace);
    let version = |lease: Option<&Lease>| lease.and_then(|lease| lease.metadata.resource_version.clone());
    let held = holds(world, namespace, lease, holder).await;
    wait::until(&leases, lease, "renewed", |now| version(now) != version(held.as_ref())).await;
}

#[tokio::test]
async fn a_second_system_namespace_writes_nothing_until_the_first_is_gone() {
    let world = world().await;
    let (first, second) = (Installation::new(&world, "first").await, Installation::new(&world, "second").await);
    let working = first.start(&world);
    first.works(&world).await;
    let waiting = second.start(&world);
    second.elects(&world).await;
    world.deploy(&world.name(), PLAIN, &bundle(&world, "10").await).await;
    world.ready(&world.name()).await;
    let idle = Activity { idle_periods: waiting.activity().idle_periods, ..Activity::default() };
    assert_eq!(waiting.activity(), idle, "it sent a request");

    // A restart, such as an upgrade, gives the objects to no other installation.
    working.stop().await;
    let working = first.start(&world);
    first.elects(&world).await;
    first.works(&world).await;
    world.delete(&world.name()).await;
    assert_eq!(waiting.activity().writes, [""; 0]);

    // What a controller leaves behind when it crashes blocks the other one for a while only.
    working.kill().await;
    second.works(&world).await;
    world.deploy(&world.name(), PLAIN, &bundle(&world, "20").await).await;
    world.ready(&world.name()).await;
    world.delete(&world.name()).await;
    waiting.stop().await;
    world.finish().await;
}

#[tokio::test]
async fn a_controller_whose_objects_another_installation_took_ends_and_names_it() {
    let world = world().await;
    let (first, second) = (Installation::new(&world, "first").await, Installation::new(&world, "second").await);
    let reach = Interruption::of_kind("leases");
    let options = first.options(&world, reach.client(world.config()));
    in_process::note(Some(InProcess::Lease));
    let interrupted = tokio::spawn(chandler_controller::run(world.client.clone(), options, std::future::pending()));
    renews(&world, &world.namespace, COMMON, &first.system_namespace).await;
    reach.begin();
    let taking = second.start(&world);
    second.works(&world).await;
    assert!(!interrupted.is_finished(), "it does not know the other one");
    reach.end();
    let ended = tokio::time::timeout(wait::PATIENCE, interrupted).await.expect("it ends").expect("it does not panic");
    match ended {
        Err(ControllerError::Election(error @ ElectionError::OtherInstallation { .. })) => {
            let message = error.to_string();
            for part in [&second.system_namespace, COMMON, "--watch-selector", "stop one of the two"] {
                assert!(message.contains(part), "{message}");
            }
        }
        other => panic!("{other:?}"),
    }
    taking.stop().await;
    world.finish().await;
}

/// Administrators alone may write Leases where the common one is. A Lease of its name elsewhere claims nothing.
#[tokio::test]
async fn a_tenant_cannot_stop_the_controller_with_a_lease_of_its_own() {
    let world = world().await;
    let installation = Installation::new(&world, "first").await;
    // The tenant has a namespace, and all permissions in it.
    let tenant = Installation::new(&world, "tenant").await;
    let user = format!("{}-mallory", world.namespace);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": tenant.system_namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    crate::permissions::apply(&world, &[binding]).await;
    let mut config = world.config();
    config.auth_info.impersonate = Some(user);
    let mallory = Client::try_from(config).expect("a client");
    let claim = |name: &str| -> Lease {
        let spec = json!({"holderIdentity": "mallory", "leaseDurationSeconds": 3600});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a Lease")
    };
    for name in [COMMON, LEASE] {
        let leases: Api<Lease> = Api::namespaced(mallory.clone(), &tenant.system_namespace);
        leases.create(&PostParams::default(), &claim(name)).await.expect("the namespace is the tenant's");
        for namespace in [&world.namespace, &installation.system_namespace] {
            let leases: Api<Lease> = Api::namespaced(mallory.clone(), namespace);
            let refused = leases.create(&PostParams::default(), &claim(name)).await;
            assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
        }
    }
    let controller = installation.start(&world);
    installation.works(&world).await;
    let leases: Api<Lease> = Api::namespaced(mallory, &world.namespace);
    let take = Patch::Merge(json!({"spec": {"holderIdentity": "mallory"}}));
    let refused = leases.patch(COMMON, &PatchParams::default(), &take).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    world.deploy(&world.name(), PLAIN, &bundle(&world, "10").await).await;
    world.ready(&world.name()).await;
    world.delete(&world.name()).await;
    controller.stop().await;
    world.finish().await;
}
