//! Values of a configuration come from ConfigMaps and Secrets, with the permissions of the account, and values of Secrets stay secret.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{BundleDeployment, Outcome, Revision};
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    REGISTRY,
    hostile_provisioners::create_class,
    permissions::{account, apply, grant_missing},
};

/// The values that must appear only in the Deployment.
const CANARY: &str = "canary-7f3a9e";

fn bundle() -> Bundle {
    bundles::sample("registry/harbour-operator.v0.1.0")
}

/// Values that set a variable of the operator.
fn variable(value: &str) -> String {
    format!("deploymentConfig:\n  env:\n  - {{name: HARBOUR_TOKEN, value: {value}}}\n")
}

pub(crate) async fn object(world: &World, kind: &str, namespace: &str, name: &str, keys: &[(&str, &str)]) {
    let text: BTreeMap<&str, String> = keys
        .iter()
        .map(|(key, text)| (*key, if kind == "Secret" { STANDARD.encode(text) } else { (*text).to_owned() }))
        .collect();
    let object = json!({
        "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "data": text,
    });
    apply(world, &[object]).await;
}

fn spec(world: &World, image: &str, references: Value) -> Value {
    let mut spec = world.spec(REGISTRY, image);
    spec["valuesFrom"] = references;
    spec
}

/// The value of the variable in the operator's Deployment.
async fn token(world: &World) -> Option<String> {
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let operator = operators.get("harbour-operator").await.expect("the operator");
    let container = operator.spec?.template.spec?.containers.into_iter().next()?;
    container.env?.into_iter().find(|variable| variable.name == "HARBOUR_TOKEN")?.value
}

fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

async fn at_revision(world: &World, name: &str, number: i64) -> BundleDeployment {
    let found = wait::until(&world.deployments(), name, &format!("at revision {number}"), |deployment| {
        let last = deployment.and_then(|deployment| history(deployment).last());
        last.is_some_and(|last| last.number == number && last.outcome == Outcome::Succeeded)
    })
    .await;
    found.expect("the object exists")
}

fn message<'a>(deployment: &'a BundleDeployment, type_: &str) -> &'a str {
    &condition(deployment, type_).expect("the condition is set").message
}

/// Everything that Chandler writes about the BundleDeployment: the object itself, and its Events.
async fn published(world: &World, name: &str) -> String {
    let deployment = world.deployments().get(name).await.expect("the BundleDeployment");
    let events = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let events: Api<DynamicObject> = Api::all_with(world.client.clone(), &events);
    let events = events.list(&ListParams::default()).await.expect("events");
    let about = events.items.into_iter().filter(|event| event.data.to_string().contains(name));
    let events: Vec<String> = about.map(|event| event.data.to_string()).collect();
    assert!(!events.is_empty(), "there are Events");
    serde_json::to_string(&deployment).expect("JSON") + &events.concat()
}

#[tokio::test]
async fn values_are_merged_and_a_change_is_a_new_revision() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle()).await;
    let references = json!([{"kind": "ConfigMap", "name": "base"}, {"kind": "Secret", "name": "harbour"}]);
    world.apply(&name, spec(&world, &image, references)).await;

    // The controller watches for what is missing.
    let waiting = world.condition(&name, "Ready", "False", "ValuesNotFound").await;
    let text = message(&waiting, "Ready");
    assert!(text.contains(&format!("ConfigMap {}/base: does not exist", world.namespace)), "{text}");
    object(&world, "ConfigMap", &world.namespace, "base", &[("values.yaml", &variable("from-the-map"))]).await;
    object(&world, "Secret", &world.namespace, "harbour", &[("other", "")]).await;
    let waiting = wait::until(&world.deployments(), &name, "waits for the key", |deployment| {
        deployment.is_some_and(|deployment| message(deployment, "Ready").contains("key values.yaml"))
    })
    .await
    .expect("the object exists");
    assert!(message(&waiting, "Ready").contains("Secret"), "{}", message(&waiting, "Ready"));
    object(&world, "Secret", &world.namespace, "harbour", &[("values.yaml", &variable(CANARY))]).await;
    let first = at_revision(&world, &name, 1).await;
    assert_eq!(token(&world).await.as_deref(), Some(CANARY), "the last reference wins");
    let revision = history(&first).first().expect("a revision");
    let read: Vec<String> =
        revision.values_from.iter().map(|object| format!("{} {}", object.kind, object.name)).collect();
    assert_eq!(read, ["ConfigMap base", "Secret harbour"]);
    assert!(revision.values_from.iter().all(|object| object.uid.is_some() && object.resource_version.is_some()));
    assert_eq!(revision.config, None, "values of Secrets are not kept");

    // A change of the Secret is rolled out without a change of the BundleDeployment.
    let changed = format!("{CANARY}-second");
    object(&world, "Secret", &world.namespace, "harbour", &[("values.yaml", &variable(&changed))]).await;
    at_revision(&world, &name, 2).await;
    assert_eq!(token(&world).await, Some(changed));
    let text = published(&world, &name).await;
    assert!(!text.contains(CANARY) && !text.contains(&STANDARD.encode(CANARY)), "{text}");

    // An invalid value is refused with its line, and the release stays.
    let invalid = format!("{CANARY}: [\n");
    object(&world, "Secret", &world.namespace, "harbour", &[("values.yaml", &invalid)]).await;
    let refused = world.condition(&name, "Ready", "False", "InvalidValues").await;
    assert!(message(&refused, "Ready").contains("line "), "{}", message(&refused, "Ready"));
    assert!(!published(&world, &name).await.contains(CANARY));
    assert!(token(&world).await.is_some());

    // So is a value that the provisioner quotes.
    let quoted = format!("watchNamespaces: [{CANARY}]\nwatchNamespace: {CANARY}\n{CANARY}: {CANARY}\n");
    object(&world, "Secret", &world.namespace, "harbour", &[("values.yaml", &quoted)]).await;
    let refused = world.condition(&name, "Ready", "False", "InvalidConfiguration").await;
    assert!(!message(&refused, "Ready").is_empty());
    let text = serde_json::to_string(&refused).expect("JSON");
    assert!(!published(&world, &name).await.contains(CANARY), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn the_configuration_of_the_spec_wins_and_config_maps_are_kept() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle()).await;
    object(&world, "ConfigMap", &world.namespace, "base", &[("prod.yaml", &variable("from-the-map"))]).await;
    let references = json!([
        {"kind": "ConfigMap", "name": "base", "valuesKey": "prod.yaml"},
        {"kind": "Secret", "name": "absent", "optional": true},
        {"kind": "ConfigMap", "name": "base", "valuesKey": "absent", "optional": true},
    ]);
    let mut spec = spec(&world, &image, references);
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    assert_eq!(token(&world).await.as_deref(), Some("from-the-map"));
    spec["valuesFrom"] = json!([{"kind": "ConfigMap", "name": "base", "valuesKey": "prod.yaml"}]);
    spec["config"] = json!({"deploymentConfig": {"env": [{"name": "HARBOUR_TOKEN", "value": "from-the-spec"}]}});
    world.apply(&name, spec.clone()).await;
    let deployment = at_revision(&world, &name, 2).await;
    assert_eq!(token(&world).await.as_deref(), Some("from-the-spec"));
    let kept = history(&deployment).last().and_then(|revision| revision.config.clone()).map(Value::Object);
    assert_eq!(kept, Some(spec["config"].clone()));
    world.finish().await;
}

#[tokio::test]
async fn a_rollback_needs_the_values_of_its_secrets() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle()).await;
    let references = json!([{"kind": "Secret", "name": "harbour", "valuesKey": "token",
                             "targetPath": "deploymentConfig.env[0].value"}]);
    let mut spec = spec(&world, &image, references);
    spec["config"] = json!({"operatorConditionName": "harbour"});
    spec["valuesFrom"].as_array_mut().expect("a list").insert(0, json!({"kind": "ConfigMap", "name": "base"}));
    object(&world, "ConfigMap", &world.namespace, "base", &[("values.yaml", &variable("unset"))]).await;
    object(&world, "Secret", &world.namespace, "harbour", &[("token", CANARY)]).await;
    world.apply(&name, spec.clone()).await;
    at_revision(&world, &name, 1).await;
    assert_eq!(token(&world).await.as_deref(), Some(CANARY));
    spec["source"]["image"]["ref"] = json!(world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await);
    world.apply(&name, spec.clone()).await;
    at_revision(&world, &name, 2).await;

    // The objects are the same, so the revision can be rendered again.
    let pin = |number: Value| Patch::Merge(json!({"spec": {"rollout": {"toRevision": number}}}));
    let patch = async |number| world.deployments().patch(&name, &PatchParams::default(), &pin(number)).await;
    patch(json!(1)).await.expect("the object is accepted");
    at_revision(&world, &name, 3).await;
    assert_eq!(token(&world).await.as_deref(), Some(CANARY));
    patch(json!(null)).await.expect("the object is accepted");
    at_revision(&world, &name, 4).await;

    // Once a Secret has changed, its old values are unknown.
    object(&world, "Secret", &world.namespace, "harbour", &[("token", "another-token")]).await;
    at_revision(&world, &name, 5).await;
    patch(json!(1)).await.expect("the object is accepted");
    let refused = world.condition(&name, "Progressing", "False", "RevisionUnavailable").await;
    let text = message(&refused, "Progressing");
    assert!(
        text.contains("revision 1: its configuration has values of ConfigMap") && text.contains("/harbour"),
        "{text}"
    );
    assert_eq!(token(&world).await.as_deref(), Some("another-token"), "the release stays");
    assert!(!published(&world, &name).await.contains("another-token"));
    world.finish().await;
}

#[tokio::test]
async fn an_account_reads_only_what_it_may_read() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle()).await;
    let tenant = account(&world, "tenant").await;
    object(&world, "Secret", &world.namespace, "of-another", &[("values.yaml", &variable(CANARY))]).await;
    let mut spec = spec(&world, &image, json!([{"kind": "Secret", "name": "of-another"}]));
    spec["serviceAccount"] = json!({"name": "absent"});
    world.apply(&name, spec.clone()).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;

    spec["serviceAccount"] = json!({"name": "tenant"});
    world.apply(&name, spec.clone()).await;
    let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let text = message(&refused, "Ready");
    assert!(text.contains(&format!("Secret {}/of-another", world.namespace)), "{text}");
    assert!(text.contains("chandler rbac"), "{text}");
    // Whether the object exists is not revealed.
    spec["valuesFrom"] = json!([{"kind": "Secret", "name": "absent"}]);
    world.apply(&name, spec.clone()).await;
    let absent = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    assert_eq!(message(&absent, "Ready").replace("absent", "of-another"), text);
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.get_opt("harbour-operator").await.expect("an answer").is_none(), "nothing was written");

    // The status reports exactly the permissions that are missing, including the one to watch the object.
    spec["valuesFrom"] = json!([{"kind": "Secret", "name": "of-another"}]);
    world.apply(&name, spec.clone()).await;
    let missing = wait::until(&world.deployments(), &name, "refused", |deployment| {
        deployment.is_some_and(|deployment| {
            deployment.status.as_ref().and_then(|status| status.observed_generation) == deployment.metadata.generation
                && message(deployment, "Ready").contains("of-another")
        })
    })
    .await
    .expect("the object exists");
    grant_missing(&world, &tenant, &missing, &format!("{name}-values")).await;
    let missing = wait::until(&world.deployments(), &name, "refused for the rest", |deployment| {
        deployment.is_some_and(|deployment| message(deployment, "Ready").contains("lacks permissions"))
    })
    .await
    .expect("the object exists");
    grant_missing(&world, &tenant, &missing, &name).await;
    world.ready(&name).await;
    assert_eq!(token(&world).await.as_deref(), Some(CANARY));
    let changed = format!("{CANARY}-second");
    object(&world, "Secret", &world.namespace, "of-another", &[("values.yaml", &variable(&changed))]).await;
    at_revision(&world, &name, 2).await;
    assert_eq!(token(&world).await, Some(changed));
    assert!(!published(&world, &name).await.contains(CANARY));
    world.delete(&name).await;
    crate::permissions::remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

#[tokio::test]
async fn texts_of_a_component_are_left_out_if_its_configuration_has_values_of_secrets() {
    let world = World::new().await;
    let name = world.name();
    let (class, other) = (format!("{name}-class"), format!("{name}-other"));
    create_class(&world, &class, json!({})).await;
    // A value in a form that no search finds, as a chart can compute it.
    let reversed: String = CANARY.chars().rev().collect();
    let bundle = Bundle::empty().with("provision", "invalid-content").with("argument", &reversed);
    let image = world.push(&bundle.with("manifests/a.yaml", "")).await;
    world.deploy(&name, &class, &image).await;
    let shown = world.condition(&name, "Ready", "False", "InvalidContent").await;
    assert!(message(&shown, "Ready").contains(&reversed), "without a Secret it is shown");

    object(&world, "Secret", &world.namespace, "harbour", &[("values.yaml", &variable(CANARY))]).await;
    let mut spec = world.spec(&class, &image);
    spec["valuesFrom"] = json!([{"kind": "Secret", "name": "harbour"}]);
    world.apply(&other, spec).await;
    let hidden = world.condition(&other, "Ready", "False", "InvalidContent").await;
    let text = message(&hidden, "Ready");
    assert!(text.contains("manifests/a.yaml") && text.contains("`chandler render`"), "{text}");
    assert!(!published(&world, &other).await.contains(&reversed), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn an_object_of_the_system_namespace_needs_a_grant() {
    let mut world = World::new().await;
    world.stop_controller().await;
    // An account would read the objects with its own permissions.
    world.start_controller_without_account();
    let name = world.name();
    let image = world.push(&bundle()).await;
    let system = &world.system_namespace;
    object(&world, "Secret", system, "private", &[("values.yaml", &variable(CANARY))]).await;
    let mut spec = spec(&world, &image, json!([{"kind": "Secret", "name": "private"}]));
    spec["installNamespace"] = json!(system);
    world.apply(&name, spec.clone()).await;
    let refused = world.condition(&name, "Ready", "False", "ValuesNotFound").await;
    let text = message(&refused, "Ready").to_owned();
    assert!(text.contains("its annotation chandler.dev/bundledeployments does not name"), "{text}");
    // Whether it exists is not revealed.
    let second = format!("{name}-b");
    spec["valuesFrom"] = json!([{"kind": "Secret", "name": "absent"}]);
    world.apply(&second, spec).await;
    let absent = world.condition(&second, "Ready", "False", "ValuesNotFound").await;
    assert_eq!(message(&absent, "Ready").replace(&second, &name).replace("absent", "private"), text);
    world.finish().await;
}
