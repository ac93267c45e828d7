//! Ctrl-C in a command that waits: it says what continues in the cluster, and how to follow and undo it. No controller runs, so that the
//! commands wait.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use chandler_api::Catalog;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    commands::{OLD, Session},
    support::{cache, command},
};

/// Runs a command until it prints a line that begins with `until`, and interrupts it. Returns what it printed from there on.
pub(crate) async fn interrupted(session: &Session, arguments: &[&str], until: &str) -> String {
    let mut command = command(&cache());
    command.args(arguments).env("CHANDLER_SYSTEM_NAMESPACE", &session.world.system_namespace);
    command.arg("--kubeconfig").arg(session.kubeconfig());
    let until = until.to_owned();
    let run = move || {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with(&until) {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended before {until:?}");
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap().code(), rest)
    };
    let (code, rest) = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!(code, Some(130), "{rest}");
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_no_controller_handles_yet_continues() {
    let mut session = Session::start().await;
    let name = session.world.name();
    let installed = session.install(&name, OLD, &["--timeout", "2m"]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    session.world.stop_controller().await;
    let rest = interrupted(&session, &["reconcile", &name], "no controller holds the Lease").await;
    for part in [
        &format!("interrupted; the controller still handles the request to reconcile {name}"),
        &format!("`chandler status {name} --watch` follows it"),
        &format!("to undo what it changes: `chandler rollback {name}`"),
    ] {
        assert!(rest.contains(part), "{part:?} is not in {rest}");
    }
    session.world.finish().await;
}

/// A Catalog with a finalizer of other software.
async fn held(session: &Session, name: &str) -> Api<Catalog> {
    let catalogs: Api<Catalog> = Api::all(session.world.client.clone());
    let mut catalog = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
        "metadata": {"name": name, "finalizers": ["example.com/mine"]},
        "spec": {"source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}});
    session.world.mark(&mut catalog);
    catalogs.create(&PostParams::default(), &serde_json::from_value(catalog).unwrap()).await.unwrap();
    catalogs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_a_finalizer_holds_is_not_called_deleted() {
    let mut session = Session::start().await;
    session.world.stop_controller().await;
    let name = format!("{}-held", session.world.run());
    let catalogs = held(&session, &name).await;
    let remove = ["catalog", "remove", &name];
    let rest = interrupted(&session, &remove, "waiting for the finalizers example.com/mine").await;
    for part in [
        &format!("interrupted; the deletion of catalog/{name} continues in the cluster"),
        "it was waiting for: the finalizers example.com/mine",
        &format!("`chandler status catalog/{name}` shows its progress"),
    ] {
        assert!(rest.contains(part), "{part:?} is not in {rest}");
    }
    let late = session.run(&[&remove[..], &["--timeout", "10ms"]].concat()).await;
    assert_eq!(late.code, Some(3), "{}", late.stderr);
    assert!(late.stderr.contains("still exists after") && !late.stderr.contains("deleted"), "{}", late.stderr);
    let left = session.run(&[&remove[..], &["--wait=false"]].concat()).await;
    assert_eq!(left.code, Some(0), "{}", left.stderr);
    assert!(left.stderr.contains("which is waiting for the finalizers example.com/mine"), "{}", left.stderr);
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    catalogs.patch(&name, &PatchParams::default(), &released).await.unwrap();
    assert_eq!(session.run(&remove).await.code, Some(7));
    session.world.finish().await;
}
