//! `KIND/NAME` as the argument of every command that takes the name of an object.

use std::fmt::Write as _;

use crate::support::chandler;

/// The commands; `{}` is the name.
const COMMANDS: &[&str] = &[
    "status {}",
    "explain {}",
    "events {}",
    "tree {}",
    "history {}",
    "rollback {}",
    "approve {}",
    "suspend {}",
    "resume {}",
    "reconcile {}",
    "get {}",
    "get values {}",
    "delete {}",
    "adopt {}",
    "content {}",
    "upgrade {}",
    "diff {}",
    "rbac {}",
    "catalog remove {}",
];

const NAMES: &[&str] = &[
    "x",
    "bundledeployment/x",
    "bd/x",
    "resolution/x",
    "po/x",
    "catalog/x",
    "provisionerclass/x",
    "platformpolicy/x",
    "receiver/x",
    "alert/x",
    "pod/x",
    "UPPER",
    "a/b/c",
];

/// What becomes of a command line: `taken` if it fails only for want of a cluster.
fn outcome(command: &str, name: &str) -> String {
    let words = command.replace("{}", name);
    let outcome = chandler(words.split(' ').chain(["--kubeconfig", "/nowhere/kubeconfig"]), "");
    let message = outcome.stderr.split("\n\nFor more").next().unwrap_or_default();
    match outcome.code {
        Some(1) if message.contains("/nowhere/kubeconfig") => "taken".to_owned(),
        Some(2) => message.trim().replace("error: invalid value ", ""),
        code => format!("exits with {code:?}: {message}"),
    }
}

#[test]
fn every_command_takes_a_kind_with_the_name_or_says_what_it_takes() {
    let mut table = String::new();
    for command in COMMANDS {
        writeln!(table, "# {command}").unwrap();
        for name in NAMES {
            writeln!(table, "{name}: {}", outcome(command, name)).unwrap();
        }
        table.push('\n');
    }
    for (command, name) in [("delete {}", "bd/x"), ("get {}", "bundledeployment/x"), ("tree {}", "resolution/x")] {
        assert_eq!(outcome(command, name), "taken");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn options_that_a_kind_has_no_use_for_are_refused() {
    for (command, message) in [
        (&["status", "platformpolicy/x", "--watch"][..], "platformpolicy/x has no rollout to watch"),
        (&["status", "alert/x", "--watch"], "alert/x has no rollout to watch"),
        (&["reconcile", "catalog/x", "--repair"], "--repair does not go with catalog/x"),
    ] {
        let refused = chandler(command, "");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(message) && refused.stderr.contains("hint: "), "{}", refused.stderr);
    }
}
