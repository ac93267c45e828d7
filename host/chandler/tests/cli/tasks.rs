//! What administrators do with published operators, from the first installation to the removal: each task with the commands that it
//! takes, and what they print.

use std::{fs, path::Path};

use chandler_test_support::needs;
use chandler_tests::{bundles::Bundle, wait};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Service, ServiceAccount},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    discovery,
};
use serde_json::{Value, json};

use crate::{
    commands::Session,
    support::{Outcome, documents},
};

/// A published operator with a CRD, which watches its own namespace.
const PACKAGE: &str = "pelorus-operator";
const CSV: &str = "manifests/pelorus-operator.clusterserviceversion.yaml";
const WORKLOAD: &str = "pelorus-operator-controller-manager";
const METRICS: &str = "pelorus-operator-controller-manager-metrics-service";
const IMAGE: &str = "quay.io/pelorus/pelorus-operator";
const SUCCESS: i32 = 0;
const FAILED: i32 = 1;
const DIFFERENT: i32 = 4;
const DECISION: i32 = 6;
const REFUSED: i32 = 8;

/// A task, which takes a number of commands at most.
struct Task<'a> {
    session: &'a Session,
    title: &'static str,
    commands: usize,
    used: usize,
}

impl<'a> Task<'a> {
    fn new(session: &'a Session, title: &'static str, commands: usize) -> Self {
        Self { session, title, commands, used: 0 }
    }

    /// Runs a command that ends with this code and prints these parts.
    async fn run(&mut self, arguments: &[&str], code: i32, parts: &[&str]) -> Outcome {
        self.used += 1;
        assert!(self.used <= self.commands, "{} takes more than {} commands", self.title, self.commands);
        let outcome = self.session.run(arguments).await;
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        let of = format!("{}: {arguments:?}:\n{text}", self.title);
        assert_eq!(outcome.code, Some(code), "{of}");
        for part in parts {
            assert!(text.contains(part), "no {part:?}: {of}");
        }
        if matches!(code, SUCCESS | DECISION) {
            assert!(!text.contains("error: ") && !text.contains("Failed"), "it succeeded, or waits: {of}");
        }
        outcome
    }
}

/// Two published versions of the operator, and a third one made from the second, if the fixtures are there.
fn published() -> Option<[(&'static str, Bundle); 3]> {
    let bundle = |version: &str| {
        let directory = needs::fixture(&format!("corpus/bundles/{PACKAGE}/{version}"))?;
        Some(Bundle::copy_of(&directory))
    };
    let third = bundle("0.0.3")?.replacing(CSV, "0.0.3", "0.0.4");
    Some([("0.0.1", bundle("0.0.1")?), ("0.0.3", bundle("0.0.3")?), ("0.0.4", third)])
}

fn directory(bundle: &Bundle) -> &str {
    bundle.path().to_str().unwrap()
}

async fn patch_spec(session: &Session, name: &str, spec: &Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    session.world.deployments().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Scales the workload of the operator, as a user does with kubectl.
async fn scale(session: &Session) {
    let workloads: Api<Deployment> = Api::namespaced(session.world.client.clone(), &session.world.namespace);
    let parameters = PatchParams { field_manager: Some("kubectl-scale".to_owned()), ..PatchParams::default() };
    workloads.patch(WORKLOAD, &parameters, &Patch::Merge(json!({"spec": {"replicas": 2}}))).await.unwrap();
}

/// A custom resource of the operator.
async fn create_custom_resource(session: &Session) {
    let kind = GroupVersionKind::gvk("charts.pelorus.konveyor.io", "v1alpha1", "Pelorus");
    let (resource, _) = discovery::pinned_kind(&session.world.client, &kind).await.unwrap();
    let client = session.world.client.clone();
    let all = Api::<DynamicObject>::namespaced_with(client, &session.world.namespace, &resource);
    all.create(&PostParams::default(), &DynamicObject::new("north", &resource)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_installed_upgraded_rolled_back_configured_repaired_and_removed() {
    let Some([(_, first), (_, second), (_, third)]) = published() else { return };
    let (first, second, third) = (directory(&first), directory(&second), directory(&third));
    let session = Session::start().await;
    let name = session.world.name();
    let (namespace, label) = (session.world.namespace.clone(), session.label());
    let task = |title, commands| Task::new(&session, title, commands);

    let own = format!("watchNamespace={namespace}");
    let install = ["install", &name, first, "--namespace", &namespace, "--label", &label, "--set", &own];
    task("install a published operator", 1).run(&install, SUCCESS, &["healthy"]).await;

    let change = format!("~ change Deployment.apps {namespace}/{WORKLOAD}");
    let (old, new) = (format!("- \"{IMAGE}:0.0.1\""), format!("+ \"{IMAGE}:0.0.3\""));
    let fields = [change.as_str(), &old, &new];
    task("see what an upgrade changes", 1).run(&["diff", &name, second], DIFFERENT, &fields).await;
    task("upgrade to a version", 1).run(&["upgrade", &name, second], SUCCESS, &["healthy"]).await;

    let pinned = format!("pinned to revision 1 by your rollback; `chandler rollback {name} --cancel` ends it");
    let mut back = task("roll back", 2);
    back.run(&["rollback", &name], SUCCESS, &[&format!("rolling {name} back to revision 1; ")]).await;
    back.run(&["status", &name, "--watch"], SUCCESS, &["\nhealthy\n", &pinned]).await;
    let mut forth = task("end the rollback", 2);
    forth.run(&["rollback", &name, "--cancel"], SUCCESS, &[]).await;
    let status = forth.run(&["status", &name, "--watch"], SUCCESS, &["\nhealthy\n", "0.0.3"]).await;
    assert!(!status.stdout.contains("your rollback"), "{}", status.stdout);

    let set = "deploymentConfig.env[0].name=POOL,deploymentConfig.env[0].value=infra";
    task("change the configuration", 1).run(&["upgrade", &name, "--set", set], SUCCESS, &["healthy"]).await;
    let workloads: Api<Deployment> = Api::namespaced(session.world.client.clone(), &namespace);
    let pod = workloads.get(WORKLOAD).await.unwrap().spec.unwrap().template.spec.unwrap();
    let mut variables = pod.containers.iter().flat_map(|container| container.env.iter().flatten());
    assert!(variables.any(|variable| variable.name == "POOL" && variable.value.as_deref() == Some("infra")));

    patch_spec(&session, &name, &json!({"approval": "Manual"})).await;
    let waits = format!("0.0.3 runs and is healthy; 0.0.4 waits for your approval: `chandler approve {name}`");
    let mut approval = task("approve an upgrade that waits", 3);
    approval.run(&["upgrade", &name, third], DECISION, &[&waits]).await;
    approval.run(&["approve", &name, "--yes"], SUCCESS, &["approved by "]).await;
    approval.run(&["status", &name, "--watch"], SUCCESS, &["\nhealthy\n", "0.0.4"]).await;

    patch_spec(&session, &name, &json!({"approval": null, "drift": "Report"})).await;
    session.world.ready(&name).await;
    scale(&session).await;
    wait::until(&session.world.deployments(), &name, "drift is reported", |deployment| {
        deployment.and_then(|it| it.status.as_ref()?.drift.as_ref()).is_some()
    })
    .await;
    let mut repair = task("repair drift", 2);
    let command = format!("`chandler reconcile {name} --repair`");
    repair
        .run(&["status", &name], SUCCESS, &["drift (1 object)", "spec.replicas, set by kubectl-scale", &command])
        .await;
    repair.run(&["reconcile", &name, "--repair"], SUCCESS, &[]).await;
    let replicas = workloads.get(WORKLOAD).await.unwrap().spec.unwrap().replicas;
    assert_eq!(replicas, Some(1));

    create_custom_resource(&session).await;
    let mut removal = task("remove it with its custom resources", 2);
    let held = ["pelorus.charts.pelorus.konveyor.io", "north", "--crds Keep", "--crds Delete"];
    removal.run(&["delete", &name, "--yes"], REFUSED, &held).await;
    removal.run(&["delete", &name, "--yes", "--crds", "Delete"], SUCCESS, &[&format!("deleted: {name}")]).await;
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_of_an_installation_is_found_and_fixed_as_printed() {
    let Some([(_, first), ..]) = published() else { return };
    let session = Session::start().await;
    let (namespace, label) = (session.world.namespace.clone(), session.label());
    let own = format!("watchNamespace={namespace}");
    let install = |name: &str, bundle: &Bundle, more: &[&str]| -> Vec<String> {
        let fixed = ["install", name, directory(bundle), "--namespace", &namespace, "--label", &label, "--set", &own];
        fixed.iter().chain(more).map(|&argument| argument.to_owned()).collect()
    };
    let task = |title, commands| Task::new(&session, title, commands);

    let unreachable = Bundle::copy_of(first.path()).replacing(CSV, IMAGE, "registry.invalid/pelorus-operator");
    let name = format!("{}-sick", session.world.name());
    let mut find = task("find out why it is not healthy", 2);
    find.run(&words(&install(&name, &unreachable, &["--wait=false"])), SUCCESS, &[]).await;
    wait::until(&session.world.deployments(), &name, "the cause is reported", |deployment| {
        let status = deployment.and_then(|it| it.status.clone()).unwrap_or_default();
        status.conditions.iter().any(|it| it.message.contains("ImagePullBackOff"))
    })
    .await;
    let cause = "ImagePullBackOff: registry.invalid/pelorus-operator:0.0.1";
    let status = find.run(&["status", &name], FAILED, &[cause, "0.0.1 is being rolled out"]).await;
    assert!(!status.stdout.contains("is healthy"), "{}", status.stdout);
    session.data(&["delete", &name, "--yes"]).await;

    let services: Api<Service> = Api::namespaced(session.world.client.clone(), &namespace);
    let service = json!({"metadata": {"name": METRICS}, "spec": {"ports": [{"port": 8443}]}});
    let creation = PostParams { field_manager: Some("kubectl-create".to_owned()), ..PostParams::default() };
    services.create(&creation, &serde_json::from_value(service).unwrap()).await.unwrap();
    let name = format!("{}-adopts", session.world.name());
    let mut adoption = task("adopt an object that exists", 3);
    let (exists, command) = (
        format!("Service {namespace}/{METRICS} already exists and was created by kubectl-create"),
        format!("chandler adopt {name}"),
    );
    adoption.run(&words(&install(&name, &first, &[])), REFUSED, &[&exists, &command]).await;
    adoption.run(&["adopt", &name, "--yes"], SUCCESS, &[METRICS]).await;
    adoption.run(&["status", &name, "--watch"], SUCCESS, &["\nhealthy\n"]).await;
    session.data(&["delete", &name, "--yes"]).await;

    let accounts: Api<ServiceAccount> = Api::namespaced(session.world.client.clone(), &namespace);
    let account = json!({"metadata": {"name": "deployer"}});
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    let name = format!("{}-limited", session.world.name());
    let mut limited = task("install on behalf of an account of a tenant", 3);
    let command = format!("chandler rbac {name} | kubectl apply -f -");
    limited
        .run(
            &words(&install(&name, &first, &["--service-account", "deployer"])),
            REFUSED,
            &["PermissionsMissing", &command],
        )
        .await;
    let roles = limited.run(&["rbac", &name], SUCCESS, &[]).await;
    for role in documents(&roles.stdout) {
        apply(&session, role).await;
    }
    limited.run(&["status", &name, "--watch"], SUCCESS, &["\nhealthy\n"]).await;
    session.data(&["delete", &name, "--yes"]).await;
    session.world.finish().await;
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Applies an object as `kubectl apply` does.
async fn apply(session: &Session, mut object: Value) {
    if object["metadata"]["namespace"].is_null() {
        session.world.mark(&mut object);
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::<DynamicObject>::namespaced_with(session.world.client.clone(), namespace, &resource),
        None => Api::all_with(session.world.client.clone(), &resource),
    };
    api.patch(text("/metadata/name"), &PatchParams::apply("kubectl"), &Patch::Apply(&object)).await.unwrap();
}

/// A catalog with the versions of the operator, each of which replaces the one before it, in the registry of the session.
async fn write_catalog(session: &Session, directory: &Path, versions: &[(&str, Bundle)]) {
    let entry = |index: usize| {
        let (version, before) = (versions[index].0, index.checked_sub(1).map(|before| versions[before].0));
        let replaces = before.map(|before| format!(", replaces: {PACKAGE}.v{before}")).unwrap_or_default();
        format!("- {{name: {PACKAGE}.v{version}{replaces}}}\n")
    };
    let entries: String = (0..versions.len()).map(entry).collect();
    let mut documents = vec![
        format!("schema: olm.package\nname: {PACKAGE}\ndefaultChannel: alpha\n"),
        format!("schema: olm.channel\npackage: {PACKAGE}\nname: alpha\nentries:\n{entries}"),
    ];
    for (version, bundle) in versions {
        let image = session.world.push(bundle).await;
        documents.push(format!(
            "schema: olm.bundle\npackage: {PACKAGE}\nname: {PACKAGE}.v{version}\nimage: {image}\n\
             properties: [{{type: olm.package, value: {{packageName: {PACKAGE}, version: {version}}}}}]\n"
        ));
    }
    fs::write(directory.join("catalog.yaml"), documents.join("---\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_a_catalog_is_upgraded_through_its_versions() {
    let Some(versions) = published() else { return };
    let session = Session::start().await;
    let (namespace, label) = (session.world.namespace.clone(), session.label());
    let directory = tempfile::tempdir().unwrap();
    write_catalog(&session, directory.path(), &versions).await;
    let (name, catalog) = (session.world.name(), format!("ours={}", directory.path().display()));
    let from = ["--catalog", &catalog];

    let (package, own) = (format!("{PACKAGE}@0.0.1"), format!("watchNamespace={namespace}"));
    let install = ["install", &name, &package, "--namespace", &namespace, "--label", &label, "--set", &own];
    let install = [&install, &from[..]].concat();
    Task::new(&session, "install a version of a catalog", 1).run(&install, SUCCESS, &["healthy"]).await;
    let mut upgrade = Task::new(&session, "upgrade through several versions", 4);
    let outdated = upgrade.run(&[&["outdated"], &from[..]].concat(), SUCCESS, &[]).await;
    let row: Vec<&str> = outdated.stdout.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row, [&name, PACKAGE, "0.0.1", "0.0.4", "0.0.3", "ours"]);
    let step = "upgrading to 0.0.3 first, one of 2 steps on the way to 0.0.4";
    let arguments = [&["upgrade", &name, PACKAGE], &from[..]].concat();
    upgrade.run(&arguments, SUCCESS, &[step, "healthy"]).await;
    upgrade.run(&arguments, SUCCESS, &["0.0.4", "healthy"]).await;
    upgrade.run(&[&["outdated"], &from[..]].concat(), SUCCESS, &["no newer versions"]).await;
    session.world.finish().await;
}
