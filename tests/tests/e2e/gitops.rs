//! What GitOps clients read in a status: kstatus (Flux, `kubectl wait`), and the conditions that the health check of docs/gitops.md for
//! Argo CD reads. tests/argocd runs that check on the same statuses.

use chandler_api::BundleDeployment;
use chandler_health::{Dependencies, State, assess};
use chandler_tests::{World, bundles::Bundle};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    permissions::{account, grant_missing, spec},
};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n";

/// The YAML examples of the page.
fn examples() -> Vec<Value> {
    let page = include_str!("../../../docs/gitops.md");
    // A test handles a block by its language.
    let blocks = page.split("```yaml").skip(1).filter_map(|rest| rest.split_once('\n')?.1.split_once("```"));
    blocks.map(|(block, _)| serde_saphyr::from_str(block).expect("an example is YAML")).collect()
}

fn example(kind: &str) -> Value {
    examples().into_iter().find(|example| example["kind"] == kind).expect("the page has such an example")
}

/// Checks that a BundleDeployment has the status of a case that tests/argocd runs the health check on, and what kstatus makes of it.
fn is_case(name: &str, deployment: &BundleDeployment) {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../argocd/statuses.json")).expect("the cases are JSON");
    let case = cases.iter().find(|case| case["case"] == name).expect("a case");
    let conditions = deployment.status.iter().flat_map(|status| &status.conditions);
    let conditions: Vec<String> = conditions.map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect();
    let expected: Vec<String> = serde_json::from_value(case["conditions"].clone()).unwrap_or_default();
    assert_eq!(conditions, expected, "{name}: {deployment:?}");
    let object = serde_json::to_value(deployment).expect("an object is JSON");
    let kstatus = match assess(&object, &Dependencies::default()).state {
        State::Healthy => "Current",
        State::Degraded { permanent: true } => "Failed",
        State::Progressing | State::Degraded { .. } | State::Unknown => "InProgress",
    };
    assert_eq!(case["kstatus"], kstatus, "{name}: {deployment:?}");
}

#[tokio::test]
async fn a_new_object_is_not_complete_before_the_controller_has_seen_it() {
    let mut world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    let created = world.deploy(&name, PLAIN, &image).await;
    let created = world.deployments().get(created.metadata.name.as_deref().expect("a name")).await.expect("it exists");
    assert_eq!(created.status.as_ref().and_then(|status| status.observed_generation), Some(-1), "{created:?}");
    is_case("new", &created);
    world.start_controller();
    let ready = world.ready(&name).await;
    is_case("ready", &ready);
    world.finish().await;
}

#[tokio::test]
async fn what_needs_an_action_fails_and_what_waits_for_a_decision_is_suspended() {
    let world = World::new().await;
    let name = world.name();
    let broken = world.push(&Bundle::empty().with("manifests/a.yaml", "kind: [")).await;
    let whole = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    world.deploy(&name, PLAIN, &broken).await;
    let stalled = world.condition(&name, "Stalled", "True", "InvalidContent").await;
    is_case("invalid", &stalled);

    let mut manual = world.spec(PLAIN, &whole);
    manual["approval"] = json!("Manual");
    let other = format!("{name}-manual");
    world.apply(&other, manual).await;
    let waits = world.condition(&other, "Progressing", "False", "ApprovalRequired").await;
    is_case("approval required", &waits);

    world.deploy(&name, PLAIN, &whole).await;
    is_case("ready", &world.ready(&name).await);
    let mut suspended = world.spec(PLAIN, &whole);
    suspended["suspend"] = json!(true);
    world.apply(&name, suspended).await;
    let suspended = world.condition(&name, "Progressing", "False", "Suspended").await;
    is_case("suspended", &suspended);
    world.finish().await;
}

#[tokio::test]
async fn a_requirement_that_stays_missing_stalls_until_it_is_there() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let first = world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    is_case("missing account, just noticed", &first);
    let stalled = world.condition(&name, "Stalled", "True", "ServiceAccountNotFound").await;
    is_case("missing account", &stalled);
    let account = account(&world, "deployer").await;
    let lacking = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(&world, &account, &lacking, &name).await;
    is_case("ready", &world.ready(&name).await);
    world.delete(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn the_examples_of_the_page_are_accepted() {
    let world = World::new().await;
    let object = example("BundleDeployment");
    let parameters = PatchParams::apply("e2e").dry_run();
    let deployments: Api<BundleDeployment> = world.deployments();
    deployments.patch("harbour", &parameters, &Patch::Apply(&object)).await.expect("the example is accepted");
    assert_eq!(example("Kustomization")["spec"]["wait"], true);
    world.finish().await;
}
