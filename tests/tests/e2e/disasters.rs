//! State that is lost or restored in a disaster: records, etcd, caches, the system namespace, the Lease (docs/disasters.md).

use chandler_devcluster::{DevCluster, Options};
use chandler_tests::{
    Cluster, Proxy, World, bundles::Bundle, proxy::server_of, wait, wait::eventually, world::condition,
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

const RECORD_TYPE: &str = "chandler.dev/record";
const RELEASE_TYPE: &str = "chandler.dev/release";

/// A bundle of these ConfigMaps, whose data names its version.
fn bundle(version: &str, names: &[&str]) -> Bundle {
    names.iter().fold(Bundle::empty(), |bundle, name| {
        let map =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{version: '{version}'}}\n");
        bundle.with(&format!("manifests/{name}.yaml"), &map)
    })
}

async fn install(world: &World, version: &str, names: &[&str]) {
    let image = world.push(&bundle(version, names)).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    world.ready(&world.name()).await;
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.system_namespace)
}

/// The records and the kept releases.
async fn records(world: &World) -> Vec<Secret> {
    let all = secrets(world).list(&ListParams::default()).await.expect("a list").items;
    let is_record = |secret: &Secret| matches!(secret.type_.as_deref(), Some(RECORD_TYPE | RELEASE_TYPE));
    all.into_iter().filter(is_record).collect()
}

/// Puts a backup of the records in the place of those that exist.
async fn restore(world: &World, backup: &[Secret]) {
    delete_records(world).await;
    for secret in backup {
        let ObjectMeta { name, labels, annotations, .. } = secret.metadata.clone();
        let metadata = ObjectMeta { name, labels, annotations, ..ObjectMeta::default() };
        let secret = Secret { metadata, ..secret.clone() };
        secrets(world).create(&PostParams::default(), &secret).await.expect("the backup is accepted");
    }
}

async fn delete_records(world: &World) {
    for secret in records(world).await {
        secrets(world).delete(&secret.name_any(), &DeleteParams::default()).await.expect("the object exists");
    }
}

/// The versions in the ConfigMaps of the bundle, or `-` for one that does not exist.
async fn versions(world: &World, names: &[&str]) -> Vec<String> {
    let mut versions = Vec::new();
    for name in names {
        let map = world.config_maps().get_opt(name).await.expect("a response");
        let version = map.map(|map| map.data.unwrap_or_default().remove("version").unwrap_or_default());
        versions.push(version.unwrap_or_else(|| "-".to_owned()));
    }
    versions
}

/// The ConfigMaps of the bundle with their UIDs and resource versions.
async fn state(world: &World, names: &[&str]) -> Vec<(Option<String>, Option<String>)> {
    let mut state = Vec::new();
    for name in names {
        let map = world.config_maps().get(name).await.expect("the object exists");
        state.push((map.uid(), map.resource_version()));
    }
    state
}

fn uids(state: &[(Option<String>, Option<String>)]) -> Vec<Option<String>> {
    state.iter().map(|(uid, _)| uid.clone()).collect()
}

/// Asks the controller for a reconcile, as `chandler reconcile` does.
async fn reconcile(world: &World, at: &str) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": at}}}));
    let patched = world.deployments().patch(&world.name(), &PatchParams::default(), &patch).await;
    patched.expect("the change is accepted");
}

const ALL: [&str; 3] = ["steady", "changing", "added"];

/// A world in which version 2 runs and the records of version 1 were restored. Returns the records of both versions.
async fn with_older_records() -> (World, [Vec<Secret>; 2]) {
    let mut world = World::new().await;
    install(&world, "1", &["changing", "removed"]).await;
    let older = records(&world).await;
    install(&world, "2", &ALL).await;
    world.stop_controller().await;
    let newest = records(&world).await;
    restore(&world, &older).await;
    (world, [older, newest])
}

#[tokio::test]
async fn an_older_record_changes_nothing_until_an_administrator_decides() {
    let (mut world, [_, newest]) = with_older_records().await;
    let before = state(&world, &ALL).await;
    world.start_controller();
    let stopped = world.condition(&world.name(), "Stalled", "True", "RecordOutdated").await;
    let message = condition(&stopped, "Ready").expect("a condition").message.clone();
    let record = newest.iter().find(|secret| secret.type_.as_deref() == Some(RECORD_TYPE)).expect("a record");
    let command = format!("kubectl delete secret -n {} {}", world.system_namespace, record.name_any());
    assert!(message.contains("revision 2 wrote ConfigMap") && message.contains(&command), "{message}");
    assert_eq!(state(&world, &ALL).await, before, "nothing was written");
    assert_eq!(versions(&world, &["removed"]).await, ["-"]);

    // The newest backup: everything is as before.
    restore(&world, &newest).await;
    reconcile(&world, "1").await;
    world.ready(&world.name()).await;
    assert_eq!(state(&world, &ALL).await, before);
    world.finish().await;
}

#[tokio::test]
async fn an_older_record_that_is_deleted_is_rebuilt_without_a_downgrade() {
    let (mut world, _) = with_older_records().await;
    let before = state(&world, &ALL).await;
    world.start_controller();
    world.condition(&world.name(), "Stalled", "True", "RecordOutdated").await;
    for secret in records(&world).await.iter().filter(|secret| secret.type_.as_deref() == Some(RECORD_TYPE)) {
        secrets(&world).delete(&secret.name_any(), &DeleteParams::default()).await.expect("the record exists");
    }
    reconcile(&world, "1").await;
    world.ready(&world.name()).await;
    assert_eq!(versions(&world, &ALL).await, ["2"; 3]);
    assert_eq!(versions(&world, &["removed"]).await, ["-"]);
    assert_eq!(uids(&state(&world, &ALL).await), uids(&before), "no object was created again");

    // The rebuilt record prunes what the next version no longer contains.
    install(&world, "3", &["steady"]).await;
    assert_eq!(versions(&world, &ALL).await, ["3", "-", "-"]);
    world.finish().await;
}

#[tokio::test]
async fn an_older_record_deletes_nothing_until_an_administrator_decides() {
    let (mut world, [_, newest]) = with_older_records().await;
    let before = state(&world, &ALL).await;
    world.deployments().delete(&world.name(), &DeleteParams::default()).await.expect("the object exists");
    world.start_controller();
    world.condition(&world.name(), "Stalled", "True", "RecordOutdated").await;
    assert_eq!(state(&world, &ALL).await, before);
    restore(&world, &newest).await;
    reconcile(&world, "1").await;
    wait::until(&world.deployments(), &world.name(), "gone", |deployment| deployment.is_none()).await;
    assert_eq!(versions(&world, &ALL).await, ["-"; 3]);
    world.finish().await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_changes_nothing_until_it_is_restored_or_deleted() {
    let mut world = World::new().await;
    install(&world, "1", &["changing", "removed"]).await;
    let before = state(&world, &["changing", "removed"]).await;
    world.stop_controller().await;
    let backup = records(&world).await;
    let mut damaged = backup.clone();
    for secret in damaged.iter_mut().filter(|secret| secret.type_.as_deref() == Some(RECORD_TYPE)) {
        secret.data = Some([("record".to_owned(), ByteString(b"damaged".to_vec()))].into());
    }
    restore(&world, &damaged).await;
    world.start_controller();
    let image = world.push(&bundle("2", &["changing"])).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    let blocked = world.condition(&world.name(), "Ready", "False", "RecordUnavailable").await;
    let message = condition(&blocked, "Ready").expect("a condition").message.clone();
    assert!(message.contains("restore it from a backup, or delete it"), "{message}");
    assert_eq!(state(&world, &["changing", "removed"]).await, before, "nothing was written");
    restore(&world, &backup).await;
    reconcile(&world, "1").await;
    world.ready(&world.name()).await;
    assert_eq!(versions(&world, &["changing", "removed"]).await, ["2", "-"]);
    world.finish().await;
}

/// The memory of a controller that runs knows more than a Secret that is restored beneath it.
#[tokio::test]
async fn a_record_that_is_restored_under_a_running_controller_is_written_again() {
    let world = World::new().await;
    install(&world, "1", &["changing", "removed"]).await;
    let older = records(&world).await;
    install(&world, "2", &ALL).await;
    restore(&world, &older).await;
    install(&world, "3", &["steady"]).await;
    assert_eq!(versions(&world, &ALL).await, ["3", "-", "-"], "what version 2 created is pruned");
    world.finish().await;
}

/// The embedded control plane behind a proxy, through which the controller works, so that etcd can be restored beneath it.
struct Rewindable {
    world: World,
    proxy: Proxy,
}

impl Rewindable {
    async fn new() -> Self {
        let mut world = World::without_controller(Cluster::embedded(Options::default()).await).await;
        let proxy = Proxy::start(server_of(&world.config())).await;
        world.start_controller_at(proxy.config(world.config()));
        Self { world, proxy }
    }

    fn cluster(&self) -> &DevCluster {
        self.world.embedded().expect("the embedded control plane")
    }

    /// Restores a snapshot as an administrator does: the API server is stopped meanwhile.
    async fn rewind(&self, snapshot: &chandler_devcluster::store::Snapshot) {
        self.proxy.close();
        self.proxy.refuses(4).await;
        assert!(self.cluster().rewind(snapshot), "it is in memory");
        self.proxy.open();
    }
}

#[tokio::test]
async fn etcd_that_is_restored_under_a_running_controller_is_read_again() {
    let it = Rewindable::new().await;
    let world = &it.world;
    install(world, "1", &["changing", "removed"]).await;
    let snapshot = it.cluster().snapshot();
    install(world, "2", &ALL).await;
    // Nothing of what follows reaches this version soon: a watch that continued from here would be deaf.
    for number in 0..200 {
        let name = format!("filler-{number}");
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        let map = ConfigMap { metadata, ..ConfigMap::default() };
        world.config_maps().create(&PostParams::default(), &map).await.expect("a ConfigMap");
    }
    it.rewind(&snapshot).await;
    assert_eq!(versions(world, &["changing", "removed", "added"]).await, ["1", "1", "-"]);

    // The spec has version 1 again, and the next change is noticed at once. Objects of version 1 that version 2 did not have are still
    // recorded, so that they are pruned.
    install(world, "3", &["steady", "added"]).await;
    assert_eq!(versions(world, &["steady", "added", "changing", "removed"]).await, ["3", "3", "-", "-"]);
    it.world.finish().await;
}

#[tokio::test]
async fn etcd_that_is_restored_while_no_controller_runs_is_taken_as_it_is() {
    let mut world = World::on(Cluster::embedded(Options::default()).await).await;
    install(&world, "1", &["changing", "removed"]).await;
    let snapshot = world.embedded().expect("the embedded control plane").snapshot();
    install(&world, "2", &ALL).await;
    world.stop_controller().await;
    assert!(world.embedded().expect("the embedded control plane").rewind(&snapshot), "it is in memory");
    let before = state(&world, &["changing", "removed"]).await;
    world.start_controller();
    world.ready(&world.name()).await;
    assert_eq!(state(&world, &["changing", "removed"]).await, before, "record, objects and spec are of one moment");
    install(&world, "3", &ALL).await;
    assert_eq!(versions(&world, &["steady", "changing", "added", "removed"]).await, ["3", "3", "3", "-"]);
    world.finish().await;
}

#[tokio::test]
async fn a_lost_system_namespace_is_created_again_and_the_records_are_rebuilt() {
    let mut world = World::new().await;
    install(&world, "1", &["changing", "removed"]).await;
    let before = uids(&state(&world, &["changing"]).await);
    world.stop_controller().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.delete(&world.system_namespace, &DeleteParams::default()).await.expect("the namespace exists");
    let gone = || async { namespaces.get_opt(&world.system_namespace).await.expect("a response").is_none() };
    eventually("the namespace is gone", gone).await;
    // A namespace that the controller created would not belong to the run.
    let mut namespace = json!({"metadata": {"name": world.system_namespace}});
    world.mark(&mut namespace);
    let namespace = serde_json::from_value(namespace).expect("a namespace");
    namespaces.create(&PostParams::default(), &namespace).await.expect("the namespace is accepted");
    world.start_controller();
    install(&world, "2", &["changing"]).await;
    assert_eq!(uids(&state(&world, &["changing"]).await), before, "no object was created again");
    assert_eq!(versions(&world, &["changing", "removed"]).await, ["2", "-"], "the rebuilt record prunes");
    world.finish().await;
}

#[tokio::test]
async fn a_lost_cache_directory_changes_nothing() {
    let mut world = World::new().await;
    install(&world, "1", &["changing", "removed"]).await;
    let before = state(&world, &["changing", "removed"]).await;
    world.stop_controller().await;
    for entry in std::fs::read_dir(world.cache()).expect("the cache directory") {
        let path = entry.expect("an entry").path();
        // The code is shared by all tests.
        if path.file_name().is_some_and(|name| name != "code") {
            std::fs::remove_dir_all(path).expect("a directory");
        }
    }
    world.start_controller();
    reconcile(&world, "1").await;
    wait::until(&world.deployments(), &world.name(), "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("1"))
    })
    .await;
    world.ready(&world.name()).await;
    assert_eq!(state(&world, &["changing", "removed"]).await, before, "nothing was written");
    install(&world, "2", &["changing"]).await;
    assert_eq!(versions(&world, &["changing", "removed"]).await, ["2", "-"]);
    world.finish().await;
}
