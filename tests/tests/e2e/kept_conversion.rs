//! A CRD that stays without the Service of its conversion webhook does not block the cluster.

use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::json;

use crate::PLAIN;

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: operator}\n";
/// The webhook. It has no Pods; what it stands for is outside the cluster, so that nothing waits for its endpoints.
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: hook}\nspec: {type: ExternalName, externalName: hook.example.com}\n";

fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

fn crd_name(world: &World) -> String {
    format!("oxen.{}", group(world))
}

/// A bundle with a CRD of two versions, and the Service that converts them.
fn bundle(world: &World) -> Bundle {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd_name(world)},
        "spec": {
            "group": group(world), "scope": "Namespaced",
            "names": {"kind": "Ox", "plural": "oxen", "singular": "ox", "listKind": "OxList"},
            "versions": [version("v1", true), version("v1beta1", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": world.namespace, "name": "hook", "path": "/convert"}},
            }},
        },
    });
    let bundle = Bundle::empty().with("manifests/map.yaml", CONFIG_MAP).with("manifests/service.yaml", SERVICE);
    bundle.with("manifests/crd.json", &crd.to_string())
}

fn oxen(world: &World, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(&group(world), version, "Ox");
    Api::namespaced_with(world.client.clone(), &world.namespace, &ApiResource::from_gvk_with_plural(&kind, "oxen"))
}

async fn create_ox(world: &World) {
    let api_version = format!("{}/v1", group(world));
    let ox = json!({"apiVersion": api_version, "kind": "Ox", "metadata": {"name": "a"}});
    let ox = serde_json::from_value(ox).expect("an ox");
    oxen(world, "v1").create(&PostParams::default(), &ox).await.expect("an ox");
}

/// Asserts that the CRD stays without a webhook, and that its custom resources can be read in every version; then deletes it.
async fn converts_without_a_webhook(world: &World) {
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let kept = crds.get(&crd_name(world)).await.expect("the CRD stays");
    let conversion = kept.spec.conversion.expect("a conversion");
    assert_eq!((conversion.strategy.as_str(), conversion.webhook), ("None", None));
    for version in ["v1", "v1beta1"] {
        assert_eq!(oxen(world, version).get("a").await.expect("the object stays").name_any(), "a");
    }
    crds.delete(&crd_name(world), &DeleteParams::default()).await.expect("the object exists");
}

#[tokio::test]
async fn a_kept_crd_loses_its_webhook_with_the_service() {
    let world = World::new().await;
    let name = world.name();
    let mut spec = world.spec(PLAIN, &world.push(&bundle(&world)).await);
    spec["deletion"] = json!({"crds": "Keep"});
    world.apply(&name, spec).await;
    world.ready(&name).await;
    create_ox(&world).await;
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the object exists");
    wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    converts_without_a_webhook(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_crd_that_a_release_drops_with_the_service_loses_its_webhook() {
    for deletion in [json!({"crds": "Keep"}), json!({})] {
        let world = World::new().await;
        let name = world.name();
        let mut spec = world.spec(PLAIN, &world.push(&bundle(&world)).await);
        spec["deletion"] = deletion;
        world.apply(&name, spec.clone()).await;
        world.ready(&name).await;
        create_ox(&world).await;
        spec["source"]["image"]["ref"] =
            json!(world.push(&Bundle::empty().with("manifests/map.yaml", CONFIG_MAP)).await);
        world.apply(&name, spec).await;
        world.ready(&name).await;
        converts_without_a_webhook(&world).await;
        world.finish().await;
    }
}
