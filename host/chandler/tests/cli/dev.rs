//! `chandler dev`, and commands that use its control plane.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{self, Outcome, chandler};

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";

#[test]
fn a_bundle_is_installed_and_becomes_healthy() {
    let outcome = chandler(["dev", "--bundle", HARBOUR], "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    let last = outcome.stderr.lines().last().unwrap();
    assert!(last.starts_with("healthy in "), "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    for label in ["bundle", "source", "provisioner", "release", "installed", "objects"] {
        assert!(lines.iter().any(|line| line.starts_with(label)), "no line about {label}: {}", outcome.stderr);
    }
    for line in ["namespace harbour-operator-system", "└─ Deployment.apps", "   └─ ✓ harbour-operator"] {
        assert!(lines.contains(&line), "no line {line:?}: {}", outcome.stderr);
    }
}

#[test]
fn an_invalid_bundle_is_shown_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let manifests = directory.path().join("lighthouse/manifests");
    fs::create_dir_all(&manifests).unwrap();
    fs::write(manifests.join("a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Nothing\n")
        .unwrap();
    let bundle = manifests.parent().unwrap().to_str().unwrap();
    let arguments = ["dev", "--bundle", bundle, "--provisioner", "core-rukpak-io-plain"];
    let outcome = chandler(arguments, "");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("a.yaml:5:1]"), "{}", outcome.stderr);
}

#[test]
fn dev_without_a_bundle_or_keep_is_wrong_usage() {
    assert_eq!(chandler(["dev"], "").code, Some(2));
    assert_eq!(chandler(["dev", "--bundle", "not-there"], "").code, Some(2));
}

/// A control plane that runs until it is stopped.
pub(crate) struct Kept {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) kubeconfig: String,
}

impl Kept {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = support::command(&support::cache())
            .args(["dev", "--keep"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let kubeconfig = line.trim_end().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        Self { child, stdout, kubeconfig }
    }

    /// Runs a command in its cluster.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", &self.kubeconfig]), "")
    }

    /// Stops it with SIGTERM, and returns its exit code and the rest of its output.
    fn stop(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It still runs if the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_kept_control_plane_serves_status_until_sigterm() {
    let kept = Kept::start(&["--bundle", HARBOUR]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&kept.kubeconfig).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "the kubeconfig holds a token");
    let status = |arguments: &[&str]| {
        let fixed = ["status", "--kubeconfig", kept.kubeconfig.as_str()];
        chandler(fixed.iter().chain(arguments), "")
    };
    let started = Instant::now();
    let mut explained = status(&["harbour-operator"]);
    while explained.code != Some(0) {
        assert!(started.elapsed() < Duration::from_mins(5), "{}{}", explained.stdout, explained.stderr);
        explained = status(&["harbour-operator"]);
    }
    assert!(explained.stdout.ends_with("\nhealthy\n"), "{}", explained.stdout);
    let json: Value = serde_json::from_str(&status(&["harbour-operator", "-o", "json"]).data()).unwrap();
    let objects = json["objects"].as_array().unwrap();
    assert_eq!(
        (json["healthy"].as_bool(), objects.len()),
        (Some(true), usize::try_from(json["release"]["objects"].as_u64().unwrap()).unwrap())
    );
    assert!(objects.iter().all(|object| object["health"] == "healthy"));
    let unknown = status(&["nobody"]);
    assert_eq!(unknown.code, Some(7));
    assert!(unknown.stderr.contains("hint: `kubectl get bundledeployments`"), "{}", unknown.stderr);

    let kubeconfig = kept.kubeconfig.clone();
    assert_eq!(kept.stop(), (Some(0), String::new()));
    assert!(!fs::exists(kubeconfig).unwrap(), "the kubeconfig is removed with the cluster");
}

#[test]
fn the_controller_stops_on_sigterm() {
    let kept = Kept::start(&[]);
    let mut controller = support::command(&support::cache())
        .args(["controller", "--log-format", "json", "--kubeconfig", &kept.kubeconfig])
        .args(["--log-level", "info,kube_runtime::controller=debug", "--watch-selector", "shard in (a, b)"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(controller.stderr.take().unwrap()).lines();
    let starts: Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
    assert_eq!(starts["message"], "the controller starts", "{starts}");
    assert_eq!(
        (starts["version"].as_str(), starts["contracts"].as_str()),
        (Some(env!("CARGO_PKG_VERSION")), Some("0.1"))
    );
    assert!(starts["options"].as_str().unwrap().contains("watch_selector: Some("), "{starts}");
    let alone = log.find(|line| line.as_ref().unwrap().contains("are left alone")).unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&alone).unwrap()["selector"], "shard in (a,b)");
    let runs = log.find(|line| line.as_ref().unwrap().contains("the controller runs")).unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&runs).unwrap()["level"], "INFO");
    // Both reconcilers have started.
    let ready = log.by_ref().filter(|line| line.as_ref().unwrap().contains("starting runner"));
    assert_eq!(ready.take(2).count(), 2);
    assert!(Command::new("kill").args(["-TERM", &controller.id().to_string()]).status().unwrap().success());
    assert!(log.any(|line| line.unwrap().contains("the controller stopped")));
    assert_eq!(controller.wait().unwrap().code(), Some(0));
    assert_eq!(kept.stop(), (Some(0), String::new()));
}

#[test]
fn an_invalid_selector_is_refused_with_the_invalid_part() {
    let outcome = chandler(["controller", "--watch-selector", "tier=web,shard in a"], "");
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\"shard in a\" is not a requirement on labels: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("write `key=value`, `key!=value`, "), "{}", outcome.stderr);
}

#[test]
fn tls_settings_that_cannot_be_used_are_refused_before_anything_is_contacted() {
    for (option, expected) in [
        ("--tls-min-version=VersionTLS11", "write VersionTLS12 or VersionTLS13"),
        ("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "these are TLS_AES_128_GCM_SHA256, "),
        (
            "--tls-groups=X25519,X25519MLKEM768",
            "\"X25519MLKEM768\" is not a group that Chandler supports; these are X25519, ",
        ),
    ] {
        let outcome = chandler(["controller", option, "--kubeconfig=/not/there"], "");
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}

#[test]
fn without_a_kubeconfig_the_hint_names_the_flag() {
    for arguments in [
        ["status", "x", "--kubeconfig", "/not/there"],
        ["controller", "--cache-directory", "/tmp", "--kubeconfig=/not/there"],
    ] {
        let outcome = chandler(arguments, "");
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: set --kubeconfig"), "{}", outcome.stderr);
    }
}

#[test]
fn the_crds_are_those_of_the_api() {
    let crds = chandler(["crds"], "").data();
    assert_eq!(crds, chandler_api::crds_yaml().unwrap());
    let names: Vec<Value> = support::documents(&crds).iter().map(|crd| crd["metadata"]["name"].clone()).collect();
    let expected = [
        "bundledeployments.core.rukpak.io",
        "provisionerclasses.chandler.dev",
        "changeapprovals.chandler.dev",
        "catalogs.chandler.dev",
        "resolutions.core.deppy.io",
        "platformoperators.platform.openshift.io",
        "platformpolicies.chandler.dev",
        "receivers.chandler.dev",
        "alerts.chandler.dev",
    ];
    assert_eq!(names, expected);
}

/// Runs `chandler status` until the bundle is healthy.
fn wait_until_healthy(kubeconfig: &str) {
    let started = Instant::now();
    loop {
        let explained = chandler(["status", "--kubeconfig", kubeconfig, "harbour-operator"], "");
        if explained.code == Some(0) {
            return;
        }
        assert!(started.elapsed() < Duration::from_mins(5), "{}{}", explained.stdout, explained.stderr);
    }
}

#[test]
fn with_data_it_continues_after_sigkill() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("state");
    let data = data.to_str().unwrap();
    let mut first = Kept::start(&["--bundle", HARBOUR, "--data", data]);
    let kubeconfig = first.kubeconfig.clone();
    assert_eq!(kubeconfig, format!("{data}/kubeconfig"));
    wait_until_healthy(&kubeconfig);
    let written = fs::read(&kubeconfig).unwrap();
    let second = chandler(["dev", "--keep", "--data", data], "");
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("is in use by another process"), "{}", second.stderr);
    // SIGKILL.
    first.child.kill().unwrap();
    first.child.wait().unwrap();

    // The bundle is still installed, and the kubeconfig is still valid.
    let again = Kept::start(&["--data", data]);
    assert_eq!(fs::read(&again.kubeconfig).unwrap(), written);
    wait_until_healthy(&kubeconfig);
    assert_eq!(again.stop().0, Some(0));
    assert!(fs::exists(&kubeconfig).unwrap());

    // Installing the same bundle again changes nothing.
    let outcome = chandler(["dev", "--bundle", HARBOUR, "--data", data], "");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

/// Runs `chandler dev` until it prints a line with this label, then kills it with SIGKILL.
fn kill_at(label: &str, data: &str, cache: &Path) {
    let mut child = support::command(cache)
        .args(["dev", "--keep", "--bundle", HARBOUR, "--data", data])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let found = lines.any(|line| line.unwrap().starts_with(label));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found, "it ended before it printed {label:?}");
}

#[test]
fn it_continues_a_rollout_after_sigkill() {
    let directory = tempfile::tempdir().unwrap();
    // The next process uses the same directories, with files that the killed process did not finish.
    let (data, cache) = (directory.path().join("state"), directory.path().join("cache"));
    let data = data.to_str().unwrap();
    for label in ["bundle", "source", "provisioner", "release", "installed", "objects"] {
        kill_at(label, data, &cache);
    }
    let kept = Kept::start(&["--data", data]);
    wait_until_healthy(&kept.kubeconfig);
    let status = chandler(["status", "--kubeconfig", &kept.kubeconfig, "harbour-operator", "-o", "json"], "");
    let status: Value = serde_json::from_str(&status.data()).unwrap();
    let history = chandler(["history", "--kubeconfig", &kept.kubeconfig, "harbour-operator", "-o", "json"], "");
    let history: Value = serde_json::from_str(&history.data()).unwrap();
    assert!(status["objects"].as_array().unwrap().iter().all(|object| object["health"] == "healthy"), "{status}");
    assert_eq!(history.as_array().map(Vec::len), Some(1), "{history}");
    assert_eq!(kept.stop().0, Some(0));
}

#[test]
fn an_address_that_other_machines_can_reach_requires_a_token() {
    let outcome = chandler(["dev", "--keep", "--bind", "0.0.0.0:0"], "");
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--token-file"), "{}", outcome.stderr);

    let token = tempfile::NamedTempFile::new().unwrap();
    fs::write(token.path(), "a-chosen-token\n").unwrap();
    let kept = Kept::start(&["--bind", "127.0.0.1", "--token-file", token.path().to_str().unwrap()]);
    assert!(fs::read_to_string(&kept.kubeconfig).unwrap().contains("a-chosen-token"));
}

#[test]
fn the_documented_command_updates_the_crds_of_a_running_control_plane() {
    if !chandler_test_support::needs::kubectl() {
        return;
    }
    let kept = Kept::start(&[]);
    let crds = chandler(["crds"], "").data();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), crds).unwrap();
    let applied = Command::new("kubectl")
        .args(["apply", "--server-side", "--kubeconfig", &kept.kubeconfig, "-f", file.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
}
