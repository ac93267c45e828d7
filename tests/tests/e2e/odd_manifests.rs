//! Manifests that look harmless, and that the API server takes in another way than their authors expect.

use chandler_tests::{World, bundles::Bundle, world::condition};
use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::PLAIN;

fn secret(port: &str) -> Bundle {
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: harbour}}\nstringData:\n  user: keeper\n  port: {port}\n"
    );
    Bundle::empty().with("manifests/secret.yaml", &secret)
}

#[tokio::test]
async fn a_number_among_the_texts_of_a_secret_is_refused_and_loses_nothing() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&secret("'5432'")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let image = world.push(&secret("5432")).await;
    world.apply(&name, world.spec(PLAIN, &image)).await;
    let deployment = world.condition(&name, "Ready", "False", "InvalidContent").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(
        message.contains("manifests/secret.yaml:6") && message.contains("stringData.port must be text"),
        "{message}"
    );
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let data = secrets.get("harbour").await.expect("the Secret").data.unwrap_or_default();
    assert_eq!(data.get("port").map(|port| port.0.as_slice()), Some(b"5432".as_slice()));
    world.finish().await;
}

/// A CRD of a group for this run alone.
fn berths(group: &str, short_names: &Value, description: &str) -> Bundle {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("berths.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "berths", "singular": "berth", "kind": "Berth", "listKind": "BerthList", "shortNames": short_names},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "description": description}},
            }],
        },
    });
    Bundle::empty().with("manifests/crd.yaml", &crd.to_string())
}

/// The API server refuses such a name for good, and keeps serving the CRD by its other names.
#[tokio::test]
async fn a_short_name_that_is_a_name_of_its_own_crd_stops_no_upgrade() {
    let world = World::new().await;
    let name = world.name();
    let group = format!("{name}.example.com");
    world.deploy(&name, PLAIN, &world.push(&berths(&group, &json!(["bt"]), "first")).await).await;
    world.ready(&name).await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for description in ["second", "third"] {
        let image = world.push(&berths(&group, &json!(["bt", "berth"]), description)).await;
        world.apply(&name, world.spec(PLAIN, &image)).await;
        world.ready(&name).await;
        let crd = crds.get(&format!("berths.{group}")).await.expect("the CRD");
        let schema = crd.spec.versions.first().and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        assert_eq!(schema.and_then(|schema| schema.description.as_deref()), Some(description), "{}", crd.name_any());
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        let refused = conditions.iter().find(|condition| condition.type_ == "NamesAccepted").expect("NamesAccepted");
        assert_eq!((refused.status.as_str(), refused.reason.as_deref()), ("False", Some("ShortNamesConflict")));
    }
    world.finish().await;
}
