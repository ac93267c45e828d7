//! Upgrades of CRDs, checked before anything is written.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_core::{Reason, Release};
use chandler_crd_upgrade::Upgrade;
use chandler_rollout::{Progress, RolloutError, RolloutRequest};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::support::{Stage, config_map, key, ox, oxen, release};

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
    assert!(matches!(&error, RolloutError::UnsafeCrdUpgrade(refused) if refused.upgrades.len() == 1), "{error}");
    assert!(!error.is_transient());
    assert_eq!(stage.writes(), Vec::<String>::new());

    // A manual change is repaired without a check.
    let settings = release(&[(0, crd(&text)), (0, config_map("settings", json!({"v": "1"})))]);
    let crd_key = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com");
    stage.meddle(&crd_key, json!({"spec": crd(&json!({"type": "integer"}))["spec"]})).await;
    let changes = stage.complete(&settings).await;
    assert_eq!(changes.recovered, [crd_key]);
}

/// Approves what the preview of a release lists, as `alice`.
async fn approve(stage: &mut Stage, new: &Release) -> Vec<Upgrade> {
    let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, new)).await.unwrap();
    let approved = preview.crd_upgrades.iter().map(|upgrade| (upgrade.digest.to_string(), "alice".to_owned()));
    stage.owner.approved_upgrades = approved.collect();
    preview.crd_upgrades
}

#[tokio::test]
async fn exactly_the_approved_findings_are_allowed() {
    let mut stage = Stage::set().await;
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let other_crd = |r#type: &Value| {
        let mut other = crd(r#type);
        other["metadata"]["name"] = json!("yaks.example.org");
        other["spec"]["group"] = json!("example.org");
        other["spec"]["names"] = json!({"kind": "Yak", "listKind": "YakList", "plural": "yaks", "singular": "yak"});
        other
    };
    stage.complete(&release(&[(0, crd(&text)), (0, other_crd(&text))])).await;
    let new = release(&[(0, crd(&number)), (0, other_crd(&number))]);
    let reviewed = approve(&mut stage, &new).await;
    assert_eq!(reviewed.iter().map(|upgrade| upgrade.report.refusals.len()).collect::<Vec<_>>(), [1, 1]);
    stage.writes();

    // Another new version, a custom resource that becomes invalid, and a change of the live CRD need another approval.
    let another = release(&[(0, crd(&json!({"type": "boolean"}))), (0, other_crd(&number))]);
    assert_eq!(stage.advance(&another).await.unwrap_err().reason(), Reason::UnsafeCRDUpgrade);
    make_oxen(&stage, 1).await;
    assert_eq!(stage.advance(&new).await.unwrap_err().reason(), Reason::UnsafeCRDUpgrade);
    let ox_key = key("example.com/v1", "Ox", Some("install"), "ox-0");
    stage.remove(&ox_key).await;
    let crd_key = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com");
    stage.meddle(&crd_key, json!({"spec": {"names": {"shortNames": ["o"]}}})).await;
    let refused = stage.advance(&new).await.unwrap_err();
    let RolloutError::UnsafeCrdUpgrade(refused) = refused else { panic!("{refused}") };
    let refused: Vec<(&str, bool)> =
        refused.upgrades.iter().map(|upgrade| (upgrade.crd.as_str(), upgrade.is_refused())).collect();
    assert_eq!(refused, [("oxen.example.com", true), ("yaks.example.org", false)]);
    assert_eq!(stage.writes(), Vec::<String>::new());

    // The approval of one CRD stays valid after the other one was upgraded, so a rollout that was interrupted continues.
    approve(&mut stage, &new).await;
    stage.complete(&release(&[(0, crd(&number)), (0, other_crd(&text))])).await;
    let progress = stage.advance(&new).await.unwrap();
    let warnings = &progress.changes().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("alice approved 1 finding about CRD \"yaks.example.org\": sha256:"),
        "{warnings:?}"
    );
    stage.complete(&new).await;
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

/// A newer release restricts a field, adds a field, and requires it. Objects use all of it.
#[tokio::test]
async fn a_rollback_undoes_restrictions_and_keeps_added_fields() {
    let mut stage = Stage::set().await;
    let older =
        release(&[(0, oxen(json!({"yoke": {"type": "string"}}))), (0, config_map("settings", json!({"v": "1"})))]);
    let mut newer = oxen(json!({"yoke": {"type": "string", "pattern": "^[a-z]+$"}, "horns": {"type": "integer"}}));
    newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["horns"]);
    let newer = release(&[(0, newer), (0, config_map("settings", json!({"v": "2"})))]);
    stage.complete(&older).await;
    approve(&mut stage, &newer).await;
    stage.complete(&newer).await;
    stage.owner.approved_upgrades.clear();
    let oxen = stage.api(&key("example.com/v1", "Ox", Some("install"), "any"));
    let create = async |name: &str, spec: Value| {
        let ox = serde_json::from_value(ox(name, spec)).unwrap();
        oxen.create(&PostParams::default(), &ox).await
    };
    create("new", json!({"yoke": "oak", "horns": 2})).await.unwrap();
    create("old", json!({"yoke": "Oak 7"})).await.unwrap_err();

    stage.owner.rollback = true;
    stage.complete(&older).await;
    create("old", json!({"yoke": "Oak 7"})).await.unwrap();
    create("newer", json!({"yoke": "oak", "horns": 3})).await.unwrap();
    for (name, horns) in [("new", 2), ("newer", 3)] {
        assert_eq!(oxen.get(name).await.unwrap().data["spec"]["horns"], horns, "{name}");
    }
    stage.writes();
    stage.complete(&older).await;
    assert_eq!(stage.writes(), Vec::<String>::new());
}
