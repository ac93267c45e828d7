//! Least privilege: a BundleDeployment is installed on behalf of the ServiceAccount that it names, with its rights and no
//! others, and what the account lacks is told at once.

use chandler_api::BundleDeployment;
use chandler_permissions::{Account, PolicyRule, roles};
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::Role,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::{Value, json};

use crate::{PLAIN, REGISTRY};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Applies objects of the run, as `kubectl apply` would.
pub(crate) async fn apply(world: &World, objects: &[Value]) {
    for object in objects {
        let mut object = object.clone();
        world.mark(&mut object);
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("an object says what it is");
        let kind = GroupVersionKind::try_from(&types).expect("an API version");
        let resource = ApiResource::from_gvk(&kind);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(world.client.clone(), namespace, &resource),
            None => Api::all_with(world.client.clone(), &resource),
        };
        let name = text("/metadata/name").expect("an object has a name");
        let applied = api.patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

/// A ServiceAccount without rights.
pub(crate) async fn account(world: &World, name: &str) -> Account {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": name}})).expect("an account");
    let api: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    api.create(&PostParams::default(), &account).await.expect("an account");
    Account { namespace: world.namespace.clone(), name: name.to_owned() }
}

/// A spec that names a ServiceAccount of the namespace to install into.
pub(crate) fn spec(world: &World, class: &str, image: &str, account: &str) -> Value {
    let mut spec = world.spec(class, image);
    spec["serviceAccount"] = json!({"name": account});
    spec
}

/// The rules that the status says are missing, by namespace.
fn missing(deployment: &BundleDeployment) -> Vec<(Option<String>, Vec<PolicyRule>)> {
    let missing = deployment.status.clone().unwrap_or_default().missing_permissions;
    let read = |rule| serde_json::from_value(serde_json::to_value(rule).expect("JSON")).expect("a rule");
    missing.into_iter().map(|place| (place.namespace, place.rules.into_iter().map(read).collect())).collect()
}

/// Grants what the status says is missing, by the roles that `chandler rbac` prints.
pub(crate) async fn grant_missing(world: &World, account: &Account, deployment: &BundleDeployment, name: &str) {
    apply(world, &roles(&missing(deployment).into_iter().collect(), account, name)).await;
}

/// Has the controller look again now.
pub(crate) async fn look_again(world: &World, name: &str) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let request = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
    let patch = json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": request}}});
    world.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is there");
}

fn message<'a>(deployment: &'a BundleDeployment, type_: &str) -> &'a str {
    &condition(deployment, type_).expect("the condition is there").message
}

#[tokio::test]
async fn what_an_account_lacks_is_told_at_once_and_what_is_printed_grants_it() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.apply(&name, spec(&world, REGISTRY, &image, "deployer")).await;

    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let told = message(&deployment, "Ready");
    assert!(told.contains(&format!("ServiceAccount {account} lacks permissions")), "{told}");
    assert!(told.contains(&format!("`chandler rbac {name}`")), "{told}");
    assert!(told.len() < 3000, "{told}");
    let lacking = missing(&deployment);
    let everywhere = lacking.iter().find(|(namespace, _)| namespace.is_none()).expect("rules for the whole cluster");
    let shown: Vec<String> = everywhere.1.iter().map(ToString::to_string).collect();
    assert!(shown.iter().any(|rule| rule.contains("customresourcedefinitions")), "{shown:?}");
    assert!(shown.iter().any(|rule| rule.contains("bundledeployments/finalizers")), "{shown:?}");
    // Nothing was written, with nobody's rights.
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());

    // All of it was told: granting it is enough, and the controller does the rest on behalf of the account.
    grant_missing(&world, &account, &deployment, &name).await;
    look_again(&world, &name).await;
    let deployment = world.ready(&name).await;
    assert_eq!(missing(&deployment), []);

    // What somebody changes is put right on behalf of the account, too.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    config_maps.delete("harbour-operator-config", &DeleteParams::default()).await.expect("it is there");
    wait::until(&config_maps, "harbour-operator-config", "back", |map| {
        map.is_some_and(|map| map.metadata.deletion_timestamp.is_none())
    })
    .await;

    world.delete(&name).await;
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());
    world.finish().await;
}

/// A bundle with a Role that lets its holder read Secrets, and a binding of it.
fn keyring() -> Bundle {
    Bundle::empty().with(
        "manifests/keyring.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: keyring}
rules:
- {apiGroups: [''], resources: [secrets], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: keyring}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keyring}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: keepers}]
",
    )
}

/// A Role for the account, bound to it.
fn local_role(account: &Account, name: &str, rules: &Value) -> Vec<Value> {
    let rules = serde_json::from_value(rules.clone()).expect("rules");
    roles(&[(Some(account.namespace.clone()), rules)].into(), account, name)
}

#[tokio::test]
async fn nobody_passes_on_through_a_bundle_what_they_do_not_hold() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let finalizers =
        json!([{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments/finalizers"], "verbs": ["update"]}]);
    let rules = serde_json::from_value(finalizers).expect("rules");
    apply(&world, &roles(&[(None, rules)].into(), &account, &name)).await;
    let all = json!([{"apiGroups": [RBAC], "resources": ["roles", "rolebindings"],
                      "verbs": ["create", "get", "list", "watch", "patch", "delete"]}]);
    apply(&world, &local_role(&account, "may-write-roles", &all)).await;
    let image = world.push(&keyring()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;

    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let told = message(&deployment, "Ready");
    assert!(told.contains(&format!("lacks get, list secrets in namespace {}", world.namespace)), "{told}");
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(written.get_opt("keyring").await.expect("an answer").is_none());

    // Being allowed to pass on anything does as well as holding it.
    let waiver = json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate", "bind"]}]);
    apply(&world, &local_role(&account, "may-escalate", &waiver)).await;
    look_again(&world, &name).await;
    world.ready(&name).await;
    assert!(written.get_opt("keyring").await.expect("an answer").is_some());
    world.delete(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn an_account_that_does_not_exist_is_named() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&keyring()).await;
    let mut spec = spec(&world, PLAIN, &image, "nobody");
    spec["serviceAccount"]["namespace"] = json!(world.system_namespace);
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    let told = message(&deployment, "Ready");
    assert!(told.contains(&format!("{}/nobody does not exist", world.system_namespace)), "{told}");
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(written.get_opt("keyring").await.expect("an answer").is_none());

    // Without the account nothing can be looked for on its behalf; without serviceAccount the controller does it itself.
    let patch = json!({"spec": {"serviceAccount": null}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is there");
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn deletion_is_on_behalf_of_the_account_and_waits_for_it() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let image = world.push(&keyring()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(&world, &account, &deployment, &name).await;
    look_again(&world, &name).await;
    world.ready(&name).await;

    // Its rights are gone, and then the account is.
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    let granted = written.get(&name).await.expect("the role that was granted");
    written.delete(&name, &DeleteParams::default()).await.expect("it is there");
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("it is there");
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let told = message(&deployment, "Ready");
    assert!(told.contains("lacks list"), "{told}");
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    accounts.delete("deployer", &DeleteParams::default()).await.expect("it is there");
    look_again(&world, &name).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    assert!(written.get_opt("keyring").await.expect("an answer").is_some(), "nothing else deletes it");

    // With both back, the deletion goes on.
    let back = Role { metadata: kube::core::ObjectMeta { name: Some(name.clone()), ..Default::default() }, ..granted };
    written.create(&PostParams::default(), &back).await.expect("the role");
    self::account(&world, "deployer").await;
    look_again(&world, &name).await;
    wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    assert!(written.get_opt("keyring").await.expect("an answer").is_none());
    world.finish().await;
}

/// Removes what a test granted in the whole cluster.
pub(crate) async fn remove_cluster_roles(world: &World, names: &[&str]) {
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(world.client.clone());
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(world.client.clone());
    for name in names {
        let _ = roles.delete(name, &DeleteParams::default()).await;
        let _ = bindings.delete(name, &DeleteParams::default()).await;
    }
}
