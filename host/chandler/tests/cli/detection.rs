//! Every command works with a BundleDeployment that names no class.

use std::fs;

use chandler_api::{BundleDeployment, ProvisionerClass};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    dev::Kept,
    support::{Outcome, chandler},
};

const OLD: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
const NEW: &str = "./tests/fixtures/registry/harbour-operator.v0.2.0";
const NAME: &str = "harbour-operator";
const CLASS: &str = "core-rukpak-io-registry";

async fn client(kubeconfig: &str) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[test]
fn commands_work_with_a_deployment_that_names_no_class() {
    let kept = Kept::start(&["--bundle", OLD]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", NAME, "--watch", "--timeout", "1m"]).data();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let deployments: Api<BundleDeployment> = Api::all(client(&kept.kubeconfig).await);
        let unnamed = Patch::Merge(json!({"spec": {"provisionerClassName": null}}));
        deployments.patch(NAME, &PatchParams::default(), &unnamed).await.unwrap();
    });
    let status = run(&["status", NAME, "--watch", "--timeout", "1m"]);
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    assert!(status.stdout.contains(CLASS), "{}", status.stdout);
    let listed: Value = serde_json::from_str(&run(&["list", "-o", "json"]).data()).unwrap();
    assert!(listed.to_string().contains(&format!("\"class\":\"{CLASS}\"")), "{listed}");
    for arguments in [
        &["get", NAME][..],
        &["history", NAME],
        &["diff", NAME],
        &["rbac", NAME, "--all", "--service-account", "deployer"],
    ] {
        let outcome = run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    }
    let changed = run(&["diff", NAME, NEW]);
    assert_eq!(changed.code, Some(4), "{}{}", changed.stdout, changed.stderr);
    let upgraded = run(&["upgrade", NAME, NEW, "--timeout", "1m"]);
    assert_eq!(upgraded.code, Some(0), "{}{}", upgraded.stdout, upgraded.stderr);

    // If no built-in class recognises the content, the cluster's classes are tried, if it has any.
    let strange = tempfile::tempdir().unwrap();
    fs::write(strange.path().join("lamps.txt"), "north-head white\n").unwrap();
    let strange = strange.path().to_str().unwrap();
    let install = ["install", "lamps", strange, "--dry-run"];
    assert_eq!(run(&install).code, Some(1));
    runtime.block_on(async {
        let classes: Api<ProvisionerClass> = Api::all(client(&kept.kubeconfig).await);
        let class = json!({"metadata": {"name": "lamps"}, "spec": {"image": "registry.invalid/lamps:v1"}});
        classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    });
    let outcome = run(&install);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("provisionerClassName") && outcome.stdout.contains("kind: BundleDeployment"));
    assert!(outcome.stderr.contains("asks the other classes"), "{}", outcome.stderr);
}
