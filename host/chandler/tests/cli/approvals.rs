//! `chandler approve`, with a running control plane.

use chandler_api::{BundleDeployment, ChangeApproval};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait::await_condition,
};
use serde_json::json;

use crate::{
    dev::Kept,
    support::{Outcome, chandler},
};

const BUNDLE: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";

pub(crate) async fn client(kept: &Kept) -> Client {
    let kubeconfig = Kubeconfig::read_from(&kept.kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Creates a BundleDeployment whose objects collide with those of another one and whose change is pending approval. It is suspended, so
/// that an approval has no effect.
async fn create_pending(client: &Client) {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let first = deployments.get("harbour-operator").await.unwrap();
    let mut spec = serde_json::to_value(&first.spec).unwrap();
    spec["approval"] = json!("Manual");
    spec["installNamespace"] = json!("default");
    let second = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "second"}, "spec": spec});
    deployments.create(&PostParams::default(), &serde_json::from_value(second).unwrap()).await.unwrap();
    let pending = |found: Option<&BundleDeployment>| {
        found.and_then(|found| found.status.as_ref()).is_some_and(|status| status.pending_change.is_some())
    };
    await_condition(deployments.clone(), "second", pending).await.unwrap();
    let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
    deployments.patch("second", &PatchParams::default(), &suspend).await.unwrap();
    let observed = |found: Option<&BundleDeployment>| {
        found.is_some_and(|found| {
            found.status.as_ref().and_then(|status| status.observed_generation) == found.metadata.generation
        })
    };
    await_condition(deployments, "second", observed).await.unwrap();
}

#[test]
fn a_change_that_would_be_refused_is_approved_only_with_force() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(async {
        let client = client(&kept).await;
        tokio::time::timeout(std::time::Duration::from_mins(1), create_pending(&client)).await.unwrap();
        client
    });
    let approvals = || {
        let approvals: Api<ChangeApproval> = Api::all(client.clone());
        runtime.block_on(async { approvals.list(&ListParams::default()).await.unwrap().items })
    };

    let refused = run(&["approve", "second", "--yes"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains("\nwould be refused: "), "{}", refused.stdout);
    assert!(refused.stderr.contains("`chandler approve second --force`"), "{}", refused.stderr);
    let unconfirmed = run(&["approve", "second", "--force"]);
    assert_eq!(unconfirmed.code, Some(2), "{}", unconfirmed.stderr);
    assert!(unconfirmed.stderr.contains("--yes"), "{}", unconfirmed.stderr);
    let another = run(&["approve", "second", "--force", "--yes", "--digest", "sha256:0"]);
    assert_eq!(another.code, Some(1), "{}", another.stderr);
    assert_eq!(approvals(), []);

    for expected in ["approved by ", "approved this change before"] {
        let approved = run(&["approve", "second", "--force", "--yes", "--reason", "CHG-1"]);
        assert_eq!(approved.code, Some(0), "{}", approved.stderr);
        assert!(approved.stderr.contains(expected), "{}", approved.stderr);
    }
    let found = approvals();
    assert_eq!((found.len(), found[0].spec.reason.as_deref()), (1, Some("CHG-1")));
    assert_eq!(found[0].spec.bundle_deployment, "second");
    assert!(!found[0].spec.approved_by.is_empty());
}
