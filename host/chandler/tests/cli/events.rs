//! `chandler events`: what happened to an object and to what it installed.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use chandler_api::Receiver;
use chandler_tests::wait;
use serde_json::{Value, json};

use crate::{
    commands::Session,
    dev::Kept,
    support::{cache, chandler, command},
};

const BUNDLE: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_and_its_repair_are_shown_with_the_objects() {
    let session = Session::start().await;
    let name = session.world.name();
    let absent = session.run(&["events", &name]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    assert!(absent.stderr.contains("`chandler list` lists them all"), "{}", absent.stderr);

    let installed = session.install(&name, BUNDLE, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let shown = session.data(&["events", &name]).await;
    assert!(shown.starts_with("LAST SEEN") && !shown.contains("OBJECT"), "{shown}");
    assert!(shown.contains("Normal") && shown.contains("InstallationSucceeded\n    "), "{shown}");

    let rows = session.json(&["events", &name, "-o", "json"]).await;
    let installed = |row: &&Value| row["reason"] == "InstallationSucceeded";
    let row = rows.as_array().unwrap().iter().find(installed).unwrap();
    assert_eq!((&row["object"]["name"], &row["count"]), (&Value::from(&*name), &Value::from(1)), "{row}");
    assert!(row["lastSeen"].is_string() && row["message"].as_str().unwrap().contains("successfully"), "{row}");
    let yaml = session.data(&["events", &name, "-o", "yaml"]).await;
    assert!(yaml.contains("reason: InstallationSucceeded\n"), "{yaml}");

    let all = session.data(&["events", &name, "--objects"]).await;
    assert!(all.contains("OBJECT") && all.contains(&format!("BundleDeployment.core.rukpak.io {name}")), "{all}");
    let refused = session.run(&["events", "catalog/ours", "--objects"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("`chandler events catalog/ours`"), "{}", refused.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_has_events() {
    let session = Session::start().await;
    let name = format!("{}-pushes", session.world.run());
    let spec = json!({"type": "quay", "secretRef": {"name": "token"}, "resources": [{"kind": "Catalog", "name": "*"}]});
    let _: Receiver = session.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    wait::eventually("the command shows why requests are not accepted", async || {
        let shown = session.run(&["events", &format!("receiver/{name}")]).await.stdout;
        shown.contains("Warning") && shown.contains("ReceiversNotServed")
    })
    .await;
    session.world.finish().await;
}

#[test]
fn new_events_follow_until_the_command_is_interrupted() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let run = |arguments: &[&str]| chandler(arguments.iter().chain(&["--kubeconfig", kept.kubeconfig.as_str()]), "");
    run(&["status", "harbour-operator", "--watch", "--timeout", "5m"]).data();
    let mut watch = command(&cache())
        .args(["events", "harbour-operator", "--watch", "--kubeconfig", &kept.kubeconfig])
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |part: &str| -> Vec<String> {
        let mut read = Vec::new();
        while !read.last().is_some_and(|line: &String| line.contains(part)) {
            read.push(lines.next().expect("the command runs until it is interrupted"));
        }
        read
    };
    until("InstallationSucceeded");
    run(&["suspend", "harbour-operator"]).data();
    let read = until("Suspended");
    assert!(!read.iter().any(|line| line.contains("InstallationSucceeded")), "an Event is shown once: {read:?}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}
