//! What happens to the objects of a deleted BundleDeployment, and to CRDs that a release drops.

use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, ServiceAccount},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::json;

use crate::{
    PLAIN,
    permissions::{account, apply, request_reconcile, spec},
};

/// A CRD for this test only, and its name.
pub(crate) fn crd(world: &World) -> (String, String) {
    let group = group(world);
    let text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: oxen.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: Ox, plural: oxen, singular: ox, listKind: OxList}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        \
         type: object\n        x-kubernetes-preserve-unknown-fields: true\n"
    );
    (text, format!("oxen.{group}"))
}

fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

pub(crate) const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: operator}\n";

/// A bundle with a CRD and an object that represents its operator.
async fn pushed(world: &World) -> String {
    let bundle = Bundle::empty().with("manifests/crd.yaml", &crd(world).0).with("manifests/map.yaml", CONFIG_MAP);
    world.push(&bundle).await
}

pub(crate) fn oxen(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(&group(world), "v1", "Ox");
    let resource = ApiResource::from_gvk_with_plural(&kind, "oxen");
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

pub(crate) fn ox(world: &World, name: &str, finalizers: &[&str]) -> DynamicObject {
    let api_version = format!("{}/v1", group(world));
    let ox = json!({"apiVersion": api_version, "kind": "Ox", "metadata": {"name": name, "finalizers": finalizers}});
    serde_json::from_value(ox).expect("an ox")
}

pub(crate) async fn create_ox(world: &World, name: &str, finalizers: &[&str]) {
    oxen(world).create(&PostParams::default(), &ox(world, name, finalizers)).await.expect("an ox");
}

pub(crate) fn crds(world: &World) -> Api<CustomResourceDefinition> {
    Api::all(world.client.clone())
}

pub(crate) async fn delete(world: &World, name: &str) {
    world.deployments().delete(name, &DeleteParams::default()).await.expect("the object exists");
}

pub(crate) async fn gone(world: &World, name: &str) {
    wait::until(&world.deployments(), name, "gone", |deployment| deployment.is_none()).await;
}

/// Waits until the terminating BundleDeployment reports this reason and message.
pub(crate) async fn reports(world: &World, name: &str, reason: &str, part: &str) {
    wait::until(&world.deployments(), name, &format!("{reason}: {part}"), |deployment| {
        let progressing = deployment.and_then(|deployment| condition(deployment, "Progressing"));
        progressing.is_some_and(|progressing| progressing.reason == reason && progressing.message.contains(part))
    })
    .await;
}

/// Whether an object has no marks of any BundleDeployment.
pub(crate) fn is_unmarked(metadata: &ObjectMeta) -> bool {
    let ours = |name: &String| name.starts_with("applyset.") || name.starts_with("core.rukpak.io/");
    metadata.owner_references.as_ref().is_none_or(Vec::is_empty)
        && !metadata.labels.iter().flatten().any(|(name, _)| ours(name))
        && !metadata.annotations.iter().flatten().any(|(name, _)| name == "chandler.dev/applied")
}

#[tokio::test]
async fn orphaned_objects_stay_without_an_owner() {
    let mut world = World::new().await;
    let name = world.name();
    let mut spec = world.spec(PLAIN, &pushed(&world).await);
    spec["deletion"] = json!({"policy": "Orphan"});
    world.apply(&name, spec).await;
    world.ready(&name).await;
    let before = world.config_maps().get("operator").await.expect("the object exists");

    // As if the controller had crashed after the first object, and a user had removed the labels of the other one.
    world.stop_controller().await;
    let marks = json!({"metadata": {"ownerReferences": [], "annotations": {"chandler.dev/applied": null}, "labels": {
        "applyset.kubernetes.io/part-of": null, "core.rukpak.io/owner-kind": null, "core.rukpak.io/owner-name": null}}});
    let patch = PatchParams::default();
    world.config_maps().patch("operator", &patch, &Patch::Merge(marks)).await.expect("the object exists");
    let label = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    let plural = crd(&world).1;
    crds(&world).patch(&plural, &patch, &Patch::Merge(label)).await.expect("the object exists");
    delete(&world, &name).await;
    world.start_controller();
    gone(&world, &name).await;

    let after = world.config_maps().get("operator").await.expect("the object stays");
    assert_eq!(after.uid(), before.uid());
    assert!(is_unmarked(&after.metadata), "{:?}", after.metadata);
    let crd = crds(&world).get(&plural).await.expect("the object stays");
    assert!(is_unmarked(&crd.metadata), "{:?}", crd.metadata);
    crds(&world).delete(&plural, &DeleteParams::default()).await.expect("the object exists");
    world.finish().await;
}

#[tokio::test]
async fn nothing_is_deleted_while_foreign_custom_resources_exist() {
    let world = World::new().await;
    let name = world.name();
    world.deploy(&name, PLAIN, &pushed(&world).await).await;
    world.ready(&name).await;
    create_ox(&world, "a", &[]).await;
    create_ox(&world, "b", &[]).await;
    delete(&world, &name).await;
    let plural = crd(&world).1;
    let namespace = &world.namespace;
    let users = format!("{plural}: 2 in 1 namespace ({namespace}/a, {namespace}/b)");
    reports(&world, &name, "CustomResourcesExist", &users).await;
    let held = world.deployments().get(&name).await.expect("the object exists");
    let ready = condition(&held, "Ready").expect("Ready");
    assert_eq!(ready.reason, "CustomResourcesExist");
    assert!(ready.message.contains("set spec.deletion.crds to Keep"), "{}", ready.message);
    let map = world.config_maps().get("operator").await.expect("nothing is deleted");
    let crd = crds(&world).get(&plural).await.expect("nothing is deleted");
    assert_eq!((map.metadata.deletion_timestamp, crd.metadata.deletion_timestamp), (None, None));

    for ox in ["a", "b"] {
        oxen(&world).delete(ox, &DeleteParams::default()).await.expect("the object exists");
    }
    gone(&world, &name).await;
    assert!(crds(&world).get_opt(&plural).await.expect("a response").is_none());
    assert!(world.config_maps().get_opt("operator").await.expect("a response").is_none());
    world.finish().await;
}

#[tokio::test]
async fn kept_crds_stay_with_their_custom_resources() {
    let world = World::new().await;
    let name = world.name();
    let mut spec = world.spec(PLAIN, &pushed(&world).await);
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    create_ox(&world, "a", &[]).await;
    delete(&world, &name).await;
    reports(&world, &name, "CustomResourcesExist", "1 in 1 namespace").await;

    // The user can still choose while the deletion waits.
    spec["deletion"] = json!({"crds": "Keep"});
    world.apply(&name, spec).await;
    gone(&world, &name).await;
    let plural = crd(&world).1;
    let kept = crds(&world).get(&plural).await.expect("the object stays");
    assert!(is_unmarked(&kept.metadata) && kept.metadata.deletion_timestamp.is_none(), "{:?}", kept.metadata);
    oxen(&world).get("a").await.expect("the object stays");
    assert!(world.config_maps().get_opt("operator").await.expect("a response").is_none());
    crds(&world).delete(&plural, &DeleteParams::default()).await.expect("the object exists");
    world.finish().await;
}

#[tokio::test]
async fn crds_are_deleted_first_while_the_operator_can_still_finalize() {
    let world = World::new().await;
    let name = world.name();
    let mut spec = world.spec(PLAIN, &pushed(&world).await);
    spec["deletion"] = json!({"crds": "Delete"});
    world.apply(&name, spec).await;
    world.ready(&name).await;
    create_ox(&world, "a", &["example.com/stable"]).await;
    delete(&world, &name).await;
    let held = format!("Ox {}/a is being deleted, held by finalizer example.com/stable", world.namespace);
    reports(&world, &name, "Deleting", &held).await;
    world.config_maps().get("operator").await.expect("the operator still exists");

    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    oxen(&world).patch("a", &PatchParams::default(), &freed).await.expect("the object exists");
    gone(&world, &name).await;
    assert!(crds(&world).get_opt(&crd(&world).1).await.expect("a response").is_none());
    assert!(world.config_maps().get_opt("operator").await.expect("a response").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_dropped_crd_stays_while_it_is_in_use() {
    let world = World::new().await;
    let name = world.name();
    world.deploy(&name, PLAIN, &pushed(&world).await).await;
    world.ready(&name).await;
    create_ox(&world, "a", &[]).await;
    let plural = crd(&world).1;
    let without = world.push(&Bundle::empty().with("manifests/map.yaml", CONFIG_MAP)).await;
    world.deploy(&name, PLAIN, &without).await;
    let warned = |deployment: &chandler_api::BundleDeployment| {
        let release = deployment.status.as_ref().and_then(|status| status.release.clone()).unwrap_or_default();
        let about = release.warnings.into_iter().filter(|warning| warning.code == "CustomResourcesExist");
        about.map(|warning| warning.message).collect::<Vec<_>>()
    };
    let ready = world.ready(&name).await;
    let warnings = warned(&ready);
    assert!(
        warnings.len() == 1 && warnings[0].contains(&format!("{plural} is no longer in the release")),
        "{warnings:?}"
    );
    let kept = crds(&world).get(&plural).await.expect("the object stays");
    assert_eq!(kept.labels()["core.rukpak.io/owner-name"], name, "the CRD keeps its owner label");
    oxen(&world).get("a").await.expect("the object stays");

    // It is not drift, and another reconcile writes nothing.
    request_reconcile(&world, &name).await;
    let handled = wait::until(&world.deployments(), &name, "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.is_some())
    })
    .await;
    assert_eq!(warned(&handled.expect("the object exists")).len(), 1);
    assert_eq!(crds(&world).get(&plural).await.expect("the object stays").resource_version(), kept.resource_version());

    oxen(&world).delete("a", &DeleteParams::default()).await.expect("the object exists");
    request_reconcile(&world, &name).await;
    wait::until(&crds(&world), &plural, "pruned", |crd| crd.is_none()).await;
    wait::until(&world.deployments(), &name, "without the warning", |deployment| {
        deployment.is_some_and(|deployment| warned(deployment).is_empty())
    })
    .await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_dropped_crd_is_kept_or_deleted_as_the_spec_says() {
    for (policy, stays) in [("Keep", true), ("Delete", false)] {
        let world = World::new().await;
        let name = world.name();
        let mut spec = world.spec(PLAIN, &pushed(&world).await);
        spec["deletion"] = json!({"crds": policy});
        world.apply(&name, spec.clone()).await;
        world.ready(&name).await;
        create_ox(&world, "a", &[]).await;
        let without = world.push(&Bundle::empty().with("manifests/map.yaml", CONFIG_MAP)).await;
        spec["source"]["image"]["ref"] = json!(without);
        world.apply(&name, spec).await;
        world.ready(&name).await;
        let plural = crd(&world).1;
        let found = crds(&world).get_opt(&plural).await.expect("a response");
        assert_eq!(found.as_ref().map(|found| is_unmarked(&found.metadata)), stays.then_some(true), "{policy}");
        if stays {
            oxen(&world).get("a").await.expect("the object stays");
            crds(&world).delete(&plural, &DeleteParams::default()).await.expect("the object exists");
        }
        world.finish().await;
    }
}

/// An object is changed that a controller of the cluster may have finished before.
fn unless_gone<T>(changed: kube::Result<T>) {
    if let Err(error) = changed {
        assert!(matches!(&error, kube::Error::Api(status) if status.is_not_found()), "{error}");
    }
}

#[tokio::test]
async fn an_object_with_a_finalizer_is_named_while_it_terminates() {
    let world = World::new().await;
    let name = world.name();
    let inner = format!("{}-inner", world.namespace);
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    let bundle = Bundle::empty().with("manifests/map.yaml", CONFIG_MAP).with("manifests/namespace.yaml", &namespace);
    world.deploy(&name, PLAIN, &world.push(&bundle).await).await;
    world.ready(&name).await;
    let finalizers = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/anchor"]}}));
    world.config_maps().patch("operator", &PatchParams::default(), &finalizers).await.expect("the object exists");
    let stranger = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "stranger", "namespace": inner, "finalizers": ["example.com/buoy"]}});
    apply(&world, &[stranger]).await;

    delete(&world, &name).await;
    let held =
        format!("ConfigMap {}/operator: is being deleted, held by finalizer example.com/anchor", world.namespace);
    reports(&world, &name, "Deleting", &held).await;
    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.config_maps().patch("operator", &PatchParams::default(), &freed).await.expect("the object exists");
    if world.is_embedded() {
        // On other servers no namespace controller may run.
        reports(&world, &name, "Deleting", "example.com/buoy").await;
        let strangers: Api<ConfigMap> = Api::namespaced(world.client.clone(), &inner);
        strangers.patch("stranger", &PatchParams::default(), &freed).await.expect("the object exists");
        gone(&world, &name).await;
    } else {
        reports(&world, &name, "Deleting", &format!("Namespace {inner}: is being deleted")).await;
        let finalize =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}, "spec": {"finalizers": []}});
        let finalize: Namespace = serde_json::from_value(finalize).expect("a Namespace");
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        unless_gone(namespaces.replace_subresource("finalize", &inner, &PostParams::default(), &finalize).await);
        gone(&world, &name).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn a_deletion_without_its_service_account_waits_or_orphans() {
    let world = World::new().await;
    let name = world.name();
    let deployer = account(&world, "deployer").await;
    let wide = vec![chandler_permissions::PolicyRule::everything(), chandler_permissions::PolicyRule::every_path()];
    apply(&world, &chandler_permissions::roles(&[(None, wide)].into(), &deployer, &name)).await;
    world.apply(&name, spec(&world, PLAIN, &pushed(&world).await, "deployer")).await;
    world.ready(&name).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    accounts.delete("deployer", &DeleteParams::default()).await.expect("the object exists");
    delete(&world, &name).await;
    let way_out = format!("kubectl delete bundledeployment {name} --cascade=orphan");
    reports(&world, &name, "ServiceAccountNotFound", &way_out).await;
    world.config_maps().get("operator").await.expect("the object stays");

    let orphan =
        DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.deployments().delete(&name, &orphan).await.expect("the object exists");
    if world.is_embedded() {
        gone(&world, &name).await;
    } else {
        // Only the garbage collector removes its own finalizer, and none may run.
        wait::until(&world.deployments(), &name, "without the finalizer", |deployment| {
            deployment.is_none_or(|deployment| deployment.finalizers() == ["orphan"])
        })
        .await;
        let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        unless_gone(world.deployments().patch(&name, &PatchParams::default(), &freed).await);
    }
    let map = world.config_maps().get("operator").await.expect("the object stays");
    assert_eq!(map.metadata.deletion_timestamp, None);
    let _ = crds(&world).delete(&crd(&world).1, &DeleteParams::default()).await;
    world.finish().await;
}
