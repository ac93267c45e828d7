//! Catalogs that OLM reads in the cluster are used like Catalogs, with `--catalogs-from`.

use chandler_api::{OlmCatalogs, Resolution};
use chandler_tests::{Cluster, World, preflight::install_foreign_crd, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::catalogs;

const LANTERN: &str = "\
schema: olm.package
name: lantern
defaultChannel: stable
---
schema: olm.channel
package: lantern
name: stable
entries: [{name: lantern.v1.0.0}]
---
schema: olm.bundle
package: lantern
name: lantern.v1.0.0
image: quay.io/example/lantern:v1
properties: [{type: olm.package, value: {packageName: lantern, version: 1.0.0}}]
";

/// Creates the CRD of ClusterCatalogs, as far as these tests need it, unless the cluster has one.
async fn install_crd(world: &World) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}});
    let names = json!({"kind": "ClusterCatalog", "listKind": "ClusterCatalogList", "plural": "clustercatalogs", "singular": "clustercatalog"});
    let spec = json!({"group": "olm.operatorframework.io", "scope": "Cluster", "names": names, "versions": [version]});
    let name = "clustercatalogs.olm.operatorframework.io";
    let crd: CustomResourceDefinition =
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a CRD");
    install_foreign_crd(&world.client, &crd).await.expect("the CRD is installed");
}

/// Waits for a status of the condition Resolved.
async fn resolved(world: &World, name: &str, status: &str) -> Resolution {
    let api: Api<Resolution> = Api::all(world.client.clone());
    let is = |resolution: Option<&Resolution>| {
        let conditions = resolution.and_then(|it| it.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.unwrap_or_default().iter().any(|it| it.type_ == "Resolved" && it.status == status)
    };
    wait::until(&api, name, &format!("Resolved={status}"), is).await.expect("the Resolution exists")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_catalog_is_used_like_a_catalog() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    install_crd(&world).await;
    let reference = catalogs::push(&world.registry, &[("catalog.yaml", LANTERN)]).await;
    let name = format!("{}-olm", world.run());
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &OlmCatalogs::ClusterCatalogs.resource());
    let image = json!({"type": "Image", "image": {"ref": reference}});
    let mut object: Value = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
                                   "metadata": {"name": name}, "spec": {"source": image}});
    world.mark(&mut object);
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("the ClusterCatalog is created");
    world.start_controller_changed(|options| {
        options.catalogs_from = vec![OlmCatalogs::ClusterCatalogs];
    });

    let wish = format!("{}-wish", world.run());
    let spec = json!({"packages": [{"name": "lantern"}]});
    let _: Resolution = world.create(json!({"metadata": {"name": wish}, "spec": spec})).await;
    resolved(&world, &wish, "False").await;

    // OLM has resolved it.
    let status = Patch::Merge(json!({"status": {"resolvedSource": image}}));
    api.patch_status(&name, &PatchParams::default(), &status).await.expect("the status is written");
    let found = resolved(&world, &wish, "True").await.status.expect("a status");
    assert_eq!(found.catalogs.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), [name.as_str()]);
    assert_eq!(found.members[0].version, "1.0.0");

    let off = Patch::Merge(json!({"spec": {"availabilityMode": "Unavailable"}}));
    api.patch(&name, &PatchParams::default(), &off).await.expect("the spec is written");
    resolved(&world, &wish, "False").await;
    api.delete(&name, &kube::api::DeleteParams::default()).await.expect("it is deleted");
    world.finish().await;
}
