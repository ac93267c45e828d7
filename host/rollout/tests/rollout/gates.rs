//! What a stage waits for, and how few requests waiting takes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_core::Reason;
use chandler_devcluster::workloads::{Behaviour, Subject};
use chandler_rollout::{Progress, RolloutError, RolloutRequest, Rule, Unhealthy};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{
    Stage, config_map, config_map_key, deployment, gate_probe, key, ox, oxen, release, release_with_probes,
};

pub(super) fn waiting(progress: Result<Progress, RolloutError>) -> Vec<String> {
    match progress.unwrap() {
        Progress::Waiting { waiting, .. } => waiting.iter().map(Unhealthy::to_string).collect(),
        Progress::Complete { .. } => Vec::new(),
    }
}

pub(super) fn job(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations},
        "spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/job"}]}}}})
}

#[tokio::test]
async fn two_thousand_objects_take_a_few_lists() {
    let stage = Stage::set().await;
    let mut objects = vec![(0, config_map("gate", json!({})))];
    objects.extend((0..1000).map(|number| (0, config_map(&format!("early-{number}"), json!({})))));
    objects.extend((0..1000).map(|number| (1, config_map(&format!("late-{number}"), json!({})))));
    let release = release_with_probes(&objects, vec![gate_probe()]);

    let first = waiting(stage.advance(&release).await);
    assert_eq!(first, ["(/v1, Kind=ConfigMap)(install/gate): the gate is closed"]);
    let dry_runs = |reads: &[String]| reads.iter().filter(|read| read.contains("dryRun")).count();
    let reads = stage.reads();
    assert_eq!(dry_runs(&reads), objects.len(), "each object is checked, once");
    assert!(reads.len() < objects.len() + 20, "{} requests", reads.len());

    // A call that only waits lists existing objects in pages of five hundred, and requests nothing about later stages.
    stage.writes();
    waiting(stage.advance(&release).await);
    let reads = stage.reads();
    assert!(reads.len() <= 8, "{reads:?}");
    assert_eq!(stage.writes(), [""; 0]);

    stage.open_gate().await;
    assert!(stage.advance(&release).await.unwrap().is_complete());
    stage.reads();
    let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
    assert!(observed.matches_release() && observed.is_healthy());
    let reads = stage.reads();
    assert!(reads.len() <= 10, "{reads:?}");
}

#[tokio::test]
async fn names_of_other_owners_are_found_among_many() {
    let stage = Stage::set().await;
    let foreign: kube::core::DynamicObject = serde_json::from_value(config_map("x-7", json!({}))).unwrap();
    stage.api(&config_map_key("x-7")).create(&kube::api::PostParams::default(), &foreign).await.unwrap();
    let objects: Vec<_> = (0..30).map(|number| (0, config_map(&format!("x-{number}"), json!({})))).collect();
    let refused = stage.advance(&release(&objects)).await.unwrap_err();
    assert!(matches!(&refused, RolloutError::Collisions(collisions) if collisions.found.len() == 1), "{refused}");
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test]
async fn a_rule_of_the_installer_gates_a_stage_and_a_broken_one_is_refused() {
    let stage = Stage::set().await;
    let objects = [(0, config_map("first", json!({"phase": "waiting"}))), (1, config_map("second", json!({})))];
    let release = release(&objects);
    let mut rule = Rule {
        origin: "spec.probes[0]".into(),
        rule: "self.metadata.labels['example.com/open'] == 'yes'".into(),
        message_expression: Some("'is ' + self.data.phase".into()),
        ..Rule::default()
    };
    rule.selector.kind = "ConfigMap".into();
    rule.selector.name = Some("first".into());
    let broken = Rule { rule: "self.data. == 1".into(), ..rule.clone() };
    let refused =
        stage.rollout.advance(&RolloutRequest::new(&stage.owner, &release).rules(&[broken])).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::InvalidConfiguration);
    assert!(refused.to_string().starts_with("spec.probes[0].rule, line 1, column 12: "), "{refused}");
    assert_eq!(stage.writes(), [""; 0]);

    let rules = [rule];
    assert_eq!(
        waiting(stage.rollout.advance(&RolloutRequest::new(&stage.owner, &release).rules(&rules)).await),
        ["(/v1, Kind=ConfigMap)(install/first): is waiting: field example.com/open does not exist yet"]
    );
    let open = Patch::Merge(json!({"metadata": {"labels": {"example.com/open": "yes"}}}));
    stage.api(&config_map_key("first")).patch("first", &PatchParams::default(), &open).await.unwrap();
    assert!(
        stage.rollout.advance(&RolloutRequest::new(&stage.owner, &release).rules(&rules)).await.unwrap().is_complete()
    );
}

#[tokio::test]
async fn a_job_that_is_done_stays_with_the_release() {
    let stage = Stage::set().await;
    let objects = [(0, job("migrate", json!({}))), (1, config_map("later", json!({})))];
    let release = release(&objects);
    stage.complete(&release).await;
    let job = stage.live(&key("batch/v1", "Job", Some("install"), "migrate")).await.expect("the Job");
    let job = serde_json::to_value(job).unwrap();
    assert_eq!(job.pointer("/spec/ttlSecondsAfterFinished"), None);
    assert_eq!(job.pointer("/status/succeeded"), Some(&json!(1)));
    assert!(stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap().matches_release());
}

/// A webhook for oxen, with its Service and, on request, its workload.
fn hook(objects: &mut Vec<(u32, Value)>, workload: Option<u32>) {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 80}]}});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [{
            "name": "oxen.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"caBundle": "Y2E=", "service": {"namespace": "install", "name": "hook"}},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["oxen"], "operations": ["CREATE"]}]}]});
    objects.extend([(1, service), (1, configuration)]);
    objects.extend(workload.map(|stage| (stage, deployment("hook", "example.com/hook"))));
}

#[tokio::test]
async fn a_stage_with_a_webhook_waits_for_its_endpoints() {
    let stage = Stage::set().await;
    let unanswered = "Service install/hook, which webhook oxen.example.com calls, has no ready endpoints";
    let mut objects = vec![(0, oxen(json!({}))), (2, config_map("later", json!({})))];
    hook(&mut objects, None);
    let release_without = release(&objects);
    let messages = loop {
        let messages = waiting(stage.advance(&release_without).await);
        if !messages.iter().any(|message| message.contains("CustomResourceDefinition")) {
            break messages;
        }
    };
    assert_eq!(
        messages,
        [format!("(admissionregistration.k8s.io/v1, Kind=ValidatingWebhookConfiguration)(hook): {unanswered}")]
    );
    assert_eq!(stage.live(&config_map_key("later")).await, None);

    // The workload is in the same stage; an ox, for which the webhook is called, waits for it.
    let mut objects = vec![(0, oxen(json!({}))), (1, ox("early", json!({}))), (2, config_map("later", json!({})))];
    hook(&mut objects, Some(1));
    let workload = || Subject::object("Deployment", "install", "hook");
    stage.rules.behave(workload(), Behaviour::Stall);
    let release_with = release(&objects);
    let messages = waiting(stage.advance(&release_with).await);
    assert!(
        messages
            .iter()
            .any(|message| message.contains("(install/early): waits for ready endpoints of Service install/hook")),
        "{messages:?}"
    );
    assert_eq!(stage.live(&key("example.com/v1", "Ox", Some("install"), "early")).await, None);
    stage.rules.behave(workload(), Behaviour::Healthy);
    // The embedded control plane calls no webhooks, so the ox is accepted once the Service has endpoints.
    let mut turns = 0;
    while !waiting(stage.advance(&release_with).await).is_empty() {
        turns += 1;
        assert!(turns < 10_000, "the webhook is never answered");
        tokio::task::yield_now().await;
    }
    stage.live(&config_map_key("later")).await.expect("the last stage");
}

/// cert-manager 1.4 to 1.7 has CRDs with a conversion webhook whose CA bundle it fills in itself.
#[tokio::test]
async fn a_ca_bundle_is_awaited_in_the_stage_of_the_workload_that_may_fill_it_in() {
    let stage = Stage::set().await;
    let mut crd = oxen(json!({}));
    crd["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "install/hook"});
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    let mut older = versions.first().unwrap().clone();
    (older["name"], older["storage"]) = (json!("v1alpha1"), json!(false));
    versions.push(older);
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "install", "name": "hook"}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 80}]}});
    let objects =
        [(0, crd), (1, service), (1, deployment("hook", "example.com/hook")), (2, config_map("later", json!({})))];
    let release = release(&objects);
    let bundle = "cert-manager has not filled in the CA bundle of its conversion webhook";
    let mut turns = 0;
    while stage.live(&key("apps/v1", "Deployment", Some("install"), "hook")).await.is_none() {
        waiting(stage.advance(&release).await);
        turns += 1;
        assert!(turns < 10_000, "the workload is never created");
    }
    let messages = waiting(stage.advance(&release).await);
    assert!(messages.iter().any(|message| message.contains(bundle)), "{messages:?}");
    assert_eq!(stage.live(&config_map_key("later")).await, None);
}
