//! Events say what happened to which object.

use std::collections::BTreeSet;

use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::{
    api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};

use serde_json::json;

use crate::PLAIN;

/// The notes of the Events with this reason about an object.
pub(crate) async fn notes(world: &World, name: &str, reason: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let events = events.list(&ListParams::default()).await.expect("Events").items.into_iter();
    let about = events.filter(|event| event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(name));
    about.filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.note).collect()
}

#[tokio::test]
async fn each_repaired_object_is_named() {
    let world = World::new().await;
    let name = world.name();
    let objects: Vec<String> = (0..6).map(|number| format!("note-{number}")).collect();
    let mut bundle = Bundle::empty();
    for object in &objects {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {object}}}\n");
        bundle = bundle.with(&format!("manifests/{object}.yaml"), &text);
    }
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    for object in &objects {
        let before = world.config_maps().get(object).await.expect("the object is installed").uid();
        world.config_maps().delete(object, &DeleteParams::default()).await.expect("the deletion is accepted");
        wait::until(&world.config_maps(), object, "created again", |map| map.is_some_and(|map| map.uid() != before))
            .await;
    }
    wait::eventually("each object is named by an Event", || async {
        let notes: BTreeSet<String> = notes(&world, &name, "DriftRepaired").await.into_iter().collect();
        objects.iter().all(|object| notes.iter().any(|note| note.contains(object.as_str())))
    })
    .await;
    // The installation waited for nothing, so its one Event is about its end.
    for (reason, expected) in [("RollingOut", 0), ("InstallationSucceeded", 1)] {
        assert_eq!(notes(&world, &name, reason).await.len(), expected, "{reason}");
    }
    let installed = notes(&world, &name, "InstallationSucceeded").await;
    assert!(installed[0].starts_with(&format!("Instantiated bundle {name} successfully")), "{installed:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_crd_that_was_deleted_has_a_warning_about_its_data() {
    let world = World::new().await;
    let name = world.name();
    let crd = format!("lamps.{name}.example.com");
    let text = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd},
        "spec": {
            "group": format!("{name}.example.com"), "scope": "Namespaced",
            "names": {"kind": "Lamp", "plural": "lamps", "singular": "lamp", "listKind": "LampList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let image = world.push(&Bundle::empty().with("manifests/crd.yaml", &text.to_string())).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let before = crds.get(&crd).await.expect("the CRD is installed").uid();
    crds.delete(&crd, &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&crds, &crd, "created again", |found| found.is_some_and(|found| found.uid() != before)).await;
    wait::eventually("a warning says that custom resources may be lost", || async {
        notes(&world, &name, "CRDRecreated").await.iter().any(|note| note.contains(crd.as_str()))
    })
    .await;
    world.finish().await;
}
