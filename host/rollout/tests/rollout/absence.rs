//! The number of requests that check whether objects, permissions, accounts and namespaces exist, and the correctness of the answers.

use chandler_core::ObjectKey;
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_permissions::Account;
use chandler_rollout::{Owner, RolloutError, RolloutRequest};
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
