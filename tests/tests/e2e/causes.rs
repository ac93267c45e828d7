//! What a Pod reports explains why its workload is not healthy: in the conditions, in the history and in the message of a rollback.
//!
//! The image is in a domain that never resolves, so that a kubelet cannot pull it, and the simulation pretends the same.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use chandler_api::{BundleDeployment, Outcome};
use chandler_permissions::roles;
use chandler_tests::{
    InProcess, World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    permissions::{account, apply, grant_missing, spec},
};

const WORKING: &str = "registry.k8s.io/pause:3.10";
const BROKEN: &str = "registry.invalid/keeper:1";

/// A bundle with a Deployment that runs this image, on nodes with these labels.
fn bundle(image: &str, nodes: &Value) -> Bundle {
    let keeper = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "keeper"},
        "spec": {
            "selector": {"matchLabels": {"app": "keeper"}},
            "template": {
                "metadata": {"labels": {"app": "keeper"}},
                "spec": {"nodeSelector": nodes, "containers": [{"name": "main", "image": image}]},
            },
        },
    });
    Bundle::empty().with("manifests/keeper.yaml", &keeper.to_string())
}

fn message<'a>(deployment: Option<&'a BundleDeployment>, kind: &str) -> &'a str {
    deployment.and_then(|deployment| condition(deployment, kind)).map_or("", |condition| &condition.message)
}

fn line(world: &World, cause: &str) -> String {
    format!("Deployment.apps {}/keeper: {cause}", world.namespace)
}

#[tokio::test]
async fn the_cause_in_a_pod_is_reported_in_conditions_history_and_rollback() {
    let world = World::new().await;
    let name = world.name();
    world.deploy(&name, PLAIN, &world.push(&bundle(WORKING, &json!({}))).await).await;
    world.ready(&name).await;

    let mut spec = world.spec(PLAIN, &world.push(&bundle(BROKEN, &json!({}))).await);
    spec["rollout"] = json!({"onFailure": "Rollback", "progressDeadlineSeconds": 20});
    world.apply(&name, spec).await;
    let cause = line(&world, &format!("ImagePullBackOff: {BROKEN}"));
    wait::until(&world.deployments(), &name, "explained", |deployment| {
        ["Progressing", "Healthy", "Ready"].iter().all(|kind| message(deployment, kind).contains(&cause))
    })
    .await;
    let back = wait::until(&world.deployments(), &name, "rolled back", |deployment| {
        deployment.and_then(|it| condition(it, "Progressing")).is_some_and(|it| it.reason == "RolledBack")
    })
    .await;
    assert!(message(back.as_ref(), "Progressing").contains(&cause), "{back:#?}");
    let history = back.and_then(|deployment| deployment.status).expect("a status").history;
    let failed = history.iter().find(|revision| revision.outcome == Outcome::Failed).expect("a failed revision");
    assert!(failed.message.as_ref().is_some_and(|message| message.contains(&cause)), "{failed:#?}");
    world.finish().await;
}

#[tokio::test]
async fn a_pod_without_a_node_reports_the_scheduler() {
    let world = World::new().await;
    let name = world.name();
    let nodes = json!({"example.com/no-such-node": world.namespace});
    world.deploy(&name, PLAIN, &world.push(&bundle(WORKING, &nodes)).await).await;
    let cause = line(&world, "Unschedulable: ");
    wait::until(&world.deployments(), &name, "explained", |deployment| {
        let message = message(deployment, "Progressing");
        message.contains(&cause) && message.contains("node affinity/selector")
    })
    .await;
    world.finish().await;
}

/// A client that counts the lists of Pods that were denied.
fn counting(client: &Client, denied: &Arc<AtomicUsize>) -> Client {
    let (inner, denied) = (client.clone(), Arc::clone(denied));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let concerns_pods = request.uri().path().ends_with("/pods");
        let (inner, denied) = (inner.clone(), Arc::clone(&denied));
        async move {
            let response = inner.send(request).await?;
            if concerns_pods && response.status() == http::StatusCode::FORBIDDEN {
                denied.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, "default")
}

/// The roles of `deploy/rbac-causes.yaml` for the account of this test.
fn optional_rights(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(bundles::workspace().join("deploy/rbac-causes.yaml")).expect("the file exists");
    serde_saphyr::from_multiple(&text.replace("namespace: shop", &format!("namespace: {}", world.namespace)))
        .expect("YAML")
}

#[tokio::test]
async fn an_account_that_may_not_read_pods_changes_nothing_but_the_message() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let denied = Arc::default();
    world.start_controller_on(InProcess::RecordsRequests, counting(&world.client, &denied));
    let name = world.name();
    let deployer = account(&world, "deployer").await;
    apply(&world, &roles(&[].into(), &deployer, &name)).await;
    let image = world.push(&bundle(BROKEN, &json!({}))).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(&world, &deployer, &refused, &name).await;
    wait::eventually("the Pods are asked for", || {
        let denied = Arc::clone(&denied);
        async move { denied.load(Ordering::Relaxed) > 0 }
    })
    .await;
    let waiting = world.condition(&name, "Progressing", "True", "RollingOut").await;
    let own = message(Some(&waiting), "Progressing");
    assert!(own.contains("keeper: ") && !own.contains("ImagePullBackOff"), "{own}");

    apply(&world, &optional_rights(&world)).await;
    world.stop_controller().await;
    world.start_controller();
    let cause = line(&world, &format!("ImagePullBackOff: {BROKEN}"));
    wait::until(&world.deployments(), &name, "explained", |it| message(it, "Progressing").contains(&cause)).await;
    world.finish().await;
}
