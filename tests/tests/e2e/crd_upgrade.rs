//! A CRD upgrade that would break clients or stored objects is rejected before anything is written, unless the spec allows it.

use chandler_api::{ApprovedUpgrade, BundleDeployment, ChangeApproval, ConditionType, find_condition};
use chandler_core::{Object, Release};
use chandler_rollout::{Options, Rollout, RolloutRequest};
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

/// An API group for each test, so that tests on one server do not collide.
fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

/// The CRD with this schema of `spec.size`.
fn crd(world: &World, size: &Value) -> Value {
    let group = group(world);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A bundle with the CRD, and a ConfigMap with the bundle's version.
pub(crate) fn bundle(world: &World, version: &str, size: &Value) -> Bundle {
    let crd = crd(world, size);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": world.namespace},
        "data": {"version": version},
    });
    Bundle::empty().with("manifests/crd.yaml", &crd.to_string()).with("manifests/settings.yaml", &settings.to_string())
}

async fn deploy(world: &World, version: &str, size: &Value, preflight: &Value) {
    let image = world.push(&bundle(world, version, size)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["preflight"] = json!({"crdUpgradeSafety": preflight});
    world.apply(&world.name(), spec).await;
}

/// Shows whether anything was written: the version in the ConfigMap, and the resource version of the CRD.
async fn written(world: &World) -> (Option<String>, Option<String>) {
    let settings: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let settings = settings.get("settings").await.expect("the ConfigMap");
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let crd = crds.get(&format!("widgets.{}", group(world))).await.expect("the CRD");
    (settings.data.and_then(|data| data.get("version").cloned()), crd.metadata.resource_version)
}

fn widgets(world: &World) -> Api<DynamicObject> {
    let group = group(world);
    let api_version = format!("{group}/v1");
    let resource =
        ApiResource { group, version: "v1".into(), api_version, kind: "Widget".into(), plural: "widgets".into() };
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

async fn create_widget(world: &World, name: &str, size: &Value) {
    let widget = json!({
        "apiVersion": format!("{}/v1", group(world)), "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size},
    });
    let widget: DynamicObject = serde_json::from_value(widget).expect("an object");
    widgets(world).create(&PostParams::default(), &widget).await.expect("the object is accepted");
}

fn message(deployment: &BundleDeployment) -> String {
    condition(deployment, "Ready").map(|ready| ready.message.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_breaking_crd_is_rejected_before_the_first_write_unless_allowed() {
    let world = World::new().await;
    let name = world.name();
    let text = json!({"type": "string", "enum": ["small", "large"]});
    let fewer = json!({"type": "string", "enum": ["small"]});
    deploy(&world, "1", &text, &json!({})).await;
    world.ready(&name).await;
    let (_, stored) = written(&world).await;

    deploy(&world, "2", &fewer, &json!({})).await;
    let refused = world.condition(&name, "Ready", "False", "UnsafeCRDUpgrade").await;
    let text = message(&refused);
    let crd = format!("widgets.{}", group(&world));
    let expected = format!(
        "validating upgrade for CRD {crd:?}: v1: ^.spec.size: enum: allowed enum values removed : [\"large\"]\nhelp: "
    );
    assert!(text.starts_with(&expected), "{text}");
    let conditions = &refused.status.as_ref().expect("a status").conditions;
    let installed = find_condition(conditions, ConditionType::Installed).expect("Installed");
    assert_eq!(installed.reason, "UpgradeFailed");
    assert_eq!(written(&world).await, (Some("1".into()), stored), "nothing may be written");

    let mild = json!({"crds": [{"name": crd, "rules": [{"name": "enum", "enforcement": "Warn"}]}]});
    deploy(&world, "2", &fewer, &mild).await;
    let ready = world.ready(&name).await;
    assert_eq!(written(&world).await.0.as_deref(), Some("2"));
    let warnings = ready.status.and_then(|status| status.release).expect("a release").warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.message.contains("allowed enum values removed")), "{warnings:?}");
    world.finish().await;
}

/// Approves what `chandler diff --findings` lists, as `chandler approve --findings` does. Returns the approval.
async fn approve_findings(world: &World, size: &Value) -> ChangeApproval {
    let deployment = world.deployments().get(&world.name()).await.expect("the BundleDeployment");
    let object = Object::parse(crd(world, size).to_string().as_bytes(), 0, None).expect("an object");
    let release = Release::new(vec![object], vec![], vec![]);
    let owner = chandler_decisions::owner::owner_of(&deployment, &world.namespace).expect("a stored BundleDeployment");
    let rollout = Rollout::new(world.client.clone(), Options::default());
    let preview = rollout.preview(&RolloutRequest::new(&owner, &release)).await.expect("a preview");
    let refused = preview.crd_upgrades.iter().filter(|upgrade| upgrade.is_refused());
    let upgrades =
        refused.map(|upgrade| ApprovedUpgrade { crd: upgrade.crd.clone(), digest: upgrade.digest.to_string() });
    let digest = chandler_crd_upgrade::upgrade::digest(&preview.crd_upgrades).expect("refused upgrades").to_string();
    let upgrades = (digest.as_str(), upgrades.collect());
    let approval = ChangeApproval::of_upgrades(&deployment, upgrades, &world.user().await, None);
    let approval = approval.expect("a stored BundleDeployment");
    world.approvals().create(&PostParams::default(), &approval).await.expect("the approval is accepted")
}

#[tokio::test]
async fn reviewed_findings_are_allowed_by_one_approval_and_nothing_else_is() {
    let world = World::new().await;
    let name = world.name();
    let (text, fewer) = (json!({"type": "string", "enum": ["a", "b"]}), json!({"type": "string", "enum": ["a"]}));
    deploy(&world, "1", &text, &json!({})).await;
    world.ready(&name).await;

    // An approval of other findings allows nothing.
    deploy(&world, "2", &json!({"type": "integer"}), &json!({})).await;
    world.condition(&name, "Ready", "False", "UnsafeCRDUpgrade").await;
    approve_findings(&world, &json!({"type": "string", "enum": ["b"]})).await;
    deploy(&world, "3", &fewer, &json!({})).await;
    let refused = world.deployments();
    let refused = chandler_tests::wait::until(&refused, &name, "refused with the new findings", |deployment| {
        deployment.is_some_and(|deployment| message(deployment).contains("allowed enum values removed : [\"b\"]"))
    })
    .await
    .expect("the BundleDeployment");
    assert_eq!(written(&world).await.0.as_deref(), Some("1"));

    // The message names the command with the digest, and following it once is enough.
    let approval = approve_findings(&world, &fewer).await;
    let command = format!("`chandler approve {name} --findings={}`", approval.spec.change);
    assert!(message(&refused).contains(&command), "{}", message(&refused));
    let ready = world.ready(&name).await;
    assert_eq!(written(&world).await.0.as_deref(), Some("3"));
    let warnings = ready.status.and_then(|status| status.release).expect("a release").warnings;
    let expected = format!("{} approved 1 finding about CRD ", world.user().await);
    assert!(warnings.iter().any(|warning| warning.message.starts_with(&expected)), "{warnings:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_custom_resource_that_fails_the_new_schema_is_named() {
    let world = World::new().await;
    let name = world.name();
    // A comparison of the schemas alone would pass.
    let schemas = json!({"rules": [{"name": "maxLength", "enforcement": "None"}]});
    deploy(&world, "1", &json!({"type": "string"}), &schemas).await;
    world.ready(&name).await;
    create_widget(&world, "tiny", &json!("s")).await;
    create_widget(&world, "huge", &json!("xxxxxl")).await;

    let bounded = json!({"type": "string", "maxLength": 2});
    deploy(&world, "2", &bounded, &schemas).await;
    let text = message(&world.condition(&name, "Ready", "False", "UnsafeCRDUpgrade").await);
    let expected = format!(
        "existing custom object {}/huge failed validation for new schema version v1: /spec/size: ",
        world.namespace
    );
    assert!(text.contains(&expected) && !text.contains("tiny") && !text.contains("xxxxxl"), "{text}");
    assert_eq!(written(&world).await.0.as_deref(), Some("1"), "nothing may be written");

    // Once the object is deleted, the upgrade continues by itself.
    widgets(&world).delete("huge", &DeleteParams::default()).await.expect("the deletion is accepted");
    world.ready(&name).await;
    assert_eq!(written(&world).await.0.as_deref(), Some("2"));
    world.finish().await;
}

#[tokio::test]
async fn the_crd_check_can_be_disabled_and_ignores_new_crds() {
    let world = World::new().await;
    let name = world.name();
    deploy(&world, "1", &json!({"type": "string", "pattern": "^[a-z]+$", "default": "small"}), &json!({})).await;
    world.ready(&name).await;
    deploy(&world, "2", &json!({"type": "integer", "minimum": 3}), &json!({"disabled": true})).await;
    let ready = world.ready(&name).await;
    assert_eq!(written(&world).await.0.as_deref(), Some("2"));
    assert_eq!(ready.status.and_then(|status| status.release).expect("a release").warnings, []);
    world.finish().await;
}

/// The CRD with a second version, which is stored, and whose conversion webhook no Pod serves.
fn converted_crd(world: &World, size: &Value) -> Value {
    let mut crd = crd(world, size);
    crd["spec"]["versions"][0]["storage"] = json!(false);
    let mut second = crd["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v2"), json!(true));
    crd["spec"]["versions"].as_array_mut().expect("a list").push(second);
    let service = json!({"namespace": world.namespace, "name": "converter", "path": "/convert"});
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}},
    });
    crd
}

/// The release that repairs the webhook must not need the webhook.
#[tokio::test]
async fn a_release_whose_conversion_webhook_is_broken_can_be_replaced() {
    let world = World::new().await;
    if world.embedded().is_some() {
        eprintln!("skipped: the embedded control plane calls no conversion webhooks");
        world.finish().await;
        return;
    }
    let size = json!({"type": "string"});
    deploy(&world, "1", &size, &json!({})).await;
    world.ready(&world.name()).await;
    create_widget(&world, "one", &json!("small")).await;

    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let crd_name = format!("widgets.{}", group(&world));
    for (version, size) in [("2", size), ("3", json!({"type": "string", "maxLength": 63}))] {
        let crd = converted_crd(&world, &size);
        let image = world.push(&Bundle::empty().with("manifests/crd.yaml", &crd.to_string())).await;
        let mut spec = world.spec(PLAIN, &image);
        // A bound is a change that lists the custom resources, and that is allowed.
        spec["preflight"] = json!({"crdUpgradeSafety": {"rules": [{"name": "maxLength", "enforcement": "Warn"}]}});
        world.apply(&world.name(), spec).await;
        wait::until(&crds, &crd_name, &format!("the CRD of bundle {version}"), |crd| {
            let schema = crd.and_then(|crd| crd.spec.versions.iter().find(|it| it.name == "v2")?.schema.as_ref());
            let schema = schema.and_then(|schema| serde_json::to_value(schema).ok()).unwrap_or_default();
            schema.pointer("/openAPIV3Schema/properties/spec/properties/size") == Some(&size)
        })
        .await;
    }
    // The status says so a moment after the CRD was written.
    wait::until(&world.deployments(), &world.name(), "a release with a warning", |found| {
        let release = found.and_then(|found| found.status.as_ref()?.release.as_ref());
        let mut warnings = release.into_iter().flat_map(|release| &release.warnings);
        warnings.any(|warning| warning.message.contains("existing custom resources were not checked"))
    })
    .await;

    // Nothing can read or delete the object until the webhook is repaired, or gone as here.
    let mut crd = converted_crd(&world, &json!({"type": "string", "maxLength": 63}));
    crd["spec"]["conversion"] = json!({"strategy": "None"});
    let image = world.push(&Bundle::empty().with("manifests/crd.yaml", &crd.to_string())).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    world.ready(&world.name()).await;
    wait::eventually("the object is deleted", || async {
        widgets(&world).delete("one", &DeleteParams::default()).await.is_ok()
    })
    .await;
    world.finish().await;
}
