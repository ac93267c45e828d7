//! `chandler status --watch` for a rollout that needs action, with a running control plane.

use std::time::Duration;

use chandler_api::BundleDeployment;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{approvals::client, dev::Kept, support::chandler};

const BUNDLE: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";

#[test]
fn watching_ends_with_the_advice_where_time_alone_will_not_help() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let watch = |name: &str, output: &str| {
        let arguments = ["status", name, "--watch", "--timeout", "5m", "-o", output];
        chandler(arguments.into_iter().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    watch("harbour-operator", "text").data();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let create = async {
        let deployments: Api<BundleDeployment> = Api::all(client(&kept).await);
        let first = deployments.get("harbour-operator").await.unwrap();
        for (name, change) in [("second", json!(null)), ("third", json!({"name": "deployer"}))] {
            let mut spec = serde_json::to_value(&first.spec).unwrap();
            spec["installNamespace"] = json!("default");
            if !change.is_null() {
                spec["serviceAccount"] = change;
            }
            let object = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                "metadata": {"name": name}, "spec": spec});
            deployments.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_mins(1), create).await }).unwrap();

    let collides = watch("second", "text");
    assert_eq!(collides.code, Some(1), "{}", collides.stderr);
    assert!(collides.stdout.contains("adopt it: `chandler adopt second`\n"), "{}", collides.stdout);
    assert!(collides.stdout.contains("\nnothing runs yet\n"), "{}", collides.stdout);
    assert!(collides.stdout.ends_with(" needs action: ObjectCollision\n"), "{}", collides.stdout);
    let cause = "berths.harbour.example.com already exists and is controlled by BundleDeployment harbour-operator";
    assert_eq!(collides.stdout.matches(cause).count(), 1, "one message, once: {}", collides.stdout);

    let lacks = watch("third", "json");
    assert_eq!(lacks.code, Some(1), "{}", lacks.stderr);
    let lacks: Value = serde_json::from_str(&lacks.stdout).unwrap();
    assert_eq!(lacks["needsAction"], true, "{lacks}");
    let steps = lacks["nextSteps"].as_array().unwrap();
    assert!(steps[0].as_str().unwrap().starts_with("create the ServiceAccount that the message names"), "{lacks}");
}
