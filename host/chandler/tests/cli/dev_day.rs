//! `chandler dev` as a home for a day's work: own provisioners, configuration, expected kinds, content that stays.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::{
    dev::Kept,
    support::{self, chandler},
};

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

fn plain(directory: &Path, manifests: &str) -> String {
    let bundle = directory.join("lighthouse");
    fs::create_dir_all(bundle.join("manifests")).unwrap();
    fs::write(bundle.join("manifests/objects.yaml"), manifests).unwrap();
    bundle.to_str().unwrap().to_owned()
}

fn component(directory: &Path) -> PathBuf {
    let file = directory.join("My_Format.wasm");
    fs::copy(support::root().join("target/plugins/plain.wasm"), &file).unwrap();
    file
}

#[test]
fn a_component_file_becomes_a_class_and_is_loaded_again_when_it_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let (bundle, file) = (plain(directory.path(), NOTE), component(directory.path()));
    let mut child = support::command(&support::cache())
        .args(["dev", "--keep", "--bundle", &bundle, "--provisioner", file.to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    let mut until = |what: &str| {
        let found = lines.by_ref().inspect(|line| seen.push(line.clone())).any(|line| line.contains(what));
        assert!(found, "no line with {what:?}: {seen:#?}");
    };
    until("my-format (");
    until("healthy in ");
    until("running until Ctrl-C");
    fs::copy(support::root().join("target/plugins/registry.wasm"), &file).unwrap();
    until("was rebuilt");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn missing_kinds_are_reported_at_once_with_the_flag_that_provides_them() {
    let directory = tempfile::tempdir().unwrap();
    let monitor =
        "---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\nspec: {any: [1]}\n";
    let certificate =
        "---\napiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {secretName: c}\n";
    let bundle = plain(directory.path(), &format!("{NOTE}{monitor}{certificate}"));
    let missing = chandler(["dev", "--bundle", &bundle], "");
    assert_eq!(missing.code, Some(1), "{}", missing.stderr);
    for line in [
        "missing       Certificate.cert-manager.io: --with cert-manager provides it",
        "missing       ServiceMonitor.monitoring.coreos.com: --with monitoring provides it",
    ] {
        assert!(missing.stderr.contains(line), "{line}: {}", missing.stderr);
    }
    assert!(!missing.stderr.contains("created"), "{}", missing.stderr);
    let installed = chandler(["dev", "--bundle", &bundle, "--with", "monitoring,cert-manager"], "");
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let unknown = chandler(["dev", "--bundle", &bundle, "--with", "prometheus"], "");
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
}

#[test]
fn a_bundle_that_needs_a_namespace_to_watch_is_refused_with_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("own");
    copy(&support::root().join(HARBOUR), &bundle);
    let csv = bundle.join("manifests/harbour-operator.clusterserviceversion.yaml");
    let text = fs::read_to_string(&csv).unwrap();
    let only = |text: &str, mode: &str| {
        text.replace(&format!("{{type: {mode}, supported: true}}"), &format!("{{type: {mode}, supported: false}}"))
    };
    fs::write(&csv, only(&only(&text, "SingleNamespace"), "AllNamespaces")).unwrap();

    let bundle = bundle.to_str().unwrap();
    let refused = chandler(["dev", "--bundle", bundle], "");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let command = format!("`chandler dev --bundle '{bundle}' --set watchNamespace=own-system`");
    assert!(refused.stderr.contains(&command), "{}", refused.stderr);
    let installed = chandler(["dev", "--bundle", bundle, "--set", "watchNamespace=own-system"], "");
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_second_controller_or_process_is_refused_and_the_first_one_named() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("state");
    let data = data.to_str().unwrap();
    let kept = Kept::start(&["--data", data]);
    let process = fs::read_to_string(Path::new(data).join("process")).unwrap();
    let second = chandler(["dev", "--keep", "--data", data], "");
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains(&format!("process {process} runs `chandler dev` on it")), "{}", second.stderr);
    let cache = directory.path().join("cache");
    let controller =
        chandler(["controller", "--kubeconfig", &kept.kubeconfig, "--cache-directory", cache.to_str().unwrap()], "");
    assert_eq!(controller.code, Some(1), "{}", controller.stderr);
    let named = format!("a controller already runs on this cluster: chandler dev, process {process}");
    assert!(controller.stderr.contains(&named), "{}", controller.stderr);
}

#[test]
fn with_data_images_and_bundles_are_there_the_next_day_without_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let (data, cache) = (directory.path().join("state"), directory.path().join("cache"));
    let run = |cache: &Path, arguments: &[&str]| {
        let output = support::command(cache).args(["dev", "--data", data.to_str().unwrap()]).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    };
    let first = run(&cache, &["--bundle", HARBOUR]);
    let registry = |text: &str| text.lines().find(|line| line.starts_with("registry")).unwrap().to_owned();
    fs::remove_dir_all(&cache).unwrap();
    // The bundle of the first day is fetched from the registry again: its content is nowhere else.
    let second = run(&cache, &["--bundle", HARBOUR]);
    assert_eq!(registry(&first), registry(&second));
    assert!(data.join("registry/harbour-operator/tags/latest").exists());
}
