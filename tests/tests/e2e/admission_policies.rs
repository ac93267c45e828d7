//! `deploy/admission-policies.yaml`: rules that RBAC cannot express. Each is tried by a user who may and by one who may not.

mod decisions;
mod deletions;
mod metadata;
mod restores;

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use chandler_permissions::{Account, roles};
use chandler_rollout::impersonating;
use chandler_tests::{Cluster, World, bundles, wait};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    permissions::{account, apply, remove_cluster_roles},
};

/// The policies and their bindings, for the controller of this test and with names of this test.
pub(crate) fn policies(world: &World) -> Vec<Value> {
    policies_of(world, "admission-policies.yaml", "chandler-accounts")
}

/// The policies in a file of `deploy/`, for the accounts of this namespace.
pub(crate) fn policies_of(world: &World, file: &str, accounts: &str) -> Vec<Value> {
    let text = fs::read_to_string(bundles::workspace().join("deploy").join(file)).expect("the file exists");
    let text = text.replace("chandler-system", &world.system_namespace);
    let text = text.replace("'platform-operators'", &format!("'{}'", world.platform()));
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    objects.retain(|object| object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy")));
    for object in &mut objects {
        let text = object["spec"].to_string().replace("'chandler-accounts'", &format!("'{accounts}'"));
        let text = text.replace("namespace chandler-accounts", &format!("namespace {accounts}"));
        object["spec"] = serde_json::from_str(&text).expect("a spec");
    }
    for object in &mut objects {
        for pointer in ["/metadata/name", "/spec/policyName"] {
            if let Some(Value::String(name)) = object.pointer_mut(pointer) {
                *name = format!("{}-{name}", world.namespace);
            }
        }
    }
    objects
}

/// The objects of a kind in the file.
fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

#[test]
fn every_policy_has_a_binding_and_fails_closed() {
    let mut objects: Vec<Value> = Vec::new();
    for file in ["admission-policies.yaml", "tenants.yaml"] {
        let text = fs::read_to_string(bundles::workspace().join("deploy").join(file)).expect("the file exists");
        objects.extend(serde_saphyr::from_multiple::<Value>(&text).expect("YAML"));
    }
    let mut policies: Vec<&Value> = Vec::new();
    for policy in of_kind(&objects, "ValidatingAdmissionPolicy") {
        assert_eq!(policy["spec"]["failurePolicy"], "Fail", "{policy:#}");
        policies.push(&policy["metadata"]["name"]);
    }
    let mut bound: Vec<&Value> = Vec::new();
    for binding in of_kind(&objects, "ValidatingAdmissionPolicyBinding") {
        // Without a selector, the binding covers everything that the policy matches, and with an empty one all parameters. The decisions of
        // Resolutions are immutable.
        let selector = match binding["metadata"]["name"].as_str() {
            Some("chandler-config-map-sources") => {
                json!({"matchExpressions": [{"key": "resolution.chandler.dev/name", "operator": "DoesNotExist"}]})
            }
            _ => json!({}),
        };
        let mut spec = binding["spec"].as_object().expect("a spec").clone();
        if let Some(parameters) = spec.remove("paramRef") {
            assert_eq!((&parameters["selector"], &parameters["parameterNotFoundAction"]), (&selector, &json!("Allow")));
        }
        assert_eq!(spec.len(), 2, "{binding:#}");
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]), "{binding:#}");
        bound.push(&binding["spec"]["policyName"]);
    }
    assert_eq!(policies, bound);
    assert!(policies.len() >= 6, "{policies:?}");
}

/// A dry run.
#[derive(Clone, Debug)]
enum Request {
    Create(Value),
    /// A merge patch of an object or one of its subresources.
    Change(Value, &'static str, Value),
    Delete(Value),
    /// With the option that makes the garbage collector delete what the object owns.
    DeleteForeground(Value),
    DeleteAll(Value),
}

impl Request {
    async fn send(&self, client: &Client) -> kube::Result<()> {
        let (Self::Create(object)
        | Self::Change(object, ..)
        | Self::Delete(object)
        | Self::DeleteForeground(object)
        | Self::DeleteAll(object)) = self;
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("an object has apiVersion and kind");
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).expect("an API version"));
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let patches = PatchParams { dry_run: true, ..PatchParams::default() };
        let deletes = DeleteParams { dry_run: true, ..DeleteParams::default() };
        match self {
            Self::Create(object) => {
                let object = serde_json::from_value(object.clone()).expect("an object");
                api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await.map(drop)
            }
            Self::Change(_, "", patch) => api.patch(name, &patches, &Patch::Merge(patch)).await.map(drop),
            Self::Change(_, subresource, patch) => {
                api.patch_subresource(subresource, name, &patches, &Patch::Merge(patch)).await.map(drop)
            }
            Self::Delete(_) => api.delete(name, &deletes).await.map(drop),
            Self::DeleteForeground(_) => {
                let foreground = DeleteParams { dry_run: true, ..DeleteParams::foreground() };
                api.delete(name, &foreground).await.map(drop)
            }
            Self::DeleteAll(_) => api.delete_collection(&deletes, &ListParams::default()).await.map(drop),
        }
    }
}

/// The users that send requests.
struct Users {
    /// May write everything that these tests write, and impersonate `friend`.
    author: Client,
    /// May also impersonate `deployer`, install with the permissions of the controller, approve, and decide every set.
    boss: Client,
    /// May also restore backups.
    restorer: Client,
    /// The controller.
    controller: Client,
    /// The garbage collector of Kubernetes.
    collector: Client,
}

impl Users {
    async fn new(world: &World) -> Self {
        let name = world.name();
        let writes = json!([
            {"apiGroups": ["core.rukpak.io", "chandler.dev"],
             "resources": ["bundledeployments", "bundledeployments/status", "provisionerclasses/status", "platformpolicies/status", "receivers/status", "alerts/status", "changeapprovals"],
             "verbs": ["get", "create", "update", "patch", "delete", "deletecollection"]},
            {"apiGroups": ["core.deppy.io", "platform.openshift.io"], "resources": ["resolutions", "platformoperators"],
             "verbs": ["get", "create", "update", "patch", "delete", "deletecollection"]},
            {"apiGroups": [""], "resources": ["secrets", "configmaps"],
             "verbs": ["get", "list", "create", "update", "patch", "delete", "deletecollection"]},
            {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["friend"], "verbs": ["impersonate"]},
            // The name of a package, which is not enough for a PlatformOperator with another name.
            {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "resourceNames": ["app"],
             "verbs": ["installWithControllerRights"]},
            {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"],
             "resourceNames": [decisions::decidable(world)], "verbs": ["decide"]},
        ]);
        let more = json!([
            {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["deployer"], "verbs": ["impersonate"]},
            {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"],
             "verbs": ["approve", "decide", "installWithControllerRights"]},
        ]);
        let grant = async |account: &Account, name: String, rules: &Value| {
            let rules = serde_json::from_value(rules.clone()).expect("rules");
            apply(world, &roles(&[(None, rules)].into(), account, &name)).await;
        };
        let author = account(world, "author").await;
        let boss = account(world, "boss").await;
        let restorer = account(world, "restorer").await;
        let controller = Account { namespace: world.system_namespace.clone(), name: "chandler".to_owned() };
        grant(&author, format!("{name}-author"), &writes).await;
        grant(&boss, format!("{name}-boss"), &writes).await;
        grant(&boss, format!("{name}-more"), &more).await;
        let restoring = json!([{"apiGroups": ["chandler.dev"], "resources": ["records"], "verbs": ["restore"]}]);
        grant(&restorer, format!("{name}-restorer"), &writes).await;
        grant(&restorer, format!("{name}-restores"), &restoring).await;
        let collector = Account { namespace: "kube-system".to_owned(), name: "generic-garbage-collector".to_owned() };
        grant(&controller, format!("{name}-controller"), &writes).await;
        grant(&collector, format!("{name}-collector"), &writes).await;
        let client = |account: &Account| impersonating(&world.client, account).expect("a client");
        Self {
            author: client(&author),
            boss: client(&boss),
            restorer: client(&restorer),
            controller: client(&controller),
            collector: client(&collector),
        }
    }
}

fn deployment(world: &World, name: &str, more: &Value) -> Value {
    let mut spec = world.spec(PLAIN, "registry.example.com/bundle:v1");
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
           "metadata": {"name": format!("{}-{name}", world.name())}, "spec": spec})
}

fn record(world: &World, name: &str, type_: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": type_,
           "metadata": {"name": name, "namespace": world.system_namespace}})
}

fn config_map(world: &World, name: &str, immutable: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": immutable,
           "metadata": {"name": name, "namespace": world.system_namespace}})
}

/// A source of these ConfigMaps, as a change of the spec.
fn from_maps(names: &[&str]) -> Value {
    let maps: Vec<Value> = names.iter().map(|name| json!({"configMap": {"name": name}})).collect();
    json!({"source": {"type": "configMaps", "image": null, "configMaps": maps}})
}

fn approval(name: &str, deployment: &str, by: &str) -> Value {
    json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ChangeApproval", "metadata": {"name": name},
           "spec": {"bundleDeployment": deployment, "bundleDeploymentUID": "none",
                    "change": format!("sha256:{}", "0".repeat(64)), "approvedBy": by}})
}

/// A request, its user, and the policy that denies it, or `None` if it is allowed.
type Case<'a> = (&'a Client, Request, Option<&'static str>);

fn about_accounts<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-accounts");
    let (author, boss, controller) = (&users.author, &users.boss, &users.controller);
    let new = |account: &str| Request::Create(deployment(world, "new", &json!({"serviceAccount": {"name": account}})));
    let metadata = |name: &str, change: Value| {
        Request::Change(deployment(world, name, &json!({})), "", json!({"metadata": change}))
    };
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"});
    let elsewhere = deployment(
        world,
        "new",
        &json!({"serviceAccount": {"name": "friend", "namespace": "default"}, "installNamespace": "default"}),
    );
    let unnamed = || Request::Create(deployment(world, "new", &json!({})));
    let old = || deployment(world, "deployers", &json!({}));
    let spec = |spec: Value| Request::Change(old(), "", json!({"spec": spec}));
    vec![
        (author, new("deployer"), policy),
        (author, unnamed(), policy),
        (author, spec(json!({"suspend": true})), policy),
        (author, spec(json!({"serviceAccount": null})), policy),
        (author, new("friend"), None),
        (author, Request::Create(elsewhere), None),
        // Other changes of the request would be used on behalf of the earlier account, once it is named again.
        (author, spec(json!({"serviceAccount": {"name": "friend"}})), policy),
        (author, spec(json!({"serviceAccount": {"name": "friend"}, "collisionProtection": "None"})), policy),
        (boss, spec(json!({"serviceAccount": {"name": "friend"}})), None),
        // Metadata selects the controller, keeps the object, and requests polls and certificates.
        (author, metadata("deployers", json!({"labels": {"team": "a"}})), policy),
        (author, metadata("deployers", json!({"annotations": {"reconcile.chandler.dev/requestedAt": "now"}})), policy),
        (author, metadata("deployers", json!({"finalizers": ["example.com/forever"]})), policy),
        (author, metadata("deployers", json!({"ownerReferences": [owner]})), policy),
        (author, metadata("friends", json!({"labels": {"team": "a"}})), None),
        (author, metadata("friends", json!({"finalizers": ["example.com/forever"]})), None),
        (boss, metadata("deployers", json!({"annotations": {"reconcile.chandler.dev/requestedAt": "now"}})), None),
        (controller, metadata("deployers", json!({"finalizers": ["chandler.dev/teardown"]})), None),
        (controller, metadata("deployers", json!({"labels": {"team": "a"}})), None),
        (controller, spec(json!({"suspend": true})), policy),
        (boss, new("deployer"), None),
        (boss, unnamed(), None),
        (boss, spec(json!({"suspend": true})), None),
        (boss, spec(json!({"serviceAccount": null})), None),
    ]
}

fn resolution(world: &World, name: &str, more: &Value) -> Value {
    let mut spec = json!({"packages": [{"name": "app"}]});
    spec.as_object_mut().expect("a spec").extend(more.as_object().expect("fields").clone());
    json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
           "metadata": {"name": format!("{}-{name}", world.name())}, "spec": spec})
}

/// The output of a Resolution that installs a set, on behalf of an account or of none.
fn set(world: &World, account: &Value) -> Value {
    let mut set = json!({"installNamespace": world.namespace});
    set.as_object_mut().expect("a set").extend(account.as_object().expect("fields").clone());
    json!({"output": {"type": "ResolveSet", "resolveSet": set}})
}

fn named(account: &str) -> Value {
    json!({"serviceAccount": {"name": account}})
}

fn about_resolutions<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-resolutions");
    let Users { author, boss, controller, .. } = users;
    let new = |account: &Value| Request::Create(resolution(world, "new", &set(world, account)));
    let old = || resolution(world, "deployers", &json!({}));
    let spec = |spec: Value| Request::Change(old(), "", json!({"spec": spec}));
    let elsewhere = json!({"serviceAccount": {"name": "friend", "namespace": "default"}});
    let mut cases = vec![
        (author, new(&named("deployer")), policy),
        (author, new(&json!({"serviceAccount": {"name": "deployer", "namespace": "default"}})), policy),
        (author, new(&json!({})), policy),
        (author, spec(json!({"packages": [{"name": "other"}]})), policy),
        (author, spec(json!({"output": {"resolveSet": {"serviceAccount": null}}})), policy),
        (author, new(&named("friend")), None),
        (author, new(&elsewhere), None),
        (author, Request::Create(resolution(world, "new", &json!({}))), None),
        (author, spec(json!({"output": {"resolveSet": {"serviceAccount": {"name": "friend"}}}})), policy),
        (boss, new(&named("deployer")), None),
        (boss, new(&json!({})), None),
        (controller, new(&named("deployer")), None),
    ];
    let managed = json!({"platform.chandler.dev/managed": "true"});
    let mut forged = resolution(world, "new", &json!({}));
    forged["metadata"]["annotations"] = managed.clone();
    let policy = Some("chandler-managed-resolutions");
    let annotated = |more: Value| {
        Request::Change(resolution(world, "friends", &json!({})), "", json!({"metadata": {"annotations": more}}))
    };
    for request in [Request::Create(forged), annotated(managed)] {
        cases.push((author, request.clone(), policy));
        cases.push((boss, request.clone(), policy));
        cases.push((controller, request, None));
    }
    cases.push((author, annotated(json!({"a": "b"})), None));
    let policy = Some("chandler-platform-resolution");
    let mut reserved = resolution(world, "new", &json!({}));
    reserved["metadata"]["name"] = json!(world.platform());
    cases.push((author, Request::Create(reserved.clone()), policy));
    cases.push((boss, Request::Create(reserved.clone()), None));
    cases.push((controller, Request::Create(reserved), None));
    let policy = Some("chandler-resolution-approval");
    let guarded = |spec: Value| Request::Change(resolution(world, "friends", &json!({})), "", json!({"spec": spec}));
    let later = json!([{"start": "03:00", "duration": "1h"}]);
    for change in [
        json!({"approval": null}),
        json!({"approval": "Automatic"}),
        json!({"maintenanceWindows": null}),
        json!({"maintenanceWindows": later}),
    ] {
        cases.push((author, guarded(change.clone()), policy));
        cases.push((boss, guarded(change), None));
    }
    cases.push((author, guarded(json!({"prereleases": true})), None));
    cases.push((
        boss,
        spec(json!({"output": {"resolveSet": named("friend")}, "approval": "Manual", "maintenanceWindows": later})),
        None,
    ));
    cases
}

/// The BundleDeployments of sets, which the controller writes for Resolutions.
fn about_sets<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let Users { author, boss, controller, .. } = users;
    let of_set = |name: &str, more: &Value| {
        let mut object = deployment(world, name, more);
        object["metadata"]["name"] = json!(format!("resolveset-{}-{name}", world.name()));
        object
    };
    let new = || Request::Create(of_set("new", &named("friend")));
    let change = |spec: Value| Request::Change(of_set("set", &json!({})), "", json!({"spec": spec}));
    vec![
        (author, new(), Some("chandler-sets")),
        (boss, new(), None),
        (controller, new(), None),
        // The author of the Resolution was checked.
        (controller, Request::Create(of_set("new", &named("deployer"))), None),
        (controller, Request::Create(of_set("new", &json!({}))), None),
        (controller, change(json!({"approval": null})), None),
        (author, change(json!({"approval": null})), Some("chandler-approval")),
        // The controller has no such exception for others.
        (controller, Request::Create(deployment(world, "new", &named("deployer"))), Some("chandler-accounts")),
    ]
}

fn about_platform_operators<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-platform-operators");
    let operator = |name: &str| {
        json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
               "metadata": {"name": format!("{}-{name}", world.name())}, "spec": {"package": {"name": "app"}}})
    };
    let change = || Request::Change(operator("old"), "", json!({"spec": {"package": {"name": "other"}}}));
    vec![
        (&users.author, Request::Create(operator("new")), policy),
        (&users.author, change(), policy),
        (&users.author, Request::Change(operator("old"), "", json!({"metadata": {"labels": {"a": "b"}}})), None),
        (&users.boss, Request::Create(operator("new")), None),
        (&users.boss, change(), None),
    ]
}

fn about_records<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-records");
    let refused = [
        Request::Create(record(world, "new", "chandler.dev/record")),
        Request::Change(record(world, "record", ""), "", json!({"metadata": {"labels": {"a": "b"}}})),
        Request::Delete(record(world, "record", "")),
        Request::DeleteAll(record(world, "record", "")),
    ];
    let others = [Request::Create(record(world, "new", "Opaque"))];
    let users_and_cases = refused.into_iter().flat_map(|request| {
        [
            (&users.author, request.clone(), policy),
            (&users.boss, request.clone(), policy),
            (&users.controller, request, None),
        ]
    });
    users_and_cases.chain(others.map(|request| (&users.author, request, None))).collect()
}

fn about_status<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let object = || deployment(world, "friends", &json!({}));
    let status = Request::Change(object(), "status", json!({"status": {"contentURL": "x"}}));
    let platform = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "PlatformPolicy", "metadata": {"name": world.platform()}});
    let accepted = Request::Change(platform, "status", json!({"status": {"observedGeneration": 99}}));
    let alert = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Alert", "metadata": {"name": format!("{}-chat", world.name())}});
    let delivered = Request::Change(alert, "status", json!({"status": {"observedGeneration": 99}}));
    let on = Request::Change(object(), "", json!({"metadata": {"finalizers": ["chandler.dev/teardown"]}}));
    let held = || deployment(world, "held", &json!({}));
    let off = Request::Change(held(), "", json!({"metadata": {"finalizers": null}}));
    let other = Request::Change(held(), "", json!({"metadata": {"finalizers": ["chandler.dev/teardown", "a.b/c"]}}));
    let mut cases = vec![(&users.author, other, None)];
    for (request, policy) in [
        (status, "chandler-status"),
        (accepted, "chandler-status"),
        (delivered, "chandler-status"),
        (on, "chandler-finalizer"),
        (off, "chandler-finalizer"),
    ] {
        cases.push((&users.boss, request.clone(), Some(policy)));
        cases.push((&users.controller, request, None));
    }
    cases
}

fn about_config_maps<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let author = &users.author;
    let map = |name: &str, immutable| config_map(world, name, immutable);
    let from = |names: &[&str]| {
        let object = deployment(world, "friends", &json!({}));
        Request::Change(object, "", json!({"spec": from_maps(names)}))
    };
    let (maps, sources) = (Some("chandler-config-maps"), Some("chandler-config-map-sources"));
    vec![
        (author, Request::Create(map("wanted", false)), maps),
        (author, Request::Delete(map("used", true)), maps),
        (author, from(&["used", "loose"]), sources),
        (author, Request::Create(map("wanted", true)), None),
        (author, Request::Create(map("other", false)), None),
        (author, Request::Delete(map("loose", false)), None),
        (author, from(&["used"]), None),
        (author, from(&["used", "missing"]), None),
        // The policy takes no decisions of Resolutions as parameters. The controller refuses what is not immutable.
        (author, from(&["labelled"]), None),
        // A name in a spec keeps neither the controller nor an administrator from writing and deleting objects of the controller.
        (&users.controller, Request::Delete(map("used", true)), None),
        (&users.controller, Request::Create(map("wanted", false)), None),
        (&users.boss, Request::Delete(map("predicted", true)), None),
    ]
}

fn about_approval<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-approval");
    let spec = |spec: Value| Request::Change(deployment(world, "friends", &json!({})), "", json!({"spec": spec}));
    let mut cases = vec![(&users.author, spec(json!({"suspend": true})), None)];
    for change in [json!({"approval": null}), json!({"approval": "Automatic"})] {
        cases.push((&users.author, spec(change.clone()), policy));
        cases.push((&users.boss, spec(change), None));
    }
    let policy = Some("chandler-change-approvals");
    let user = |name: &str| format!("system:serviceaccount:{}:{name}", world.namespace);
    let approve = |by: &str| Request::Create(approval(&world.name(), "harbour", by));
    cases.push((&users.author, approve(&user("author")), policy));
    cases.push((&users.author, approve(&user("boss")), policy));
    cases.push((&users.boss, approve(&user("author")), policy));
    cases.push((&users.boss, approve(&user("boss")), None));
    cases
}

#[tokio::test]
async fn the_policies_deny_exactly_the_documented_requests() {
    let world = World::without_controller(Cluster::acquire().await).await;
    let users = Users::new(&world).await;
    let by = |name: &str, account: &str, more: Value| {
        let mut object = deployment(&world, name, &json!({"serviceAccount": {"name": account}}));
        object["spec"].as_object_mut().expect("a spec").extend(more.as_object().expect("fields").clone());
        object
    };
    let mut held = by("held", "friend", json!({}));
    held["metadata"]["finalizers"] = json!(["chandler.dev/teardown"]);
    let mut mapped = from_maps(&["used", "wanted", "predicted"]);
    let mut predicted = config_map(&world, "predicted", true);
    predicted["metadata"]["annotations"] = json!({"resolution.chandler.dev/uid": "uid"});
    mapped["source"].as_object_mut().expect("a source").remove("image");
    let guarded = json!({"approval": "Manual", "maintenanceWindows": [{"start": "02:00", "duration": "1h"}],
                         "output": set(&world, &named("friend"))["output"]});
    let mut labelled = config_map(&world, "labelled", false);
    labelled["metadata"]["labels"] = json!({"resolution.chandler.dev/name": "wish"});
    let mut of_set = by("set", "friend", json!({"approval": "Manual"}));
    of_set["metadata"]["name"] = json!(format!("resolveset-{}-set", world.name()));
    let objects = [
        resolution(&world, "deployers", &set(&world, &named("deployer"))),
        resolution(&world, "friends", &guarded),
        of_set,
        json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
               "metadata": {"name": format!("{}-old", world.name())}, "spec": {"package": {"name": "app"}}}),
        json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "PlatformPolicy", "metadata": {"name": world.platform()}, "spec": {}}),
        json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Alert", "metadata": {"name": format!("{}-chat", world.name())},
               "spec": {"provider": {"type": "Slack", "secretRef": {"name": "missing"}}}}),
        by("deployers", "deployer", json!({})),
        by("friends", "friend", json!({"approval": "Manual"})),
        held,
        record(&world, "record", "chandler.dev/record"),
        config_map(&world, "used", true),
        config_map(&world, "loose", false),
        predicted,
        labelled,
        by("mapped", "friend", mapped),
    ];
    apply(&world, &objects).await;
    apply(&world, &deletions::objects(&world)).await;
    apply(&world, &decisions::objects(&world)).await;
    let policies = policies(&world);
    apply(&world, &policies).await;

    let mut cases = about_accounts(&world, &users);
    cases.extend(about_resolutions(&world, &users));
    cases.extend(deletions::cases(&world, &users));
    cases.extend(metadata::cases(&world, &users));
    cases.extend(about_sets(&world, &users));
    cases.extend(about_platform_operators(&world, &users));
    cases.extend(about_records(&world, &users));
    cases.extend(restores::cases(&world, &users));
    cases.extend(about_status(&world, &users));
    cases.extend(about_approval(&world, &users));
    cases.extend(about_config_maps(&world, &users));
    cases.extend(decisions::cases(&world, &users));
    // Denied requests first: they show that the policies are in force.
    cases.sort_by_key(|(_, _, policy)| policy.is_none());
    for (client, request, policy) in &cases {
        let what = format!("{request:?} is denied by {policy:?}");
        wait::eventually(&what, || async {
            match (request.send(client).await, policy) {
                (Ok(()), None) => true,
                (Err(kube::Error::Api(status)), Some(policy)) => {
                    [403, 422].contains(&status.code)
                        && status.message.contains(&format!("{}-{policy}", world.namespace))
                }
                _ => false,
            }
        })
        .await;
    }
    check_types(&world, &policies).await;

    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.client.clone());
    let all: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
    for name in policies.iter().filter_map(|policy| policy["metadata"]["name"].as_str()) {
        let _ = bindings.delete(name, &DeleteParams::default()).await;
        let _ = all.delete(name, &DeleteParams::default()).await;
    }
    let held = format!("{}-held", world.name());
    let off = json!({"metadata": {"finalizers": null}});
    wait::eventually("the finalizer is removed", || async {
        world.deployments().patch(&held, &PatchParams::default(), &Patch::Merge(&off)).await.is_ok()
    })
    .await;
    let name = world.name();
    let granted = ["author", "boss", "more", "restorer", "restores", "controller", "collector"]
        .map(|suffix| format!("{name}-{suffix}"));
    remove_cluster_roles(&world, &granted.each_ref().map(String::as_str)).await;
    world.finish().await;
}

/// Asserts that Kubernetes' own type checker, which the controller manager runs, reports no warnings.
///
/// The manager refreshes its list of kinds only every half minute, and reports nothing about unknown kinds. So this creates an
/// invalid policy again and again until the manager reports it.
async fn check_types(world: &World, policies: &[Value]) {
    if !world.checks_policies() {
        eprintln!("skipped: no controller manager type-checks the policies");
        return;
    }
    let all: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
    let attempts = AtomicU32::new(0);
    wait::eventually("a policy with a wrong field is reported", || async {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        let wrong = json!({
            "metadata": {"name": format!("{}-wrong-{attempt}", world.namespace)},
            "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["core.rukpak.io"], "apiVersions": ["v1alpha2"],
                    "operations": ["CREATE"], "resources": ["bundledeployments"]}]},
                "validations": [{"expression": "object.spec.sauce == ''"}],
            },
        });
        !warnings(&all, &wrong).await.is_empty()
    })
    .await;
    for policy in of_kind(policies, "ValidatingAdmissionPolicy") {
        let mut copy = policy.clone();
        copy["metadata"]["name"] = json!(format!("{}-checked", policy["metadata"]["name"].as_str().expect("a name")));
        assert_eq!(warnings(&all, &copy).await, [""; 0], "{policy:#}");
    }
}

/// The type checker's warnings about a policy, which is created without a binding and deleted again.
async fn warnings(all: &Api<ValidatingAdmissionPolicy>, policy: &Value) -> Vec<String> {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy.clone()).expect("a policy");
    let name = policy.metadata.name.clone().expect("a name");
    all.create(&PostParams::default(), &policy).await.expect("the policy is accepted");
    let checked = wait::until(all, &name, "checked", |policy| {
        policy.is_some_and(|policy| policy.status.as_ref().is_some_and(|status| status.observed_generation.is_some()))
    })
    .await;
    all.delete(&name, &DeleteParams::default()).await.expect("the object exists");
    let status = checked.and_then(|policy| policy.status).expect("a status");
    let warnings = status.type_checking.and_then(|check| check.expression_warnings).unwrap_or_default();
    warnings.into_iter().map(|warning| format!("{}: {}", warning.field_ref, warning.warning)).collect()
}
