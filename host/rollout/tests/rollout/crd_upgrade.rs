//! Upgrades of CRDs, checked before anything is written.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_core::Reason;
use chandler_rollout::{Progress, RolloutError};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::support::{Stage, config_map, key, ox, oxen, release};

/// A CRD with this schema of `spec.yoke`.
fn crd(yoke: &Value) -> Value {
    oxen(json!({"yoke": yoke}))
}

async fn make_oxen(stage: &Stage, count: usize) {
    let api = stage.api(&key("example.com/v1", "Ox", Some("install"), "any"));
    for number in 0..count {
        let ox = ox(&format!("ox-{number}"), json!({"yoke": "oak"}));
        let ox = serde_json::from_value(ox).unwrap();
        api.create(&PostParams::default(), &ox).await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_written_before_crd_upgrades_are_checked() {
    let stage = Stage::set().await;
    let text = json!({"type": "string"});
    stage.complete(&release(&[(0, crd(&text)), (0, config_map("settings", json!({"v": "1"})))])).await;
    stage.writes();

    let number = release(&[(0, crd(&json!({"type": "integer"}))), (0, config_map("settings", json!({"v": "2"})))]);
    let error = stage.advance(&number).await.unwrap_err();
    assert_eq!(error.reason(), Reason::UnsafeCRDUpgrade);
    assert!(matches!(&error, RolloutError::UnsafeCrdUpgrade(findings) if findings.len() == 1), "{error}");
    assert!(!error.is_transient());
    assert_eq!(stage.writes(), Vec::<String>::new());

    // A manual change is repaired without a check.
    let settings = release(&[(0, crd(&text)), (0, config_map("settings", json!({"v": "1"})))]);
    let crd_key = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com");
    stage.meddle(&crd_key, json!({"spec": crd(&json!({"type": "integer"}))["spec"]})).await;
    let changes = stage.complete(&settings).await;
    assert_eq!(changes.recovered, [crd_key]);
}

#[tokio::test]
async fn a_crd_that_terminates_is_compared_with_its_new_version() {
    let stage = Stage::set().await;
    let text = release(&[(0, crd(&json!({"type": "string"})))]);
    stage.complete(&text).await;
    let crd_key = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com");
    stage.meddle(&crd_key, json!({"metadata": {"finalizers": ["example.com/held"]}})).await;
    stage.api(&crd_key).delete(&crd_key.name, &DeleteParams::default()).await.unwrap();

    let error = stage.advance(&release(&[(0, crd(&json!({"type": "integer"})))])).await.unwrap_err();
    assert_eq!(error.reason(), Reason::UnsafeCRDUpgrade, "{error}");
    // The release that runs waits until it can create the CRD again.
    let progress = stage.advance(&text).await.unwrap();
    assert!(matches!(progress, Progress::Waiting { .. }), "{progress:?}");
}

#[tokio::test]
async fn a_crd_that_is_too_expensive_to_check_is_refused() {
    let stage = Stage::set().await;
    stage.complete(&release(&[(0, crd(&json!({"type": "string"})))])).await;
    make_oxen(&stage, 1).await;
    stage.writes();
    let patterns: Vec<Value> = (0..100).map(|number| json!({"pattern": format!(".{{800}}{number}")})).collect();
    let hostile = release(&[(0, crd(&json!({"type": "string", "allOf": patterns})))]);
    let error = stage.advance(&hostile).await.unwrap_err();
    assert_eq!(error.reason(), Reason::CRDCheckLimitExceeded, "{error}");
    assert!(error.is_refusal() && !error.is_transient());
    assert!(error.to_string().starts_with("CRD \"oxen.example.com\" cannot be checked"), "{error}");
    assert_eq!(stage.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn custom_resources_are_sampled_page_by_page() {
    let mut stage = Stage::set().await;
    stage.complete(&release(&[(0, crd(&json!({"type": "string"})))])).await;
    make_oxen(&stage, 230).await;
    let longer = release(&[(0, crd(&json!({"type": "string", "minLength": 4})))]);
    let policy = |policy: Value| serde_json::from_value(policy).unwrap();

    stage.owner.crd_upgrades =
        policy(json!({"rules": [{"name": "minLength", "enforcement": "None"}], "sampleSize": 210}));
    let error = stage.advance(&longer).await.unwrap_err().to_string();
    let expected = "existingCustomResources: existing custom object install/ox-0 failed validation for new schema version v1: \
                    /spec/yoke: value is shorter than 4 characters";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("205 more existing custom objects failed validation (checked 210 of about 230"), "{error}");

    stage.owner.crd_upgrades = policy(json!({"enforcement": "Warn", "sampleSize": 1}));
    let progress = stage.advance(&longer).await.unwrap();
    let warnings = &progress.changes().warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("minLength: minimum constraint added"), "{warnings:?}");
    assert!(warnings[2].ends_with("checked 1 of about 230 existing custom resources"), "{warnings:?}");
    assert!(matches!(progress, Progress::Waiting { .. } | Progress::Complete { .. }));
}
