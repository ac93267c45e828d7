//! A reconcile that changes nothing writes nothing.

use std::collections::BTreeMap;

use chandler_tests::{World, bundles, world::condition};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{PLAIN, REGISTRY};

/// The resource versions of a BundleDeployment and of all its objects.
pub(crate) async fn versions(world: &World, name: &str) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for (api_version, kind, plural) in [
        ("v1", "ServiceAccount", "serviceaccounts"),
        ("v1", "ConfigMap", "configmaps"),
        ("v1", "Service", "services"),
        ("v1", "Namespace", "namespaces"),
        ("apps/v1", "Deployment", "deployments"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ] {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: api_version.into(),
            kind: kind.into(),
            plural: plural.into(),
        };
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
        let owned = ListParams::default().labels(&format!("core.rukpak.io/owner-name={name}"));
        for object in api.list(&owned).await.expect("the API server answers") {
            let key = format!("{kind} {}", object.metadata.name.unwrap_or_default());
            versions.insert(key, object.metadata.resource_version.unwrap_or_default());
        }
    }
    let deployment = world.deployments().get(name).await.expect("the BundleDeployment");
    versions.insert("BundleDeployment".into(), deployment.metadata.resource_version.unwrap_or_default());
    versions
}

#[tokio::test]
async fn a_second_reconcile_and_a_restart_write_nothing() {
    for (class, bundle) in [(REGISTRY, "registry/harbour-operator.v0.1.0"), (PLAIN, "plain/lighthouse")] {
        let mut world = World::new().await;
        let name = world.name();
        let image = world.push(&bundles::sample(bundle)).await;
        world.deploy(&name, class, &image).await;
        world.ready(&name).await;
        let before = versions(&world, &name).await;
        assert!(before.len() > 4, "{before:?}");

        // A second BundleDeployment that is reconciled afterwards proves that the first one was reconciled: the queue is fair, and the
        // controller lists all of them when it starts.
        world.stop_controller().await;
        world.start_controller();
        let probe = format!("{name}-probe");
        let image = world
            .push(
                &bundles::sample("plain/lighthouse")
                    .replacing(
                        "manifests/0000_10_lighthouse_00_namespace.yaml",
                        "name: lighthouse",
                        "name: lighthouse-probe",
                    )
                    .without("manifests/0000_10_lighthouse_01_beacons.yaml")
                    .without("manifests/0000_50_lighthouse_keeper.yaml")
                    .without("manifests/0000_90_lighthouse_beacon.yaml"),
            )
            .await;
        world.deploy(&probe, PLAIN, &image).await;
        world.ready(&probe).await;
        assert_eq!(versions(&world, &name).await, before, "the restart wrote something");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_metadata_change_triggers_no_writes() {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_changed(|options| options.concurrency = 1);
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    let ready = world.ready(&name).await;
    let transition = condition(&ready, "Ready").expect("Ready").last_transition_time.clone();
    let mut before = versions(&world, &name).await;

    let poke = Patch::Merge(json!({"metadata": {"annotations": {"example.com/poke": "1"}}}));
    let poked = world.deployments().patch(&name, &PatchParams::default(), &poke).await.expect("an annotation");
    before.insert("BundleDeployment".into(), poked.metadata.resource_version.expect("a version"));
    // The controller sees changes in order and reconciles one BundleDeployment at a time: once one that was created after the
    // annotation is ready, the reconcile for the annotation is complete.
    let later = format!("{name}-later");
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    let image = world.push(&bundles::Bundle::empty().with("manifests/note.yaml", note)).await;
    world.deploy(&later, PLAIN, &image).await;
    world.ready(&later).await;
    assert_eq!(versions(&world, &name).await, before);
    let now = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert_eq!(condition(&now, "Ready").expect("Ready").last_transition_time, transition);
    world.finish().await;
}
