//! Tenants: who installs what with whose rights, who may name what of the system namespace, and what a bundle passes on.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_controller::Options;
use chandler_permissions::{Account, AccountPolicy, PolicyRule, roles};
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    permissions::{account, apply, look_again, remove_cluster_roles, spec},
};

/// A bundle of one ConfigMap.
fn bell() -> Bundle {
    Bundle::empty().with("manifests/bell.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n")
}

/// A bundle of one object.
fn holding(object: &Value) -> Bundle {
    Bundle::empty().with("manifests/object.yaml", &object.to_string())
}

async fn restart(world: &mut World, change: impl FnOnce(&mut Options)) {
    world.stop_controller().await;
    world.start_controller_with(world.client.clone(), change);
}

/// Grants rules to an account in the whole cluster.
async fn grant(world: &World, account: &Account, name: &str, rules: Vec<PolicyRule>) {
    apply(world, &roles(&[(None, rules)].into(), account, name)).await;
}

fn rules(value: &Value) -> Vec<PolicyRule> {
    serde_json::from_value(value.clone()).expect("rules")
}

fn everything() -> Vec<PolicyRule> {
    vec![PolicyRule::everything(), PolicyRule::every_path()]
}

/// What `Ready` says.
fn told(deployment: &BundleDeployment) -> String {
    condition(deployment, "Ready").expect("Ready").message.clone()
}

async fn is_installed(world: &World) -> bool {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    maps.get_opt("bell").await.expect("an answer").is_some()
}

#[tokio::test]
async fn without_an_account_nothing_is_fetched() {
    let mut world = World::new().await;
    restart(&mut world, |options| options.accounts = AccountPolicy::Required).await;
    let name = world.name();
    let image = world.push(&bell()).await;
    let before = world.registry.requests().len();
    world.apply(&name, world.spec(PLAIN, &image)).await;
    let refused = world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(told(&refused).contains("--require-service-account"), "{}", told(&refused));
    assert_eq!(condition(&refused, "Progressing").expect("Progressing").status, "False", "it is not tried again");
    assert_eq!(world.registry.requests().len(), before, "nothing was fetched");
    // What holds nothing is not held back.
    assert_eq!(refused.metadata.finalizers, None);

    // With an account it goes on.
    let deployer = account(&world, "deployer").await;
    grant(&world, &deployer, &name, everything()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&name).await;

    // The account cannot be taken away again.
    let patch = Patch::Merge(json!({"spec": {"serviceAccount": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &patch).await.expect("it is there");
    world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(is_installed(&world).await, "what runs goes on running");
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

#[tokio::test]
async fn what_was_installed_before_an_account_was_required_can_be_deleted() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&bell()).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    restart(&mut world, |options| options.accounts = AccountPolicy::Required).await;
    look_again(&world, &name).await;
    world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(is_installed(&world).await);
    world.delete(&name).await;
    assert!(!is_installed(&world).await);
    world.finish().await;
}

#[tokio::test]
async fn the_account_of_the_installation_serves_those_who_name_none() {
    let policy = AccountPolicy::new(true, Some("deployer".parse().expect("an account")));
    let mut world = World::new().await;
    restart(&mut world, |options| options.accounts = policy).await;
    let name = world.name();
    let image = world.push(&bell()).await;
    world.apply(&name, world.spec(PLAIN, &image)).await;
    let missing = world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    assert!(told(&missing).contains(&format!("{}/deployer does not exist", world.namespace)), "{}", told(&missing));
    let deployer = account(&world, "deployer").await;
    look_again(&world, &name).await;
    let missing = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    assert!(told(&missing).contains("create, list, watch configmaps"), "{}", told(&missing));
    grant(&world, &deployer, &name, everything()).await;
    look_again(&world, &name).await;
    world.ready(&name).await;
    world.delete(&name).await;
    assert!(!is_installed(&world).await);
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

/// A Secret of the system namespace.
async fn secret(world: &World, name: &str, type_: &str, annotations: Value) {
    let auths = json!({"auths": {world.registry.host(): {"auth": STANDARD.encode("user:password")}}}).to_string();
    apply(
        world,
        &[json!({
            "apiVersion": "v1", "kind": "Secret", "type": type_,
            "metadata": {"name": name, "namespace": world.system_namespace, "annotations": annotations},
            "data": {".dockerconfigjson": STANDARD.encode(auths)},
        })],
    )
    .await;
}

#[tokio::test]
async fn a_secret_is_named_only_by_whom_it_grants_and_a_refusal_tells_nothing_of_it() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bell()).await;
    let docker = "kubernetes.io/dockerconfigjson";
    secret(&world, "of-another", docker, json!({"chandler.dev/bundledeployments": "team-a-*, other"})).await;
    secret(&world, "of-a-class", docker, json!({"chandler.dev/provisionerclasses": "*"})).await;
    secret(&world, "no-pull-secret", "chandler.dev/record", json!({})).await;
    let mut messages = BTreeMap::new();
    for secret in ["absent", "of-another", "of-a-class", "no-pull-secret"] {
        let mut spec = world.spec(PLAIN, &image);
        spec["source"]["image"]["pullSecret"] = json!(secret);
        world.apply(&name, spec).await;
        let refused = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
        let message = condition(&refused, "Unpacked").expect("Unpacked").message.replace(secret, "SECRET");
        assert!(!message.contains("password"), "{message}");
        messages.entry(message).or_insert_with(Vec::new).push(secret);
    }
    assert_eq!(messages.len(), 1, "all refusals are the same: {messages:#?}");
    assert!(messages.keys().all(|message| message.contains("chandler.dev/bundledeployments")), "{messages:#?}");
    assert!(!is_installed(&world).await);

    // The grant is seen at once.
    let mut spec = world.spec(PLAIN, &image);
    spec["source"]["image"]["pullSecret"] = json!("of-another");
    world.apply(&name, spec).await;
    world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    secret(&world, "of-another", docker, json!({"chandler.dev/bundledeployments": "team-a-*, *-bd"})).await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn where_a_grant_is_required_a_secret_without_one_is_used_by_nobody() {
    let mut world = World::new().await;
    restart(&mut world, |options| options.require_pull_secret_grant = true).await;
    let name = world.name();
    let image = world.push(&bell()).await;
    let docker = "kubernetes.io/dockerconfigjson";
    secret(&world, "pull", docker, json!({})).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["source"]["image"]["pullSecret"] = json!("pull");
    world.apply(&name, spec).await;
    let refused = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.contains(&format!("has to name BundleDeployment {name}")), "{message}");

    // A class is another user.
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let class = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass", "metadata": {"name": name},
                       "spec": {"image": format!("{}/none:v1", world.registry.host()), "pullSecret": "pull"}});
    secret(&world, "pull", docker, json!({"chandler.dev/bundledeployments": name})).await;
    world.ready(&name).await;
    let _: ProvisionerClass = world.create(class).await;
    let refused = wait::until(&classes, &name, "refused", |class| {
        class.is_some_and(|class| class.status.as_ref().is_some_and(|status| !status.conditions.is_empty()))
    })
    .await
    .expect("the class");
    let text = serde_json::to_string(&refused.status).expect("JSON");
    assert!(text.contains(&format!("none that ProvisionerClass {name} may use")), "{text}");
    classes.delete(&name, &kube::api::DeleteParams::default()).await.expect("it is there");
    world.finish().await;
}

#[tokio::test]
async fn content_in_a_config_map_is_named_only_by_whom_it_grants() {
    let world = World::new().await;
    let name = world.name();
    let map = |annotations: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
               "metadata": {"name": "content", "namespace": world.system_namespace, "annotations": annotations},
               "data": {"bell.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n"}})
    };
    let mut spec = world.spec(PLAIN, "");
    spec["source"] =
        json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "content"}, "path": "manifests"}]});
    world.apply(&name, spec.clone()).await;
    let refused = |deployment: &BundleDeployment| condition(deployment, "Unpacked").expect("Unpacked").message.clone();
    let absent = refused(&world.condition(&name, "Unpacked", "False", "UnpackFailed").await);
    apply(&world, &[map(json!({"chandler.dev/bundledeployments": "other"}))]).await;
    let second = format!("{name}-b");
    world.apply(&second, spec).await;
    let foreign = refused(&world.condition(&second, "Unpacked", "False", "UnpackFailed").await);
    assert_eq!(foreign, absent.replace(&name, &second), "a refusal does not tell whether it is there");
    world.delete(&second).await;
    apply(&world, &[map(json!({"chandler.dev/bundledeployments": "other, *-bd"}))]).await;
    world.ready(&name).await;
    world.finish().await;
}

/// A BundleDeployment in a bundle. It is suspended: what counts is whether it may be written.
fn inner(world: &World, more: &Value) -> Value {
    let mut spec = world.spec(PLAIN, "registry.example.com/bundle:v1");
    spec["suspend"] = json!(true);
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
           "metadata": {"name": format!("{}-inner", world.name())}, "spec": spec})
}

/// Everything that it takes to write BundleDeployments and ProvisionerClasses.
fn may_write() -> Vec<PolicyRule> {
    rules(&json!([
        {"apiGroups": ["core.rukpak.io", "chandler.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "list", "watch", "patch", "delete"]},
    ]))
}

#[tokio::test]
async fn a_bundle_passes_on_no_right_that_its_account_lacks() {
    let world = World::new().await;
    let name = world.name();
    let deployer = account(&world, "deployer").await;
    grant(&world, &deployer, &name, may_write()).await;
    let unnamed = "names no ServiceAccount, so it is installed with the permissions of the controller";
    let friend = json!({"serviceAccount": {"name": "friend"}});
    let pulls = json!({"serviceAccount": {"name": "deployer"}, "source": {
        "type": "image", "image": {"ref": "registry.example.com/bundle:v1", "pullSecret": "pull"}}});
    let class = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass",
                       "metadata": {"name": format!("{name}-inner")}, "spec": {"image": "registry.example.com/c:v1"}});
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": "record", "namespace": world.system_namespace}});
    let every = "every verb on every resource in the whole cluster";
    for (object, lacks, why) in [
        (inner(&world, &json!({})), every, unnamed),
        (inner(&world, &friend), r#"impersonate serviceaccounts "friend" in namespace"#, "on behalf of ServiceAccount"),
        (inner(&world, &pulls), r#"get secrets "pull" in namespace"#, "makes the controller read Secret"),
        (class, every, "renders the bundles of other users"),
        (record, every, "is in the namespace of the controller"),
    ] {
        let image = world.push(&holding(&object)).await;
        world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
        let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
        let told = told(&refused);
        assert!(told.contains(lacks) && told.contains(why), "{lacks}; {why}: {told}");
        let refused = refused.status.expect("a status").missing_permissions;
        assert!(!refused.is_empty(), "`chandler rbac` prints it");
    }
    let nested = format!("{name}-inner");
    assert!(world.deployments().get_opt(&nested).await.expect("an answer").is_none(), "nothing was written");

    // With the right to act as that account the BundleDeployment is written; on behalf of its own account it is so anyway.
    grant(
        &world,
        &deployer,
        &format!("{name}-impersonates"),
        rules(&json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["friend"],
                       "verbs": ["impersonate"]}])),
    )
    .await;
    for account in [friend, json!({"serviceAccount": {"name": "deployer"}})] {
        let image = world.push(&holding(&inner(&world, &account))).await;
        world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
        wait::until(&world.deployments(), &nested, "written", |written| {
            let named = written.and_then(|written| written.spec.service_account.as_ref());
            named.is_some_and(|named| account["serviceAccount"]["name"] == named.name.as_str())
        })
        .await;
    }
    world.delete(&name).await;
    assert!(world.deployments().get_opt(&nested).await.expect("an answer").is_none());
    remove_cluster_roles(&world, &[&name, &format!("{name}-impersonates")]).await;
    world.finish().await;
}

#[tokio::test]
async fn the_rights_of_the_controller_install_nothing_of_its_own() {
    let world = World::new().await;
    let name = world.name();
    let record = json!({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": "record", "namespace": world.system_namespace}});
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let crd = chandler_api::crds().into_iter().next().expect("a CRD");
    for object in [record.clone(), serde_json::to_value(crd).expect("JSON")] {
        let image = world.push(&holding(&object)).await;
        // Whether it exists already or not, and not even where everything may be taken over.
        for protection in ["Prevent", "None"] {
            let mut spec = world.spec(PLAIN, &image);
            spec["collisionProtection"] = json!(protection);
            world.apply(&name, spec).await;
            let refused = world.condition(&name, "Ready", "False", "ReservedObjects").await;
            let named = object["metadata"]["name"].as_str().expect("a name");
            assert!(told(&refused).contains(named), "{}", told(&refused));
        }
    }
    assert!(secrets.get_opt("record").await.expect("an answer").is_none());

    // An account that holds every right may.
    let admin = account(&world, "admin").await;
    grant(&world, &admin, &name, everything()).await;
    let image = world.push(&holding(&record)).await;
    world.apply(&name, spec(&world, PLAIN, &image, "admin")).await;
    world.ready(&name).await;
    assert!(secrets.get_opt("record").await.expect("an answer").is_some());
    world.delete(&name).await;
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}
