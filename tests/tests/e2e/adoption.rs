//! Existing objects that collide with a release: rejected, adopted as the spec says, or handed over by an authorized user.

use std::collections::BTreeMap;

use chandler_rollout::Rollout;
use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
    world::condition,
};
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{PLAIN, deletion_policy::crd, permissions::request_reconcile};

async fn make(world: &World, manager: &str, object: serde_json::Value) -> ConfigMap {
    let object: ConfigMap = serde_json::from_value(object).expect("a ConfigMap");
    let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    world.config_maps().create(&parameters, &object).await.expect("a ConfigMap")
}

/// The controllers of an object by kind and name.
fn controllers(references: &[OwnerReference]) -> Vec<(&str, &str)> {
    let controllers = references.iter().filter(|reference| reference.controller == Some(true));
    controllers.map(|reference| (reference.kind.as_str(), reference.name.as_str())).collect()
}

fn from(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("from").map(String::as_str)
}

#[tokio::test]
async fn if_no_controller_adopts_objects_without_a_controller() {
    let world = World::new().await;
    let name = world.name();
    let helm = make(
        &world,
        "helm",
        json!({
            "metadata": {"name": "charted",
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "tides", "meta.helm.sh/release-namespace": "sea"}},
            "data": {"from": "helm", "chart": "tides-1"},
        }),
    )
    .await;
    let kubectl =
        make(&world, "kubectl-create", json!({"metadata": {"name": "typed"}, "data": {"from": "me", "mine": "yes"}}))
            .await;
    let manifests = format!(
        "{}---\n{}---\n{}",
        config_map("charted", "bundle"),
        config_map("typed", "bundle"),
        config_map("new", "bundle")
    );
    let image = world.push(&Bundle::empty().with("manifests/all.yaml", &manifests)).await;
    let mut spec = world.spec(PLAIN, &image);
    world.apply(&name, spec.clone()).await;
    let refused = world.condition(&name, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    for part in [
        format!("ConfigMap {}/charted already exists and belongs to the Helm release sea/tides", world.namespace),
        format!("ConfigMap {}/typed already exists and was created by kubectl-create", world.namespace),
        format!("`chandler adopt {name}`"),
        "spec.collisionProtection: IfNoController".to_owned(),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }
    assert!(world.config_maps().get_opt("new").await.expect("a response").is_none(), "nothing was written");

    spec["collisionProtection"] = json!("IfNoController");
    world.apply(&name, spec).await;
    world.ready(&name).await;
    for before in [helm, kubectl] {
        let after = world.config_maps().get(&before.name_any()).await.expect("the object exists");
        assert_eq!(after.uid(), before.uid(), "the same object");
        assert_eq!(from(&after), Some("bundle"));
        assert_eq!(controllers(after.owner_references()), [("BundleDeployment", name.as_str())]);
    }
    let charted = world.config_maps().get("charted").await.expect("the object exists");
    assert!(!charted.annotations().contains_key("meta.helm.sh/release-name"), "Helm no longer owns it");
    let typed = world.config_maps().get("typed").await.expect("the object exists");
    assert_eq!(typed.data.as_ref().and_then(|data| data.get("mine")).map(String::as_str), Some("yes"));

    let events: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(world.client.clone(), "default");
    wait::eventually("an Event reports the adoption", || async {
        let found = events.list(&kube::api::ListParams::default()).await.expect("a list");
        let adopted = found.items.iter().filter(|event| event.reason.as_deref() == Some("Adopted"));
        let ours = adopted.filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&name));
        ours.filter_map(|event| event.note.as_ref()).any(|note| note.contains("/charted") && note.contains("/typed"))
    })
    .await;
    // From now on they are ordinary objects of the release.
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("charted").await.expect("a response").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_controlled_object_is_adopted_only_without_collision_protection() {
    let world = World::new().await;
    let name = world.name();
    let holder = make(&world, "e2e", json!({"metadata": {"name": "holder"}})).await;
    let team = make(&world, "e2e", json!({"metadata": {"name": "team"}})).await;
    let reference = |of: &ConfigMap, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": of.name_any(), "uid": of.uid(), "controller": controller});
    let references = json!([reference(&holder, true), reference(&team, false)]);
    let held = make(
        &world,
        "e2e",
        json!({"metadata": {"name": "held", "ownerReferences": references}, "data": {"from": "e2e"}}),
    )
    .await;
    let image = world.push(&Bundle::empty().with("manifests/all.yaml", &config_map("held", "bundle"))).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["collisionProtection"] = json!("IfNoController");
    world.apply(&name, spec.clone()).await;
    let refused = world.condition(&name, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    assert!(message.contains("/held already exists and is controlled by ConfigMap holder\n"), "{message}");
    assert!(message.contains("spec.collisionProtection: None"), "{message}");
    assert_eq!(world.config_maps().get("held").await.expect("the object exists"), held);

    spec["collisionProtection"] = json!("None");
    world.apply(&name, spec).await;
    world.ready(&name).await;
    let taken = world.config_maps().get("held").await.expect("the object exists");
    assert_eq!((taken.uid(), from(&taken)), (held.uid(), Some("bundle")));
    assert_eq!(controllers(taken.owner_references()), [("BundleDeployment", name.as_str())]);
    assert!(taken.owner_references().iter().any(|reference| reference.name == "team"), "other owner references stay");
    world.finish().await;
}

#[tokio::test]
async fn a_shared_crd_belongs_to_one_bundle_deployment_and_can_be_moved() {
    let world = World::new().await;
    let (first, second) = (world.name(), format!("{}-second", world.name()));
    let (crd, plural) = crd(&world);
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let with =
        Bundle::empty().with("manifests/crd.yaml", &crd).with("manifests/a.yaml", &config_map("first", "bundle"));
    let with = world.push(&with).await;
    let without = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("first", "bundle"))).await;
    let other =
        Bundle::empty().with("manifests/crd.yaml", &crd).with("manifests/b.yaml", &config_map("second", "bundle"));
    let other = world.push(&other).await;
    world.deploy(&first, PLAIN, &with).await;
    world.ready(&first).await;

    let deployed = world.deploy(&second, PLAIN, &other).await;
    let refused = world.condition(&second, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    for part in [
        format!("{plural} already exists and is controlled by BundleDeployment {first}\n"),
        format!(
            "an object can belong to only one BundleDeployment: remove it from this bundle or from the bundle of {first}"
        ),
        format!("`chandler adopt {second} --force`"),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }

    // As `chandler adopt --force` does; then the first bundle drops the CRD. In between, the first BundleDeployment reports the loss.
    let before = crds.get(&plural).await.expect("the CRD");
    let rollout = Rollout::new(world.client.clone(), chandler_rollout::Options::default());
    let owner = chandler_decisions::owner::owner_of(&deployed, &world.namespace).expect("a stored object");
    let object = chandler_core::Object::parse(
        serde_json::to_string(&serde_saphyr::from_str::<serde_json::Value>(&crd).expect("YAML"))
            .expect("JSON")
            .as_bytes(),
        0,
        None,
    )
    .expect("an object");
    let release = chandler_core::Release::new(vec![object], vec![], vec![]);
    let found = rollout.adoptees(&owner, &release).await.expect("a response");
    assert_eq!(found.iter().map(|found| found.object.name.as_str()).collect::<Vec<_>>(), [plural.as_str()]);
    assert!(found[0].existing_owner.is_controller());
    let named =
        json!({"kind": found[0].object.kind, "group": found[0].object.group, "name": plural, "uid": found[0].uid});
    let adopt = Patch::Merge(json!({"spec": {"adopt": [named]}}));
    world.deployments().patch(&second, &PatchParams::default(), &adopt).await.expect("the CRD is handed over");
    world.ready(&second).await;
    // The first one notices without a request, perhaps before the second one has become the controller.
    let lost = world.condition(&first, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&lost, "Ready").expect("Ready").message;
    assert!(
        message.contains("already exists and ") && message.contains(&format!("BundleDeployment {second}\n")),
        "{message}"
    );
    world.deploy(&first, PLAIN, &without).await;
    world.ready(&first).await;

    let after = crds.get(&plural).await.expect("the CRD");
    assert_eq!(after.uid(), before.uid(), "the CRD was never deleted");
    assert_eq!(controllers(after.owner_references()), [("BundleDeployment", second.as_str())]);
    let labels: BTreeMap<String, String> = after.labels().clone();
    assert_eq!(labels["core.rukpak.io/owner-name"], second);
    world.delete(&first).await;
    assert!(crds.get_opt(&plural).await.expect("a response").is_some());
    world.finish().await;
}

#[tokio::test]
async fn labels_adopt_nothing_and_spec_adopt_does() {
    let world = World::new().await;
    let name = world.name();
    let typed = make(&world, "kubectl-create", json!({"metadata": {"name": "typed"}, "data": {"from": "me"}})).await;
    let image = world.push(&Bundle::empty().with("manifests/all.yaml", &config_map("typed", "bundle"))).await;
    let deployed = world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    let owner = chandler_decisions::owner::owner_of(&deployed, &world.namespace).expect("a stored object");
    let labels = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": owner.set_id()}}});
    world
        .config_maps()
        .patch("typed", &PatchParams::default(), &Patch::Merge(labels))
        .await
        .expect("the object exists");
    request_reconcile(&world, &name).await;
    wait::until(&world.deployments(), &name, "reporting the owner labels", |deployment| {
        let ready = deployment.and_then(|deployment| condition(deployment, "Ready"));
        ready.is_some_and(|ready| ready.message.contains("which has no record of creating or adopting it"))
    })
    .await;
    assert_eq!(from(&world.config_maps().get("typed").await.expect("the object exists")), Some("me"));

    // A user who may write the BundleDeployment names the object by UID, not only by name.
    let adopt = |uid: String| {
        Patch::Merge(json!({"spec": {"adopt": [
        {"kind": "ConfigMap", "namespace": world.namespace, "name": "typed", "uid": uid}]}}))
    };
    let patch = PatchParams::default();
    world.deployments().patch(&name, &patch, &adopt("another".to_owned())).await.expect("the change is accepted");
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    let uid = typed.uid().expect("a UID");
    world.deployments().patch(&name, &patch, &adopt(uid)).await.expect("the change is accepted");
    world.ready(&name).await;
    let taken = world.config_maps().get("typed").await.expect("the object exists");
    assert_eq!((from(&taken), taken.uid()), (Some("bundle"), typed.uid()));
    world.config_maps().delete("typed", &DeleteParams::default()).await.expect("the object exists");
    wait::until(&world.config_maps(), "typed", "created again", |map| {
        map.is_some_and(|map| from(map) == Some("bundle"))
    })
    .await;
    world.finish().await;
}

/// Two that ask for the same object do not take it from each other for ever: one of them has it, and the other one says so.
#[tokio::test]
async fn an_object_that_two_ask_for_belongs_to_one() {
    let world = World::new().await;
    let (first, second) = (world.name(), format!("{}-second", world.name()));
    let shared = make(&world, "kubectl-create", json!({"metadata": {"name": "shared"}, "data": {"tone": "low"}})).await;
    let adopt = json!([{"kind": "ConfigMap", "namespace": world.namespace, "name": "shared", "uid": shared.uid()}]);
    for name in [&first, &second] {
        let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("shared", name))).await;
        let mut spec = world.spec(PLAIN, &image);
        spec["adopt"] = adopt.clone();
        world.apply(name, spec).await;
        // The second one takes it from the first one.
        world.ready(name).await;
    }
    let lost = world.condition(&first, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&lost, "Ready").expect("Ready").message;
    assert!(
        message.contains(&format!("BundleDeployment {second}")) && message.contains("is not taken back"),
        "{message}"
    );

    let owner = || async {
        let shared = world.config_maps().get("shared").await.expect("the ConfigMap");
        (shared.labels()["core.rukpak.io/owner-name"].clone(), shared.metadata.resource_version)
    };
    let before = owner().await;
    assert_eq!(before.0, second);
    for name in [&first, &second] {
        request_reconcile(&world, name).await;
    }
    world.ready(&second).await;
    world.condition(&first, "Ready", "False", "ObjectCollision").await;
    assert_eq!(owner().await, before, "nothing was written");

    // Who no longer asks for it may ask again, and then has it.
    let asks = |adopt: &serde_json::Value| Patch::Merge(json!({"spec": {"adopt": adopt}}));
    for adopt in [json!([]), adopt] {
        world
            .deployments()
            .patch(&first, &PatchParams::default(), &asks(&adopt))
            .await
            .expect("the object is accepted");
        if adopt.as_array().is_some_and(Vec::is_empty) {
            world.condition(&first, "Ready", "False", "ObjectCollision").await;
        }
    }
    world.ready(&first).await;
    world.condition(&second, "Ready", "False", "ObjectCollision").await;
    assert_eq!(owner().await.0, first);
    world.finish().await;
}
