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

/// Creates a BundleDeployment with objects that collide with another one's, and with a change that is pending approval. It is suspended, so
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
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stdout.contains("\nwould be refused: "), "{}", refused.stdout);
    assert!(refused.stderr.contains("`chandler approve second --force`"), "{}", refused.stderr);
    let unconfirmed = run(&["approve", "second", "--force"]);
    assert_eq!(unconfirmed.code, Some(2), "{}", unconfirmed.stderr);
    assert!(unconfirmed.stderr.contains("--yes"), "{}", unconfirmed.stderr);
    let another = run(&["approve", "second", "--force", "--yes", "--digest", "sha256:0"]);
    assert_eq!(another.code, Some(8), "{}", another.stderr);
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

/// A copy of the bundle with another type and fewer characters in two fields of its CRD.
fn unsafe_bundle() -> tempfile::TempDir {
    let (from, to) = (crate::support::root().join(BUNDLE), tempfile::tempdir().unwrap());
    for folder in ["manifests", "metadata"] {
        std::fs::create_dir(to.path().join(folder)).unwrap();
        for file in std::fs::read_dir(from.join(folder)).unwrap() {
            let file = file.unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            let text = text.replace("maxLength: 63", "maxLength: 62").replace("minimum: 1\n", "minimum: 2\n");
            std::fs::write(to.path().join(folder).join(file.file_name()), text).unwrap();
        }
    }
    to
}

#[test]
fn findings_about_crds_are_listed_and_allowed_by_digest() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    let none = run(&["approve", "harbour-operator", "--findings", "--yes", "--bundle", BUNDLE]);
    assert_eq!(none.code, Some(1), "{}", none.stderr);
    assert!(none.stderr.contains("no finding refuses the upgrade of a CRD"), "{}", none.stderr);

    let bundle = unsafe_bundle();
    let files = bundle.path().to_str().unwrap();
    let diff = |more: &[&str]| -> Outcome {
        let arguments = ["diff", files, "--name", "harbour-operator", "--findings"];
        run(&arguments.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let listed = diff(&[]);
    assert_eq!(listed.code, Some(8), "{}", listed.stderr);
    for line in [
        "berths.harbour.example.com: 2 findings refuse the upgrade",
        "  maxLength (1): ",
        "    v1alpha1: ^.spec.ship: ",
    ] {
        assert!(listed.stdout.lines().any(|it| it.starts_with(line)), "no line {line:?}: {}", listed.stdout);
    }
    let json: serde_json::Value = serde_json::from_str(&diff(&["-o", "json"]).stdout).unwrap();
    let digest = json["digest"].as_str().unwrap();
    let command = format!("`chandler approve harbour-operator --findings={digest}` allows exactly what is listed");
    assert!(listed.stderr.contains(&command), "{}", listed.stderr);

    let approve = |findings: &str| run(&["approve", "harbour-operator", "--yes", "--bundle", files, findings]);
    let another = approve("--findings=sha256:0");
    assert_eq!(another.code, Some(8), "{}", another.stderr);
    assert!(another.stderr.contains("are others than those that were reviewed"), "{}", another.stderr);
    let approved = approve(&format!("--findings={digest}"));
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert!(approved.stderr.contains("approved by "), "{}", approved.stderr);
    let allowed = diff(&[]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert!(allowed.stdout.contains(" approved 2 findings\n"), "{}", allowed.stdout);
}
