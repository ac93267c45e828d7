//! The number of requests that check whether objects, permissions, accounts and namespaces exist, and the correctness of the answers.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_core::ObjectKey;
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_permissions::Account;
use chandler_rollout::{DriftOptions, Owner, RolloutError, RolloutRequest};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::support::{Stage, config_map, config_map_key, deployment, key, make_owner, release};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn new_objects() -> Vec<(u32, Value)> {
    let mut objects: Vec<_> = (0..5).map(|number| (0, config_map(&format!("x-{number}"), json!({})))).collect();
    objects.push((0, deployment("web", "example.com/web:v1")));
    objects
}

/// The requests for single objects of a release, apart from dry runs.
fn reads_of_objects(reads: &[String]) -> Vec<&String> {
    let single = |read: &&String| read.contains("/configmaps/") || read.contains("/deployments/");
    reads.iter().filter(single).filter(|read| !read.contains("dryRun")).collect()
}

#[tokio::test]
async fn new_objects_are_not_read_before_they_are_created() {
    let stage = Stage::set().await;
    stage.reads();
    stage.complete(&release(&new_objects())).await;
    let reads = stage.reads();
    assert_eq!(reads_of_objects(&reads), [""; 0]);
    assert_eq!(reads.iter().filter(|read| read.contains("dryRun")).count(), 6, "{reads:?}");
    assert_eq!(reads.iter().filter(|read| read.ends_with("/namespaces/install")).count(), 1, "{reads:?}");

    // Objects in the record are read.
    stage.remove(&config_map_key("x-1")).await;
    stage.reads();
    assert_eq!(stage.complete(&release(&new_objects())).await.created, [config_map_key("x-1")]);
    assert_eq!(reads_of_objects(&stage.reads()), ["/api/v1/namespaces/install/configmaps/x-1"]);
}

/// The repair of a complete release that lacks these ConfigMaps.
fn lacking(names: &[&str]) -> DriftOptions {
    let missing = names.iter().map(|name| config_map_key(name)).collect();
    DriftOptions { complete: true, missing, ..DriftOptions::default() }
}

#[tokio::test]
async fn one_object_that_is_missing_is_created_without_being_read_again_and_without_a_dry_run() {
    let stage = Stage::set().await;
    let objects = release(&new_objects());
    stage.complete(&objects).await;
    let repair = async |names: &[&str]| {
        stage.reads();
        stage.writes();
        let request = RolloutRequest::new(&stage.owner, &objects).drift(lacking(names));
        stage.rollout.advance(&request).await.map(|progress| progress.changes().created.clone())
    };
    let dry_runs = |reads: &[String]| reads.iter().filter(|read| read.contains("dryRun")).count();
    stage.remove(&config_map_key("x-1")).await;
    assert_eq!(repair(&["x-1"]).await.unwrap(), [config_map_key("x-1")]);
    let reads = stage.reads();
    assert_eq!((reads_of_objects(&reads).len(), dry_runs(&reads)), (0, 0), "{reads:?}");
    assert_eq!(stage.writes(), ["POST /api/v1/namespaces/install/configmaps"]);

    // Of several, none is created before all are known to be accepted.
    stage.remove(&config_map_key("x-1")).await;
    stage.remove(&config_map_key("x-2")).await;
    assert_eq!(repair(&["x-1", "x-2"]).await.unwrap(), ["x-1", "x-2"].map(config_map_key));
    let reads = stage.reads();
    assert_eq!((reads_of_objects(&reads).len(), dry_runs(&reads)), (0, 2), "{reads:?}");

    // Another client was faster.
    stage.remove(&config_map_key("x-1")).await;
    stage.make(&config_map_key("x-1"), config_map("x-1", json!({"a": "theirs"}))).await;
    let refused = repair(&["x-1"]).await.unwrap_err().to_string();
    assert!(refused.starts_with("ConfigMap install/x-1 already exists and was created by kubectl\n"), "{refused}");
    let theirs = stage.live(&config_map_key("x-1")).await.unwrap();
    assert_eq!(theirs["data"], json!({"a": "theirs"}));
}

#[tokio::test]
async fn an_object_of_another_owner_is_found_whatever_the_dry_run_answers() {
    let stage = Stage::set().await;
    stage.make(&config_map_key("x-3"), config_map("x-3", json!({"a": "theirs"}))).await;
    let web = key("apps/v1", "Deployment", Some("install"), "web");
    stage.make(&web, deployment("web", "example.com/theirs")).await;
    // An API server validates an object before it looks for another one with its name.
    let mut objects = new_objects();
    objects[5].1["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    for failing in [false, true] {
        if failing {
            // A webhook that supports no dry runs.
            stage.cluster.inject(Fault::new(Effect::InternalError).verb(Verb::Create).dry_run(true));
        }
        stage.reads();
        let refused = stage.advance(&release(&objects)).await.unwrap_err().to_string();
        assert!(refused.starts_with("ConfigMap install/x-3 already exists and was created by kubectl\n"), "{refused}");
        assert!(refused.contains("\nDeployment.apps install/web already exists and was created by "), "{refused}");
        assert_eq!(reads_of_objects(&stage.reads()).len(), if failing { 6 } else { 2 });
        assert_eq!(stage.writes(), [""; 0]);
    }
    // The dry run alone fails, so the objects are created.
    let objects: Vec<_> = (10..12).map(|number| (0, config_map(&format!("x-{number}"), json!({})))).collect();
    assert_eq!(stage.complete(&release(&objects)).await.created.len(), 2);
}

#[tokio::test]
async fn objects_in_a_namespace_of_the_release_are_not_looked_for() {
    let stage = Stage::set().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}});
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "more"}});
    stage.reads();
    assert_eq!(stage.complete(&release(&[(0, namespace), (0, inside)])).await.created.len(), 2);
    assert_eq!(reads_of_objects(&stage.reads()), [""; 0]);
}

/// A Namespace and objects in it.
fn with_namespace(more: &[Value]) -> Vec<(u32, Value)> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}});
    let inside = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "more"}});
    let own = [namespace, inside("ConfigMap", "x"), inside("ConfigMap", "y"), inside("Secret", "z")];
    own.iter().chain(more).map(|object| (0, object.clone())).collect()
}

/// The paths of dry runs.
fn dry_runs(reads: &[String]) -> Vec<&str> {
    let paths = reads.iter().filter(|read| read.contains("dryRun")).filter_map(|read| read.split('?').next());
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    paths
}

#[tokio::test]
async fn in_a_namespace_of_the_release_one_object_of_each_kind_is_asked_about_and_with_a_review_none() {
    let stage = Stage::set().await;
    let (namespaces, inside) = ("/api/v1/namespaces", |plural: &str| format!("/api/v1/namespaces/more/{plural}"));
    stage.reads();
    assert_eq!(stage.complete(&release(&with_namespace(&[]))).await.created.len(), 4);
    assert_eq!(dry_runs(&stage.reads()), [namespaces, &inside("configmaps"), &inside("secrets")]);

    let stage = Stage::set().await;
    make_account(&stage).await;
    grant(&stage).await;
    let owner = with_account(&stage, "limited").await;
    stage.reads();
    // The kinds that are not modelled are asked about as before.
    let mut web = deployment("web", "example.com/web:v1");
    web["metadata"]["namespace"] = json!("more");
    let objects = release(&with_namespace(&[web]));
    stage.rollout.advance(&RolloutRequest::new(&owner, &objects)).await.unwrap();
    assert_eq!(dry_runs(&stage.reads()), [namespaces, "/apis/apps/v1/namespaces/more/deployments"]);
    assert!(stage.live(&key("v1", "Secret", Some("more"), "z")).await.is_some());
}

#[tokio::test]
async fn a_field_that_does_not_exist_is_refused_in_a_namespace_of_the_release_before_anything_is_written() {
    let stage = Stage::set().await;
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "dta": {"a": "b"},
        "metadata": {"name": "wrong", "namespace": "more"}});
    let refused = stage.advance(&release(&with_namespace(&[wrong]))).await.unwrap_err().to_string();
    assert!(refused.starts_with("cannot create ConfigMap more/wrong: "), "{refused}");
    assert!(refused.contains(r#"unknown field "dta""#), "{refused}");
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test]
async fn in_a_namespace_that_exists_every_object_is_asked_about() {
    let stage = Stage::set().await;
    super::support::make_namespace(&stage.client, "more").await;
    let theirs = key("v1", "ConfigMap", Some("more"), "y");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "namespace": "more"}});
    stage.make(&theirs, object).await;
    make_account(&stage).await;
    grant(&stage).await;
    let owner = with_account(&stage, "limited").await;
    stage.reads();
    stage.writes();
    let objects = release(&with_namespace(&[]));
    let refused = stage.rollout.advance(&RolloutRequest::new(&owner, &objects)).await.unwrap_err().to_string();
    assert!(refused.contains("ConfigMap more/y already exists"), "{refused}");
    assert_eq!(dry_runs(&stage.reads()).len(), 4);
    let writes = stage.writes();
    assert_eq!(writes.len(), questions(&writes).len(), "{writes:?}");
}

/// An owner whose ServiceAccount `deployer` has no permissions.
async fn with_account(stage: &Stage, name: &str) -> Owner {
    let account = Account { namespace: "install".into(), name: "deployer".into() };
    make_owner(&stage.client, name).await.on_behalf_of(Some(account))
}

async fn make_account(stage: &Stage) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}});
    stage.make(&key("v1", "ServiceAccount", Some("install"), "deployer"), account).await;
}

fn binding() -> ObjectKey {
    key(RBAC, "ClusterRoleBinding", None, "deployer")
}

/// Grants the account all permissions.
async fn grant(stage: &Stage) {
    let role = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "deployer"}, "rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]});
    stage.make(&key(RBAC, "ClusterRole", None, "deployer"), role).await;
    bind(stage).await;
}

/// Binds the role of all permissions to the account.
async fn bind(stage: &Stage) {
    let bound = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "deployer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "deployer"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "install", "name": "deployer"}]});
    stage.make(&binding(), bound).await;
}

/// The requests about what exists and what is allowed.
fn questions(requests: &[String]) -> Vec<&str> {
    let asks = ["/serviceaccounts/deployer", "selfsubject"];
    let asks =
        |request: &&str| asks.iter().any(|ask| request.contains(ask)) || request.ends_with("/namespaces/install");
    requests.iter().map(String::as_str).filter(asks).collect()
}

#[tokio::test]
async fn a_release_without_permissions_costs_a_review() {
    let stage = Stage::set().await;
    let owner = with_account(&stage, "limited").await;
    let objects = release(&new_objects());
    let request = RolloutRequest::new(&owner, &objects);
    let advance = || stage.rollout.advance(&request);
    assert!(matches!(advance().await, Err(RolloutError::ServiceAccountNotFound(_))));
    make_account(&stage).await;
    for _ in 0..2 {
        stage.reads();
        assert!(matches!(advance().await, Err(RolloutError::PermissionsMissing(_))));
        let reads = stage.reads();
        let of_objects = |read: &&String| read.contains("/configmaps") || read.contains("/deployments");
        assert_eq!(reads.iter().filter(of_objects).collect::<Vec<_>>(), [""; 0], "neither lists nor dry runs");
    }
    // A new grant counts at the next attempt.
    grant(&stage).await;
    advance().await.unwrap();
}

#[tokio::test]
async fn owners_of_one_account_share_its_reviews() {
    let stage = Stage::set().await;
    make_account(&stage).await;
    grant(&stage).await;
    let release_of = |name: &str| release(&[(0, config_map(name, json!({})))]);
    let first = with_account(&stage, "first").await;
    stage.rollout.advance(&RolloutRequest::new(&first, &release_of("one"))).await.unwrap();
    let second = with_account(&stage, "second").await;
    stage.reads();
    stage.writes();
    stage.rollout.advance(&RolloutRequest::new(&second, &release_of("two"))).await.unwrap();
    assert_eq!(questions(&stage.reads()), [""; 0]);
    assert_eq!(questions(&stage.writes()), [""; 0]);

    // A permission that was revoked meanwhile is missed at the first request that is forbidden, before anything is written.
    stage.remove(&binding()).await;
    let third = with_account(&stage, "third").await;
    stage.writes();
    let refused = stage.rollout.advance(&RolloutRequest::new(&third, &release_of("three"))).await;
    assert!(matches!(refused, Err(RolloutError::PermissionsMissing(_))));
    let writes = stage.writes();
    assert_eq!(writes.len(), questions(&writes).len(), "{writes:?}");
    assert_eq!(stage.live(&config_map_key("three")).await, None);
}

/// A release whose second stage waits for a gate.
fn gated(second: Value) -> chandler_core::Release {
    super::support::release_with_probes(
        &[(0, config_map("gate", json!({}))), (1, second)],
        vec![super::support::gate_probe()],
    )
}

/// Makes the rollout forget what it knows of the account: one of its requests is forbidden.
async fn make_forget(stage: &Stage, other: &str) {
    stage.remove(&binding()).await;
    let other = with_account(stage, other).await;
    let objects = release(&[(0, config_map("other", json!({})))]);
    let refused = stage.rollout.advance(&RolloutRequest::new(&other, &objects)).await;
    assert!(matches!(refused, Err(RolloutError::PermissionsMissing(_))));
    bind(stage).await;
}

#[tokio::test]
async fn a_later_stage_needs_a_review_only_for_what_no_api_server_checks() {
    let inner = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "inner"},
        "spec": {"installNamespace": "install", "provisionerClassName": "core-rukpak-io-plain",
            "source": {"type": "image", "image": {"ref": "example.com/inner:v1"}}}});
    let inner_key = key("core.rukpak.io/v1alpha2", "BundleDeployment", None, "inner");
    for (object, second, delegates) in
        [(config_map("later", json!({})), config_map_key("later"), false), (inner, inner_key, true)]
    {
        let stage = Stage::set().await;
        make_account(&stage).await;
        grant(&stage).await;
        let owner = with_account(&stage, "staged").await;
        let objects = gated(object);
        let request = RolloutRequest::new(&owner, &objects);
        assert!(!stage.rollout.advance(&request).await.unwrap().is_complete());
        make_forget(&stage, "first").await;
        stage.reads();
        stage.writes();
        // It waits, and asks once about its account, since what was known of that is forgotten.
        assert!(!stage.rollout.advance(&request).await.unwrap().is_complete());
        assert_eq!(questions(&stage.reads()), ["/api/v1/namespaces/install/serviceaccounts/deployer"]);
        let writes = stage.writes();
        assert_eq!(!questions(&writes).is_empty(), delegates, "{writes:?}");
        make_forget(&stage, "second").await;
        stage.writes();
        stage.open_gate().await;
        stage.rollout.advance(&request).await.unwrap();
        assert!(stage.live(&second).await.is_some());
        let writes = stage.writes();
        assert_eq!(!questions(&writes).is_empty(), delegates, "{writes:?}");
    }
}

#[tokio::test]
async fn a_permission_or_an_account_that_is_gone_stops_the_next_stage() {
    for account_is_gone in [false, true] {
        let stage = Stage::set().await;
        make_account(&stage).await;
        grant(&stage).await;
        let owner = with_account(&stage, "staged").await;
        let objects = gated(config_map("later", json!({})));
        let request = RolloutRequest::new(&owner, &objects);
        assert!(!stage.rollout.advance(&request).await.unwrap().is_complete());
        if account_is_gone {
            make_forget(&stage, "first").await;
            stage.remove(&key("v1", "ServiceAccount", Some("install"), "deployer")).await;
        } else {
            stage.remove(&binding()).await;
        }
        stage.open_gate().await;
        let refused = stage.rollout.advance(&request).await;
        match refused {
            Err(RolloutError::ServiceAccountNotFound(_)) => assert!(account_is_gone),
            Err(RolloutError::PermissionsMissing(_)) => assert!(!account_is_gone),
            other => panic!("{other:?}"),
        }
        assert_eq!(stage.live(&config_map_key("later")).await, None);
    }
}

/// A policy that denies ConfigMaps with the key `forbidden`.
async fn deny(stage: &Stage) {
    const ADMISSION: &str = "admissionregistration.k8s.io/v1";
    let policy = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "!has(object.data) || !('forbidden' in object.data)", "message": "not this"}]}});
    stage.make(&key(ADMISSION, "ValidatingAdmissionPolicy", None, "no"), policy).await;
    let bound = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no"},
        "spec": {"policyName": "no", "validationActions": ["Deny"]}});
    stage.make(&key(ADMISSION, "ValidatingAdmissionPolicyBinding", None, "no"), bound).await;
    let api = stage.api(&config_map_key("probe"));
    let probe: DynamicObject = serde_json::from_value(config_map("probe", json!({"forbidden": "yes"}))).unwrap();
    super::support::eventually(|| async {
        api.create(&PostParams { dry_run: true, ..PostParams::default() }, &probe).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn an_admission_policy_refuses_a_release_before_anything_is_written() {
    let stage = Stage::set().await;
    make_account(&stage).await;
    grant(&stage).await;
    deny(&stage).await;
    let objects = [
        (0, config_map("a", json!({}))),
        (0, config_map("b", json!({"forbidden": "yes"}))),
        (1, config_map("c", json!({"forbidden": "yes"}))),
    ];
    let objects = release(&objects);
    for owner in [stage.owner.clone(), with_account(&stage, "limited").await] {
        stage.writes();
        let refused = stage.rollout.advance(&RolloutRequest::new(&owner, &objects)).await.unwrap_err().to_string();
        for name in ["b", "c"] {
            assert!(refused.contains(&format!("cannot create ConfigMap install/{name}: ")), "{refused}");
        }
        assert!(refused.contains("not this"), "{refused}");
        let writes = stage.writes();
        assert_eq!(writes.len(), questions(&writes).len(), "{writes:?}");
    }
}
