//! Least privilege: a BundleDeployment is installed on behalf of the ServiceAccount that it names, with only its permissions, and
//! all missing permissions are reported at once.

use chandler_api::BundleDeployment;
use chandler_permissions::{Account, PolicyRule, roles};
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    deploy, wait,
    world::condition,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::Role,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{PLAIN, REGISTRY};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Applies objects of the run, as `kubectl apply` would.
pub(crate) async fn apply(world: &World, objects: &[Value]) {
    deploy::apply(&world.client, world.run(), objects).await;
}

/// A ServiceAccount without permissions.
pub(crate) async fn account(world: &World, name: &str) -> Account {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": name}})).expect("an account");
    let api: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    api.create(&PostParams::default(), &account).await.expect("an account");
    Account { namespace: world.namespace.clone(), name: name.to_owned() }
}

/// A spec that names a ServiceAccount in the install namespace.
pub(crate) fn spec(world: &World, class: &str, image: &str, account: &str) -> Value {
    let mut spec = world.spec(class, image);
    spec["serviceAccount"] = json!({"name": account});
    spec
}

/// The missing rules from the status, by namespace.
fn missing(deployment: &BundleDeployment) -> Vec<(Option<String>, Vec<PolicyRule>)> {
    let missing = deployment.status.clone().unwrap_or_default().missing_permissions;
    let read = |rule| serde_json::from_value(serde_json::to_value(rule).expect("JSON")).expect("a rule");
    missing.into_iter().map(|place| (place.namespace, place.rules.into_iter().map(read).collect())).collect()
}

/// Grants the permissions that the status reports as missing, with the roles that `chandler rbac` prints.
pub(crate) async fn grant_missing(world: &World, account: &Account, deployment: &BundleDeployment, name: &str) {
    apply(world, &roles(&missing(deployment).into_iter().collect(), account, name)).await;
}

/// Requests a reconcile.
pub(crate) async fn request_reconcile(world: &World, name: &str) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let request = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
    let patch = json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": request}}});
    world.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the object exists");
}

fn message<'a>(deployment: &'a BundleDeployment, type_: &str) -> &'a str {
    &condition(deployment, type_).expect("the condition is set").message
}

#[tokio::test]
async fn all_missing_permissions_are_reported_at_once_and_the_printed_roles_grant_them() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.apply(&name, spec(&world, REGISTRY, &image, "deployer")).await;

    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let message = message(&deployment, "Ready");
    assert!(message.contains(&format!("ServiceAccount {account} lacks permissions")), "{message}");
    assert!(message.contains(&format!("`chandler rbac {name}`")), "{message}");
    assert!(message.len() < 3000, "{message}");
    let lacking = missing(&deployment);
    let everywhere = lacking.iter().find(|(namespace, _)| namespace.is_none()).expect("rules for the whole cluster");
    let shown: Vec<String> = everywhere.1.iter().map(ToString::to_string).collect();
    assert!(shown.iter().any(|rule| rule.contains("customresourcedefinitions")), "{shown:?}");
    assert!(shown.iter().any(|rule| rule.contains("bundledeployments/finalizers")), "{shown:?}");
    // Nothing was written, with any account.
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());

    // The report is complete: once granted, the controller does the rest on behalf of the account.
    grant_missing(&world, &account, &deployment, &name).await;
    request_reconcile(&world, &name).await;
    let deployment = world.ready(&name).await;
    assert_eq!(missing(&deployment), []);

    // Repairs are also made on behalf of the account.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    config_maps.delete("harbour-operator-config", &DeleteParams::default()).await.expect("the object exists");
    wait::until(&config_maps, "harbour-operator-config", "created again", |map| {
        map.is_some_and(|map| map.metadata.deletion_timestamp.is_none())
    })
    .await;

    world.delete(&name).await;
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn what_a_user_adds_is_noticed_without_a_request() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&keyring()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    // The account, and then its permissions, are added by a user who requests no reconcile.
    let account = account(&world, "deployer").await;
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(&world, &account, &deployment, &name).await;
    world.ready(&name).await;
    world.delete(&name).await;
    world.finish().await;
}

/// A role stands for the product of its lists. No API server is asked for so many permissions, and nothing waits for them.
#[tokio::test]
async fn a_role_that_stands_for_a_million_permissions_delays_nobody() {
    let world = World::new().await;
    let (name, other) = (world.name(), world.name() + "-other");
    account(&world, "deployer").await;
    let texts = |letter: char| (0..100).map(|number| format!("{letter}{number}")).collect::<Vec<_>>();
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": texts('g'), "resources": texts('r'), "verbs": texts('v')}],
    });
    let image = world.push(&Bundle::empty().with("manifests/role.yaml", &role.to_string())).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let message = message(&deployment, "Ready");
    assert!(message.contains(&format!("{name} grants so many permissions")), "{message}");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n";
    world.deploy(&other, PLAIN, &world.push(&Bundle::empty().with("manifests/map.yaml", map)).await).await;
    world.ready(&other).await;
    world.delete(&other).await;
    world.delete(&name).await;
    world.finish().await;
}

/// A bundle with a Role that allows reading Secrets, and a RoleBinding for it.
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
async fn a_bundle_cannot_grant_permissions_that_its_account_lacks() {
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
    let message = message(&deployment, "Ready");
    assert!(
        message.contains(&format!("lacks permissions: get, list secrets in namespace {}", world.namespace)),
        "{message}"
    );
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(written.get_opt("keyring").await.expect("a response").is_none());

    // The verbs `escalate` and `bind` suffice instead of holding the permissions.
    let waiver = json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate", "bind"]}]);
    apply(&world, &local_role(&account, "may-escalate", &waiver)).await;
    request_reconcile(&world, &name).await;
    world.ready(&name).await;
    assert!(written.get_opt("keyring").await.expect("a response").is_some());
    world.delete(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_missing_service_account_is_named() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&keyring()).await;
    let mut spec = spec(&world, PLAIN, &image, "nobody");
    spec["serviceAccount"]["namespace"] = json!(world.system_namespace);
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    let message = message(&deployment, "Ready");
    assert!(message.contains(&format!("{}/nobody does not exist", world.system_namespace)), "{message}");
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(written.get_opt("keyring").await.expect("a response").is_none());

    // Without the account nothing can be listed on its behalf; without spec.serviceAccount the controller uses its own permissions.
    let patch = json!({"spec": {"serviceAccount": null}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the object exists");
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn deletion_uses_the_service_account_and_waits_for_it() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let image = world.push(&keyring()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(&world, &account, &deployment, &name).await;
    request_reconcile(&world, &name).await;
    world.ready(&name).await;

    // The permissions are removed first, then the account.
    let written: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    let granted = written.get(&name).await.expect("the role that was granted");
    written.delete(&name, &DeleteParams::default()).await.expect("the object exists");
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the object exists");
    let deployment = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    let message = message(&deployment, "Ready");
    assert!(message.contains("lacks permissions: list"), "{message}");
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    accounts.delete("deployer", &DeleteParams::default()).await.expect("the object exists");
    request_reconcile(&world, &name).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    assert!(written.get_opt("keyring").await.expect("a response").is_some(), "the object still exists");

    // With both restored, the deletion continues.
    let back = Role { metadata: kube::core::ObjectMeta { name: Some(name.clone()), ..Default::default() }, ..granted };
    written.create(&PostParams::default(), &back).await.expect("the role");
    self::account(&world, "deployer").await;
    request_reconcile(&world, &name).await;
    wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    assert!(written.get_opt("keyring").await.expect("a response").is_none());
    world.finish().await;
}

/// Deletes the ClusterRoles and bindings that a test created.
pub(crate) async fn remove_cluster_roles(world: &World, names: &[&str]) {
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(world.client.clone());
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(world.client.clone());
    for name in names {
        let _ = roles.delete(name, &DeleteParams::default()).await;
        let _ = bindings.delete(name, &DeleteParams::default()).await;
    }
}
