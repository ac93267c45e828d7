//! A release that changes an immutable field is refused, and the old one kept; where the spec allows it, the object is deleted and
//! created again.

use chandler_tests::{World, bundles::Bundle, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::Api;
use serde_json::{Value, json};

use crate::PLAIN;

/// A bundle with a Deployment with this selector, and a ConfigMap with the bundle's version.
fn bundle(world: &World, version: &str) -> Bundle {
    let labels = json!({"app": format!("web-{version}")});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}},
    });
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": world.namespace},
        "data": {"version": version},
    });
    Bundle::empty().with("manifests/web.yaml", &web.to_string()).with("manifests/settings.yaml", &settings.to_string())
}

async fn deploy(world: &World, version: &str, more: Value) {
    let image = world.push(&bundle(world, version)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    world.apply(&world.name(), spec).await;
}

/// The UID of the Deployment, and the version in the ConfigMap.
async fn installed(world: &World) -> (Option<String>, Option<String>) {
    let webs: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let settings: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let web = webs.get("web").await.expect("the Deployment");
    let settings = settings.get("settings").await.expect("the ConfigMap");
    (web.metadata.uid, settings.data.and_then(|data| data.get("version").cloned()))
}

#[tokio::test]
async fn an_immutable_field_is_refused_until_the_spec_allows_a_new_object() {
    let world = World::new().await;
    let name = world.name();
    deploy(&world, "1", json!({})).await;
    world.ready(&name).await;
    let before = installed(&world).await;

    deploy(&world, "2", json!({})).await;
    let refused = world.condition(&name, "Ready", "False", "ImmutableField").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    let setting = "spec.rollout.onImmutable: {kinds: [{group: apps, kind: Deployment, action: Recreate}]}";
    assert!(message.contains(setting) && message.contains("spec.selector"), "{message}");
    assert_eq!(installed(&world).await, before, "nothing may be written");

    // The kind that is named is another one.
    let kinds = |kind: &str| json!({"rollout": {"onImmutable": {"kinds": [{"group": "apps", "kind": kind, "action": "Recreate"}]}}});
    deploy(&world, "2", kinds("StatefulSet")).await;
    world.condition(&name, "Ready", "False", "ImmutableField").await;
    deploy(&world, "2", kinds("Deployment")).await;
    let ready = world.ready(&name).await;
    let after = installed(&world).await;
    assert_eq!(after.1.as_deref(), Some("2"));
    assert_ne!(after.0, before.0, "it is a new object");
    let warnings = ready.status.and_then(|status| status.release).expect("a release").warnings;
    assert!(warnings.iter().any(|warning| warning.code == "ObjectRecreated"), "{warnings:?}");
    world.finish().await;
}

#[tokio::test]
async fn an_approval_shows_which_objects_are_recreated_and_what_is_lost() {
    let world = World::new().await;
    let name = world.name();
    deploy(&world, "1", json!({})).await;
    world.ready(&name).await;
    let before = installed(&world).await;

    deploy(&world, "2", json!({"approval": "Manual"})).await;
    let refused = world.pending(&name).await;
    assert!(refused.refusals.iter().any(|refusal| refusal.contains("spec.rollout.onImmutable")), "{refused:?}");
    let policy = json!({"approval": "Manual", "rollout": {"onImmutable": {"default": "Recreate"}}});
    deploy(&world, "2", policy).await;
    let pending = chandler_tests::wait::until(&world.deployments(), &name, "pending without refusals", |deployment| {
        let pending = deployment.and_then(|deployment| deployment.status.as_ref()?.pending_change.as_ref());
        pending.is_some_and(|pending| pending.refusals.is_empty() && pending.digest != refused.digest)
    })
    .await;
    let pending = pending.and_then(|deployment| deployment.status?.pending_change).expect("a pending change");
    let line = format!("recreate Deployment.apps {}/web: ", world.namespace);
    let line = pending.objects.iter().find(|object| object.starts_with(&line)).expect("the Deployment");
    assert!(line.contains("its Pods stop until new ones are ready"), "{line}");
    assert_eq!(installed(&world).await, before, "nothing is written yet");
    world.approve(&name, &pending.digest).await;
    world.ready(&name).await;
    assert_ne!(installed(&world).await.0, before.0);
    world.finish().await;
}
