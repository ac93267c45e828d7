//! `chandler migrate`: what OLM runs is handed over without a restart.

use chandler::migrate::{ForeignObject, pending};
use chandler_api::{AdoptedObject, BundleDeployment};
use chandler_tests::{
    World,
    bundles::{Bundle, sample},
    wait,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ServiceAccount},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    discovery,
};
use serde_json::{Value, json};

use crate::{
    commands::Session,
    support::{chandler, documents},
};

const BUNDLE: &str = "registry/harbour-operator.v0.1.0";
const COREOS: &str = "operators.coreos.com";
pub(crate) const OLM: &str = "olm.operatorframework.io";

/// Creates a CRD without a schema, unless the cluster has it.
pub(crate) async fn install_crd(world: &World, group: &str, version: &str, kind: &str, scope: &str) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"kind": kind, "listKind": format!("{kind}List"), "plural": resource.plural, "singular": kind.to_lowercase()});
    let spec = json!({"group": group, "scope": scope, "names": names, "versions": [version]});
    let name = format!("{}.{group}", resource.plural);
    let crd: CustomResourceDefinition =
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    match api.create(&PostParams::default(), &crd).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created.unwrap()),
    }
    let established = |crd: Option<&CustomResourceDefinition>| {
        let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Established" && it.status == "True"))
    };
    wait::until(&api, &name, "established", established).await;
}

/// The client for an object of one of the kinds above.
pub(crate) fn api(world: &World, object: &ForeignObject) -> Api<DynamicObject> {
    let (group, version) = object.api_version.split_once('/').unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &object.kind));
    match &object.namespace {
        Some(namespace) => Api::namespaced_with(world.client.clone(), namespace, &resource),
        None => Api::all_with(world.client.clone(), &resource),
    }
}

/// Creates an object of one of these kinds.
pub(crate) async fn create(world: &World, mut object: Value) -> ForeignObject {
    if object["metadata"]["namespace"].is_null() {
        world.mark(&mut object);
    }
    let api = api(world, &ForeignObject::of(&object));
    let created = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    ForeignObject::of(&serde_json::to_value(created).unwrap())
}

/// A Subscription whose ClusterServiceVersion is installed.
async fn subscription(world: &World, image: &str) -> Vec<ForeignObject> {
    for (version, kind) in [
        ("v1alpha1", "Subscription"),
        ("v1alpha1", "ClusterServiceVersion"),
        ("v1alpha1", "InstallPlan"),
        ("v1", "OperatorGroup"),
    ] {
        install_crd(world, COREOS, version, kind, "Namespaced").await;
    }
    let name = world.name();
    let csv = format!("{name}.v0.1.0");
    let object = |version: &str, kind: &str, name: &str, spec: Value, status: Value| {
        json!({"apiVersion": format!("{COREOS}/{version}"), "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": name, "namespace": world.namespace}})
    };
    let lookups = json!({"bundleLookups": [{"identifier": csv, "path": image}]});
    create(world, object("v1alpha1", "InstallPlan", "install-harbour", json!({}), lookups)).await;
    create(world, object("v1", "OperatorGroup", "all", json!({}), json!({"namespaces": [""]}))).await;
    let package = json!({"name": "harbour-operator", "channel": "stable", "source": "c", "sourceNamespace": "olm"});
    let installed = json!({"installedCSV": csv, "currentCSV": csv});
    let subscription = create(world, object("v1alpha1", "Subscription", &name, package, installed)).await;
    let succeeded = json!({"phase": "Succeeded"});
    let csv = create(world, object("v1alpha1", "ClusterServiceVersion", &csv, json!({}), succeeded)).await;
    vec![subscription, csv]
}

/// A ClusterExtension that is installed.
async fn extension(world: &World, image: &str) -> Vec<ForeignObject> {
    extension_with(world, image, json!({})).await
}

/// A ClusterExtension that is installed, with these fields in its spec.
pub(crate) async fn extension_with(world: &World, image: &str, spec: Value) -> Vec<ForeignObject> {
    install_crd(world, OLM, "v1", "ClusterExtension", "Cluster").await;
    let message = format!("Installed bundle {image} successfully");
    let package = json!({"sourceType": "Catalog", "catalog": {"packageName": "harbour-operator"}});
    let mut object = json!({
        "apiVersion": format!("{OLM}/v1"), "kind": "ClusterExtension", "metadata": {"name": world.name()},
        "spec": {"namespace": world.namespace, "source": package},
        "status": {"install": {"bundle": {"name": "harbour-operator.v0.1.0", "version": "0.1.0"}},
            "conditions": [{"type": "Installed", "status": "True", "reason": "Succeeded", "message": message}]},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    vec![create(world, object).await]
}

/// Creates the namespaced objects of the bundle as an installer does, owned by this object.
pub(crate) async fn run_bundle(
    world: &World,
    image: &str,
    owner: &ForeignObject,
    controller: bool,
) -> Vec<AdoptedObject> {
    let name = world.name();
    let arguments = ["render", image, "--name", &name, "--namespace", &world.namespace].map(str::to_owned);
    // The registry runs on the threads of this test.
    let rendered = tokio::task::spawn_blocking(move || chandler(arguments, "").data()).await.unwrap();
    let reference = json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
        "controller": controller, "blockOwnerDeletion": controller});
    let mut created = Vec::new();
    for mut object in documents(&rendered) {
        let id = ForeignObject::of(&object);
        let (group, _) = id.api_version.split_once('/').unwrap_or(("", ""));
        let served = discovery::oneshot::group(&world.client, group).await.unwrap();
        let (resource, capabilities) = served.recommended_kind(&id.kind).unwrap();
        // Cluster-scoped objects have fixed names, which a clean-up of tests does not find: the BundleDeployment creates them.
        if capabilities.scope == discovery::Scope::Cluster {
            continue;
        }
        object["metadata"]["namespace"] = json!(world.namespace);
        object["metadata"]["ownerReferences"] = json!([reference]);
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), &world.namespace, &resource);
        let parameters = PostParams { field_manager: Some("olm".to_owned()), ..PostParams::default() };
        let object = api.create(&parameters, &serde_json::from_value(object).unwrap()).await.unwrap();
        created.push(AdoptedObject {
            group: group.to_owned(),
            kind: id.kind,
            namespace: Some(world.namespace.clone()),
            name: id.name,
            uid: object.uid().unwrap(),
        });
    }
    created
}

pub(crate) fn workloads(world: &World) -> Api<Deployment> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

pub(crate) async fn workload(world: &World) -> Deployment {
    workloads(world).list(&kube::api::ListParams::default()).await.unwrap().items.remove(0)
}

/// What a restart or a new object would change.
pub(crate) fn state(workload: &Deployment) -> Value {
    json!([workload.uid(), workload.metadata.generation, workload.spec.as_ref().unwrap().template])
}

/// Checks that the BundleDeployment has the workload, and nothing else has.
pub(crate) async fn check_adopted(world: &World, before: &Value, managers: &[ForeignObject]) {
    let after = workload(world).await;
    assert_eq!(state(&after), *before);
    let owners: Vec<&str> = after.owner_references().iter().map(|owner| owner.kind.as_str()).collect();
    assert_eq!(owners, ["BundleDeployment"]);
    for manager in managers {
        assert!(api(world, manager).get_opt(&manager.name).await.unwrap().is_none(), "{manager}");
    }
    world.delete(&world.name()).await;
    let deployments = workloads(world);
    assert!(deployments.get_opt(&after.name_any()).await.unwrap().is_none(), "deleted with its BundleDeployment");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_migrated_without_a_restart() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = subscription(world, &image).await;
    run_bundle(world, &image, &managers[1], false).await;

    let by = format!("{}/{name}", world.namespace);
    let dry = session.run(&["migrate", "olm", &by]).await;
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    let [printed]: [Value; 1] = documents(&dry.stdout).try_into().unwrap();
    assert_eq!(printed["spec"]["source"]["image"]["ref"], image);
    assert!(dry.stderr.contains("nothing was changed: --apply migrates"), "{}", dry.stderr);
    let resolution = documents(&session.data(&["migrate", "olm", &by, "--as", "resolution"]).await).remove(0);
    assert_eq!(resolution["spec"]["packages"][0]["channels"], json!(["stable"]));

    // The InstallPlan alone names the image, and cluster-scoped objects are not there in this test.
    let named = format!("{name}={image}");
    let apply = ["migrate", "olm", &by, "--apply", "--label", &label, "--image", &named, "--allow-new"];
    let unconfirmed = session.run(&apply).await;
    assert_eq!(unconfirmed.code, Some(2), "{}", unconfirmed.stderr);
    let apply = [&apply[..], &["--yes"]].concat();

    // A difference in the Pod template is refused, before anything is written.
    let live = workload(world).await;
    let patch = |value: &str| {
        let container = &live.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0];
        Patch::Strategic(
            json!({"spec": {"template": {"spec": {"containers": [{"name": container.name, "image": value}]}}}}),
        )
    };
    let deployed = live.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    let parameters = PatchParams::default();
    workloads(world).patch(&live.name_any(), &parameters, &patch("example.com/other:v1")).await.unwrap();
    let refused = session.run(&apply).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains("would restart Pods; nothing was changed"), "{}", refused.stderr);
    assert!(world.deployments().get_opt(&name).await.unwrap().is_none());
    workloads(world).patch(&live.name_any(), &parameters, &patch(&deployed)).await.unwrap();

    let before = state(&workload(world).await);
    let applied = session.run(&apply).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert!(applied.stderr.contains(&format!("deleted Subscription {by}")), "{}", applied.stderr);
    check_adopted(world, &before, &managers).await;
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_extension_is_migrated_without_a_restart() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    if world.is_embedded() {
        let nothing = session.run(&["migrate", "olmv1"]).await;
        assert_eq!(nothing.code, Some(0), "{}", nothing.stderr);
        assert!(nothing.stderr.contains("nothing to migrate: the cluster does not serve"), "{}", nothing.stderr);
    }
    let image = world.push(&sample(BUNDLE)).await;
    let managers = extension(world, &image).await;
    run_bundle(world, &image, &managers[0], true).await;
    let before = state(&workload(world).await);
    let missing = session.run(&["migrate", "olmv1", "no-such"]).await;
    assert_eq!(missing.code, Some(7), "{}", missing.stderr);
    let applied = session.run(&["migrate", "olmv1", &name, "--apply", "--yes", "--label", &label, "--allow-new"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    check_adopted(world, &before, &managers).await;
    if world.is_embedded() {
        let nothing = session.run(&["migrate", "olmv1"]).await;
        assert!(
            nothing.stderr.contains("nothing to migrate: the cluster has no ClusterExtension"),
            "{}",
            nothing.stderr
        );
    }
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_stopped_half_way_continues() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = subscription(world, &image).await;
    let objects = run_bundle(world, &image, &managers[1], false).await;
    let before = state(&workload(world).await);

    // As after a run that stopped when it had deleted the Subscription.
    let by = format!("{}/{name}", world.namespace);
    let printed = documents(&session.data(&["migrate", "olm", &by, "--label", &label]).await).remove(0);
    let mut deployment: BundleDeployment = serde_json::from_value(printed).unwrap();
    deployment.spec.adopt = objects;
    pending::begin(&mut deployment, &managers);
    // Earlier versions of the command suspended it.
    deployment.spec.suspend = true;
    world.deployments().create(&PostParams::default(), &deployment).await.unwrap();
    api(world, &managers[0]).delete(&managers[0].name, &DeleteParams::default()).await.unwrap();

    let unnamed = session.run(&["migrate", "olm", "--apply", "--yes"]).await;
    assert!(unnamed.stderr.contains("name it to continue it without a question"), "{}", unnamed.stderr);
    assert!(api(world, &managers[1]).get_opt(&managers[1].name).await.unwrap().is_some());
    let applied = session.run(&["migrate", "olm", &by, "--apply", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert!(applied.stderr.contains("continue the migration of"), "{}", applied.stderr);
    check_adopted(world, &before, &managers).await;
    session.world.finish().await;
}

/// A tenant who may write objects of OLM in one namespace claims what others have, while OLM is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_installation_is_refused() {
    let session = Session::start().await;
    let (world, name) = (&session.world, session.world.name());
    let (vendor, stolen) = (format!("{name}-vendor"), format!("{name}-stolen"));
    let meta = |name: &str| json!({"name": name, "labels": {}});
    let read = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let rbac = "rbac.authorization.k8s.io/v1";
    let vendors = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta(&vendor), "rules": read});
    let theirs = create(world, vendors.clone()).await;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    // What a BundleDeployment of the tenant's neighbour has.
    let neighbour = Bundle::empty().with("manifests/map.json", &map("neighbour").to_string());
    world.deploy(&stolen, "core-rukpak-io-plain", &world.push(&neighbour).await).await;
    world.ready(&stolen).await;

    let admin = json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta(&format!("{name}-admin")),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]});
    let forged = sample(BUNDLE).with("manifests/vendors.json", &vendors.to_string());
    let forged = forged.with("manifests/neighbour.json", &map("neighbour").to_string());
    let image = world.push(&forged.with("manifests/admin.json", &admin.to_string())).await;
    let managers = subscription(world, &image).await;
    let by = format!("{}/{name}", world.namespace);
    let untouched = async || {
        assert!(world.deployments().get_opt(&name).await.unwrap().is_none());
        for manager in &managers {
            assert!(api(world, manager).get_opt(&manager.name).await.unwrap().is_some(), "{manager}");
        }
        let live = api(world, &theirs).get(&vendor).await.unwrap();
        assert_eq!((live.uid(), live.owner_references()), (Some(theirs.uid.clone()), [].as_slice()));
    };

    let unconfirmed = session.run(&["migrate", "olm", &by, "--apply", "--yes"]).await;
    assert_eq!(unconfirmed.code, Some(8), "{}", unconfirmed.stderr);
    assert!(unconfirmed.stderr.contains("is not confirmed; nothing was changed"), "{}", unconfirmed.stderr);
    untouched().await;

    // Even if the administrator believes the image.
    let named = format!("{name}={image}");
    let apply = ["migrate", "olm", &by, "--apply", "--yes", "--image", &named];
    for arguments in [apply.to_vec(), [&apply[..], &["--allow-new"]].concat()] {
        let refused = session.run(&arguments).await;
        assert_eq!(refused.code, Some(8), "{}", refused.stderr);
        let text = &refused.stderr;
        assert!(text.contains(&format!("2 objects of the bundle do not belong to Subscription {by}")), "{text}");
        assert!(text.contains(&format!("ClusterRole.rbac.authorization.k8s.io {vendor}")), "{text}");
        assert!(text.contains(&format!("belongs to BundleDeployment {stolen}")), "{text}");
        untouched().await;
    }

    // Without them, what would be new is refused.
    world.delete(&stolen).await;
    api(world, &theirs).delete(&vendor, &DeleteParams::default()).await.unwrap();
    let refused = session.run(&apply).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains("would be new; nothing was changed"), "{}", refused.stderr);
    let admin = format!("ClusterRoleBinding {name}-admin, which gives cluster-admin to mallory");
    assert!(refused.stderr.contains(&admin), "{}", refused.stderr);
    assert!(world.deployments().get_opt(&name).await.unwrap().is_none());
    session.world.finish().await;
}

/// The first thing to fail must not be the removal of the old owner: everything that the rollout checks is checked before.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_cannot_install_is_refused_before_anything_is_detached() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = extension_with(world, &image, json!({"serviceAccount": {"name": "installer"}})).await;
    run_bundle(world, &image, &managers[0], true).await;
    let before = workload(world).await;
    let untouched = async || {
        assert!(world.deployments().get_opt(&name).await.unwrap().is_none());
        assert!(api(world, &managers[0]).get_opt(&name).await.unwrap().is_some());
        let now = workload(world).await;
        assert_eq!((state(&now), now.owner_references()), (state(&before), before.owner_references()));
    };
    let apply = ["migrate", "olmv1", &name, "--apply", "--yes", "--label", &label, "--allow-new"];

    let absent = session.run(&apply).await;
    assert_eq!(absent.code, Some(8), "{}", absent.stderr);
    let account = format!("the ServiceAccount {}/installer does not exist", world.namespace);
    assert!(absent.stderr.contains(&account), "{}", absent.stderr);
    assert!(absent.stderr.contains("nothing was changed"), "{}", absent.stderr);
    untouched().await;

    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    let installer = serde_json::from_value(json!({"metadata": {"name": "installer"}})).unwrap();
    accounts.create(&PostParams::default(), &installer).await.unwrap();
    let powerless = session.run(&apply).await;
    assert_eq!(powerless.code, Some(8), "{}", powerless.stderr);
    assert!(powerless.stderr.contains("lacks permissions"), "{}", powerless.stderr);
    assert!(powerless.stderr.contains("OLM v1 ignores spec.serviceAccount"), "{}", powerless.stderr);
    let grant =
        format!("chandler rbac {image} --name {name} --namespace {0} --service-account {0}/installer", world.namespace);
    assert!(powerless.stderr.contains(&grant), "{grant}: {}", powerless.stderr);
    untouched().await;

    // The command in the message, unchanged.
    let arguments: Vec<&str> = grant.split(' ').skip(1).collect();
    for mut role in documents(&session.data(&arguments).await) {
        if role["metadata"]["namespace"].is_null() {
            world.mark(&mut role);
        }
        apply_role(world, role).await;
    }
    let applied = session.run(&apply).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    check_adopted(world, &state(&before), &managers).await;
    session.world.finish().await;
}

/// Creates a role or binding.
async fn apply_role(world: &World, role: Value) {
    let id = ForeignObject::of(&role);
    api(world, &id).create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_with_an_account_is_migrated_without_one() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = extension_with(world, &image, json!({"serviceAccount": {"name": "installer"}})).await;
    run_bundle(world, &image, &managers[0], true).await;
    let before = state(&workload(world).await);
    let printed =
        documents(&session.data(&["migrate", "olmv1", &name, "--service-account", "ops/deployer"]).await).remove(0);
    assert_eq!(printed["spec"]["serviceAccount"], json!({"name": "deployer", "namespace": "ops"}));
    let apply =
        ["migrate", "olmv1", &name, "--apply", "--yes", "--label", &label, "--allow-new", "--no-service-account"];
    let applied = session.run(&apply).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(world.deployments().get(&name).await.unwrap().spec.service_account, None);
    check_adopted(world, &before, &managers).await;
    session.world.finish().await;
}

/// The controller refuses what the command cannot check: the old owner stays, and the command continues when the cause is gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_controller_refuses_stays_with_the_old_owner() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = extension(world, &image).await;
    run_bundle(world, &image, &managers[0], true).await;
    let before = workload(world).await;
    // The controller does not see it: the label that it selects is missing.
    let apply = ["migrate", "olmv1", &name, "--apply", "--yes", "--allow-new", "--timeout", "1s"];
    let stuck = session.run(&apply).await;
    assert_eq!(stuck.code, Some(3), "{}", stuck.stderr);
    assert!(stuck.stderr.contains(&format!("ClusterExtension {name} was not deleted")), "{}", stuck.stderr);
    let now = workload(world).await;
    assert_eq!((state(&now), now.owner_references()), (state(&before), before.owner_references()));
    assert!(api(world, &managers[0]).get_opt(&name).await.unwrap().is_some());

    let (key, value) = label.split_once('=').unwrap();
    let labels = json!({"metadata": {"labels": {key: value}}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    let applied = session.run(&["migrate", "olmv1", &name, "--apply", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    check_adopted(world, &state(&before), &managers).await;
    session.world.finish().await;
}

/// Without waiting, and with an approval that is missing, the old owner stays until the command runs again.
#[tokio::test(flavor = "multi_thread")]
async fn an_adoption_that_is_not_awaited_detaches_nothing() {
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let image = world.push(&sample(BUNDLE)).await;
    let managers = extension(world, &image).await;
    run_bundle(world, &image, &managers[0], true).await;
    let before = state(&workload(world).await);
    let apply = ["migrate", "olmv1", &name, "--apply", "--yes", "--label", &label, "--allow-new", "--wait=false"];
    let begun = session.run(&apply).await;
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    if !begun.stderr.contains("deleted ClusterExtension") {
        assert!(begun.stderr.contains(&format!("ClusterExtension {name} remains until then")), "{}", begun.stderr);
        assert!(api(world, &managers[0]).get_opt(&name).await.unwrap().is_some());
    }
    world.ready(&name).await;
    let applied = session.run(&["migrate", "olmv1", &name, "--apply", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    check_adopted(world, &before, &managers).await;
    session.world.finish().await;
}

#[test]
fn what_cannot_be_applied_is_refused() {
    for (arguments, expected) in [
        (
            ["migrate", "olm", "--apply", "--as=resolution"].as_slice(),
            "--apply creates BundleDeployments, not Resolutions",
        ),
        (&["migrate", "rukpak", "--apply"], "--apply is not possible for rukpak"),
        (&["migrate", "olm", "--image", "etcd"], "write `NAME=IMAGE`"),
        (&["migrate", "olm", "--allow-restart"], "--apply"),
        (&["migrate", "olmv1", "--service-account", "a", "--no-service-account"], "cannot be used with"),
    ] {
        let refused = chandler(arguments, "");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.stderr);
    }
}

#[test]
fn a_component_of_a_release_payload_gets_a_plan() {
    let directory = tempfile::tempdir().unwrap();
    let manifests = directory.path().join("mesh/manifests");
    std::fs::create_dir_all(&manifests).unwrap();
    let write = |name: &str, text: &str| std::fs::write(manifests.join(name), text).unwrap();
    write("00-namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}\n");
    write(
        "01-deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mesh, namespace: mesh-system}\n",
    );
    write("image-references", "kind: ImageStream\n");
    let place = manifests.to_str().unwrap();
    let planned = crate::support::chandler(["migrate", "cvo", place], "");
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    let operator = &crate::support::documents(&planned.stdout)[0];
    assert_eq!(operator["kind"], "PlatformOperator");
    let spec = serde_json::json!({"package": {"name": "mesh"}, "installNamespace": "mesh-system"});
    assert_eq!((&operator["metadata"]["name"], &operator["spec"]), (&serde_json::json!("mesh"), &spec));
    let stays =
        "stays in the payload: 00-namespace.yaml: Namespace mesh-system must exist before the package is installed";
    assert!(
        planned.stderr.contains(stays) && planned.stderr.contains("1. the bundle: put 01-deployment.yaml"),
        "{}",
        planned.stderr
    );

    write("02-both.yaml", "kind: Namespace\nmetadata: {name: a}\n---\nkind: ConfigMap\nmetadata: {name: b}\n");
    let refused = crate::support::chandler(["migrate", "cvo", place], "");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("divide the file"), "{}", refused.stderr);
    for arguments in
        [&["migrate", "cvo"][..], &["migrate", "cvo", place, "Not_A_Name"], &["migrate", "cvo", place, "--apply"]]
    {
        assert_eq!(crate::support::chandler(arguments, "").code, Some(2), "{arguments:?}");
    }
}
