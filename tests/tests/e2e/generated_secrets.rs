//! Secret values that the host generates: different for each installation, kept as long as the Secret, and never disclosed.

use std::collections::BTreeMap;

use chandler_api::BundleDeployment;
use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

const NAME: &str = "harbour-admin";

/// A bundle that requests generated values, with this version.
fn bundle(annotation: &str, version: &str) -> Bundle {
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {NAME}\n  annotations: \
         {{secrets.chandler.dev/generate: '{annotation}'}}\nstringData: {{username: admin}}\n"
    );
    Bundle::empty().with("manifests/secret.yaml", &secret).with("manifests/map.yaml", &config_map("berth", version))
}

fn secrets(world: &World, namespace: &str) -> Api<Secret> {
    Api::namespaced(world.client.clone(), namespace)
}

fn texts(secret: &Secret) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    secret.data.iter().flatten().map(|(name, value)| (name.clone(), text(&value.0))).collect()
}

async fn values(world: &World, namespace: &str) -> BTreeMap<String, String> {
    texts(&secrets(world, namespace).get(NAME).await.expect("the Secret"))
}

/// Asserts that no value appears in the BundleDeployment, its Events, or the metadata of the Secret.
async fn assert_undisclosed(world: &World, deployment: &BundleDeployment, namespace: &str) {
    let values = values(world, namespace).await;
    let events: Api<Event> = Api::all(world.client.clone());
    let mut texts: Vec<String> = vec![serde_json::to_string(deployment).expect("JSON")];
    for event in events.list(&ListParams::default()).await.expect("the events") {
        texts.push(serde_json::to_string(&event).expect("JSON"));
    }
    let secret = secrets(world, namespace).get(NAME).await.expect("the Secret");
    texts.push(serde_json::to_string(&secret.metadata).expect("JSON"));
    for (key, value) in values.iter().filter(|(key, _)| *key != "username") {
        assert!(texts.iter().all(|text| !text.contains(value)), "the value of {key} is disclosed");
    }
}

#[tokio::test]
async fn every_installation_generates_its_own_values_and_an_upgrade_keeps_them() {
    let world = World::new().await;
    let (one, other) = (world.name(), format!("{}-other", world.name()));
    let elsewhere = format!("{}-elsewhere", world.namespace);
    world.create::<Namespace>(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})).await;
    let image = world.push(&bundle("password=password:24, token=hex", "one")).await;
    world.deploy(&one, PLAIN, &image).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["installNamespace"] = json!(elsewhere);
    world.apply(&other, spec).await;
    let deployment = world.ready(&one).await;
    world.ready(&other).await;
    let first = values(&world, &world.namespace).await;
    let second = values(&world, &elsewhere).await;
    assert_eq!((first["username"].as_str(), first["password"].len(), first["token"].len()), ("admin", 24, 64));
    for key in ["password", "token"] {
        assert_ne!(first[key], second[key], "{key} is the same for two tenants");
    }
    assert_undisclosed(&world, &deployment, &world.namespace).await;

    // An upgrade keeps values that it still requests, even in another form, generates new ones, and drops the others.
    let image = world.push(&bundle("password=password:48, id=uuid", "two")).await;
    world.deploy(&one, PLAIN, &image).await;
    wait::until(&world.config_maps(), "berth", "upgraded", |map| {
        map.and_then(|map| map.data.as_ref()?.get("from")).is_some_and(|from| from == "two")
    })
    .await;
    let deployment = world.ready(&one).await;
    let upgraded = values(&world, &world.namespace).await;
    assert_eq!(upgraded["password"], first["password"]);
    assert_eq!(upgraded.keys().collect::<Vec<_>>(), ["id", "password", "username"]);
    assert_undisclosed(&world, &deployment, &world.namespace).await;
    world.delete(&one).await;
    world.delete(&other).await;
    assert!(
        secrets(&world, &elsewhere).get_opt(NAME).await.expect("a response").is_none(),
        "the Secret is deleted with its owner"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_restart_keeps_values_and_a_deleted_secret_gets_new_ones() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle("password=password", "one")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    let first = values(&world, &world.namespace).await;
    world.stop_controller().await;
    world.start_controller();
    // A value that a user overwrites is kept, too: this is how a value is replaced. Values of the release itself are repaired.
    let patch = json!({"stringData": {"password": "chosen by hand", "username": "mallory"}});
    let secrets = secrets(&world, &world.namespace);
    secrets.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the edit is accepted");
    let is = |username: &'static str, password: String| {
        move |secret: Option<&Secret>| {
            secret.map(texts).is_some_and(|texts| texts["username"] == username && texts["password"] == password)
        }
    };
    wait::until(&secrets, NAME, "repaired", is("admin", "chosen by hand".to_owned())).await;

    // A deleted value cannot be restored: a new one is generated.
    secrets.delete(NAME, &DeleteParams::default()).await.expect("the deletion is accepted");
    let again = wait::until(&secrets, NAME, "created again", |secret| {
        secret.map(texts).is_some_and(|texts| texts["password"] != "chosen by hand")
    })
    .await;
    let again = texts(&again.expect("a Secret"));
    assert_eq!(again["password"].len(), 32);
    assert_ne!(again["password"], first["password"]);
    let deployment = world.ready(&name).await;
    assert_undisclosed(&world, &deployment, &world.namespace).await;
    world.delete(&name).await;
    world.finish().await;
}

/// Only values of Secrets that Chandler created are kept: a Secret that another user created first is rejected, not read.
#[tokio::test]
async fn a_foreign_secret_is_refused_and_not_read() {
    let world = World::new().await;
    let name = world.name();
    let planted = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "known to mallory"},
        "metadata": {"name": NAME, "namespace": world.namespace}});
    secrets(&world, &world.namespace)
        .create(&kube::api::PostParams::default(), &serde_json::from_value(planted).expect("a Secret"))
        .await
        .expect("the object is created");
    let image = world.push(&bundle("password=password", "one")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    assert_eq!(values(&world, &world.namespace).await["password"], "known to mallory");
    world.delete(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn an_invalid_generator_is_reported_before_the_first_write() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle("password=password:4, username=hex", "one")).await;
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.condition(&name, "Ready", "False", "InvalidOutput").await;
    let message = chandler_tests::world::condition(&deployment, "Ready").expect("a condition").message.clone();
    assert!(message.contains("the length must be a number from 8 to 1024"), "{message}");
    assert!(world.config_maps().get_opt("berth").await.expect("an answer").is_none());
    world.delete(&name).await;
    world.finish().await;
}
