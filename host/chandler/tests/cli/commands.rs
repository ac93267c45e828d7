//! The commands of a day's work, from `install` to `delete`, on the API server that the environment selects.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use chandler::write::deployment::{self, Effect, SpecChange};
use chandler_test_support::git::GitServer;
use chandler_tests::{World, bundles, run::LABEL};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Resource as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, Outcome};

/// How long a command may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// A cluster with a controller, and the binary with a kubeconfig for it.
pub(crate) struct Session {
    pub(crate) world: World,
    directory: TempDir,
}

impl Session {
    pub(crate) async fn start() -> Self {
        Self::on(World::new().await)
    }

    /// A session on a world of the caller's.
    pub(crate) fn on(world: World) -> Self {
        let session = Self { world, directory: tempfile::tempdir().unwrap() };
        if let Some(kubeconfig) = session.world.kubeconfig() {
            let path = session.kubeconfig();
            fs::write(&path, kubeconfig).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        session
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Runs a command for this cluster.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = support::command(&support::cache());
        command.args(arguments).env("CHANDLER_SYSTEM_NAMESPACE", &self.world.system_namespace);
        // A printed command has it already.
        if self.world.kubeconfig().is_some() && !arguments.contains(&"--kubeconfig") {
            command.arg("--kubeconfig").arg(self.kubeconfig());
        }
        // Some commands follow a rollout for an hour: a rollout that does not end fails the test instead.
        let mut command = tokio::process::Command::from(command);
        let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(PATIENCE, running).await;
        assert!(output.is_ok(), "{arguments:?} does not end within {PATIENCE:?}");
        let output = output.unwrap().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that succeeds, and returns its output.
    pub(crate) async fn data(&self, arguments: &[&str]) -> String {
        self.run(arguments).await.data()
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.data(arguments).await).unwrap()
    }

    /// The label that the controller selects.
    pub(crate) fn label(&self) -> String {
        format!("{LABEL}={}", self.world.run())
    }

    /// Installs a bundle, and waits until it is healthy.
    pub(crate) async fn install(&self, name: &str, bundle: &str, more: &[&str]) -> Outcome {
        let label = self.label();
        let fixed = ["install", name, bundle, "--namespace", &self.world.namespace, "--label", &label];
        self.run(&[&fixed, more].concat()).await
    }

    pub(crate) async fn row(&self, name: &str) -> Value {
        let rows = self.json(&["list", "-o", "json"]).await;
        rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    }

    /// The ConfigMaps with content of this BundleDeployment.
    async fn content(&self, name: &str) -> Vec<ConfigMap> {
        let config_maps: Api<ConfigMap> = Api::namespaced(self.world.client.clone(), &self.world.system_namespace);
        let of = ListParams::default().labels(&format!("chandler.dev/content-of={name}"));
        config_maps.list(&of).await.unwrap().items
    }
}

pub(crate) const OLD: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
pub(crate) const NEW: &str = "./tests/fixtures/registry/harbour-operator.v0.2.0";

fn packed(bundle: &str) -> Vec<u8> {
    let arguments = ["--create", "--gzip", "--directory", bundle, "."];
    let output = std::process::Command::new("tar").args(arguments).current_dir(support::root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_installed_and_upgraded_to_an_archive_with_a_digest() {
    let session = Session::start().await;
    let (name, server) = (session.world.name(), chandler_tests::ArchiveServer::start().await);
    let (old, new) = (packed(OLD), packed(NEW));
    server.serve(old.clone());
    let installed = session.install(&name, &server.url(), &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    assert!(session.content(&name).await.is_empty(), "the controller fetches it");
    let deployment = session.world.deployments().get(&name).await.unwrap();
    let digest = |archive: &[u8]| chandler_core::Digest::of(archive).hex().to_owned();
    assert_eq!(deployment.spec.source.http.unwrap().sha256, None);
    let resolved = deployment.status.unwrap().resolved_source.unwrap().http.unwrap();
    assert_eq!((resolved.url, resolved.sha256), (server.url(), Some(digest(&old))));

    server.serve(new.clone());
    let pinned = format!("{}#sha256={}", server.url(), digest(&new));
    let upgraded = session.run(&["upgrade", &name, &pinned]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let source = session.world.deployments().get(&name).await.unwrap().spec.source.http.unwrap();
    assert_eq!((source.url, source.sha256), (server.url(), Some(digest(&new))));
    let row = session.row(&name).await;
    assert_eq!(row["source"], format!("archive {} (sha256:{:.12})", server.url(), digest(&new)));
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_a_repository_is_installed_and_upgraded() {
    let Some(server) = GitServer::start().await else { return };
    let session = Session::start().await;
    let (name, repository) = (session.world.name(), server.repository("harbours"));
    repository.allow_filter();
    let commit = |bundle: &str, tag: &str| {
        let commit = repository.commit_directory("main", "bundles/harbour", &support::root().join(bundle));
        repository.tag(tag, &commit);
        commit
    };
    let (old, new) = (commit(OLD, "v0.1.0"), commit(NEW, "v0.2.0"));
    let url = |revision: &str| format!("git+{}?{revision}&directory=bundles/harbour", server.url("harbours"));
    let installed = session.install(&name, &url("semver=~0.1"), &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    assert!(session.content(&name).await.is_empty(), "the controller fetches it");
    let upgraded = session.run(&["upgrade", &name, &url("branch=main")]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let deployment = session.world.deployments().get(&name).await.unwrap();
    let source = deployment.spec.source.git.unwrap();
    assert_eq!(
        (source.repository, source.directory.as_deref(), source.reference.branch.as_deref()),
        (server.url("harbours"), Some("bundles/harbour"), Some("main"))
    );
    let commit = deployment.status.unwrap().resolved_source.unwrap().git.unwrap().reference.commit;
    assert_eq!(commit.as_deref(), Some(new.as_str()));
    let missing = session.run(&["upgrade", &name, &url("commit=x")]).await;
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    let history = session.run(&["history", &name, "-o", "json"]).await;
    assert!(history.stdout.contains(&old), "{}", history.stdout);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_installed_upgraded_and_uninstalled() {
    let session = Session::start().await;
    let name = session.world.name();
    let installed = session.install(&name, OLD, &[]).await;
    assert_eq!((installed.code, installed.stdout.as_str()), (Some(0), ""), "{}", installed.stderr);
    let created = format!(
        "created BundleDeployment {name} for namespace {}, class core-rukpak-io-registry, files in 2 ConfigMaps\n",
        session.world.namespace
    );
    assert!(installed.stderr.contains(&created), "{}", installed.stderr);
    assert!(installed.stderr.contains(" is healthy after "), "{}", installed.stderr);
    let first = session.content(&name).await;
    let uid = session.world.deployments().get(&name).await.unwrap().metadata.uid.unwrap();
    assert_eq!(first.len(), 2);
    assert!(first.iter().all(|map| map.meta().owner_references.as_ref().unwrap()[0].uid == uid));
    let row = session.row(&name).await;
    assert_eq!((&row["installedVersion"], &row["state"]), (&json!("0.1.0"), &json!("Ready")));

    let again = session.install(&name, OLD, &[]).await;
    assert_eq!(again.code, Some(1));
    assert!(
        again.stderr.contains(&format!("hint: change it with `chandler upgrade {name} BUNDLE`")),
        "{}",
        again.stderr
    );

    let upgraded = session.run(&["upgrade", &name, NEW]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let row = session.row(&name).await;
    assert_eq!((&row["installedVersion"], row.get("pendingVersion")), (&json!("0.2.0"), None));
    // A rollback to the first revision needs its files.
    let kept = session.content(&name).await;
    assert!(first.iter().all(|map| kept.iter().any(|kept| kept.metadata.name == map.metadata.name)));
    let back = session.run(&["rollback", &name, "--to", "1"]).await;
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    let followed = session.run(&["status", &name, "--watch"]).await;
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(session.row(&name).await["installedVersion"], "0.1.0");
    // An upgrade ends the rollback.
    let upgraded = session.run(&["upgrade", &name, NEW]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    assert!(upgraded.stderr.contains("the rollback to revision 1 has ended"), "{}", upgraded.stderr);
    assert_eq!(session.row(&name).await["installedVersion"], "0.2.0");

    let gone = session.run(&["delete", &name, "--yes", "--wait"]).await;
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(session.world.deployments().get_opt(&name).await.unwrap().is_none());
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_set_merged_shown_and_dropped() {
    let session = Session::start().await;
    let (name, namespace) = (session.world.name(), session.world.namespace.clone());
    let image = session.world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let file = session.directory.path().join("values.yaml");
    fs::write(&file, "deploymentConfig: {env: [{name: A, value: a}]}\n").unwrap();
    let file = file.to_str().unwrap();
    let watch = format!("watchNamespace={namespace}");
    let installed = session.install(&name, &image, &["-f", file, "--set", &watch]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let values = session.json(&["get", "values", &name, "-o", "json"]).await;
    let env = json!([{"name": "A", "value": "a"}]);
    assert_eq!(values, json!({"deploymentConfig": {"env": env}, "watchNamespace": namespace}));
    let text = session.data(&["get", "values", &name]).await;
    assert_eq!(support::documents(&text), [values]);

    let changed = session.run(&["upgrade", &name, "--set", "deploymentConfig.env[0].value=b"]).await;
    assert_eq!(changed.code, Some(0), "{}", changed.stderr);
    let manifest = session.json(&["get", "manifest", &name, "-o", "json"]).await;
    let deployment = manifest["items"].as_array().unwrap().iter().find(|it| it["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert!(container["env"].as_array().unwrap().contains(&json!({"name": "A", "value": "b"})), "{container}");
    assert!(deployment.get("status").is_none() && deployment["metadata"].get("uid").is_none(), "{deployment}");

    let same = session.run(&["upgrade", &name, "--set", "deploymentConfig.env[0].value=b"]).await;
    assert!(same.stderr.contains("nothing was changed"), "{}", same.stderr);
    let nothing = session.run(&["upgrade", &name]).await;
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
    let elsewhere = session.run(&["upgrade", &name, "-n", "elsewhere", "--reset-config"]).await;
    assert_eq!(elsewhere.code, Some(2), "{}", elsewhere.stderr);
    let dropped = session.run(&["upgrade", &name, "--reset-config"]).await;
    assert_eq!(dropped.code, Some(0), "{}", dropped.stderr);
    assert_eq!(session.json(&["get", "values", &name, "-o", "json"]).await, json!({}));
    let all = session.data(&["get", &name]).await;
    for part in [&format!("NAME: {name}\n"), "VERSION: 0.1.0\n", "\nVALUES:\n", "\nMANIFEST:\n", "kind: Deployment\n"] {
        assert!(all.contains(part), "{part:?} is not in {all}");
    }
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_invalid_is_refused_before_anything_is_written() {
    let session = Session::start().await;
    let name = session.world.name();
    let refused = session.install(&name, OLD, &["--set", "noSuchField=1"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("error: the configuration is invalid"), "{}", refused.stderr);
    let large = bundles::sample("registry/harbour-operator.v0.1.0").with("manifests/large.bin", &"x".repeat(2 << 20));
    let refused = session.install(&name, large.path().to_str().unwrap(), &["--class", "some-class"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("cause: manifests/large.bin has 2097152 bytes"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("--upload sends it to the content service of the controller; or push it as an image"),
        "{}",
        refused.stderr
    );
    let missing = format!("{}-extra", session.world.namespace);
    let label = session.label();
    let nowhere = session.run(&["install", &name, OLD, "-n", &missing, "--label", &label]).await;
    assert_eq!(nowhere.code, Some(7), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("hint: --create-namespace creates it"), "{}", nowhere.stderr);
    let absent = session.run(&["upgrade", &name, OLD]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    assert!(absent.stderr.contains("--install installs a bundle under a new name"), "{}", absent.stderr);
    assert!(session.world.deployments().get_opt(&name).await.unwrap().is_none());
    assert_eq!(session.content(&name).await, []);

    // The command that the hint names.
    let arguments = ["upgrade", "--install", &name, OLD, "-n", &missing, "--label", &label];
    let created = session.run(&[&arguments[..], &["--create-namespace", "--pod-security", "baseline"]].concat()).await;
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let namespaces: Api<Namespace> = Api::all(session.world.client.clone());
    let labels = namespaces.get(&missing).await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "baseline");
    session.data(&["delete", &name, "--yes"]).await;
    namespaces.delete(&missing, &DeleteParams::default()).await.unwrap();
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_the_cluster_lacks_are_reported_before_the_command_waits_for_them() {
    let session = Session::start().await;
    let name = session.world.name();
    let widget = format!("apiVersion: {name}.example.com/v1\nkind: Widget\nmetadata: {{name: w}}\n");
    let bundle = bundles::Bundle::empty().with("manifests/widget.yaml", &widget);
    let path = bundle.path().to_str().unwrap();
    let installed = session.install(&name, path, &["--wait=false"]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let expected = format!(
        "missing: the cluster does not serve Widget.{name}.example.com\n\
         hint: install what provides it, or the CRDs (`kubectl apply --server-side -f FILE`); until then nothing of the bundle is \
         installed\ncreated BundleDeployment {name} "
    );
    assert!(installed.stderr.contains(&expected), "{}", installed.stderr);
    let upgraded = session.run(&["upgrade", &name, path, "--wait=false"]).await;
    assert!(upgraded.stderr.contains("missing: the cluster does not serve Widget"), "{}", upgraded.stderr);
    session.data(&["delete", &name, "--yes"]).await;
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_is_suspended_resumed_and_reconciled() {
    let session = Session::start().await;
    let name = session.world.name();
    let image = session.world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let installed = session.install(&name, &image, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let done = session.run(&["suspend", &name]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(session.row(&name).await["state"], "Suspended");
    let refused = session.run(&["reconcile", &name]).await;
    assert_eq!(refused.code, Some(8));
    assert!(refused.stderr.contains(&format!("hint: `chandler resume {name}`")), "{}", refused.stderr);
    let resumed = session.run(&["resume", &name]).await;
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let handled = |deployment: chandler_api::BundleDeployment| deployment.status.unwrap().last_handled_reconcile_at;
    assert_eq!(handled(session.world.deployments().get(&name).await.unwrap()), None);
    let reconciled = session.run(&["reconcile", &name]).await;
    assert_eq!(reconciled.code, Some(0), "{}", reconciled.stderr);
    assert!(handled(session.world.deployments().get(&name).await.unwrap()).is_some());
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_and_the_completion_have_the_names() {
    let session = Session::start().await;
    let name = session.world.name();
    let dry = session.install(&name, OLD, &["--dry-run"]).await;
    let kinds: Vec<Value> = support::documents(&dry.data()).iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap", "BundleDeployment"]);
    let installed = session.install(&name, OLD, &["--wait=false"]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let label = session.label();
    assert_eq!(session.data(&["list", "-l", &label, "-o", "name"]).await, format!("{name}\n"));
    let table = session.data(&["ls", "-n", &session.world.namespace]).await;
    assert!(table.starts_with("NAME ") && table.lines().nth(1).unwrap().starts_with(&name), "{table}");
    let empty = session.run(&["list", "-n", "nowhere"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{}", empty.stderr);

    let mut command = support::command(&support::cache());
    command.env("CHANDLER_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
    command.args(["--", "chandler", "status", ""]);
    if session.world.kubeconfig().is_some() {
        command.env("KUBECONFIG", session.kubeconfig());
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    assert!(names.lines().any(|line| line == name), "{names}{}", String::from_utf8_lossy(&output.stderr));
    session.world.finish().await;
}

#[test]
fn a_completion_script_calls_the_program() {
    let script = support::chandler(["completion", "bash"], "").data();
    assert!(script.contains("CHANDLER_COMPLETE=") && script.contains("complete "), "{script}");
}

#[test]
fn kubectl_runs_and_completes_the_plugin() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    symlink(env!("CARGO_BIN_EXE_chandler"), place("kubectl-chandler")).unwrap();
    fs::write(place("kubectl_complete-chandler"), support::chandler(["completion", "kubectl"], "").data()).unwrap();
    fs::set_permissions(place("kubectl_complete-chandler"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(arguments).env("PATH", format!("{}:{path}", directory.path().display())).env_remove("KUBECONFIG");
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let usage = run(&place("kubectl-chandler").display().to_string(), &["status", "--help"]);
    assert!(usage.contains("Usage: kubectl chandler status"), "{usage}");
    let completed = run(&place("kubectl_complete-chandler").display().to_string(), &["must"]);
    assert_eq!(completed, "must-gather\n:4\n");
    if chandler_test_support::needs::kubectl() {
        let version = run("kubectl", &["chandler", "--version"]);
        assert!(version.starts_with("chandler "), "{version}");
        let completed = run("kubectl", &["__complete", "chandler", "uninst"]);
        assert!(completed.starts_with("uninstall\n"), "{completed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_conflicts_with_a_change_of_its_fields_and_not_with_others() {
    let session = Session::start().await;
    let name = session.world.name();
    let set = ["--set", "operatorConditionName=a"];
    let installed = session.install(&name, OLD, &set).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let deployments = session.world.deployments();
    let read = deployments.get(&name).await.unwrap();
    let patch = async |patch: Value| {
        deployments.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let change = async |config: Option<Value>| {
        let mut change = SpecChange::default();
        change.set("config", config);
        deployment::change(&session.world.client, &read, &change, Effect::Check).await
    };
    patch(json!({"metadata": {"annotations": {"tides": "high"}}})).await;
    let wanted = || Some(json!({"operatorConditionName": "b"}));
    let changed = change(wanted()).await.unwrap();
    assert_eq!(changed.spec.config.unwrap()["operatorConditionName"], "b");
    patch(json!({"spec": {"suspend": true}})).await;
    let changed = change(wanted()).await.unwrap();
    assert_eq!(
        (changed.spec.suspend, changed.spec.config.unwrap()["operatorConditionName"].as_str()),
        (true, Some("b"))
    );
    patch(json!({"spec": {"config": null}})).await;
    for config in [wanted(), None] {
        let refused = change(config).await.unwrap_err().to_string();
        assert!(
            refused.contains(&format!("BundleDeployment {name} was changed by another client meanwhile")),
            "{refused}"
        );
        assert!(refused.contains("run the command again"), "{refused}");
    }
    session.world.finish().await;
}
