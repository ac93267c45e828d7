//! A user who may patch an object may also write its `managedFields`: these do not prove what was changed.

use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::api::{core::v1::Service, networking::v1::NetworkPolicy};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::PLAIN;

const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny}\nspec: {podSelector: {matchLabels: \
                      {app: web}}, policyTypes: [Ingress]}\n";
const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";

/// Edits an object as Chandler's field manager, and forges `managedFields` that look as they did after the creation.
async fn forge<K>(api: &Api<K>, name: &str, edit: Value)
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let chandler = PatchParams { field_manager: Some("chandler".to_owned()), ..PatchParams::default() };
    let edited = api.patch(name, &chandler, &Patch::Merge(edit)).await.expect("the edit is accepted");
    let created = edited.creation_timestamp();
    let record = edited.managed_fields().iter().rfind(|record| record.manager.as_deref() == Some("chandler"));
    let mut record = record.expect("a record").clone();
    (record.operation, record.time) = (Some("Update".to_owned()), created);
    let forged = Patch::Merge(json!({"metadata": {"managedFields": [record]}}));
    api.patch(name, &chandler, &forged).await.expect("managedFields can be written");
}

async fn assert_repaired(world: &World) {
    let policies: Api<NetworkPolicy> = Api::namespaced(world.client.clone(), &world.namespace);
    let services: Api<Service> = Api::namespaced(world.client.clone(), &world.namespace);
    wait::until(&policies, "deny", "as in the release", |policy| {
        let selector = policy.and_then(|policy| policy.spec.as_ref()?.pod_selector.as_ref());
        selector.and_then(|selector| selector.match_labels.as_ref()).is_some_and(|labels| labels.len() == 1)
    })
    .await;
    wait::until(&services, "web", "as in the release", |service| {
        let selector = service.and_then(|service| service.spec.as_ref()?.selector.as_ref());
        selector.is_some_and(|selector| selector.len() == 1)
    })
    .await;
}

async fn forge_both(world: &World) {
    let policies: Api<NetworkPolicy> = Api::namespaced(world.client.clone(), &world.namespace);
    let services: Api<Service> = Api::namespaced(world.client.clone(), &world.namespace);
    forge(&policies, "deny", json!({"spec": {"podSelector": {"matchLabels": {"off": "yes"}}}})).await;
    forge(&services, "web", json!({"spec": {"selector": {"hijack": "me"}}})).await;
}

#[tokio::test]
async fn an_edit_with_forged_managed_fields_is_reverted() {
    let mut world = World::new().await;
    let name = world.name();
    let bundle = Bundle::empty().with("manifests/policy.yaml", POLICY).with("manifests/service.yaml", SERVICE);
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    // A controller that saw the objects after their creation, and one that did not.
    forge_both(&world).await;
    assert_repaired(&world).await;
    world.delete(&name).await;
    let name = format!("{name}-again");
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    world.stop_controller().await;
    forge_both(&world).await;
    world.start_controller();
    assert_repaired(&world).await;
    world.delete(&name).await;
    world.finish().await;
}
