//! A controller that dies at any request, and an API server that fails at any request.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use crate::support::{Stage, config_map, config_map_key, key, ox, oxen, release};

use chandler_devcluster::{Effect, Fault};
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

/// Brings the second release onto the first with one request failing, and then again by a controller that knows nothing.
async fn upgrade_with_failure(method: &str, path: &str, times: u32, effect: Effect) {
    let mut stage = Stage::set().await;
    stage.complete(&release(&first())).await;
    stage.cluster.inject(Fault { method: Some(method.into()), path_contains: path.into(), times, effect });
    let second = release(&second());
    let error = stage.fail(&second).await;
    assert!(error.is_transient(), "{method} {path}: {error}");
    stage.restart().await;
    let changes = stage.complete(&second).await;

    let context = format!("{method} {path} {effect:?}: {changes}");
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
    for (method, path, times) in [
        ("PATCH", "/configmaps/kept", 1),
        // The dry run before it fails too, which stops nothing.
        ("POST", "/namespaces/install/configmaps", 2),
        ("DELETE", "/oxen/one", 1),
        ("DELETE", "/configmaps/old", 1),
        ("PATCH", "/bundledeployments/demo", 1),
    ] {
        for effect in [Effect::InternalError, Effect::InternalErrorAfterWrite] {
            upgrade_with_failure(method, path, times, effect).await;
        }
    }
}
