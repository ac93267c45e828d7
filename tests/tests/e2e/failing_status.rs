//! The status on every path: also where a finalizer or a record cannot be written, or the object cannot be decoded.

use chandler_api::BundleDeployment;
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_tests::{Cluster, World, bundles::Bundle, container, wait::eventually, world::condition};
use k8s_openapi::{
    api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

/// The user agent of the controller, so that the faults concern no other client.
pub(crate) const CONTROLLER: &str = "e2e-failing-status";

/// A world on the embedded control plane, and `None` on another one.
pub(crate) async fn embedded() -> Option<World> {
    let cluster = Cluster::acquire().await;
    if !cluster.is_embedded() {
        eprintln!("skipped: only the embedded control plane injects faults");
        return None;
    }
    let mut world = World::without_controller(cluster).await;
    world.start_controller_as(CONTROLLER);
    Some(world)
}

fn message(deployment: &BundleDeployment, type_: &str) -> String {
    condition(deployment, type_).map(|condition| condition.message.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_finalizer_that_cannot_be_written_is_reported_until_it_can() {
    let Some(world) = embedded().await else { return };
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    let fault = Fault::new(Effect::InternalError).verb(Verb::Patch).resource("bundledeployments").subresource("");
    world.embedded().expect("it is embedded").inject(fault.client(container::agent(CONTROLLER)));
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.condition(&name, "Progressing", "True", "Retrying").await;
    let expected = format!("cannot add the finalizer chandler.dev/teardown to BundleDeployment {name}: ");
    assert!(message(&deployment, "Ready").starts_with(&expected), "{deployment:?}");
    assert!(condition(&deployment, "Stalled").is_none(), "the controller retries");
    world.embedded().expect("it is embedded").clear_faults();
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_record_that_cannot_be_written_is_reported_until_it_can() {
    let Some(world) = embedded().await else { return };
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    let fault = Fault::new(Effect::InternalError).verb(Verb::Create).resource("secrets");
    world.embedded().expect("it is embedded").inject(fault.client(container::agent(CONTROLLER)));
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.condition(&name, "Progressing", "True", "RecordUnavailable").await;
    assert!(message(&deployment, "Ready").contains("Secret"), "{deployment:?}");
    world.embedded().expect("it is embedded").clear_faults();
    world.ready(&name).await;
    world.finish().await;
}

/// A CRD of a newer version may allow values that this controller does not know.
#[tokio::test]
async fn an_object_that_cannot_be_decoded_has_a_status_and_an_event_with_the_path() {
    let Some(world) = embedded().await else { return };
    let name = world.name();
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let crd = crds.get("bundledeployments.core.rukpak.io").await.expect("the CRD");
    let version = crd.spec.versions.iter().position(|version| version.name == "v1alpha2").expect("the version");
    let path = format!("/spec/versions/{version}/schema/openAPIV3Schema/properties/spec/properties/rollout");
    let any = json!([{"op": "replace", "path": path,
                      "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    let any: Patch<CustomResourceDefinition> = Patch::Json(serde_json::from_value(any).expect("a JSON patch"));
    crds.patch(&crd.name_any(), &PatchParams::default(), &any).await.expect("the CRD is accepted");

    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["rollout"] = json!({"historyLimit": "many"});
    let mut object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec
    });
    world.mark(&mut object);
    let resource = ApiResource::erase::<BundleDeployment>(&());
    let deployments: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
    let parameters = PatchParams::apply("e2e").force();
    eventually("the schema accepts any rollout", || async {
        deployments.patch(&name, &parameters, &Patch::Apply(&object)).await.is_ok()
    })
    .await;
    let expected = "the BundleDeployment cannot be decoded: spec.rollout.historyLimit: invalid type: string \"many\", expected i32";
    eventually("the status names the path", || async {
        let object = deployments.get(&name).await.expect("the object");
        let conditions = object.data.pointer("/status/conditions").and_then(|it| it.as_array()).cloned();
        conditions.unwrap_or_default().iter().any(|it| {
            it["type"] == "Stalled"
                && it["status"] == "True"
                && it["reason"] == "InvalidSpec"
                && it["message"] == expected
        })
    })
    .await;
    let events: Api<Event> = Api::all(world.client.clone());
    eventually("a warning names the path", || async {
        let events = events.list(&ListParams::default()).await.expect("Events");
        events.items.iter().any(|event| {
            event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name.as_str())
                && event.reason.as_deref() == Some("InvalidSpec")
                && event.type_.as_deref() == Some("Warning")
                && event.note.as_deref() == Some(expected)
        })
    })
    .await;

    world.deploy(&name, PLAIN, &image).await;
    let ready = world.ready(&name).await;
    assert!(condition(&ready, "Stalled").is_none(), "{ready:?}");
    world.finish().await;
}

#[tokio::test]
async fn stalled_is_true_while_only_a_change_by_the_user_helps() {
    let world = World::new().await;
    let name = world.name();
    let broken = world.push(&Bundle::empty().with("manifests/a.yaml", "kind: [")).await;
    let whole = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    world.deploy(&name, PLAIN, &broken).await;
    let stalled = world.condition(&name, "Stalled", "True", "InvalidContent").await;
    assert_eq!(message(&stalled, "Stalled"), message(&stalled, "Progressing"));
    world.deploy(&name, PLAIN, &whole).await;
    let ready = world.ready(&name).await;
    assert!(condition(&ready, "Stalled").is_none(), "{ready:?}");
    world.finish().await;
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n";
