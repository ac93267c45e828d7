//! The set-up of docs/tenants.md with deploy/tenant.yaml, and what a tenant of it tries: with the permissions, the admission policies and
//! the options that we ship.

use std::{fs, net::Ipv4Addr};

use chandler_api::{BundleDeployment, ConditionType, PlatformOperator, Resolution, find_condition};
use chandler_controller::{ContentOptions, Options};
use chandler_permissions::{Account, AccountPolicy, PolicyRule, roles};
use chandler_rollout::impersonating;
use chandler_tests::{
    ArchiveServer, Cluster, ContentClient, World, bundles,
    bundles::Bundle,
    content_service, wait,
    world::{condition, empty_cache},
};
use http::StatusCode;
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::{ConfigMap, Secret, ServiceAccount},
    rbac::v1::{ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};

use crate::{
    admission_policies::{policies, policies_of},
    content_service::archive,
    controller_rights::{controller, deployed},
    permissions::{apply, remove_cluster_roles},
    shop::{Shop, catalog},
};

/// A cluster with one tenant, and an account of the administrators that may do everything.
struct Tenants {
    world: World,
    /// The name of the tenant, which its namespace, its account and its group have, too.
    tenant: String,
    /// The namespace of the accounts.
    accounts: String,
    /// A user of the tenant.
    mallory: Client,
    /// Whether the admission policies apply.
    guarded: bool,
}

impl Tenants {
    /// Follows the page. Without the policies, only the controller defends the cluster.
    async fn new(guarded: bool) -> Self {
        let mut world = World::without_controller(Cluster::acquire().await).await;
        let (tenant, accounts) = (format!("{}-tenant", world.run()), format!("{}-accounts", world.run()));
        apply(&world, &deployed(&world, "rbac.yaml")).await;
        if guarded {
            apply(&world, &policies(&world)).await;
            apply(&world, &policies_of(&world, "tenants.yaml", &accounts)).await;
        }
        apply(&world, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": accounts}})]).await;
        set_up(&world, &tenant, &accounts).await;

        let platform = Account { namespace: accounts.clone(), name: "platform".to_owned() };
        let annotations = json!({"chandler.dev/resolutions": format!("{}-platform*", world.run())});
        let acts = json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["platform"],
                           "verbs": ["get", "impersonate"]}]);
        let acts: Vec<PolicyRule> = serde_json::from_value(acts).expect("rules");
        let controller_account = Account { namespace: world.system_namespace.clone(), name: "chandler".to_owned() };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                             "metadata": {"name": "platform", "namespace": accounts, "annotations": annotations}});
        apply(&world, &[account]).await;
        let everything = vec![PolicyRule::everything(), PolicyRule::every_path()];
        let name = format!("{}-platform", world.run());
        apply(&world, &roles(&[(None, everything)].into(), &platform, &name)).await;
        apply(&world, &roles(&[(Some(accounts.clone()), acts)].into(), &controller_account, &name)).await;

        let client = controller(&world).await;
        // An API server notices new roles a moment later, and the controller does not start without its permissions.
        let operators: Api<PlatformOperator> = Api::all(client.clone());
        wait::eventually("the permissions apply", || async { operators.list(&ListParams::default()).await.is_ok() })
            .await;
        world.start_controller_deployed(|options| isolated(options, &accounts)).await;
        let mut config = world.config();
        config.auth_info.impersonate = Some(format!("{tenant}-mallory"));
        config.auth_info.impersonate_groups = Some(vec![tenant.clone(), "system:authenticated".to_owned()]);
        let mallory = Client::try_from(config).expect("a client");
        Self { world, tenant, accounts, mallory, guarded }
    }

    /// The name of an object of the tenant, as its account lists it.
    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.tenant)
    }

    /// A spec that names an account.
    fn spec(&self, account: &str, image: &str) -> Value {
        json!({"installNamespace": self.tenant, "serviceAccount": {"name": account, "namespace": self.accounts},
               "source": {"type": "image", "image": {"ref": image}}})
    }

    /// A set that names an account.
    fn output(&self, account: &str) -> Value {
        json!({"type": "ResolveSet", "resolveSet": {
            "installNamespace": self.tenant, "serviceAccount": {"name": account, "namespace": self.accounts}}})
    }

    fn deployment(&self, name: &str, spec: &Value) -> Value {
        let mut object = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                                "metadata": {"name": name}, "spec": spec});
        self.world.mark(&mut object);
        object
    }

    fn resolution(&self, name: &str, package: &str, output: &Value) -> Value {
        let spec = json!({"packages": [{"name": package}], "output": output});
        let mut object = json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
                                "metadata": {"name": name}, "spec": spec});
        self.world.mark(&mut object);
        object
    }

    /// Mallory installs a bundle with one object, as the account of the tenant, and gets this answer from the controller.
    async fn smuggles(&self, name: &str, object: &Value) -> String {
        let image = self.world.push(&Bundle::empty().with("manifests/object.json", &object.to_string())).await;
        let name = self.name(name);
        create(&self.mallory, self.deployment(&name, &self.spec(&self.tenant, &image)))
            .await
            .expect("it may be written");
        let refused = self.world.condition(&name, "Ready", "False", "PermissionsMissing").await;
        condition(&refused, "Ready").expect("Ready").message.clone()
    }

    async fn finish(self) {
        let Self { world, guarded, .. } = self;
        if guarded {
            let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.client.clone());
            let all: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
            let of_tenants = policies_of(&world, "tenants.yaml", "");
            for name in
                policies(&world).iter().chain(&of_tenants).filter_map(|policy| policy["metadata"]["name"].as_str())
            {
                let _ = bindings.delete(name, &DeleteParams::default()).await;
                let _ = all.delete(name, &DeleteParams::default()).await;
            }
        }
        remove_cluster_roles(&world, &[&format!("{}-platform", world.run())]).await;
        world.finish().await;
    }
}

/// The objects of deploy/tenant.yaml for a tenant.
async fn set_up(world: &World, tenant: &str, accounts: &str) {
    let text = fs::read_to_string(bundles::workspace().join("deploy/tenant.yaml")).expect("the file exists");
    let text = text.replace("team-a", tenant).replace("chandler-accounts", accounts);
    let text = text.replace("chandler-system", &world.system_namespace);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    apply(world, &objects).await;
}

/// The options of the page.
fn isolated(options: &mut Options, accounts: &str) {
    options.accounts = AccountPolicy::REQUIRED.within([accounts.to_owned()]).expect("a policy");
    options.require_service_account_grant = true;
    options.require_pull_secret_grant = true;
}

/// A binding that makes the users of a tenant administrators.
fn everything_for(tenant: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": tenant},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
           "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": tenant}]})
}

async fn create(client: &Client, object: Value) -> kube::Result<()> {
    create_with(&PostParams::default(), client, object).await
}

async fn create_with(parameters: &PostParams, client: &Client, object: Value) -> kube::Result<()> {
    if object["kind"] == "Resolution" {
        let object: Resolution = serde_json::from_value(object).expect("a Resolution");
        return Api::all(client.clone()).create(parameters, &object).await.map(drop);
    }
    let object: BundleDeployment = serde_json::from_value(object).expect("a BundleDeployment");
    Api::all(client.clone()).create(parameters, &object).await.map(drop)
}

/// Waits until an admission policy denies this object: policies are in force one by one, a moment after they were applied.
async fn in_force(client: &Client, object: &Value) {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    wait::eventually("the policy is in force", || async {
        let answer = create_with(&dry_run, client, object.clone()).await;
        matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
    })
    .await;
}

/// The answer of an admission policy.
fn denied(result: kube::Result<()>) -> String {
    match result {
        Err(kube::Error::Api(status)) if status.code == 403 => status.message,
        other => panic!("{other:?} is not a denial"),
    }
}

/// Waits until a Resolution has this reason.
async fn resolution_says(world: &World, name: &str, reason: &str) -> String {
    let api: Api<Resolution> = Api::all(world.client.clone());
    let ready = |resolution: &Resolution| {
        let status = resolution.status.as_ref()?;
        let is_current = status.observed_generation == resolution.metadata.generation;
        find_condition(&status.conditions, ConditionType::Ready).filter(|_| is_current).cloned()
    };
    let found = wait::until(&api, name, reason, |resolution| {
        resolution.and_then(ready).is_some_and(|ready| ready.reason == reason)
    });
    ready(&found.await.expect("the Resolution")).expect("Ready").message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_installs_bundles_and_sets_as_its_account() {
    let tenants = Tenants::new(true).await;
    let shop = Shop::new(&tenants.world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = tenants.name("shop");
    let image = shop.packages["app"][0].image.clone();
    create(&tenants.mallory, tenants.deployment(&name, &tenants.spec(&tenants.tenant, &image)))
        .await
        .expect("it may be written");
    tenants.world.ready(&name).await;
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await.as_deref(), Some("1.0.0"));
    tenants.world.delete(&name).await;

    // The members of a set are named after packages, which the account does not list: they count as the Resolution.
    let wish = tenants.name("wish");
    let output = tenants.output(&tenants.tenant);
    create(&tenants.mallory, tenants.resolution(&wish, &shop.name("app"), &output)).await.expect("it may be written");
    resolution_says(&tenants.world, &wish, "Succeeded").await;
    assert_eq!(shop.installed_in(&tenants.tenant, "base").await.as_deref(), Some("1.0.0"));
    tenants.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_gets_no_permission_of_others_from_the_api() {
    let tenants = Tenants::new(true).await;
    let Tenants { world, mallory, .. } = &tenants;
    let image = world
        .push(&Bundle::empty().with("manifests/bell.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n"))
        .await;
    for (object, message) in [
        (
            tenants.resolution(&tenants.name("root"), "app", &tenants.output("platform")),
            "may not impersonate ServiceAccount",
        ),
        (
            tenants.resolution(
                &tenants.name("unnamed"),
                "app",
                &json!({"type": "ResolveSet", "resolveSet": {"installNamespace": tenants.tenant}}),
            ),
            "may not installWithControllerRights",
        ),
        (
            tenants.deployment(&tenants.name("root"), &tenants.spec("platform", &image)),
            "may not impersonate ServiceAccount",
        ),
        (
            tenants.deployment(&format!("resolveset-{}", tenants.name("x")), &tenants.spec(&tenants.tenant, &image)),
            "the controller creates the BundleDeployments resolveset-NAME",
        ),
        (
            tenants.resolution(&world.platform(), "app", &tenants.output(&tenants.tenant)),
            "the controller creates the Resolution of this name",
        ),
    ] {
        in_force(mallory, &object).await;
        let answer = denied(create(mallory, object.clone()).await);
        assert!(answer.contains(message), "{object}: {answer}");
    }

    // Webhooks are for administrators: no role of a tenant has them.
    let receiver = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Receiver", "metadata": {"name": tenants.name("hook")},
                          "spec": {"type": "quay", "secretRef": {"name": "token"},
                                   "resources": [{"kind": "BundleDeployment", "name": "*"}]}});
    let receiver: chandler_api::Receiver = serde_json::from_value(receiver).expect("a Receiver");
    let created = Api::all(mallory.clone()).create(&PostParams::default(), &receiver).await;
    assert!(denied(created.map(drop)).contains("receivers"));

    // Approval that an administrator demands of the Resolution of a tenant.
    let wish = tenants.name("wish");
    let mut object = tenants.resolution(&wish, "app", &tenants.output(&tenants.tenant));
    object["spec"]["approval"] = json!("Manual");
    create(mallory, object).await.expect("it may be written");
    let resolutions = |client: &Client| Api::<Resolution>::all(client.clone());
    let off = Patch::Merge(json!({"spec": {"approval": null}}));
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    wait::eventually("the policy of approvals is in force", || async {
        resolutions(mallory).patch(&wish, &dry_run, &off).await.is_err()
    })
    .await;
    let patched = resolutions(mallory).patch(&wish, &PatchParams::default(), &off).await;
    assert!(denied(patched.map(drop)).contains("may not approve"));
    resolutions(&world.client).patch(&wish, &PatchParams::default(), &off).await.expect("administrators may approve");
    tenants.finish().await;
}

/// RBAC lets each tenant delete all BundleDeployments and Resolutions.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_deletes_what_its_account_installed_and_nothing_of_others() {
    let tenants = Tenants::new(true).await;
    let Tenants { world, mallory, .. } = &tenants;
    let shop = Shop::new(world).with("app", "1.0.0", &[]).await.with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (platform, wish) = (format!("{}-platform", world.run()), tenants.name("wish"));
    create(&world.client, tenants.resolution(&platform, &shop.name("app"), &tenants.output("platform")))
        .await
        .expect("administrators may");
    create(mallory, tenants.resolution(&wish, &shop.name("base"), &tenants.output(&tenants.tenant)))
        .await
        .expect("it may be written");
    resolution_says(world, &platform, "Succeeded").await;
    resolution_says(world, &wish, "Succeeded").await;

    let deployments: Api<BundleDeployment> = Api::all(mallory.clone());
    let resolutions: Api<Resolution> = Api::all(mallory.clone());
    let set = format!("resolveset-{platform}");
    let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
    wait::eventually("the policies are in force", || async {
        deployments.delete(&set, &dry_run).await.is_err() && resolutions.delete(&platform, &dry_run).await.is_err()
    })
    .await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    for options in [DeleteParams::background(), DeleteParams::foreground(), orphan] {
        for name in [&set, &shop.name("app")] {
            let answer = denied(deployments.delete(name, &options).await.map(drop));
            assert!(answer.contains("deletes what it installed"), "{answer}");
        }
        let answer = denied(resolutions.delete(&platform, &options).await.map(drop));
        assert!(answer.contains("deletes its set") && answer.contains("may not impersonate"), "{answer}");
    }
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await.as_deref(), Some("1.0.0"));

    // The members are deleted by the account, and the set by the controller.
    resolutions.delete(&wish, &DeleteParams::default()).await.expect("it is the tenant's");
    wait::until(&resolutions, &wish, "gone", |resolution| resolution.is_none()).await;
    assert_eq!(shop.installed_in(&tenants.tenant, "base").await, None);
    let all: Api<Resolution> = Api::all(world.client.clone());
    all.delete(&platform, &DeleteParams::default()).await.expect("administrators may");
    wait::until(&all, &platform, "gone", |resolution| resolution.is_none()).await;
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await, None);
    tenants.finish().await;
}

/// The garbage collector writes objects that only the controller may write.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_orphaned_with_the_shipped_policies() {
    let tenants = Tenants::new(true).await;
    let Tenants { world, mallory, .. } = &tenants;
    if !world.collects_garbage() {
        eprintln!("skipped: no garbage collector runs on this API server, so nothing is orphaned");
        tenants.finish().await;
        return;
    }
    // A collector that does not watch a new kind yet removes no owner references, and would delete the set later.
    let probe = tenants.name("probe");
    let mut owned = tenants.deployment(&probe, &tenants.spec(&tenants.tenant, "registry.invalid/a:v1"));
    owned["spec"]["suspend"] = json!(true);
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "gone"}]);
    create(&world.client, owned).await.expect("administrators may");
    wait::until(&world.deployments(), &probe, "gone", |deployment| deployment.is_none()).await;

    let shop = Shop::new(world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let wish = tenants.name("wish");
    create(mallory, tenants.resolution(&wish, &shop.name("app"), &tenants.output(&tenants.tenant)))
        .await
        .expect("it may be written");
    resolution_says(world, &wish, "Succeeded").await;
    let resolutions: Api<Resolution> = Api::all(mallory.clone());
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    resolutions.delete(&wish, &orphan).await.expect("it is the tenant's");
    wait::until(&resolutions, &wish, "gone", |resolution| resolution.is_none()).await;
    let set = format!("resolveset-{wish}");
    let kept = world.deployments().get(&set).await.expect("the set stays");
    assert!(kept.owner_references().is_empty() && kept.metadata.deletion_timestamp.is_none(), "{kept:?}");
    let decisions: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let decision = decisions.get(&format!("{set}-1")).await.expect("the decision stays");
    assert!(decision.owner_references().is_empty(), "{decision:?}");
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await.as_deref(), Some("1.0.0"));
    // The BundleDeployment still belongs to the tenant.
    let deployments: Api<BundleDeployment> = Api::all(mallory.clone());
    deployments.delete(&set, &DeleteParams::default()).await.expect("it is the tenant's");
    wait::until(&deployments, &set, "gone", |deployment| deployment.is_none()).await;
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await, None);
    tenants.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_that_is_switched_off_takes_effect_with_the_shipped_permissions() {
    let tenants = Tenants::new(true).await;
    let shop = Shop::new(&tenants.world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let wish = tenants.name("wish");
    let mut object = tenants.resolution(&wish, &shop.name("app"), &tenants.output(&tenants.tenant));
    object["spec"]["approval"] = json!("Manual");
    create(&tenants.mallory, object).await.expect("it may be written");
    resolution_says(&tenants.world, &wish, "ApprovalRequired").await;
    let off = Patch::Merge(json!({"spec": {"approval": "Automatic"}}));
    let resolutions: Api<Resolution> = Api::all(tenants.world.client.clone());
    resolutions.patch(&wish, &PatchParams::default(), &off).await.expect("administrators may approve");
    resolution_says(&tenants.world, &wish, "Succeeded").await;
    tenants.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_a_tenant_gets_no_permission_of_others() {
    let tenants = Tenants::new(true).await;
    let system = &tenants.world.system_namespace;
    let inner = |spec: Value| tenants.deployment(&tenants.name("inner"), &spec);
    let with_source = |source: Value| {
        let mut spec = tenants.spec(&tenants.tenant, "");
        spec["source"] = source;
        inner(spec)
    };
    let auth = json!({"secret": {"name": "credentials"}});
    let operator = json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
                          "metadata": {"name": tenants.name("inner")}, "spec": {"package": {"name": "app"}}});
    let offered = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
                         "metadata": {"name": tenants.name("inner")},
                         "spec": {"source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}});
    let reads = format!("makes the controller read Secret {system}/credentials");
    let acts = format!("is installed on behalf of ServiceAccount {}/platform", tenants.accounts);
    for (name, object, expected) in [
        ("deployment", inner(tenants.spec("platform", "registry.invalid/a:v1")), acts.as_str()),
        ("resolution", tenants.resolution(&tenants.name("inner"), "app", &tenants.output("platform")), &acts),
        (
            "image",
            with_source(
                json!({"type": "image", "image": {"ref": "registry.invalid/a:v1", "pullSecret": "credentials"}}),
            ),
            &reads,
        ),
        (
            "http",
            with_source(json!({"type": "http", "http": {"url": "https://mallory.invalid/a.tgz", "auth": auth}})),
            &reads,
        ),
        (
            "git",
            with_source(
                json!({"type": "git", "git": {"repository": "https://mallory.invalid/a", "ref": {"branch": "main"}, "auth": auth}}),
            ),
            &reads,
        ),
        ("catalog", offered, "offers packages to the Resolutions of other users"),
        ("operator", operator, "platformoperators"),
    ] {
        let message = tenants.smuggles(name, &object).await;
        assert!(message.contains(expected), "{name}: {message}");
    }
    tenants.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_uploads_for_its_own_bundledeployments_only() {
    let mut tenants = Tenants::new(true).await;
    let (tenant, other) = (tenants.tenant.clone(), format!("{}-other", tenants.world.run()));
    set_up(&tenants.world, &other, &tenants.accounts).await;
    apply(&tenants.world, &deployed(&tenants.world, "content.yaml")).await;
    let (name, unnamed) = (format!("{other}-shop"), format!("{other}-unnamed"));
    let source = json!({"type": "upload", "upload": {}});
    let account = json!({"name": other, "namespace": tenants.accounts});
    let spec = json!({"installNamespace": other, "serviceAccount": account, "source": source});
    let administrator = &tenants.world.client;
    create(administrator, tenants.deployment(&name, &spec)).await.expect("administrators may");
    let spec = json!({"installNamespace": other, "source": source});
    create(administrator, tenants.deployment(&unnamed, &spec)).await.expect("administrators may");

    let map = |tone: &str| {
        archive(&format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bell}}\ndata: {{tone: {tone}}}\n"))
    };
    let bells: Api<ConfigMap> = Api::namespaced(tenants.world.client.clone(), &other);
    let mut before = String::new();
    // The second time, with the cache lost: what was installed before is missing, and not awaited.
    for missing in ["UploadPending", "UnpackFailed"] {
        tenants.world.stop_controller().await;
        let cache = empty_cache();
        let change = |options: &mut Options| {
            isolated(options, &tenants.accounts);
            options.cache_directory = cache.path().to_owned();
            options.content = Some(ContentOptions::at((Ipv4Addr::LOCALHOST, 0).into()));
        };
        tenants.world.start_controller_deployed(change).await;
        let world = &tenants.world;
        world.condition(&name, "Unpacked", "False", missing).await;
        let is_new = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["url"] != before);
        let announced = content_service::announced(world, "announced by this controller", is_new).await;
        before = announced.data.as_ref().expect("data")["url"].clone();
        let client = async |account: &str| {
            ContentClient::new(&announced, Some(content_service::token(world, &tenants.accounts, account).await))
        };
        let (mallory, owner) = (client(&tenant).await, client(&other).await);
        for (name, missing) in [
            (&name, format!("may not impersonate ServiceAccount {}/{other}", tenants.accounts)),
            (&unnamed, "may not installWithControllerRights bundledeployments.core.rukpak.io".to_owned()),
        ] {
            let refused = mallory.put(&format!("/uploads/{name}.tgz"), &map("foreign")).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
            assert!(refused.text().contains(&missing), "{}", refused.text());
        }
        let taken = owner.put(&format!("/uploads/{name}.tgz"), &map("own")).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text());
        world.condition(&name, "Unpacked", "True", "UnpackSuccessful").await;
        world.ready(&name).await;
        let bell = bells.get("bell").await.expect("it is installed");
        assert_eq!(bell.data.expect("data")["tone"], "own");
    }
    // The end of a test removes the account from the specs, and this controller has no permission to delete ConfigMaps.
    tenants.world.delete(&name).await;
    tenants.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_policies_accounts_install_only_what_they_list() {
    let tenants = Tenants::new(false).await;
    let world = &tenants.world;
    let shop = Shop::new(world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let image = shop.packages["app"][0].image.clone();
    // Under a name that the account does not list.
    let name = tenants.name("root");
    create(&tenants.mallory, tenants.deployment(&name, &tenants.spec("platform", &image)))
        .await
        .expect("no policy denies it");
    let refused = world.condition(&name, "Ready", "False", "ServiceAccountNotGranted").await;
    let message = condition(&refused, "Ready").expect("Ready").message.clone();
    assert!(message.contains(&format!("chandler.dev/bundledeployments: {name}")), "{message}");
    create(&tenants.mallory, tenants.resolution(&name, &shop.name("app"), &tenants.output("platform")))
        .await
        .expect("no policy denies it");
    let message = resolution_says(world, &name, "PreflightFailed").await;
    assert!(message.contains(&format!("chandler.dev/resolutions: {name}")), "{message}");

    // With the owner reference, the label and the name of a set and a member, which prove nothing.
    let platform = format!("{}-platform-two", world.run());
    let resolutions: Api<Resolution> = Api::all(world.client.clone());
    create(&world.client, tenants.resolution(&platform, "missing", &tenants.output("platform")))
        .await
        .expect("administrators may");
    let uid = resolutions.get(&platform).await.expect("it exists").uid().expect("a UID");
    let owner = json!([{"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "name": platform, "uid": uid, "controller": true}]);
    for (name, label) in
        [(format!("resolveset-{platform}"), None), (tenants.name("member"), Some(format!("resolveset-{platform}")))]
    {
        let mut forged = tenants.deployment(&name, &tenants.spec("platform", &image));
        forged["metadata"]["ownerReferences"] = owner.clone();
        if let Some(label) = label {
            forged["metadata"]["labels"]["core.rukpak.io/owner-name"] = json!(label);
        }
        create(&tenants.mallory, forged).await.expect("no policy denies it");
        world.condition(&name, "Ready", "False", "ServiceAccountNotGranted").await;
    }
    assert_eq!(shop.installed_in(&tenants.tenant, "app").await, None);

    // With a change of a real member, which the set would revert a moment later.
    let platform = format!("{}-platform", world.run());
    create(&world.client, tenants.resolution(&platform, &shop.name("app"), &tenants.output("platform")))
        .await
        .expect("administrators may");
    resolution_says(world, &platform, "Succeeded").await;
    let pause = Patch::Merge(json!({"spec": {"suspend": true}}));
    world
        .deployments()
        .patch(&format!("resolveset-{platform}"), &PatchParams::default(), &pause)
        .await
        .expect("it exists");
    world.condition(&format!("resolveset-{platform}"), "Progressing", "False", "Suspended").await;
    let root = shop.bundle("app", "1.0.0").with("manifests/root.json", &everything_for(&tenants.tenant).to_string());
    let change = Patch::Merge(json!({"spec": {"source": {"image": {"ref": world.push(&root).await}}}}));
    let member = shop.name("app");
    let deployments: Api<BundleDeployment> = Api::all(tenants.mallory.clone());
    deployments.patch(&member, &PatchParams::default(), &change).await.expect("no policy denies it");
    world.condition(&member, "Ready", "False", "ServiceAccountNotGranted").await;
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    assert!(bindings.get_opt(&tenants.tenant).await.expect("an answer").is_none());
    let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
    world
        .deployments()
        .patch(&format!("resolveset-{platform}"), &PatchParams::default(), &resume)
        .await
        .expect("it exists");
    world.ready(&member).await;
    resolutions.delete(&platform, &DeleteParams::default()).await.expect("it exists");
    wait::until(&resolutions, &platform, "gone", |resolution| resolution.is_none()).await;
    tenants.finish().await;
}

/// Grants apply by name, and names are first come, first served. A tenant that takes a name of another one gets no credentials for it,
/// since no account that the tenant may use lists that name.
#[tokio::test(flavor = "multi_thread")]
async fn a_taken_name_gets_no_credentials() {
    let tenants = Tenants::new(true).await;
    let Tenants { world, mallory, .. } = &tenants;
    let server = ArchiveServer::start().await;
    server.require("user", "s3cret");
    let other = format!("{}-other", world.run());
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "of-other", "annotations": {"chandler.dev/bundledeployments": format!("{other}-*")}},
        "type": "Opaque", "stringData": {"username": "user", "password": "s3cret"},
    }))
    .expect("a Secret");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    secrets.create(&PostParams::default(), &secret).await.expect("a Secret");
    let auth = json!({"secret": {"name": "of-other"}});
    let git = json!({"repository": server.url(), "ref": {"branch": "main"}, "auth": auth});
    for (name, source) in [
        ("archive", json!({"type": "http", "http": {"url": server.url(), "auth": auth}})),
        ("repository", json!({"type": "git", "git": git})),
    ] {
        let mut spec = tenants.spec(&tenants.tenant, "");
        spec["source"] = source;
        let name = format!("{other}-{name}");
        create(mallory, tenants.deployment(&name, &spec)).await.expect("it may be written");
        let refused = world.condition(&name, "Ready", "False", "ServiceAccountNotGranted").await;
        let message = &condition(&refused, "Ready").expect("Ready").message;
        assert!(message.contains(&tenants.tenant) && !message.contains("s3cret"), "{message}");
        // Nothing was asked, neither with nor without the credentials.
        let answers = server.answers();
        assert_eq!((answers.sent, answers.denied), (0, 0), "{name}");
    }
    tenants.finish().await;
}

/// The account of a tenant is an administrator of the tenant's namespace, so that it can make an account there that grants its use to every
/// name, and that the controller may use.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_a_tenant_makes_gets_no_credentials() {
    for guarded in [true, false] {
        let tenants = Tenants::new(guarded).await;
        let world = &tenants.world;
        let server = ArchiveServer::start().await;
        server.require("user", "s3cret");
        let other = format!("{}-other", world.run());
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": "of-other", "annotations": {"chandler.dev/bundledeployments": format!("{other}-*")}},
            "type": "Opaque", "stringData": {"username": "user", "password": "s3cret"},
        }))
        .expect("a Secret");
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
        secrets.create(&PostParams::default(), &secret).await.expect("a Secret");

        let own = Account { namespace: tenants.accounts.clone(), name: tenants.tenant.clone() };
        let mallory = impersonating(&world.client, &own).expect("a client");
        let accounts: Api<ServiceAccount> = Api::namespaced(mallory.clone(), &tenants.tenant);
        let mine: ServiceAccount = serde_json::from_value(json!({
            "metadata": {"name": "mine", "annotations": {"chandler.dev/bundledeployments": "*"}},
        }))
        .expect("a ServiceAccount");
        accounts.create(&PostParams::default(), &mine).await.expect("an administrator of the namespace may");
        let acts: Role = serde_json::from_value(json!({
            "metadata": {"name": "mine"},
            "rules": [{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["mine"],
                       "verbs": ["get", "impersonate"]}],
        }))
        .expect("a Role");
        let roles: Api<Role> = Api::namespaced(mallory.clone(), &tenants.tenant);
        roles.create(&PostParams::default(), &acts).await.expect("an administrator of the namespace may");
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": {"name": "mine"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mine"},
            "subjects": [{"kind": "ServiceAccount", "name": "chandler", "namespace": world.system_namespace}],
        }))
        .expect("a RoleBinding");
        let bindings: Api<RoleBinding> = Api::namespaced(mallory.clone(), &tenants.tenant);
        bindings.create(&PostParams::default(), &binding).await.expect("an administrator of the namespace may");

        let name = format!("{other}-archive");
        let auth = json!({"secret": {"name": "of-other"}});
        let mut spec = tenants.spec("mine", "");
        spec["serviceAccount"]["namespace"] = json!(tenants.tenant);
        spec["source"] = json!({"type": "http", "http": {"url": server.url(), "auth": auth}});
        let object = tenants.deployment(&name, &spec);
        let output = json!({"type": "ResolveSet", "resolveSet": {
            "installNamespace": tenants.tenant, "serviceAccount": {"name": "mine"}}});
        let set = tenants.resolution(&format!("{other}-wish"), "app", &output);
        let mine = format!("ServiceAccount {}/mine", tenants.tenant);
        if guarded {
            for object in [object, set] {
                in_force(&mallory, &object).await;
                let answer = denied(create(&mallory, object).await);
                assert!(
                    answer.contains(&mine) && answer.contains("on behalf of accounts of the namespace"),
                    "{answer}"
                );
            }
        } else {
            create(&mallory, object).await.expect("no policy denies it");
            let refused = world.condition(&name, "Ready", "False", "ServiceAccountNotGranted").await;
            let message = &condition(&refused, "Ready").expect("Ready").message;
            assert!(message.contains(&mine) && message.contains("--accounts-in"), "{message}");
            // Deletion stays possible.
            world.delete(&name).await;
        }
        let answers = server.answers();
        assert_eq!((answers.sent, answers.denied), (0, 0), "nothing was asked");
        tenants.finish().await;
    }
}

/// Any user who may write BundleDeployments may name any ConfigMap in a source. That keeps nothing of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_who_names_the_decision_of_another_delays_nothing() {
    let tenants = Tenants::new(true).await;
    let Tenants { world, mallory, .. } = &tenants;
    let shop = Shop::new(world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let resolutions: Api<Resolution> = Api::all(world.client.clone());
    let wish = format!("{}-platform", world.run());
    // The number of a decision can be predicted, and a source may name what does not exist yet.
    let maps: Vec<Value> =
        (0..4).map(|number| json!({"configMap": {"name": format!("resolveset-{wish}-{number}")}})).collect();
    let mut spec = tenants.spec(&tenants.tenant, "");
    spec["suspend"] = json!(true);
    spec["source"] = json!({"type": "configMaps", "configMaps": maps});
    let lock = tenants.name("lock");
    create(mallory, tenants.deployment(&lock, &spec)).await.expect("it may be written");

    create(&world.client, tenants.resolution(&wish, &shop.name("app"), &tenants.output("platform")))
        .await
        .expect("administrators may");
    resolution_says(world, &wish, "Succeeded").await;
    let decisions: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let named = async || {
        let all = decisions.list(&ListParams::default()).await.expect("a list").items;
        all.iter().filter(|map| map.name_any().starts_with(&format!("resolveset-{wish}-"))).count()
    };
    assert!(named().await > 0, "the set has a decision");
    resolutions.delete(&wish, &DeleteParams::default()).await.expect("it exists");
    wait::until(&resolutions, &wish, "gone", |resolution| resolution.is_none()).await;
    wait::eventually("the decisions are deleted", || async { named().await == 0 }).await;
    world.delete(&lock).await;
    tenants.finish().await;
}
