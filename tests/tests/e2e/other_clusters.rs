//! A bundle is installed into another cluster with the credentials of a kubeconfig, and with nothing else.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{BundleDeployment, MissingPermissions, Outcome};
use chandler_devcluster::{DevCluster, Options as DevOptions};
use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
    world::condition,
};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    jiff::Timestamp,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::Kubeconfig,
};
use serde_json::{Value, json};

use crate::{
    PLAIN, REGISTRY,
    permissions::{account, apply},
    resolutions,
    shop::{Shop, catalog},
};

/// Another cluster, with the install namespace of a world.
struct Other {
    cluster: DevCluster,
    namespace: String,
}

impl Other {
    async fn start(world: &World) -> Self {
        Self::with(world, DevOptions::default()).await
    }

    async fn with(world: &World, options: DevOptions) -> Self {
        let cluster = DevCluster::start(options).await.expect("another cluster");
        let other = Self { cluster, namespace: world.namespace.clone() };
        let namespaces: Api<Namespace> = Api::all(other.cluster.client());
        if namespaces.get_opt(&other.namespace).await.expect("an answer").is_none() {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(other.namespace.clone());
            namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
        }
        other
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    async fn value(&self, name: &str) -> Option<String> {
        let found = self.config_maps().get_opt(name).await.expect("an answer")?;
        found.data?.remove("from")
    }

    /// A kubeconfig for a ServiceAccount that may do these things, and everything if nothing is named.
    async fn kubeconfig_of(&self, name: &str, rules: Value) -> String {
        let client = self.cluster.client();
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &self.namespace);
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(name.to_owned());
        accounts.create(&PostParams::default(), &account).await.expect("an account");
        let role: ClusterRole =
            serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).expect("a role");
        Api::all(client.clone()).create(&PostParams::default(), &role).await.expect("a role");
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        }))
        .expect("a binding");
        Api::all(client).create(&PostParams::default(), &binding).await.expect("a binding");
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let request = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let token = request.expect("a token").status.expect("a status").token;
        kubeconfig(&self.cluster.kubeconfig(), &json!({ "token": token }))
    }
}

impl Other {
    /// Grants a ServiceAccount the permissions that a status lists.
    async fn grant(&self, name: &str, missing: &[MissingPermissions]) {
        assert!(!missing.is_empty());
        for MissingPermissions { namespace, rules } in missing {
            let namespace = namespace.as_deref().expect("a namespace: the bundle has no other objects");
            let roles: Api<Role> = Api::namespaced(self.cluster.client(), namespace);
            let bindings: Api<RoleBinding> = Api::namespaced(self.cluster.client(), namespace);
            let role = serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).expect("a role");
            roles.create(&PostParams::default(), &role).await.expect("a role");
            let binding = serde_json::from_value(json!({
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
            }));
            bindings.create(&PostParams::default(), &binding.expect("a binding")).await.expect("a binding");
        }
    }
}

/// The kubeconfig with the server of another one, and this user.
fn kubeconfig(of: &str, user: &Value) -> String {
    let of = Kubeconfig::from_yaml(of).expect("a kubeconfig");
    let cluster = serde_json::to_value(of.clusters.first().and_then(|named| named.cluster.clone())).expect("JSON");
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

/// A kubeconfig whose server does not answer.
pub(crate) fn away() -> String {
    json!({
        "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}])
}

fn bundle(from: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/map.yaml", &config_map("one", from))
        .with("manifests/two.yaml", &config_map("two", from))
}

pub(crate) async fn write_secret(world: &World, name: &str, key: &str, kubeconfig: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": world.namespace}, "data": {key: STANDARD.encode(kubeconfig)},
    });
    apply(world, &[secret]).await;
}

fn spec(world: &World, image: &str, secret: &str) -> Value {
    let mut spec = world.spec(PLAIN, image);
    spec["kubeConfig"] = json!({"secretRef": {"name": secret}});
    spec
}

/// Requests a reconcile now.
async fn request(world: &World, name: &str) {
    let annotations = json!({"reconcile.chandler.dev/requestedAt": Timestamp::now().to_string()});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    world.deployments().patch(name, &PatchParams::default(), &patch).await.expect("the BundleDeployment exists");
}

fn message(deployment: &BundleDeployment) -> &str {
    &condition(deployment, "Ready").expect("the condition is set").message
}

async fn becomes(other: &Other, name: &str, value: Option<&str>) {
    wait::until(&other.config_maps(), name, &format!("{value:?}"), |found| {
        found.and_then(|found| found.data.as_ref()?.get("from")).map(String::as_str) == value
    })
    .await;
}

async fn waits(world: &World, name: &str, reason: &str) -> String {
    message(&world.condition(name, "Ready", "False", reason).await).to_owned()
}

#[tokio::test]
async fn a_bundle_is_installed_repaired_upgraded_rolled_back_and_deleted_in_another_cluster() {
    let world = World::new().await;
    let other = Other::start(&world).await;
    let name = world.name();
    write_secret(&world, "there", "value", &other.cluster.kubeconfig()).await;
    let first = world.push(&bundle("first")).await;
    world.apply(&name, spec(&world, &first, "there")).await;
    world.ready(&name).await;
    assert_eq!(other.value("one").await.as_deref(), Some("first"));
    let written = other.config_maps().get("one").await.expect("the object");
    assert!(written.metadata.owner_references.is_none(), "the garbage collector there would delete it");
    assert!(world.config_maps().get_opt("one").await.expect("an answer").is_none(), "nothing is written here");

    // Drift is found without a watch.
    other.config_maps().delete("one", &DeleteParams::default()).await.expect("the object exists");
    becomes(&other, "one", Some("first")).await;
    let changed = Patch::Merge(json!({"data": {"from": "somebody"}}));
    other.config_maps().patch("two", &PatchParams::default(), &changed).await.expect("the object exists");
    becomes(&other, "two", Some("first")).await;

    let second = Bundle::empty().with("manifests/map.yaml", &config_map("one", "second"));
    let second = world.push(&second).await;
    world.apply(&name, spec(&world, &second, "there")).await;
    becomes(&other, "one", Some("second")).await;
    becomes(&other, "two", None).await;

    let mut back = spec(&world, &second, "there");
    back["rollout"] = json!({"toRevision": 1});
    world.apply(&name, back).await;
    becomes(&other, "one", Some("first")).await;
    becomes(&other, "two", Some("first")).await;
    let deployment = world.ready(&name).await;
    let history = deployment.status.expect("a status").history;
    assert!(history.iter().all(|revision| revision.outcome == Outcome::Succeeded), "{history:?}");

    world.delete(&name).await;
    for gone in ["one", "two"] {
        assert_eq!(other.value(gone).await, None, "{gone}");
    }
    world.finish().await;
}

#[tokio::test]
async fn another_cluster_that_is_away_holds_the_finalizer_and_delays_nothing_else() {
    let world = World::new().await;
    let data = tempfile::tempdir().expect("a temporary directory");
    let options = || DevOptions { data: Some(data.path().to_owned()), ..DevOptions::default() };
    let other = Other::with(&world, options()).await;
    let (name, here) = (world.name(), format!("{}-here", world.name()));
    write_secret(&world, "there", "value.yaml", &other.cluster.kubeconfig()).await;
    let image = world.push(&bundle("first")).await;
    world.apply(&name, spec(&world, &image, "there")).await;
    world.ready(&name).await;

    other.cluster.stop().await;
    request(&world, &name).await;
    let away = waits(&world, &name, "TargetUnavailable").await;
    assert!(away.contains(&format!("Secret {}/there", world.namespace)), "{away}");
    world.deploy(&here, PLAIN, &image).await;
    world.ready(&here).await;
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the BundleDeployment exists");
    let held = waits(&world, &name, "TargetUnavailable").await;
    assert!(held.contains(&format!("kubectl delete bundledeployment {name} --cascade=orphan")), "{held}");

    let other = Other::with(&world, options()).await;
    wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    assert_eq!(other.value("one").await, None);
    world.finish().await;
}

#[tokio::test]
async fn a_kubeconfig_may_change_its_credentials_and_not_its_cluster() {
    let world = World::new().await;
    let (other, third) = (Other::start(&world).await, Other::start(&world).await);
    let name = world.name();
    write_secret(&world, "there", "value", &other.cluster.kubeconfig()).await;
    let image = world.push(&bundle("first")).await;
    world.apply(&name, spec(&world, &image, "there")).await;
    world.ready(&name).await;

    write_secret(&world, "there", "value", &third.cluster.kubeconfig()).await;
    request(&world, &name).await;
    let refused = waits(&world, &name, "TargetChanged").await;
    assert!(refused.contains("leads to another cluster") && refused.contains("--cascade=orphan"), "{refused}");
    assert_eq!(third.value("one").await, None, "nothing is written there");
    assert_eq!(other.value("one").await.as_deref(), Some("first"), "nothing is deleted");

    // A user of the first cluster, by another name.
    let rotated = other.kubeconfig_of("rotated", everything()).await;
    write_secret(&world, "there", "value", &rotated).await;
    request(&world, &name).await;
    world.ready(&name).await;
    let second = world.push(&bundle("second")).await;
    world.apply(&name, spec(&world, &second, "there")).await;
    becomes(&other, "one", Some("second")).await;

    // A release does not move in silence.
    world.apply(&name, world.spec(PLAIN, &second)).await;
    let refused = waits(&world, &name, "TargetChanged").await;
    assert!(refused.contains("spec.kubeConfig was removed"), "{refused}");
    assert_eq!(other.value("one").await.as_deref(), Some("second"));
    assert!(world.config_maps().get_opt("one").await.expect("an answer").is_none());
    world.apply(&name, spec(&world, &second, "there")).await;
    world.ready(&name).await;

    // A deletion whose Secret is gone waits, and the documented way out leaves the objects.
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    secrets.delete("there", &DeleteParams::default()).await.expect("the Secret exists");
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the BundleDeployment exists");
    let held = waits(&world, &name, "InvalidKubeConfig").await;
    assert!(held.contains("does not exist") && held.contains("--cascade=orphan"), "{held}");
    world.deployments().delete(&name, &DeleteParams::orphan()).await.expect("the BundleDeployment exists");
    wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    assert_eq!(other.value("one").await.as_deref(), Some("second"));
    world.finish().await;
}

#[tokio::test]
async fn an_approval_is_for_one_cluster() {
    let world = World::new().await;
    let (staging, production) = (Other::start(&world).await, Other::start(&world).await);
    let name = world.name();
    write_secret(&world, "there", "value", &staging.cluster.kubeconfig()).await;
    let mut spec = spec(&world, &world.push(&bundle("first")).await, "there");
    spec["approval"] = json!("Manual");
    world.apply(&name, spec).await;
    let pending =
        |found: Option<&BundleDeployment>| found.and_then(|found| found.status.as_ref()?.pending_change.clone());
    let waits = async |before: &str| {
        let is_other = |found: Option<&BundleDeployment>| pending(found).is_some_and(|change| change.digest != before);
        let found = wait::until(&world.deployments(), &name, "waiting for approval", is_other).await;
        pending(found.as_ref()).expect("a change")
    };
    let first = waits("").await;
    assert!(first.findings.iter().any(|line| line.contains("its namespace kube-system has UID")), "{first:?}");

    // The approval comes after the Secret leads to another cluster.
    write_secret(&world, "there", "value", &production.cluster.kubeconfig()).await;
    request(&world, &name).await;
    let second = waits(&first.digest).await;
    assert_eq!((first.created, &first.objects), (second.created, &second.objects));
    world.approve(&name, &first.digest).await;
    let handled = json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": "after the approval"}}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(handled)).await.expect("it exists");
    wait::until(&world.deployments(), &name, "reconciled", |found| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("after the approval"))
    })
    .await;
    assert_eq!((staging.value("one").await, production.value("one").await), (None, None));

    world.approve(&name, &second.digest).await;
    becomes(&production, "one", Some("first")).await;
    assert_eq!(staging.value("one").await, None);
    world.finish().await;
}

#[tokio::test]
async fn a_kubeconfig_gives_its_author_nothing_but_the_permissions_of_its_user() {
    let world = World::new().await;
    let other = Other::start(&world).await;
    let image = world.push(&bundle("first")).await;
    let token = json!({"token": "s3cret-t0ken"});
    let server = |server: &str| {
        json!({"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": token}],
               "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
        .to_string()
    };
    let with = |user: Value| kubeconfig(&other.cluster.kubeconfig(), &user);
    for (label, text, reason, expected) in [
        (
            "exec",
            with(json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch"}})),
            "InvalidKubeConfig",
            "exec of the kubeconfig is refused",
        ),
        (
            "file",
            with(json!({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"})),
            "InvalidKubeConfig",
            "tokenFile of the kubeconfig is refused",
        ),
        (
            "as",
            with(json!({"token": "s3cret-t0ken", "as": "system:admin"})),
            "InvalidKubeConfig",
            "as of the kubeconfig is refused",
        ),
        ("http", server("http://10.0.0.1"), "InvalidKubeConfig", "must begin with https://"),
        (
            "metadata",
            server("https://169.254.169.254"),
            "InvalidKubeConfig",
            "an address of this machine, or one that no server may have",
        ),
        ("forged", with(token.clone()), "TargetUnavailable", "refuses the credentials"),
        (
            "limited",
            other.kubeconfig_of("limited", json!([])).await,
            "TargetUnavailable",
            "get the namespace kube-system",
        ),
    ] {
        let name = world.name();
        write_secret(&world, label, "value", &text).await;
        world.apply(&name, spec(&world, &image, label)).await;
        let refused = waits(&world, &name, reason).await;
        assert!(refused.contains(expected) && !refused.contains("s3cret"), "{label}: {refused}");
        world.delete(&name).await;
    }

    // Its own cluster by another way: the account of the BundleDeployment counts there, and no kubeconfig.
    if let Some(own) = world.kubeconfig() {
        let name = world.name();
        write_secret(&world, "own", "value", &own).await;
        world.apply(&name, spec(&world, &image, "own")).await;
        let refused = waits(&world, &name, "InvalidKubeConfig").await;
        assert!(refused.contains("leads to the cluster of the BundleDeployment itself"), "{refused}");
        world.delete(&name).await;
    }

    // A user with few permissions: all that it lacks is in the status before anything is written, and granting that suffices.
    let few = json!([
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]);
    let name = world.name();
    write_secret(&world, "few", "value", &other.kubeconfig_of("few", few).await).await;
    world.apply(&name, spec(&world, &image, "few")).await;
    let refused = world.condition(&name, "Ready", "False", "Forbidden").await;
    let text = message(&refused);
    assert!(text.contains("the user of the kubeconfig lacks permissions: create configmaps"), "{text}");
    assert!(text.contains(r#"delete, patch configmaps "one", "two""#), "{text}");
    assert_eq!(other.value("one").await, None);
    other.grant("few", &refused.status.expect("a status").missing_permissions).await;
    world.ready(&name).await;
    assert_eq!(other.value("one").await.as_deref(), Some("first"));
    world.delete(&name).await;
    assert_eq!(other.value("one").await, None);

    // Objects of other owners there are not taken over.
    let mut theirs = ConfigMap::default();
    theirs.metadata.name = Some("one".to_owned());
    other.config_maps().create(&PostParams::default(), &theirs).await.expect("an object");
    write_secret(&world, "there", "value", &other.cluster.kubeconfig()).await;
    world.apply(&name, spec(&world, &image, "there")).await;
    let refused = waits(&world, &name, "ObjectCollision").await;
    assert!(refused.contains("ConfigMap"), "{refused}");
    world.delete(&name).await;
    assert!(other.config_maps().get_opt("one").await.expect("an answer").is_some());

    // A bundle cannot make a Chandler of the other cluster act.
    let nested = Bundle::empty().with(
        "manifests/nested.yaml",
        "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {name: nested}\nspec: {installNamespace: n, source: {type: image, image: {ref: a.invalid/b}}}\n",
    );
    for crd in chandler_api::crds() {
        Api::all(other.cluster.client()).create(&PostParams::default(), &crd).await.expect("a CRD");
    }
    let nested = world.push(&nested).await;
    world.apply(&name, spec(&world, &nested, "there")).await;
    let refused = waits(&world, &name, "ReservedObjects").await;
    assert!(refused.contains("BundleDeployment"), "{refused}");
    world.finish().await;
}

#[tokio::test]
async fn the_kubeconfig_is_read_with_the_permissions_of_the_account() {
    let world = World::new().await;
    let other = Other::start(&world).await;
    let name = world.name();
    write_secret(&world, "there", "value", &other.cluster.kubeconfig()).await;
    account(&world, "deployer").await;
    let image = world.push(&bundle("first")).await;
    let mut named = spec(&world, &image, "there");
    named["serviceAccount"] = json!({"name": "deployer"});
    world.apply(&name, named.clone()).await;
    let refused = waits(&world, &name, "PermissionsMissing").await;
    assert!(refused.contains(&format!("may not read Secret {}/there", world.namespace)), "{refused}");
    assert_eq!(other.value("one").await, None);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reads", "namespace": world.namespace},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["there"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reads", "namespace": world.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": world.namespace}]});
    apply(&world, &[role, binding]).await;
    // The account has no permission to write ConfigMaps anywhere: the user of the kubeconfig writes them.
    world.ready(&name).await;
    assert_eq!(other.value("one").await.as_deref(), Some("first"));
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_in_another_cluster_satisfies_and_blocks_nothing_in_this_one() {
    let world = World::new().await;
    let other = Other::start(&world).await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("base", "2.0.0", &[]).await;
    catalog(&shop).await;
    write_secret(&world, "there", "value", &other.cluster.kubeconfig()).await;
    let theirs = format!("{}-theirs", world.name());
    let here = world.spec(REGISTRY, &shop.packages["base"][0].image);
    let mut there = here.clone();
    there["kubeConfig"] = json!({"secretRef": {"name": "there"}});
    world.apply(&theirs, there).await;
    world.ready(&theirs).await;

    // In this cluster, version 1.0.0 would be the only one.
    let wish = format!("{}-wish", world.run());
    resolutions::create(&shop, &wish, &[("app", ""), ("base", ">=2")]).await;
    resolutions::installed(&shop, &wish, &[("app", "1.0.0"), ("base", "2.0.0")]).await;

    // The record says where it is installed, whatever its author writes.
    world.apply(&theirs, here).await;
    waits(&world, &theirs, "TargetChanged").await;
    resolutions::patch(&world, &wish, json!({"packages": resolutions::wanted(&shop, &[("base", ">=2")])})).await;
    resolutions::installed(&shop, &wish, &[("base", "2.0.0")]).await;
    world.deployments().delete(&theirs, &DeleteParams::orphan()).await.expect("the BundleDeployment exists");
    wait::until(&world.deployments(), &theirs, "gone", |deployment| deployment.is_none()).await;
    world.finish().await;
}

#[tokio::test]
async fn other_clusters_are_off_by_default_and_limited_in_number() {
    let mut world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    world.start_controller_changed(|options| options.targets.most = 0);
    let other = Other::start(&world).await;
    for secret in ["one", "two"] {
        write_secret(&world, secret, "value", &other.cluster.kubeconfig()).await;
    }
    let image = world.push(&bundle("first")).await;
    let name = world.name();
    world.apply(&name, spec(&world, &image, "one")).await;
    let refused = waits(&world, &name, "TargetNotAllowed").await;
    assert!(refused.contains("--target-clusters"), "{refused}");
    assert_eq!(other.value("one").await, None);

    world.stop_controller().await;
    world.start_controller_changed(|options| options.targets.most = 1);
    world.ready(&name).await;
    let second = format!("{}-second", world.name());
    world.apply(&second, spec(&world, &image, "two")).await;
    let refused = waits(&world, &second, "TargetNotAllowed").await;
    assert!(refused.contains("uses 1 kubeconfigs already"), "{refused}");
    world.finish().await;
}
