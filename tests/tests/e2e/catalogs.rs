//! Catalogs of the cluster: what their source names is fetched, checked and indexed; the last good index stays in use.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use chandler_api::{Catalog, CatalogContents, ConditionType, find_condition};
use chandler_devregistry::Registry;
use chandler_tests::{ArchiveServer, World, bundles::Bundle, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// The label that names the directory of the files of a catalog.
pub(crate) const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// The documents of a package with one channel and these versions, each of which replaces the one before.
pub(crate) fn package(name: &str, versions: &[&str]) -> String {
    let mut documents = vec![format!("schema: olm.package\nname: {name}\ndefaultChannel: stable\n")];
    let mut entries = Vec::new();
    let mut before: Option<&str> = None;
    for version in versions {
        let replaces = before.map(|it| format!(", replaces: {name}.v{it}")).unwrap_or_default();
        entries.push(format!("{{name: {name}.v{version}{replaces}}}"));
        before = Some(version);
        documents.push(format!(
            "schema: olm.bundle\npackage: {name}\nname: {name}.v{version}\nimage: registry.invalid/{name}:v{version}\n\
             properties: [{{type: olm.package, value: {{packageName: {name}, version: {version}}}}}]\n"
        ));
    }
    let entries = entries.join(", ");
    documents.push(format!("schema: olm.channel\npackage: {name}\nname: stable\nentries: [{entries}]\n"));
    documents.join("---\n")
}

/// An archive with these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).expect("an entry");
    }
    archive.into_inner().expect("an archive")
}

/// Pushes the image of a catalog as `opm generate dockerfile` describes it, and returns its reference by tag.
pub(crate) async fn push(registry: &Registry, files: &[(&str, &str)]) -> String {
    push_to(registry, "catalogs/sample", files).await
}

/// Pushes the catalog to another repository.
pub(crate) async fn push_to(registry: &Registry, repository: &str, files: &[(&str, &str)]) -> String {
    let program = Bundle::empty().with("bin/opm", "program");
    let image = files.iter().fold(program, |image, (path, text)| image.with(&format!("configs/{path}"), text));
    let labels = [(LABEL.to_owned(), "/configs".to_owned())].into();
    let pushed = registry.push_bundle_directory(repository, "latest", image.path(), &labels).await;
    pushed.expect("the registry takes it").reference
}

fn catalogs(world: &World) -> Api<Catalog> {
    Api::all(world.client.clone())
}

async fn create(world: &World, name: &str, spec: Value) -> Catalog {
    world.create(json!({"metadata": {"name": name}, "spec": spec})).await
}

fn image(reference: &str) -> Value {
    json!({"source": {"type": "image", "image": {"ref": reference}}})
}

fn http(url: &str) -> Value {
    json!({"source": {"type": "http", "http": {"url": url}}, "pollInterval": "1s"})
}

fn is(catalog: &Catalog, kind: ConditionType, expected: &str) -> bool {
    let status = catalog.status.as_ref().filter(|status| status.observed_generation == catalog.metadata.generation);
    let found = status.and_then(|status| find_condition(&status.conditions, kind));
    found.is_some_and(|found| format!("{}/{}", found.status, found.reason) == expected)
}

/// Waits until conditions of the current generation have this status and reason, such as `True/CatalogReady`.
async fn until(world: &World, name: &str, expected: &[(ConditionType, &str)]) -> Catalog {
    let found = wait::until(&catalogs(world), name, &format!("{expected:?}"), |catalog| {
        catalog.is_some_and(|catalog| expected.iter().all(|(kind, expected)| is(catalog, *kind, expected)))
    })
    .await;
    found.expect("the Catalog")
}

pub(crate) async fn ready(world: &World, name: &str) -> Catalog {
    until(world, name, &[(ConditionType::Ready, "True/CatalogReady")]).await
}

fn message(catalog: &Catalog, kind: ConditionType) -> &str {
    let conditions = &catalog.status.as_ref().expect("a status").conditions;
    &find_condition(conditions, kind).expect("the condition").message
}

pub(crate) fn digest(catalog: &Catalog) -> String {
    catalog.status.as_ref().expect("a status").digest.clone().expect("a digest")
}

/// The names of the indexes on the disk of the controller.
fn indexes(world: &World) -> BTreeSet<String> {
    let entries = fs::read_dir(world.cache().join("cluster-catalogs")).expect("the cache");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let indexes = paths.filter(|path| path.extension().is_some_and(|extension| extension == "index"));
    indexes.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
}

fn index_of(catalog: &Catalog) -> String {
    format!("{}.index", digest(catalog).trim_start_matches("sha256:"))
}

/// A world whose controller resolves tags every second.
async fn polling_world() -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    restart(&mut world);
    world
}

fn restart(world: &mut World) {
    world.start_controller_changed(|options| options.image_poll_interval = Duration::from_secs(1));
}

#[tokio::test]
async fn an_image_with_the_label_becomes_a_ready_catalog() {
    let world = World::new().await;
    let name = world.name();
    let (bell, gong) = (package("bell", &["1.0.0", "1.1.0"]), package("gong", &["2.0.0"]));
    let reference = push(&world.registry, &[("bell.yaml", &bell), ("a/gong.yaml", &gong)]).await;
    create(&world, &name, image(&reference)).await;
    let catalog = ready(&world, &name).await;
    for (kind, expected) in [
        (ConditionType::Resolved, "True/SourceResolved"),
        (ConditionType::Unpacked, "True/UnpackSuccessful"),
        (ConditionType::Valid, "True/CatalogValid"),
    ] {
        assert!(is(&catalog, kind, expected), "{catalog:#?}");
    }
    let status = catalog.status.clone().expect("a status");
    assert_eq!(status.contents, Some(CatalogContents { packages: 2, channels: 2, bundles: 3 }));
    let resolved = status.resolved_source.and_then(|source| source.image).expect("an image").reference;
    assert!(resolved.starts_with(&reference.replace(":latest", "@sha256:")), "{resolved}");
    assert!(status.last_unpacked.is_some());
    assert_eq!(indexes(&world), [index_of(&catalog)].into());
    world.finish().await;
}

#[tokio::test]
async fn an_image_without_the_label_is_refused() {
    let world = World::new().await;
    let (name, bundle) = (world.name(), Bundle::empty().with("a.yaml", "a: b\n"));
    create(&world, &name, image(&world.push(&bundle).await)).await;
    let catalog = until(&world, &name, &[(ConditionType::Ready, "False/UnpackFailed")]).await;
    assert!(message(&catalog, ConditionType::Unpacked).contains(LABEL), "{catalog:#?}");
    assert!(is(&catalog, ConditionType::Stalled, "True/UnpackFailed"));
    world.finish().await;
}

#[tokio::test]
async fn config_maps_hold_a_catalog_if_they_grant_it() {
    let world = World::new().await;
    let name = world.name();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let map = |annotations: BTreeMap<&str, &str>| -> ConfigMap {
        let data = json!({"bell.yaml": package("bell", &["1.0.0"])});
        let metadata = json!({"name": "bell", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "immutable": true, "data": data})).expect("a ConfigMap")
    };
    maps.create(&PostParams::default(), &map([("chandler.dev/bundledeployments", "*")].into())).await.expect("a map");
    let source = json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}, "path": "catalog"}]});
    create(&world, &name, json!({"source": source})).await;
    let catalog = until(&world, &name, &[(ConditionType::Ready, "False/SourceNotResolved")]).await;
    assert!(message(&catalog, ConditionType::Resolved).contains("chandler.dev/catalogs"), "{catalog:#?}");

    // The controller watches for the change.
    maps.delete("bell", &DeleteParams::default()).await.expect("it exists");
    maps.create(&PostParams::default(), &map([("chandler.dev/catalogs", name.as_str())].into())).await.expect("a map");
    ready(&world, &name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_broken_newer_version_keeps_the_last_good_index() {
    let world = World::new().await;
    let (name, server) = (world.name(), ArchiveServer::start().await);
    server.serve(archive(&[("bell.yaml", &package("bell", &["1.0.0"]))]));
    create(&world, &name, http(&server.url())).await;
    let good = ready(&world, &name).await;

    // It is downloaded once, however often it is polled, and nothing is written.
    wait::eventually("polled twice", || async { server.answers().unchanged >= 2 }).await;
    let idle = catalogs(&world).get(&name).await.expect("the Catalog");
    assert_eq!((server.answers().sent, idle.resource_version()), (1, good.resource_version()));

    let broken = package("bell", &["1.0.0", "1.1.0"]).replace("name: bell.v1.1.0\nimage", "name: bell.v1.2.0\nimage");
    server.serve(archive(&[("bell.yaml", &broken)]));
    let stale = [(ConditionType::Ready, "True/CatalogStale"), (ConditionType::Valid, "False/CatalogInvalid")];
    let kept = until(&world, &name, &stale).await;
    let text = message(&kept, ConditionType::Valid);
    assert!(text.contains("bell.yaml:") && text.contains("bell.v1.1.0"), "{text}");
    assert_eq!((digest(&kept), indexes(&world)), (digest(&good), [index_of(&good)].into()));
    let fields = |catalog: &Catalog| {
        let status = catalog.status.clone().expect("a status");
        (status.resolved_source, status.contents, status.last_unpacked)
    };
    assert_eq!(fields(&kept), fields(&good));

    // Broken content is neither fetched nor checked again.
    let (sent, unchanged) = (server.answers().sent, server.answers().unchanged);
    wait::eventually("polled twice", || async { server.answers().unchanged >= unchanged + 2 }).await;
    let idle = catalogs(&world).get(&name).await.expect("the Catalog");
    assert_eq!((server.answers().sent, idle.resource_version()), (sent, kept.resource_version()));

    server.serve(archive(&[("bell.yaml", &package("bell", &["1.0.0", "1.1.0"]))]));
    let new = ready(&world, &name).await;
    assert_eq!(new.status.as_ref().and_then(|status| status.contents).map(|contents| contents.bundles), Some(2));
    wait::eventually("the old index is removed", || async { indexes(&world) == [index_of(&new)].into() }).await;
    world.finish().await;
}

#[tokio::test]
async fn the_last_good_index_stays_while_the_registry_is_away_also_after_a_restart() {
    let mut world = polling_world().await;
    let name = world.name();
    let registry = Registry::start(chandler_devregistry::Options::default()).await.expect("a registry");
    let reference = push(&registry, &[("bell.yaml", &package("bell", &["1.0.0"]))]).await;
    create(&world, &name, image(&reference)).await;
    let good = ready(&world, &name).await;
    drop(registry);
    let stale = [(ConditionType::Ready, "True/CatalogStale"), (ConditionType::Resolved, "False/SourceNotResolved")];
    let kept = until(&world, &name, &stale).await;
    assert_eq!(digest(&kept), digest(&good));

    world.stop_controller().await;
    // Writing the status does not change which index is used.
    let forged = json!({"status": {"digest": "sha256:0", "conditions": []}});
    catalogs(&world).patch_status(&name, &PatchParams::default(), &Patch::Merge(forged)).await.expect("a status");
    restart(&mut world);
    let kept = until(&world, &name, &stale).await;
    assert_eq!((digest(&kept), indexes(&world)), (digest(&good), [index_of(&good)].into()));
    world.finish().await;
}

#[tokio::test]
async fn a_suspended_catalog_keeps_its_index() {
    let world = polling_world().await;
    let name = world.name();
    let reference = push(&world.registry, &[("bell.yaml", &package("bell", &["1.0.0"]))]).await;
    create(&world, &name, image(&reference)).await;
    let first = ready(&world, &name).await;
    let suspend = async |suspend: bool| {
        let patch = Patch::Merge(json!({"spec": {"suspend": suspend}}));
        catalogs(&world).patch(&name, &PatchParams::default(), &patch).await.expect("a change");
    };
    suspend(true).await;
    let kept = until(&world, &name, &[(ConditionType::Ready, "True/Suspended")]).await;
    assert_eq!(digest(&kept), digest(&first));
    push(&world.registry, &[("bell.yaml", &package("bell", &["1.0.0", "1.1.0"]))]).await;
    suspend(false).await;
    let bundles = |catalog: &Catalog| catalog.status.as_ref()?.contents.map(|contents| contents.bundles);
    wait::until(&catalogs(&world), &name, "updated", |catalog| catalog.and_then(bundles) == Some(2)).await;
    world.finish().await;
}

#[tokio::test]
async fn deleted_catalogs_leave_nothing_and_equal_ones_share_an_index() {
    let world = World::new().await;
    let reference = push(&world.registry, &[("bell.yaml", &package("bell", &["1.0.0"]))]).await;
    let names = [format!("{}-a", world.run()), format!("{}-b", world.run())];
    for name in &names {
        create(&world, name, image(&reference)).await;
        ready(&world, name).await;
    }
    let [first, second] = names;
    let index = index_of(&ready(&world, &first).await);
    assert_eq!(indexes(&world), [index.clone()].into());
    let records = || fs::read_dir(world.cache().join("cluster-catalogs/records")).expect("the records").count();
    assert_eq!(records(), 3, "the key, and a record of each");
    let delete = async |name: &str| {
        catalogs(&world).delete(name, &DeleteParams::default()).await.expect("it exists");
    };
    delete(&first).await;
    wait::eventually("its record is deleted", || async { records() == 2 }).await;
    assert_eq!(indexes(&world), [index].into(), "the other one uses it");
    delete(&second).await;
    wait::eventually("nothing is left", || async { records() == 1 && indexes(&world).is_empty() }).await;
    world.finish().await;
}

#[tokio::test]
async fn the_api_server_refuses_a_poll_interval_below_a_second() {
    let world = World::new().await;
    let mut spec = image("registry.invalid/none:v1");
    spec["pollInterval"] = json!("10ms");
    let mut object = json!({"metadata": {"name": world.name()}, "spec": spec});
    world.mark(&mut object);
    let object: Catalog = serde_json::from_value(object).expect("a Catalog");
    let refused = catalogs(&world).create(&PostParams::default(), &object).await.expect_err("it is refused");
    assert!(refused.to_string().contains("pollInterval must be at least 1s"), "{refused}");
    world.finish().await;
}
