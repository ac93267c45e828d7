//! Values that an apply resets as a whole and that other managers edit, and values that make applying impossible.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use super::support::{Stage, config_map, config_map_key, deployment, key, release};
use chandler_core::{ObjectKey, Release};
use chandler_rollout::{
    CollisionProtection, DriftOptions, DriftPolicy, Ignored, IgnoredFields, Options, Rollout, RolloutError,
    RolloutRequest,
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

fn policy_key() -> ObjectKey {
    key("networking.k8s.io/v1", "NetworkPolicy", Some("install"), "fence")
}

fn policy(selector: Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "fence"},
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"]}})
}

fn service_key() -> ObjectKey {
    key("v1", "Service", Some("install"), "web")
}

fn service(ports: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": ports}})
}

async fn drift(stage: &Stage, release: &Release) -> Vec<String> {
    let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, release)).await.unwrap();
    observed.drift.iter().map(ToString::to_string).collect()
}

/// The field managers of an object with their operations.
fn managers(object: &Value) -> Vec<String> {
    let records = object["metadata"]["managedFields"].as_array().unwrap();
    let main = records.iter().filter(|record| record.get("subresource").is_none());
    main.map(|record| format!("{} {}", record["manager"].as_str().unwrap(), record["operation"].as_str().unwrap()))
        .collect()
}

fn dry_runs(stage: &Stage) -> usize {
    stage.reads().iter().filter(|request| request.contains("dryRun")).count()
}

#[tokio::test]
async fn additions_to_a_selector_are_drift() {
    let stage = Stage::set().await;
    let release = release(&[(0, policy(json!({"matchLabels": {"app": "web"}}))), (0, service(json!([{"port": 80}])))]);
    stage.complete(&release).await;
    stage.meddle(&policy_key(), json!({"spec": {"podSelector": {"matchLabels": {"tier": "other"}}}})).await;
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web", "tier": "other"}}});
    let gitops = PatchParams::apply("gitops").force();
    stage.api(&service_key()).patch("web", &gitops, &Patch::Apply(theirs)).await.unwrap();

    insta::assert_snapshot!(drift(&stage, &release).await.join("\n"), @r"
    NetworkPolicy.networking.k8s.io install/fence: spec.podSelector.matchLabels.tier was set by kubectl
    Service install/web: spec.selector.tier was applied by gitops
    ");
    let preview = stage.rollout.preview(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
    assert_eq!(preview.changes.iter().map(|change| change.fields.len()).collect::<Vec<_>>(), [1, 1]);
    let reported = DriftOptions { drift: DriftPolicy::Report, complete: true, ..DriftOptions::default() };
    let progress =
        stage.rollout.advance(&RolloutRequest::new(&stage.owner, &release).drift(reported.clone())).await.unwrap();
    assert_eq!(progress.changes().unrepaired.len(), 2);

    let changes = stage.complete(&release).await;
    assert_eq!(changes.recovered, [policy_key(), service_key()]);
    assert_eq!(stage.live(&policy_key()).await.unwrap()["spec"]["podSelector"], json!({"matchLabels": {"app": "web"}}));
    assert_eq!(stage.live(&service_key()).await.unwrap()["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(drift(&stage, &release).await, [""; 0]);
}

#[tokio::test]
async fn removing_an_empty_value_is_drift() {
    let stage = Stage::set().await;
    let budget = key("policy/v1", "PodDisruptionBudget", Some("install"), "all");
    let release = release(&[(
        0,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}}),
    )]);
    stage.complete(&release).await;
    stage.meddle(&budget, json!({"spec": {"selector": null}})).await;
    assert_eq!(drift(&stage, &release).await, ["PodDisruptionBudget.policy install/all: spec.selector was removed"]);
    stage.complete(&release).await;
    assert_eq!(stage.live(&budget).await.unwrap()["spec"]["selector"], json!({}));
}

#[tokio::test]
async fn a_dry_run_is_made_only_if_a_value_may_have_been_overwritten() {
    let mut stage = Stage::set().await;
    let (web, settings) = (key("apps/v1", "Deployment", Some("install"), "web"), config_map_key("settings"));
    let release = release(&[
        (0, config_map("settings", json!({"a": "1"}))),
        (0, policy(json!({"matchLabels": {"app": "web"}}))),
        (0, deployment("web", "example.com/web:v1")),
    ]);
    stage.complete(&release).await;
    assert_eq!(drift(&stage, &release).await, [""; 0]);
    stage.reads();
    // Annotations that another controller renews and status updates cost nothing.
    for time in ["1", "2"] {
        stage.meddle(&settings, json!({"metadata": {"annotations": {"renewed": time}}, "data": {"b": time}})).await;
        let status = json!({"metadata": {"annotations": {"revision": time}},
            "status": {"observedGeneration": time.parse::<u32>().unwrap()}});
        let other_client = PatchParams { field_manager: Some("kubectl".into()), ..PatchParams::default() };
        stage.api(&web).patch_status("web", &other_client, &Patch::Merge(status)).await.unwrap();
        assert_eq!(drift(&stage, &release).await, [""; 0]);
        // The API server stores quantities of the Deployment in another notation, so it was compared once; its annotations are
        // new.
        assert!(dry_runs(&stage) <= 1);
    }
    let revision = json!({"status": {"observedGeneration": 3}});
    stage.api(&web).patch_status("web", &PatchParams::default(), &Patch::Merge(revision)).await.unwrap();
    assert_eq!(drift(&stage, &release).await, [""; 0]);
    assert_eq!(dry_runs(&stage), 0, "the status does not count");

    // If another client writes the same value into a selector, the process that created the object knows its state, and another
    // process makes one dry run.
    let same = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "fence"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}}});
    let gitops = PatchParams::apply("gitops").force();
    stage.api(&policy_key()).patch("fence", &gitops, &Patch::Apply(same)).await.unwrap();
    assert_eq!(drift(&stage, &release).await, [""; 0]);
    assert_eq!(dry_runs(&stage), 0);
    stage.restart().await;
    for dry_runs_then in [2, 0] {
        assert_eq!(drift(&stage, &release).await, [""; 0]);
        assert_eq!(dry_runs(&stage), dry_runs_then, "the policy and the Deployment");
    }
}

#[tokio::test]
async fn writes_under_the_name_of_chandler_are_detected() {
    let stage = Stage::set().await;
    let (settings, fence) = (config_map_key("settings"), policy_key());
    let objects =
        release(&[(0, config_map("settings", json!({"a": "1"}))), (0, policy(json!({"matchLabels": {"app": "web"}})))]);
    stage.complete(&objects).await;
    // Records of an update, of an apply, and none.
    stage.meddle(&fence, json!({"spec": {"podSelector": {"matchLabels": {"app": "other"}}}})).await;
    stage.complete(&objects).await;
    let ours = PatchParams { field_manager: Some("chandler".into()), ..PatchParams::default() };
    let added = Patch::Merge(json!({"spec": {"podSelector": {"matchLabels": {"tier": "other"}}}}));
    stage.api(&fence).patch("fence", &ours, &added).await.unwrap();
    let reported_drift = "NetworkPolicy.networking.k8s.io install/fence: spec.podSelector.matchLabels.tier was changed";
    assert_eq!(drift(&stage, &objects).await, [reported_drift]);
    stage.complete(&objects).await;

    stage.meddle(&settings, json!({"data": {"a": "2"}})).await;
    stage.complete(&objects).await;
    let mut applied = stage.live(&settings).await.unwrap();
    applied["data"]["b"] = json!("2");
    for member in ["managedFields", "resourceVersion", "creationTimestamp"] {
        applied["metadata"].as_object_mut().unwrap().remove(member);
    }
    stage
        .api(&settings)
        .patch("settings", &PatchParams::apply("chandler").force(), &Patch::Apply(applied))
        .await
        .unwrap();
    assert_eq!(drift(&stage, &objects).await, ["ConfigMap install/settings: data.b was changed"]);
    stage.complete(&objects).await;

    stage.meddle(&fence, json!({"metadata": {"managedFields": [{}]}})).await;
    stage.meddle(&fence, json!({"spec": {"podSelector": {"matchLabels": {"tier": "other"}}}})).await;
    assert_eq!(drift(&stage, &objects).await, [reported_drift]);
    stage.complete(&objects).await;
    assert_eq!(drift(&stage, &objects).await, [""; 0]);
}

#[tokio::test]
async fn ignored_members_of_a_selector_stay() {
    let stage = Stage::set().await;
    let ignoring = |pointer: &str| {
        let fields = IgnoredFields { json_pointers: vec![pointer.into()], ..IgnoredFields::default() };
        stage.owner.clone().ignoring(Ignored::new([fields]).unwrap_or_default())
    };
    let objects = release(&[(0, policy(json!({"matchLabels": {"app": "web"}})))]);
    stage.complete(&objects).await;
    let selector = async |stage: &Stage| stage.live(&policy_key()).await.unwrap()["spec"]["podSelector"].clone();
    let one = ignoring("/spec/podSelector/matchLabels/tier");
    stage.meddle(&policy_key(), json!({"spec": {"podSelector": {"matchLabels": {"tier": "x"}}}})).await;
    assert!(stage.rollout.observe(&RolloutRequest::new(&one, &objects)).await.unwrap().matches_release());
    assert!(stage.rollout.preview(&RolloutRequest::new(&one, &objects)).await.unwrap().is_empty());
    // Another field is drift, and is repaired without it.
    stage.meddle(&policy_key(), json!({"spec": {"podSelector": {"matchLabels": {"zone": "x"}}}})).await;
    let observed = stage.rollout.observe(&RolloutRequest::new(&one, &objects)).await.unwrap();
    let reported_drift: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported_drift,
        ["NetworkPolicy.networking.k8s.io install/fence: spec.podSelector.matchLabels.zone was set by kubectl"]
    );
    stage.rollout.advance(&RolloutRequest::new(&one, &objects)).await.unwrap();
    assert_eq!(selector(&stage).await, json!({"matchLabels": {"app": "web", "tier": "x"}}));
    assert!(stage.rollout.observe(&RolloutRequest::new(&one, &objects)).await.unwrap().matches_release());
    assert_eq!(drift(&stage, &objects).await.len(), 1, "without the rule it is drift again");

    // This also applies if the map itself is not in the release.
    let all = release(&[(0, policy(json!({})))]);
    stage.complete(&all).await;
    stage.meddle(&policy_key(), json!({"spec": {"podSelector": {"matchLabels": {"tier": "x"}}}})).await;
    assert!(stage.rollout.observe(&RolloutRequest::new(&one, &all)).await.unwrap().matches_release());
    stage.meddle(&policy_key(), json!({"spec": {"policyTypes": ["Egress"]}})).await;
    stage.rollout.advance(&RolloutRequest::new(&one, &all)).await.unwrap();
    assert_eq!(selector(&stage).await, json!({"matchLabels": {"tier": "x"}}));
    let whole = ignoring("/spec/podSelector");
    stage.meddle(&policy_key(), json!({"spec": {"podSelector": {"matchLabels": {"zone": "x"}}}})).await;
    assert!(stage.rollout.observe(&RolloutRequest::new(&whole, &all)).await.unwrap().matches_release());
}

#[tokio::test]
async fn values_that_make_an_apply_impossible_are_replaced() {
    let stage = Stage::set().await;
    let web = key("apps/v1", "Deployment", Some("install"), "web");
    let mut workload = deployment("web", "example.com/web:v1");
    workload["spec"]["strategy"] = json!({"type": "Recreate"});
    workload["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "a"}}]);
    let objects = release(&[(0, service(json!([{"port": 80}]))), (0, workload)]);
    stage.complete(&objects).await;
    let edit = json!([{"port": 8080, "protocol": "TCP", "targetPort": 8080}]);
    stage.meddle(&service_key(), json!({"spec": {"ports": edit}})).await;
    stage
        .meddle(
            &web,
            json!({"spec": {"replicas": 3, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {
        "volumes": [{"name": "v", "secret": {"secretName": "b"}}, {"name": "theirs", "emptyDir": {}}]}}}}),
        )
        .await;

    insta::assert_snapshot!(drift(&stage, &objects).await.join("\n"), @r"
    Service install/web: spec.ports[0].port was set by kubectl, spec.ports[0].targetPort was set by kubectl
    Deployment.apps install/web: spec.strategy.rollingUpdate was set by kubectl, spec.strategy.type was set by kubectl, spec.template.spec.volumes[name=v].configMap was removed, spec.template.spec.volumes[name=v].secret was set by kubectl
    ");
    assert!(
        stage
            .rollout
            .preview(&RolloutRequest::new(&stage.owner, &objects))
            .await
            .unwrap()
            .changes
            .iter()
            .all(|change| change.note.is_none())
    );
    // The simulated workloads write the status meanwhile.
    while stage.advance(&objects).await.is_err_and(|error| error.is_transient()) {}
    assert_eq!(drift(&stage, &objects).await, [""; 0]);
    stage.complete(&objects).await;
    let live = stage.live(&service_key()).await.unwrap();
    assert_eq!(live["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    assert_eq!(managers(&live), ["chandler Apply"]);
    let live = stage.live(&web).await.unwrap();
    assert_eq!(live["spec"]["strategy"], json!({"type": "Recreate"}));
    let volumes: Vec<&Value> =
        live["spec"]["template"]["spec"]["volumes"].as_array().unwrap().iter().map(|volume| &volume["name"]).collect();
    assert_eq!(volumes, ["v", "theirs"], "what others added stays");
    assert_eq!(live["spec"]["replicas"], 3);

    // This also applies to another release.
    stage.meddle(&service_key(), json!({"spec": {"ports": edit}})).await;
    let next = release(&[(0, service(json!([{"port": 81}])))]);
    assert_eq!(stage.complete(&next).await.updated, [service_key()]);
    assert_eq!(stage.live(&service_key()).await.unwrap()["spec"]["ports"][0]["port"], 81);
}

#[tokio::test]
async fn if_replacing_is_refused_too_the_first_error_is_reported() {
    let stage = Stage::set().await;
    let settings = config_map_key("settings");
    let objects = release(&[(0, config_map("settings", json!({"a": "1"})))]);
    stage.complete(&objects).await;
    stage.meddle(&settings, json!({"data": {"a": "2"}, "immutable": true})).await;
    assert_eq!(drift(&stage, &objects).await, ["ConfigMap install/settings: data.a was set by kubectl"]);
    let refused = stage.advance(&objects).await.unwrap_err();
    insta::assert_snapshot!(refused, @r#"cannot update ConfigMap install/settings: ConfigMap "settings" is invalid: data: Forbidden: field is immutable when `immutable` is set"#);
    assert!(matches!(refused, RolloutError::Objects(_)));
    assert_eq!(stage.live(&settings).await.unwrap()["data"]["a"], "2");

    // Objects of other owners are not replaced.
    let rollout = Rollout::new(stage.client.clone(), Options::default());
    stage.make(&service_key(), service(json!([{"port": 8080}]))).await;
    let taken = release(&[(0, service(json!([{"port": 80}])))]);
    let owner = stage.owner.clone().with_collisions(CollisionProtection::None);
    assert!(rollout.advance(&RolloutRequest::new(&owner, &taken)).await.is_err());
    assert_eq!(stage.live(&service_key()).await.unwrap()["spec"]["ports"][0]["port"], 8080);
}
