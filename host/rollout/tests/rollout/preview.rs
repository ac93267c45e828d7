//! A preview reports the same refusals as the rollout.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_core::Release;
use chandler_rollout::{DefinedKinds, RolloutRequest, Rule};
use serde_json::{Value, json};

use super::support::{Stage, config_map, config_map_key, deployment, key, ox, oxen, release};

/// The refusals in the preview of a release, which writes nothing.
async fn refusals(stage: &Stage, release: &Release) -> Vec<String> {
    stage.writes();
    let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, release)).await.unwrap();
    assert_eq!(stage.writes(), [""; 0]);
    preview.refusals
}

/// The refusal in the preview, which must equal the rollout's.
async fn agreed(stage: &Stage, objects: &[(u32, Value)]) -> String {
    let release = release(objects);
    let previewed = refusals(stage, &release).await;
    let refused = stage.advance(&release).await.unwrap_err();
    assert!(refused.is_refusal(), "{refused}");
    assert_eq!(previewed, [refused.to_string()]);
    assert_eq!(stage.writes(), [""; 0]);
    refused.reason().to_string()
}

#[tokio::test]
async fn a_preview_reports_what_the_rollout_refuses() {
    let stage = Stage::set().await;
    stage.make(&config_map_key("theirs"), config_map("theirs", json!({}))).await;
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}});
    let mut invalid = deployment("web", "example.com/web:v1");
    invalid["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    let twice = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": "install"}});
    for (object, reason) in [
        (config_map("theirs", json!({})), "ObjectCollision"),
        (ox("one", json!({})), "RequiredResourceNotFound"),
        (elsewhere, "InstallNamespaceNotFound"),
        (invalid, "ObjectRefused"),
        (twice, "InvalidOutput"),
    ] {
        let objects = [(0, config_map("first", json!({}))), (1, object)];
        assert_eq!(agreed(&stage, &objects).await, reason);
    }
    let broken = [Rule { origin: "spec.probes[0]".into(), rule: "self.data. == 1".into(), ..Rule::default() }];
    let release = release(&[(0, config_map("first", json!({})))]);
    let previewed =
        stage.rollout.preview(&RolloutRequest::new(&stage.owner, &release).rules(&broken)).await.unwrap().refusals;
    let refused = stage.rollout.advance(&RolloutRequest::new(&stage.owner, &release).rules(&broken)).await.unwrap_err();
    assert_eq!(previewed, [refused.to_string()]);
}

#[tokio::test]
async fn a_preview_reports_all_refusals_at_once() {
    let stage = Stage::set().await;
    let crd = |kind: &str| (0, oxen(json!({"yoke": {"type": kind}})));
    stage.complete(&release(&[crd("string")])).await;
    assert_eq!(agreed(&stage, &[crd("integer")]).await, "UnsafeCRDUpgrade");

    stage.make(&config_map_key("theirs"), config_map("theirs", json!({"a": "b"}))).await;
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}});
    let all = release(&[crd("integer"), (1, config_map("theirs", json!({}))), (1, elsewhere)]);
    let previewed = refusals(&stage, &all).await;
    let begin: Vec<&str> = previewed.iter().filter_map(|refusal| refusal.split(':').next()).collect();
    assert_eq!(
        begin,
        [
            "ConfigMap install/theirs already exists and was created by kubectl\nadopt objects without a controller with `chandler adopt demo` or spec.collisionProtection",
            "required resource not found",
            "validating upgrade for CRD \"oxen.example.com\"",
        ]
    );
}

#[tokio::test]
async fn a_terminating_object_is_awaited() {
    let stage = Stage::set().await;
    let release = release(&[(0, config_map("held", json!({})))]);
    stage.complete(&release).await;
    let held = config_map_key("held");
    stage.meddle(&held, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    stage.api(&held).delete("held", &kube::api::DeleteParams::default()).await.unwrap();
    let expected = "ConfigMap install/held is being deleted: the rollout would wait until it is gone";
    assert_eq!(refusals(&stage, &release).await, [expected]);
    stage.meddle(&held, json!({"metadata": {"finalizers": null}})).await;
}

#[tokio::test]
async fn objects_that_only_the_dry_run_finds_invalid_are_not_refused() {
    let stage = Stage::set().await;
    let mut crd = oxen(json!({"yoke": {"type": "string"}, "plough": {"type": "string"}}));
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    crd.pointer_mut(spec).unwrap()["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.yoke) || !has(self.plough)", "message": "one of them"}]);
    let with = |spec: Value| release(&[(0, crd.clone()), (0, ox("one", spec))]);
    stage.complete(&with(json!({"yoke": "oak"}))).await;
    // It was created and never applied, so a dry run keeps the yoke beside its replacement.
    let instead = with(json!({"plough": "iron"}));
    assert_eq!(refusals(&stage, &instead).await, [""; 0]);
    stage.complete(&instead).await;
    let live = stage.live(&key("example.com/v1", "Ox", Some("install"), "one")).await.unwrap();
    assert_eq!(live["spec"], json!({"plough": "iron"}));

    let both = with(json!({"yoke": "oak", "plough": "iron"}));
    let previewed = refusals(&stage, &both).await;
    assert!(previewed[0].starts_with("cannot update Ox.example.com install/one: "), "{previewed:?}");
}

#[tokio::test]
async fn a_preview_takes_the_kinds_of_earlier_releases_for_served() {
    let stage = Stage::set().await;
    let (crd, object) = (release(&[(0, oxen(json!({})))]), release(&[(0, ox("one", json!({})))]));
    assert_eq!(refusals(&stage, &object).await.len(), 1);
    let mut before = DefinedKinds::default();
    before.add(&crd);
    let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, &object).after(&before)).await.unwrap();
    assert_eq!(preview.refusals, [""; 0]);
    assert_eq!(preview.changes.len(), 1);
}
