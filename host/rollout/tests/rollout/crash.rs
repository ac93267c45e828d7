//! Crash injection: the controller crashes at any request, or the API server fails at any request.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use super::support::{Stage, config_map, config_map_key, key, ox, oxen, release};

use chandler_devcluster::{Effect, Fault, faults::Verb};
use serde_json::{Value, json};

fn first() -> Vec<(u32, Value)> {
    vec![
        (0, config_map("kept", json!({"a": "1", "dropped": "1"}))),
        (0, config_map("old", json!({}))),
        (0, oxen(json!({}))),
        (0, ox("one", json!({}))),
    ]
}

fn second() -> Vec<(u32, Value)> {
    vec![(0, config_map("kept", json!({"a": "2"}))), (1, config_map("new", json!({})))]
}

/// Upgrades from the first to the second release with one failing request, and then again with a restarted controller.
async fn upgrade_with_failure(fault: Fault) {
    let mut stage = Stage::set().await;
    stage.complete(&release(&first())).await;
    let text = fault.to_string();
    stage.cluster.inject(fault);
    let second = release(&second());
    let error = stage.fail(&second).await;
    assert!(error.is_transient(), "{text}: {error}");
    stage.restart().await;
    let changes = stage.complete(&second).await;

    let context = format!("{text}: {changes}");
    assert_eq!(stage.live(&config_map_key("kept")).await.unwrap()["data"], json!({"a": "2"}), "{context}");
    assert!(stage.live(&config_map_key("new")).await.is_some(), "{context}");
    assert_eq!(stage.live(&config_map_key("old")).await, None, "{context}");
    let crd = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com");
    assert_eq!(stage.live(&crd).await, None, "{context}");
    let annotations = stage.parent().await.metadata.annotations.unwrap();
    assert_eq!(annotations["applyset.kubernetes.io/contains-group-kinds"], "ConfigMap", "{context}");
}

#[tokio::test]
async fn an_upgrade_that_fails_anywhere_is_completed_by_the_next_attempt() {
    for (verb, resource, name, times) in [
        (Verb::Patch, "configmaps", "kept", 1),
        // The dry run before it fails, too, which stops nothing.
        (Verb::Create, "configmaps", "new", 2),
        (Verb::Delete, "oxen.example.com", "one", 1),
        (Verb::Delete, "configmaps", "old", 1),
        (Verb::Patch, "bundledeployments", "demo", 1),
    ] {
        for effect in [Effect::InternalError, Effect::InternalErrorAfterWrite, Effect::ResetAfterWrite] {
            let fault = Fault::new(effect).verb(verb).resource(resource).name(name).times(times);
            Box::pin(upgrade_with_failure(fault)).await;
        }
    }
}
