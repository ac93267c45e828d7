//! A BundleDeployment that is installed into another cluster: commands that compare with the cluster of the user's kubeconfig refuse it by name,
//! and the others say which objects they do not read.

use chandler_api::BundleDeployment;
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::{approvals::client, dev::Kept, support::chandler};

const BUNDLE: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
const NEWER: &str = "./tests/fixtures/registry/harbour-operator.v0.2.0";

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_compare_with_this_cluster_refuse_a_deployment_of_another_one() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let run = |line: &[&str]| {
        let line: Vec<&str> = line.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]).collect();
        tokio::task::block_in_place(|| chandler(line, ""))
    };
    run(&["status", "harbour-operator", "--watch", "--timeout", "5m"]).data();
    let deployments: Api<BundleDeployment> = Api::all(client(&kept).await);
    let mut spec = serde_json::to_value(deployments.get("harbour-operator").await.unwrap().spec).unwrap();
    spec["kubeConfig"] = json!({"secretRef": {"name": "there"}});
    spec["serviceAccount"] = json!({"name": "deployer"});
    let elsewhere = serde_json::from_value(json!({"metadata": {"name": "elsewhere"}, "spec": spec})).unwrap();
    deployments.create(&PostParams::default(), &elsewhere).await.unwrap();
    for line in [
        &["diff", "elsewhere", NEWER][..],
        &["adopt", "elsewhere", "--yes"],
        &["delete", "elsewhere", "--dry-run"],
        &["rbac", "elsewhere", "--all"],
    ] {
        let refused = run(line);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{line:?}: {}", refused.stderr);
        for part in ["BundleDeployment elsewhere is installed into another cluster", "(spec.kubeConfig)", "hint: "] {
            assert!(refused.stderr.contains(part), "{line:?}: no {part:?} in {}", refused.stderr);
        }
    }
    for line in [&["tree", "elsewhere"][..], &["get", "elsewhere"]] {
        let partly = run(line);
        assert_eq!(partly.code, Some(1), "{line:?}: {}", partly.stderr);
        let unread = "all objects: they are in another cluster (spec.kubeConfig)";
        assert!(partly.stderr.contains(unread), "{line:?}: {}", partly.stderr);
    }
    // The status is what the controller reports, which an administrator has not allowed other clusters.
    let status = run(&["status", "elsewhere"]);
    assert!(status.stdout.contains("TargetNotAllowed"), "{}{}", status.stdout, status.stderr);
}
