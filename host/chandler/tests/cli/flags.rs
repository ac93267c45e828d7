//! The options that commands have in common: one table, which the command line must match. docs/commands.md describes it.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use chandler::Arguments;
use clap::{Arg, Command, CommandFactory as _};
use serde_json::Value;

use crate::{
    commands::{NEW, OLD, Session},
    support::{self, chandler, documents},
};

/// What a command prints on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prints {
    /// Nothing, or text in the format of another program.
    Nothing,
    /// Data: an object, or Kubernetes objects.
    Data,
    /// A list that has columns which do not fit every terminal.
    List,
}
use Prints::{Data, List, Nothing};

/// The cluster of the kubeconfig is contacted.
const CLUSTER: u8 = 1;
/// Something is written: in the cluster or in a registry.
const WRITES: u8 = 2;
/// The result is waited for.
const WAITS: u8 = 4;
/// A namespace to install into, or that selects.
const NAMESPACE: u8 = 8;

/// Each command, what it prints, and what it does. A new command needs a row.
const TABLE: &[(&str, Prints, u8)] = &[
    ("dev", Nothing, NAMESPACE),
    ("install", Data, CLUSTER | WRITES | WAITS | NAMESPACE),
    ("upgrade", Data, CLUSTER | WRITES | WAITS | NAMESPACE),
    ("list", List, CLUSTER | NAMESPACE),
    ("outdated", List, CLUSTER | NAMESPACE),
    ("get", Data, CLUSTER),
    ("content", Data, CLUSTER),
    ("render", Data, CLUSTER | NAMESPACE),
    ("lint", Data, CLUSTER | NAMESPACE),
    ("push", Nothing, WRITES),
    ("plugin new", Nothing, 0),
    ("plugin build", Nothing, 0),
    ("plugin dev", Nothing, NAMESPACE),
    ("plugin test", Data, 0),
    ("plugin run", Data, NAMESPACE),
    ("plugin bench", Data, NAMESPACE),
    ("plugin conformance", Data, 0),
    ("plugin annotate", Nothing, 0),
    ("plugin inspect", Data, 0),
    ("plugin list", List, CLUSTER),
    ("plugin push", Nothing, WRITES),
    ("plugin sign", Nothing, WRITES),
    ("plugin verify", Nothing, 0),
    ("plugin pull", Nothing, 0),
    ("catalog add", Data, CLUSTER | WRITES | WAITS),
    ("catalog remove", Nothing, CLUSTER | WRITES | WAITS),
    ("catalog list", List, CLUSTER),
    ("catalog show", Data, CLUSTER),
    ("catalog search", List, CLUSTER),
    ("catalog channels", List, CLUSTER),
    ("catalog versions", List, CLUSTER),
    ("catalog graph", Data, CLUSTER),
    ("catalog lint", Data, 0),
    ("catalog diff", Data, 0),
    ("resolve", Data, CLUSTER),
    ("rbac", Data, CLUSTER | NAMESPACE),
    ("status", Data, CLUSTER),
    ("explain", Data, CLUSTER),
    ("tree", Data, CLUSTER),
    ("events", Data, CLUSTER),
    ("test", Data, CLUSTER | WRITES),
    ("diff", Data, CLUSTER | NAMESPACE),
    ("approve", Data, CLUSTER | WRITES),
    ("adopt", Data, CLUSTER | WRITES),
    ("migrate", Data, CLUSTER | WRITES | WAITS),
    ("migrate helm", Data, CLUSTER | WRITES | WAITS),
    ("migrate storage", Data, CLUSTER | WRITES),
    ("history", List, CLUSTER),
    ("rollback", Nothing, CLUSTER | WRITES | WAITS),
    ("delete", Data, CLUSTER | WRITES | WAITS),
    ("suspend", Nothing, CLUSTER | WRITES),
    ("resume", Nothing, CLUSTER | WRITES | WAITS),
    ("reconcile", Nothing, CLUSTER | WRITES | WAITS),
    ("controller", Nothing, 0),
    ("manifests", Data, 0),
    ("crds", Data, 0),
    ("doctor", List, CLUSTER),
    ("preflight", Data, CLUSTER),
    ("provisioners", Data, 0),
    ("must-gather", Nothing, CLUSTER),
    ("uninstall", Data, CLUSTER | WRITES),
    ("completion", Nothing, 0),
    ("man", Nothing, 0),
];

/// Options of a command without the rest of their group, with the reason.
const ALONE: &[(&str, &str)] = &[
    // A control plane of its own, which is followed until --timeout.
    ("dev", "timeout"),
    // A test has no result without waiting.
    ("test", "timeout"),
    // --watch turns waiting on.
    ("status", "timeout"),
    // Each step waits for the one before it.
    ("uninstall", "timeout"),
    // A process in a cluster: it has a kubeconfig only on a workstation, with the context that is current.
    ("controller", "kubeconfig"),
];

/// All commands that can run, by their path.
fn leaves(above: &str, command: &Command) -> Vec<(String, Command)> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let path = |below: &Command| format!("{above} {}", below.get_name()).trim_start().to_owned();
    below
        .flat_map(|below| {
            let can_run = !below.has_subcommands() || below.is_subcommand_negates_reqs_set();
            let itself = can_run.then(|| (path(below), below.clone()));
            itself.into_iter().chain(leaves(&path(below), below)).collect::<Vec<_>>()
        })
        .collect()
}

fn option<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(long))
}

/// The values of `-o`.
fn formats(command: &Command) -> BTreeSet<String> {
    let output = option(command, "output").into_iter().flat_map(Arg::get_possible_values);
    output.map(|value| value.get_name().to_owned()).collect()
}

#[test]
fn every_command_is_in_the_table() {
    let found: BTreeSet<String> = leaves("", &Arguments::command()).into_iter().map(|(path, _)| path).collect();
    let listed: BTreeSet<String> = TABLE.iter().map(|(path, ..)| (*path).to_owned()).collect();
    assert_eq!(found, listed);
}

#[test]
fn options_in_common_are_on_every_command_that_they_mean_something_for() {
    let mut wrong = Vec::new();
    for (path, command) in leaves("", &Arguments::command()) {
        let Some((_, _, does)) = TABLE.iter().find(|(listed, ..)| *listed == path) else { continue };
        for (kind, longs) in [
            (CLUSTER, ["kubeconfig", "context"].as_slice()),
            (WRITES, &["dry-run"]),
            (WAITS, &["wait", "timeout"]),
            (NAMESPACE, &["namespace"]),
        ] {
            for long in longs {
                let is_alone = ALONE.contains(&(path.as_str(), long));
                let (has, wants) = (option(&command, long).is_some(), does & kind != 0);
                if has != wants && !(has && is_alone) {
                    wrong.push(format!("{path}: --{long} is {}", if has { "not expected" } else { "missing" }));
                }
            }
        }
        if let Some(namespace) = option(&command, "namespace")
            && namespace.get_short() != Some('n')
        {
            wrong.push(format!("{path}: --namespace is not -n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn data_is_printed_as_json_and_yaml_and_output_means_nothing_else() {
    let mut wrong = Vec::new();
    for (path, command) in leaves("", &Arguments::command()) {
        let Some((_, prints, _)) = TABLE.iter().find(|(listed, ..)| *listed == path) else { continue };
        let formats = formats(&command);
        let wanted: &[&str] = match prints {
            Nothing => &[],
            Data => &["json", "yaml"],
            List => &["json", "yaml", "wide"],
        };
        wrong
            .extend(wanted.iter().filter(|name| !formats.contains(**name)).map(|name| format!("{path}: no -o {name}")));
        match option(&command, "output") {
            Some(_) if *prints == Nothing => wrong.push(format!("{path}: -o is not expected")),
            Some(output) if output.get_short() != Some('o') || formats.is_empty() => {
                wrong.push(format!("{path}: -o is not a format"));
            }
            _ => {}
        }
        let short = command.get_arguments().find(|argument| argument.get_short() == Some('o'));
        if short.is_some_and(|argument| argument.get_long() != Some("output")) {
            wrong.push(format!("{path}: -o is another option"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn options_before_the_command_are_its_own() {
    let absent = ["--kubeconfig", "/does/not/exist/kubeconfig"];
    for line in [["list"].as_slice(), &["status", "x"], &["catalog", "list"], &["install", "x", "./y"]] {
        let before = chandler([&absent, line].concat(), "");
        let after = chandler([line, &absent].concat(), "");
        assert_eq!((before.code, before.stderr.as_str()), (Some(1), after.stderr.as_str()), "{line:?}");
        assert!(before.stderr.contains("/does/not/exist/kubeconfig"), "{}", before.stderr);
    }
}

#[test]
fn an_option_without_a_meaning_is_refused_in_words() {
    for (line, words) in [
        (["-n", "y", "status", "x"], "BundleDeployments, Catalogs and the other kinds of Chandler are cluster-scoped"),
        (["--context", "y", "man", "/tmp"], "contacts no cluster"),
        (["suspend", "x", "--timeout", "5m"], "chandler status NAME --watch --timeout 5m"),
        (["resume", "x", "--wait=false", "--timeout=5m"], "--timeout has no effect with --wait=false"),
    ] {
        let outcome = chandler(line, "");
        assert_eq!(outcome.code, Some(2), "{line:?}");
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}

/// The part of a BundleDeployment that commands write.
async fn written(session: &Session, name: &str) -> (Value, Option<Value>) {
    let deployment = serde_json::to_value(session.world.deployments().get(name).await.unwrap()).unwrap();
    (deployment["spec"].clone(), deployment["metadata"].get("annotations").cloned())
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_write_nothing_and_every_format_has_the_same_data() {
    let session = Session::start().await;
    let name = session.world.name();
    let installed = session.install(&name, OLD, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let before = written(&session, &name).await;

    for (line, words) in [
        (vec!["suspend", &name], "would suspend"),
        (vec!["reconcile", &name, "--repair"], "would request a reconcile of"),
        (vec!["rollback", &name, "--cancel"], "would roll out the spec of"),
        (vec!["delete", &name], "nothing was deleted"),
        (vec!["adopt", &name, "--bundle", OLD], "no object to adopt"),
    ] {
        let outcome = session.run(&[line.as_slice(), &["--dry-run"]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{line:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{line:?}: {}", outcome.stderr);
    }
    let upgraded = session.run(&["upgrade", &name, NEW, "--dry-run", "-o", "json"]).await.data();
    let list: Value = serde_json::from_str(&upgraded).unwrap();
    assert_eq!(list["items"].as_array().unwrap().last().unwrap()["kind"], "BundleDeployment", "{list}");
    assert_eq!(written(&session, &name).await, before);
    assert!(session.world.deployments().get(&name).await.unwrap().metadata.deletion_timestamp.is_none());

    let shown = |format: &'static str, line: Vec<&str>| {
        let line: Vec<String> = line.into_iter().chain(["-o", format]).map(str::to_owned).collect();
        let session = &session;
        async move { session.run(&line.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    for line in [
        vec!["status", &name],
        vec!["explain", &name],
        vec!["tree", &name],
        vec!["history", &name],
        vec!["get", &name],
        vec!["get", "values", &name],
        vec!["get", "notes", &name],
        vec!["diff", &name, OLD],
        vec!["delete", &name, "--dry-run"],
        vec!["adopt", &name, "--bundle", OLD, "--dry-run"],
    ] {
        let (json, yaml) = (shown("json", line.clone()).await, shown("yaml", line.clone()).await);
        let json: Value = serde_json::from_str(&json.stdout).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let yaml = documents(&yaml.stdout);
        // A parser of YAML documents skips an empty one.
        let yaml = yaml.first().unwrap_or(&Value::Null);
        assert_eq!(members(&json), members(yaml), "{line:?}");
    }
    let wide = shown("wide", vec!["history", &name]).await;
    assert!(wide.data().contains("RELEASE"), "no column is left out");

    let absent = session.run(&["rollback", &name, "--to", "7"]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    let lines: [&[&str]; 4] =
        [&["status", "absent"], &["delete", "absent"], &["suspend", "absent"], &["catalog", "remove", "absent"]];
    for line in lines {
        let outcome = session.run(line).await;
        assert_eq!(outcome.code, Some(7), "{line:?}: {}", outcome.stderr);
    }
    session.world.finish().await;
}

/// The names of the members of an object, or of the objects of a list; ages and times differ from call to call.
fn members(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(map) => map.keys().cloned().collect(),
        Value::Array(items) => items.iter().flat_map(members).collect(),
        _ => BTreeSet::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_files_of_a_list_of_kubeconfigs_are_skipped() {
    let session = Session::start().await;
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).display().to_string();
    let listed = |files: &str| {
        let mut command = support::command(&support::cache());
        command.arg("list").env("KUBECONFIG", files).env_remove("CHANDLER_SYSTEM_NAMESPACE");
        async move {
            let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        }
    };
    let (code, message) = listed(&format!("{}:{}", place("one"), place("two"))).await;
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains(&place("one")) && message.contains(&place("two")), "{message}");
    if let Some(kubeconfig) = session.world.kubeconfig() {
        fs::write(place("two"), kubeconfig).unwrap();
        fs::set_permissions(place("two"), Permissions::from_mode(0o600)).unwrap();
        let (code, message) = listed(&format!("{}:{}", place("one"), place("two"))).await;
        assert_eq!(code, Some(0), "{message}");
    }
    session.world.finish().await;
}
