//! `chandler status --watch` for a rollout that needs action, with a running control plane.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
    time::Duration,
};

use chandler_api::BundleDeployment;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{
    approvals::client,
    dev::Kept,
    support::{cache, chandler, command},
};

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

/// Runs a command until it waits, and interrupts it. Returns what it printed from there on.
fn interrupted(arguments: &[&str]) -> String {
    let mut child = command(&cache())
        .args(arguments)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("waiting") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "{arguments:?} ended before it waited");
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    rest
}

#[test]
fn an_interrupted_command_says_that_the_rollout_continues() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let kubeconfig = ["--kubeconfig", kept.kubeconfig.as_str()];
    let watch = ["status", "harbour-operator", "--watch", "--timeout", "5m"];
    chandler([&watch[..], &kubeconfig].concat(), "").data();
    // The account does not exist, so that the rollout waits.
    let upgrade = ["upgrade", "harbour-operator", "--service-account", "deployer"];
    for command in [&upgrade[..], &watch] {
        let rest = interrupted(&[command, &kubeconfig].concat());
        for part in [
            "interrupted; the rollout of harbour-operator continues in the cluster",
            "cause: it was waiting for: ",
            "`chandler status harbour-operator --watch` follows it",
            "`chandler rollback harbour-operator` after an upgrade",
        ] {
            assert!(rest.contains(part), "{part:?} is not in {rest}");
        }
    }
}
