//! Tenant isolation: which account installs a BundleDeployment, which objects of the system namespace it may name, and which
//! permissions a bundle may delegate.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_controller::Options;
use chandler_core::Digest;
use chandler_permissions::{Account, AccountPolicy, PolicyRule, roles};
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    permissions::{account, apply, remove_cluster_roles, request_reconcile, spec},
};

/// A bundle with one ConfigMap.
fn bell() -> Bundle {
    Bundle::empty().with("manifests/bell.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n")
}

/// A bundle with one object.
fn bundle_with(object: &Value) -> Bundle {
    Bundle::empty().with("manifests/object.yaml", &object.to_string())
}

async fn restart(world: &mut World, change: impl FnOnce(&mut Options)) {
    world.stop_controller().await;
    world.start_controller_changed(change);
}

/// Grants cluster-wide rules to an account.
async fn grant(world: &World, account: &Account, name: &str, rules: Vec<PolicyRule>) {
    apply(world, &roles(&[(None, rules)].into(), account, name)).await;
}

fn rules(value: &Value) -> Vec<PolicyRule> {
    serde_json::from_value(value.clone()).expect("rules")
}

fn everything() -> Vec<PolicyRule> {
    vec![PolicyRule::everything(), PolicyRule::every_path()]
}

/// The message of `Ready`.
fn ready_message(deployment: &BundleDeployment) -> String {
    condition(deployment, "Ready").expect("Ready").message.clone()
}

async fn is_installed(world: &World) -> bool {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    maps.get_opt("bell").await.expect("a response").is_some()
}

#[tokio::test]
async fn without_a_required_account_nothing_is_pulled() {
    let mut world = World::new().await;
    restart(&mut world, |options| options.accounts = AccountPolicy::REQUIRED).await;
    let name = world.name();
    let image = world.push(&bell()).await;
    let before = world.registry.requests().len();
    world.apply(&name, world.spec(PLAIN, &image)).await;
    let refused = world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(ready_message(&refused).contains("--require-service-account"), "{}", ready_message(&refused));
    assert_eq!(
        condition(&refused, "Progressing").expect("Progressing").status,
        "False",
        "the controller does not retry"
    );
    assert_eq!(world.registry.requests().len(), before, "nothing was fetched");
    // Without installed objects there is no finalizer.
    assert_eq!(refused.metadata.finalizers, None);

    // With an account the installation continues.
    let deployer = account(&world, "deployer").await;
    grant(&world, &deployer, &name, everything()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&name).await;

    // The account cannot be removed again.
    let patch = Patch::Merge(json!({"spec": {"serviceAccount": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &patch).await.expect("the object exists");
    world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(is_installed(&world).await, "the current release keeps running");
    // With its permissions the objects are deleted: the controller itself may have none for them.
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&name).await;
    world.delete(&name).await;
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

#[tokio::test]
async fn deployments_older_than_the_account_requirement_can_be_deleted() {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_without_account();
    let name = world.name();
    let image = world.push(&bell()).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    restart(&mut world, |options| options.accounts = AccountPolicy::REQUIRED).await;
    request_reconcile(&world, &name).await;
    world.condition(&name, "Ready", "False", "ServiceAccountRequired").await;
    assert!(is_installed(&world).await);
    world.delete(&name).await;
    assert!(!is_installed(&world).await);
    world.finish().await;
}

#[tokio::test]
async fn the_default_account_serves_deployments_that_name_none() {
    let policy = AccountPolicy::new(true, Some("deployer".parse().expect("an account")));
    let mut world = World::new().await;
    restart(&mut world, |options| options.accounts = policy).await;
    let name = world.name();
    let image = world.push(&bell()).await;
    world.apply(&name, world.spec(PLAIN, &image)).await;
    let missing = world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    assert!(
        ready_message(&missing).contains(&format!("{}/deployer does not exist", world.namespace)),
        "{}",
        ready_message(&missing)
    );
    let deployer = account(&world, "deployer").await;
    request_reconcile(&world, &name).await;
    let missing = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    assert!(ready_message(&missing).contains("create, list, watch configmaps"), "{}", ready_message(&missing));
    grant(&world, &deployer, &name, everything()).await;
    request_reconcile(&world, &name).await;
    world.ready(&name).await;
    world.delete(&name).await;
    assert!(!is_installed(&world).await);
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

/// A Secret in the system namespace.
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
async fn only_granted_deployments_may_use_a_secret_and_a_refusal_reveals_nothing() {
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
    assert_eq!(messages.len(), 1, "all error messages are the same: {messages:#?}");
    assert!(messages.keys().all(|message| message.contains("chandler.dev/bundledeployments")), "{messages:#?}");
    assert!(!is_installed(&world).await);

    // The controller sees the grant at once.
    let mut spec = world.spec(PLAIN, &image);
    spec["source"]["image"]["pullSecret"] = json!("of-another");
    world.apply(&name, spec).await;
    world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    secret(&world, "of-another", docker, json!({"chandler.dev/bundledeployments": "team-a-*, *-bd"})).await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn with_required_grants_no_deployment_may_use_a_secret_without_one() {
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

    // A ProvisionerClass needs its own grant.
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
    classes.delete(&name, &kube::api::DeleteParams::default()).await.expect("the object exists");
    world.finish().await;
}

#[tokio::test]
async fn only_granted_deployments_may_use_content_in_a_config_map() {
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
    assert_eq!(foreign, absent.replace(&name, &second), "the error does not reveal whether the ConfigMap exists");
    world.delete(&second).await;
    apply(&world, &[map(json!({"chandler.dev/bundledeployments": "other, *-bd"}))]).await;
    world.ready(&name).await;
    world.finish().await;
}

/// A BundleDeployment in a bundle. It is suspended: the test checks only whether it may be written.
fn inner(world: &World, more: &Value) -> Value {
    let mut spec = world.spec(PLAIN, "registry.example.com/bundle:v1");
    spec["suspend"] = json!(true);
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
           "metadata": {"name": format!("{}-inner", world.name())}, "spec": spec})
}

/// The permissions to write BundleDeployments and ProvisionerClasses.
fn may_write() -> Vec<PolicyRule> {
    rules(&json!([
        {"apiGroups": ["core.rukpak.io", "chandler.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "list", "watch", "patch", "delete"]},
    ]))
}

#[tokio::test]
async fn a_bundle_cannot_delegate_permissions_that_its_account_lacks() {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_without_account();
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
    let policy = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "PlatformPolicy",
                        "metadata": {"name": world.platform()}, "spec": {}});
    let receiver = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Receiver",
                          "metadata": {"name": format!("{name}-inner")},
                          "spec": {"type": "github", "secretRef": {"name": "pull"},
                                   "resources": [{"kind": "Catalog", "name": "*"}]}});
    let every = "every verb on every resource in the whole cluster";
    for (object, lacks, why) in [
        (inner(&world, &json!({})), every, unnamed),
        (inner(&world, &friend), r#"impersonate serviceaccounts "friend" in namespace"#, "on behalf of ServiceAccount"),
        (inner(&world, &pulls), r#"get secrets "pull" in namespace"#, "makes the controller read Secret"),
        (class, every, "renders the bundles of other users"),
        (receiver, every, "decides when the sources of other users are polled"),
        (policy, every, "limits what the PlatformOperators of other users install"),
        (record, every, "is in the namespace of the controller"),
    ] {
        let image = world.push(&bundle_with(&object)).await;
        world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
        let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
        let text = ready_message(&refused);
        assert!(text.contains(lacks) && text.contains(why), "{lacks}; {why}: {text}");
        let refused = refused.status.expect("a status").missing_permissions;
        assert!(!refused.is_empty(), "`chandler rbac` prints the missing permissions");
    }
    let nested = format!("{name}-inner");
    assert!(world.deployments().get_opt(&nested).await.expect("a response").is_none(), "nothing was written");

    // With the permission to impersonate that account, the BundleDeployment is written; with its own account it always is.
    grant(
        &world,
        &deployer,
        &format!("{name}-impersonates"),
        rules(&json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["friend"],
                       "verbs": ["impersonate"]}])),
    )
    .await;
    for account in [friend, json!({"serviceAccount": {"name": "deployer"}})] {
        let image = world.push(&bundle_with(&inner(&world, &account))).await;
        world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
        wait::until(&world.deployments(), &nested, "written", |written| {
            let named = written.and_then(|written| written.spec.service_account.as_ref());
            named.is_some_and(|named| account["serviceAccount"]["name"] == named.name.as_str())
        })
        .await;
    }
    world.delete(&name).await;
    assert!(world.deployments().get_opt(&nested).await.expect("a response").is_none());
    remove_cluster_roles(&world, &[&name, &format!("{name}-impersonates")]).await;
    world.finish().await;
}

#[tokio::test]
async fn the_controller_permissions_install_no_chandler_objects() {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_without_account();
    let name = world.name();
    let record = json!({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": "record", "namespace": world.system_namespace}});
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let crd = chandler_api::crds().into_iter().next().expect("a CRD");
    for object in [record.clone(), serde_json::to_value(crd).expect("JSON")] {
        let image = world.push(&bundle_with(&object)).await;
        // Whether or not it already exists, and even if the spec allows adopting everything.
        for protection in ["Prevent", "None"] {
            let mut spec = world.spec(PLAIN, &image);
            spec["collisionProtection"] = json!(protection);
            world.apply(&name, spec).await;
            let refused = world.condition(&name, "Ready", "False", "ReservedObjects").await;
            let named = object["metadata"]["name"].as_str().expect("a name");
            assert!(ready_message(&refused).contains(named), "{}", ready_message(&refused));
        }
    }
    assert!(secrets.get_opt("record").await.expect("a response").is_none());

    // An account with all permissions may.
    let admin = account(&world, "admin").await;
    grant(&world, &admin, &name, everything()).await;
    let image = world.push(&bundle_with(&record)).await;
    world.apply(&name, spec(&world, PLAIN, &image, "admin")).await;
    world.ready(&name).await;
    assert!(secrets.get_opt("record").await.expect("a response").is_some());
    world.delete(&name).await;
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

/// A tenant does not fill etcd with releases: a revision beyond its limit waits, and what is installed is repaired.
#[tokio::test]
async fn a_tenant_stores_no_more_releases_than_its_limit() {
    let mut world = World::new().await;
    restart(&mut world, |options| options.stored_release_bytes = 20_000).await;
    let first = world.name();
    let second = format!("{first}-second");
    let deployer = account(&world, "deployer").await;
    grant(&world, &deployer, &first, everything()).await;
    // Digests take half of their digits, compressed.
    let bundle = |name: &str| {
        let digests: String =
            (0..400).map(|number| Digest::of(format!("{name}{number}").as_bytes()).hex().to_owned()).collect();
        bundle_with(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"digests": digests}}),
        )
    };
    let image = world.push(&bundle("first")).await;
    world.apply(&first, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&first).await;

    let image = world.push(&bundle("second")).await;
    world.apply(&second, spec(&world, PLAIN, &image, "deployer")).await;
    let waiting = world.condition(&second, "Ready", "False", "RecordUnavailable").await;
    for part in ["--release-storage-limit", &world.namespace] {
        assert!(ready_message(&waiting).contains(part), "{}", ready_message(&waiting));
    }
    assert!(world.config_maps().get_opt("second").await.expect("a response").is_none(), "nothing of it is written");
    // An upgrade that is too much does not keep the installed release from being repaired.
    world.apply(&first, spec(&world, PLAIN, &image, "deployer")).await;
    world.condition(&first, "Progressing", "True", "RecordUnavailable").await;
    world.config_maps().delete("first", &DeleteParams::default()).await.expect("it exists");
    wait::until(&world.config_maps(), "first", "repaired", |found| found.is_some()).await;

    world.delete(&first).await;
    request_reconcile(&world, &second).await;
    world.ready(&second).await;
    remove_cluster_roles(&world, &[&first]).await;
    world.finish().await;
}
