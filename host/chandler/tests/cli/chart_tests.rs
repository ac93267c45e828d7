//! `chandler test`: the tests of charts, and releases with a name of their own.

use std::{collections::BTreeMap, fs, path::Path};

use chandler_permissions::{Account, PolicyRule, roles};
use chandler_tests::{deploy, wait};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{commands::Session, interruptions::interrupted, migrate_helm::class, support::Outcome};

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-config\"}\ndata: {a: b}\n";

/// A Job that succeeds, a ConfigMap for it, and a Pod that does what the values say.
const TESTS: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-script
  annotations: {helm.sh/hook: test, helm.sh/hook-weight: "-1"}
data: {script: echo}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-check
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: check, image: "registry.k8s.io/pause:3.10", command: [check, "{{ .Release.Name }}"]}]
{{- with .Values.pod }}
---
apiVersion: v1
kind: Pod
metadata:
  name: {{ $.Release.Name }}-pod
  annotations:
    helm.sh/hook: test-success
    devcluster.chandler.dev/simulate: {{ . }}
spec:
  restartPolicy: Never
  containers: [{name: probe, image: "registry.k8s.io/pause:3.10"}]
{{- end }}
{{- if .Values.binding }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{ .Release.Name }}-admin", annotations: {helm.sh/hook: test}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
{{- end }}
"#;

fn chart() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let templates = directory.path().join("templates");
    fs::create_dir(&templates).unwrap();
    fs::write(directory.path().join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.2.3\n").unwrap();
    fs::write(directory.path().join("values.yaml"), "pod: \"\"\nbinding: false\n").unwrap();
    fs::write(templates.join("config.yaml"), CONFIG).unwrap();
    fs::write(templates.join("tests.yaml"), TESTS).unwrap();
    directory
}

async fn install(session: &Session, name: &str, chart: &Path, class: &str, more: &[&str]) {
    let installed = session.install(name, chart.to_str().unwrap(), &[&["--class", class], more].concat()).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
}

/// Changes the values of the installed chart.
async fn set(session: &Session, name: &str, assignment: &str) {
    let upgraded = session.run(&["upgrade", name, "--set", assignment]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
}

fn pods(session: &Session) -> Api<Pod> {
    Api::namespaced(session.world.client.clone(), &session.world.namespace)
}

/// The names of the objects of tests.
async fn left(session: &Session, name: &str) -> Vec<String> {
    let of_tests = ListParams::default().labels(&format!("chandler.dev/test-of={name}"));
    let client = &session.world.client;
    let jobs: Api<Job> = Api::namespaced(client.clone(), &session.world.namespace);
    let mut names: Vec<String> = jobs.list(&of_tests).await.unwrap().items.iter().map(ResourceExt::name_any).collect();
    names.extend(pods(session).list(&of_tests).await.unwrap().items.iter().map(ResourceExt::name_any));
    let maps = session.world.config_maps().list(&of_tests).await.unwrap();
    names.extend(maps.items.iter().map(ResourceExt::name_any));
    names
}

/// A session with the chart installed, and the name of the BundleDeployment.
async fn installed(more: &[&str]) -> (Session, String) {
    let session = Session::start().await;
    let (name, chart) = (session.world.name(), chart());
    let class = class(&session.world).await;
    install(&session, &name, chart.path(), &class, more).await;
    (session, name)
}

fn outcomes(run: &Outcome) -> Value {
    let report = serde_json::from_str::<Value>(&run.stdout);
    assert!(report.is_ok(), "{run:?}");
    let report = report.unwrap();
    let tests = report["tests"].as_array().unwrap();
    tests.iter().map(|test| json!([test["object"], test["outcome"]])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tests_of_an_installed_chart_run_on_demand() {
    let (session, name) = installed(&[]).await;
    assert_eq!(left(&session, &name).await, [""; 0], "tests are not installed");

    let dry = session.run(&["test", &name, "--dry-run"]).await;
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stderr.contains(&format!("would run 1 test of {name}; nothing was changed")), "{}", dry.stderr);
    assert_eq!(left(&session, &name).await, [""; 0]);

    // What succeeded is deleted as its policy says, and the rest stays until the next run.
    let passed = session.run(&["test", &name]).await;
    assert_eq!(passed.code, Some(0), "{}{}", passed.stdout, passed.stderr);
    assert!(passed.stdout.starts_with(&format!("Job {name}-check succeeded after ")), "{}", passed.stdout);
    assert!(passed.stdout.contains("/check | "), "the log is printed: {}", passed.stdout);
    assert!(passed.stderr.contains(&format!("1 test of {name} succeeded")), "{}", passed.stderr);
    let jobs: Api<Job> = Api::namespaced(session.world.client.clone(), &session.world.namespace);
    wait::until(&jobs, &format!("{name}-check"), "deleted", |job| job.is_none()).await;
    assert_eq!(left(&session, &name).await, [format!("{name}-script")]);
    session.world.ready(&name).await;

    // A failure is reported, and the other tests still run.
    set(&session, &name, "values.pod=fail").await;
    let failed = session.run(&["test", &name, "-o", "json"]).await;
    assert_eq!(failed.code, Some(1), "{}{}", failed.stdout, failed.stderr);
    assert_eq!(outcomes(&failed), json!([[format!("{name}-pod"), "Failed"], [format!("{name}-check"), "Succeeded"]]));
    assert!(failed.stderr.contains(&format!("1 of 2 tests of {name} failed")), "{}", failed.stderr);
    let first = pods(&session).get(&format!("{name}-pod")).await.expect("it stays, for a look at it");
    let again = session.run(&["test", &name]).await;
    assert_eq!(again.code, Some(1), "{}{}", again.stdout, again.stderr);
    let second = pods(&session).get(&format!("{name}-pod")).await.unwrap();
    assert_ne!(first.uid(), second.uid(), "an earlier run is replaced");

    // A test that has not ended is deleted, after a timeout and after Ctrl-C.
    set(&session, &name, "values.pod=stall").await;
    let late = session.run(&["test", &name, "--timeout", "3s", "-o", "json"]).await;
    assert_eq!(late.code, Some(3), "{}{}", late.stdout, late.stderr);
    assert_eq!(outcomes(&late), json!([[format!("{name}-pod"), "TimedOut"]]));
    wait::until(&pods(&session), &format!("{name}-pod"), "deleted", |pod| pod.is_none()).await;
    interrupted(&session, &["test", &name], "waiting").await;
    wait::until(&pods(&session), &format!("{name}-pod"), "deleted", |pod| pod.is_none()).await;
    wait::until(&session.world.config_maps(), &format!("{name}-script"), "deleted", |map| map.is_none()).await;
    session.world.ready(&name).await;
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_changes_nothing_else_and_grants_nothing() {
    let (session, name) = installed(&[]).await;

    // An object of another owner is in the way.
    let script: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": format!("{name}-script")}, "data": {"mine": "1"}})).unwrap();
    let script = session.world.config_maps().create(&PostParams::default(), &script).await.unwrap();
    let refused = session.run(&["test", &name]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains("exists, and is not of an earlier test"), "{}", refused.stderr);
    let kept = session.world.config_maps().get(&script.name_any()).await.unwrap();
    assert_eq!((kept.uid(), &kept.data), (script.uid(), &script.data));
    assert_eq!(left(&session, &name).await, [""; 0]);

    // A binding to cluster-admin is not a test, with whatever permissions.
    set(&session, &name, "values.binding=true").await;
    let refused = session.run(&["test", &name, "--own-permissions"]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains("RoleBinding"), "{}", refused.stderr);
    assert_eq!(left(&session, &name).await, [""; 0]);

    let absent = session.run(&["test", "absent"]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    let plain = format!("{name}-plain");
    install(&session, &plain, Path::new("./tests/fixtures/plain/lighthouse"), "core-rukpak-io-plain", &[]).await;
    let without = session.run(&["test", &plain]).await;
    assert_eq!(without.code, Some(1), "{}", without.stderr);
    assert!(without.stderr.contains("has no tests"), "{}", without.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_have_the_permissions_of_the_account() {
    let session = Session::start().await;
    let (world, name, chart) = (&session.world, session.world.name(), chart());
    let class = class(world).await;
    let account = Account { namespace: world.namespace.clone(), name: "deployer".to_owned() };
    let rule = |group: &str, resource: &str, verb: &str| -> Vec<PolicyRule> {
        serde_json::from_value(json!([{"apiGroups": [group], "resources": [resource], "verbs": [verb]}])).unwrap()
    };
    let places = BTreeMap::from([
        (None, rule("core.rukpak.io", "bundledeployments/finalizers", "update")),
        (Some(world.namespace.clone()), rule("", "configmaps", "*")),
    ]);
    let mut objects = roles(&places, &account, &name);
    objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account.name, "namespace": account.namespace}}));
    deploy::apply(&world.client, world.run(), &objects).await;
    install(&session, &name, chart.path(), &class, &["--service-account", "deployer"]).await;

    // The account may not create Jobs: the user could, and does not lend that to the bundle.
    let refused = session.run(&["test", &name]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    let account = format!("with the permissions of ServiceAccount {}/deployer", world.namespace);
    assert!(refused.stderr.contains(&account) && refused.stderr.contains("forbidden"), "{}", refused.stderr);
    wait::until(&world.config_maps(), &format!("{name}-script"), "deleted", |map| map.is_none()).await;
    let own = session.run(&["test", &name, "--own-permissions"]).await;
    assert_eq!(own.code, Some(0), "{}{}", own.stdout, own.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_has_the_name_that_the_configuration_gives() {
    let (session, name) = installed(&["--set", "releaseName=first"]).await;
    let maps = session.world.config_maps();
    let first = maps.get("first-config").await.expect("the chart uses the name");
    assert_eq!(first.owner_references()[0].name, name);
    assert!(maps.get_opt(&format!("{name}-config")).await.unwrap().is_none());

    // Another name gives other objects: the earlier ones are deleted.
    set(&session, &name, "releaseName=second").await;
    maps.get("second-config").await.expect("the new name");
    wait::until(&maps, "first-config", "deleted", |map| map.is_none()).await;
    session.world.ready(&name).await;

    // A name that Helm refuses is refused before anything is written.
    let long = format!("releaseName={}", "a".repeat(54));
    for refused in ["releaseName=Third", &long] {
        let refused = session.run(&["upgrade", &name, "--set", refused]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("releaseName"), "{}", refused.stderr);
    }
    let deployment = session.world.deployments().get(&name).await.unwrap();
    assert_eq!(deployment.spec.config.unwrap()["releaseName"], "second");
    session.world.finish().await;
}
