//! `chandler migrate helm`: releases that the real Helm installed are handed over without a restart.

use std::{collections::BTreeMap, fs, path::Path, process::Output};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chandler::migrate::pending;
use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_test_support::needs;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    commands::Session,
    migrate::{state, workload},
    support::{self, Outcome, documents},
};

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - {name: web, image: "{{ .Values.image }}"}
"#;
const CONFIG: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-config}
data:
  greeting: {{ .Files.Get "files/greeting.txt" | quote }}
  release: {{ .Chart.Version }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-login}
stringData: {password: {{ required "a password" .Values.password }}}
"#;

/// A password as charts make it, as a key and in a text.
const ACCESS: &str = r#"{{- $password := randAlphaNum 12 }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-access}
stringData:
  password: {{ $password | quote }}
  url: {{ printf "redis://:%s@harbour:6379/0" $password | quote }}
"#;

/// A chart of these files, besides a Deployment, a ConfigMap and a Secret.
fn chart(more: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3+build5\nappVersion: \"2\"\n"),
        ("values.yaml", "# defaults\nreplicaCount: 1\nimage: registry.k8s.io/pause:3.10\npassword: \"\"\n"),
        ("values.schema.json", r#"{"type": "object", "properties": {"replicaCount": {"type": "integer"}}}"#),
        ("README.md", "about\n"),
        ("files/greeting.txt", "hello\n"),
        ("templates/deployment.yaml", DEPLOYMENT),
        ("templates/config.yaml", CONFIG),
        ("templates/NOTES.txt", "done\n"),
    ];
    for (path, text) in files.iter().chain(more) {
        let path = directory.path().join("web").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Runs the real Helm for the cluster of the session.
async fn helm(session: &Session, home: &Path, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new("helm");
    command.args(arguments).kill_on_drop(true);
    for (variable, name) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
        command.env(variable, home.join(name));
    }
    if session.kubeconfig().exists() {
        command.env("KUBECONFIG", session.kubeconfig());
    }
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// Installs a chart with Helm.
async fn install(session: &Session, home: &Path, name: &str) {
    let chart = home.join("web");
    let values = ["--set", "replicaCount=2,password=s3cret"];
    let arguments = ["install", name, chart.to_str().unwrap(), "--namespace", &session.world.namespace];
    helm(session, home, &[&arguments[..], &values].concat()).await;
}

/// A class with the provisioner of charts. Returns its name.
pub(crate) async fn class(world: &World) -> String {
    let name = format!("{}-helm", world.run());
    let wasm = fs::read(support::root().join("target/plugins/helm.wasm")).unwrap();
    let pushed = world.registry.push_component("provisioners/helm", "v1", wasm).unwrap();
    let class = json!({"metadata": {"name": name}, "spec": {"image": pushed.reference}});
    let _: ProvisionerClass = world.create(class).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, &name, "ready", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True")
    })
    .await;
    name
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

/// The Secrets of Helm.
async fn releases(world: &World) -> Vec<String> {
    let of_helm = ListParams::default().labels("owner=helm");
    secrets(world).list(&of_helm).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

/// The UIDs of the ConfigMap and the Secret of the release, and what a restart of the workload would change.
async fn before(world: &World, name: &str) -> Value {
    let config: ConfigMap = world.config_maps().get(&format!("{name}-config")).await.unwrap();
    let login = secrets(world).get(&format!("{name}-login")).await.unwrap();
    json!([config.uid(), config.data, login.uid(), state(&workload(world).await)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_helm_is_migrated_without_a_restart() {
    if needs::helm().is_none() {
        return;
    }
    let session = Session::start().await;
    let (world, name, label) = (&session.world, session.world.name(), session.label());
    let class = class(world).await;
    let home = chart(&[]);
    install(&session, home.path(), &name).await;
    let before = before(world, &name).await;
    let by = format!("{}/{name}", world.namespace);

    let plan = session.run(&["migrate", "helm", &by, "--class", &class]).await;
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert!(plan.stderr.contains("nothing was changed: --apply migrates"), "{}", plan.stderr);
    assert!(plan.stderr.contains("revision 1, chart web 1.2.3+build5"), "{}", plan.stderr);
    assert!(!plan.stderr.contains("s3cret") && !plan.stdout.contains("s3cret"), "{}{}", plan.stdout, plan.stderr);
    let [printed]: [Value; 1] = documents(&plan.stdout).try_into().unwrap();
    assert_eq!(printed["spec"]["valuesFrom"], json!([{"kind": "Secret", "name": format!("{name}-values")}]));
    assert_eq!(printed["spec"]["adopt"].as_array().unwrap().len(), 3, "{printed}");
    let missing = session.run(&["migrate", "helm", "no-such", "--class", &class]).await;
    assert_eq!(missing.code, Some(7), "{}", missing.stderr);

    let apply = ["migrate", "helm", &by, "--class", &class, "--label", &label, "--apply", "--yes"];
    let unsaid = session.run(&apply).await;
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.stderr);
    assert!(
        unsaid.stderr.contains(&format!("chandler migrate helm {by} --apply --service-account NAME")),
        "{unsaid:?}"
    );
    // The controller may do more than the users who wrote the release.
    let apply = [&apply[..], &["--no-service-account"]].concat();
    let unsaid = session.run(&apply).await;
    assert!(unsaid.code == Some(2) && unsaid.stderr.contains("--install-with-controller-rights"), "{unsaid:?}");
    let apply = [&apply[..], &["--install-with-controller-rights"]].concat();
    let dry = session.run(&[&apply[..], &["--dry-run"]].concat()).await;
    assert!(dry.stderr.contains("warning: users who may write Secrets in namespace"), "{}", dry.stderr);
    assert!(
        dry.code == Some(0) && dry.stderr.contains("would migrate 1 release; nothing was changed"),
        "{}",
        dry.stderr
    );
    assert!(world.deployments().get_opt(&name).await.unwrap().is_none());

    let kept = session.run(&[&apply[..], &["--keep-release"]].concat()).await;
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert_eq!(self::before(world, &name).await, before, "the same objects, and no restart");
    let owners: Vec<String> = workload(world).await.owner_references().iter().map(|owner| owner.kind.clone()).collect();
    assert_eq!(owners, ["BundleDeployment"]);
    assert_eq!(releases(world).await, [format!("sh.helm.release.v1.{name}.v1")]);
    let status = helm(&session, home.path(), &["status", &name, "--namespace", &world.namespace]).await;
    assert!(String::from_utf8_lossy(&status.stdout).contains("deployed"), "{status:?}");
    let owner = secrets(world).get(&format!("{name}-values")).await.unwrap();
    assert_eq!(owner.owner_references()[0].name, name, "the values go with the BundleDeployment");

    // As if the first run had been interrupted after it created the BundleDeployment.
    let without_owner = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    secrets(world).patch(&format!("{name}-values"), &PatchParams::default(), &without_owner).await.unwrap();
    assert_eq!(session.run(&["suspend", &name]).await.code, Some(0));
    let suspended = session.run(&apply).await;
    assert!(
        suspended.code == Some(0) && suspended.stderr.contains(&format!("{name} is suspended; resume it first")),
        "{}",
        suspended.stderr
    );
    assert_eq!(releases(world).await, [format!("sh.helm.release.v1.{name}.v1")]);
    let resumed = session.run(&["resume", &name]).await;
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let detached = session.run(&apply).await;
    assert_eq!(detached.code, Some(0), "{}", detached.stderr);
    assert!(
        detached.stderr.contains(&format!("continue the migration of BundleDeployment {name}")),
        "{}",
        detached.stderr
    );
    let owner = secrets(world).get(&format!("{name}-values")).await.unwrap();
    assert_eq!(owner.owner_references()[0].name, name, "the command that continues sets the owner");
    assert_eq!(releases(world).await, [""; 0]);
    assert_eq!(self::before(world, &name).await, before);
    let deployment = world.ready(&name).await;
    assert_eq!(pending::managers(&deployment), None, "the migration is complete");
    session.world.finish().await;
}

/// The options with which the controller installs a chart with its own permissions.
const OF_THE_CONTROLLER: [&str; 2] = ["--no-service-account", "--install-with-controller-rights"];

/// Migrates a release, with the permissions of the controller.
async fn migrate(session: &Session, by: &str, class: &str, more: &[&str]) -> Outcome {
    let label = session.label();
    let fixed = ["migrate", "helm", by, "--class", class, "--label", &label, "--apply", "--yes"];
    let fixed = [&fixed[..], &OF_THE_CONTROLLER].concat();
    session.run(&[&fixed[..], more].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_with_other_charts_is_taken_from_a_registry() {
    if needs::helm().is_none() {
        return;
    }
    let session = Session::start().await;
    let (world, name) = (&session.world, session.world.name());
    let class = class(world).await;
    let home = chart(&[
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"),
        (
            "charts/sub/templates/c.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-sub\"}\ndata: {a: b}\n",
        ),
        (
            "templates/hook.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ .Release.Name }}-hook\"\n  annotations: {helm.sh/hook: pre-install}\n",
        ),
    ]);
    install(&session, home.path(), &name).await;
    let before = before(world, &name).await;
    let by = format!("{}/{name}", world.namespace);
    let refused = migrate(&session, &by, &class, &[]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains("which Helm does not store with the release: sub"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("--image {name}=REGISTRY/PATH:VERSION")), "{}", refused.stderr);

    // `+` of the version is `_` in a tag.
    let (web, archives) = (home.path().join("web"), home.path().join("archives"));
    helm(&session, home.path(), &["package", web.to_str().unwrap(), "--destination", archives.to_str().unwrap()]).await;
    let archive = archives.join("web-1.2.3+build5.tgz");
    let repository = format!("oci://{}/charts", world.registry.host());
    helm(&session, home.path(), &["push", archive.to_str().unwrap(), &repository, "--plain-http"]).await;
    let image = format!("{name}={}/charts/web:1.2.3_build5", world.registry.host());

    // Helm does not mark what hooks create.
    let unmarked = migrate(&session, &by, &class, &["--image", &image]).await;
    assert_eq!(unmarked.code, Some(8), "{}", unmarked.stderr);
    assert!(unmarked.stderr.contains(&format!("ConfigMap {}/{name}-hook", world.namespace)), "{}", unmarked.stderr);
    assert!(world.deployments().get_opt(&name).await.unwrap().is_none());
    let applied = migrate(&session, &by, &class, &["--image", &image, "--adopt-unmarked"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(self::before(world, &name).await, before);
    assert_eq!(releases(world).await, [""; 0]);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_the_chart_makes_is_kept() {
    if needs::helm().is_none() {
        return;
    }
    let session = Session::start().await;
    let (world, name) = (&session.world, session.world.name());
    let class = class(world).await;
    let home = chart(&[("templates/access.yaml", ACCESS)]);
    install(&session, home.path(), &name).await;
    let access = format!("{name}-access");
    let before = secrets(world).get(&access).await.unwrap();
    let by = format!("{}/{name}", world.namespace);
    let applied = migrate(&session, &by, &class, &[]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    let after = secrets(world).get(&access).await.unwrap();
    assert_eq!((after.uid(), &after.data), (before.uid(), &before.data));
    assert_eq!(after.owner_references()[0].name, name);
    session.world.finish().await;
}

/// Two releases of one name, in two namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_keeps_its_name_in_a_bundle_deployment_of_another_name() {
    if needs::helm().is_none() {
        return;
    }
    let session = Session::start().await;
    let (world, name) = (&session.world, session.world.name());
    let class = class(world).await;
    let home = chart(&[]);
    // 53 characters, which the name of a BundleDeployment cannot have.
    let release = format!("{name}-{}", "x".repeat(52 - name.len()));
    install(&session, home.path(), &release).await;
    let before = before(world, &release).await;
    let by = format!("{}/{release}", world.namespace);
    let long = migrate(&session, &by, &class, &[]).await;
    assert_eq!(long.code, Some(8), "{}", long.stderr);
    assert!(long.stderr.contains(&format!("--name {by}=NAME")), "{}", long.stderr);

    let named = format!("{by}={name}");
    let kept = migrate(&session, &by, &class, &["--name", &named, "--keep-release"]).await;
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert_eq!(self::before(world, &release).await, before, "the same objects, and no restart");
    let deployment = world.ready(&name).await;
    assert_eq!(serde_json::to_value(&deployment.spec.config).unwrap(), json!({"releaseName": release}));
    assert_eq!(releases(world).await, [format!("sh.helm.release.v1.{release}.v1")]);

    // The command that continues finds it by the name of the release.
    let detached = migrate(&session, &by, &class, &[]).await;
    assert_eq!(detached.code, Some(0), "{}", detached.stderr);
    assert_eq!(releases(world).await, [""; 0]);
    assert_eq!(self::before(world, &release).await, before);
    session.world.finish().await;
}

/// A change of a release.
type Change = Box<dyn FnOnce(&mut Value)>;

/// A release in a Secret that this test writes, as a tenant can.
async fn forge(world: &World, name: &str, change: impl FnOnce(&mut Value)) {
    let data = |text: &str| BASE64_STANDARD.encode(text);
    let mut release = json!({
        "name": name, "namespace": world.namespace, "version": 1, "info": {"status": "deployed"},
        "chart": {
            "metadata": {"name": "web", "version": "1.0.0", "apiVersion": "v2"},
            "templates": [{"name": "templates/a.yaml", "data": data("")}], "files": [], "values": {}, "schema": null,
        },
        "manifest": "",
    });
    change(&mut release);
    if let Some(text) = release["template"].as_str().map(data) {
        release["chart"]["templates"][0]["data"] = text.into();
    }
    let value = BASE64_STANDARD.encode(release.to_string());
    let secret = json!({
        "metadata": {"name": format!("sh.helm.release.v1.{name}.v1"), "labels": {"owner": "helm", "name": name}},
        "type": "helm.sh/release.v1", "stringData": {"release": value},
    });
    secrets(world).create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
}

/// A tenant who may write Secrets in one namespace claims what others have.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_release_is_refused() {
    let session = Session::start().await;
    let world = &session.world;
    let class = class(world).await;
    let name = world.name();
    let rbac = "rbac.authorization.k8s.io/v1";
    // What the vendor's release has.
    let role = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": format!("{name}-vendor"), "annotations": {
        "meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": "vendor"}}, "rules": []});
    let theirs: ClusterRole = world.create(role.clone()).await;
    let binding = json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": format!("{name}-admin")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]});
    let own = |more: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "annotations": {
            "meta.helm.sh/release-name": format!("{name}{more}"), "meta.helm.sh/release-namespace": world.namespace}}})
    };
    world
        .config_maps()
        .create(&PostParams::default(), &serde_json::from_value(own("-changed")).unwrap())
        .await
        .unwrap();
    let mut changed = own("-changed");
    changed["data"] = json!({"a": "b"});
    let with = |template: String, manifest: String| {
        move |release: &mut Value| {
            release["template"] = template.into();
            release["manifest"] = manifest.into();
        }
    };
    let forged: BTreeMap<&str, Change> = BTreeMap::from([
        ("-stolen", Box::new(with(role.to_string(), String::new())) as Change),
        ("-admin", Box::new(with(binding.to_string(), String::new()))),
        ("-changed", Box::new(with(changed.to_string(), String::new()))),
        ("-left", Box::new(with(String::new(), own("-left").to_string()))),
        ("-other", Box::new(|release: &mut Value| release["namespace"] = "vendor".into())),
        ("-pending", Box::new(|release: &mut Value| release["info"]["status"] = "pending-upgrade".into())),
        ("-library", Box::new(|release: &mut Value| release["chart"]["metadata"]["type"] = "library".into())),
        (
            "-path",
            Box::new(|release: &mut Value| release["chart"]["files"] = json!([{"name": "../../etc/x", "data": ""}])),
        ),
        ("-random", Box::new(with("{{ fail \"no\" }}".to_owned(), String::new()))),
        ("-nonsense", Box::new(|release: &mut Value| *release = json!("s3cret"))),
    ]);
    let expected = BTreeMap::from([
        (
            "-stolen",
            format!(
                "ClusterRole.rbac.authorization.k8s.io {name}-vendor, which belongs to the Helm release vendor/{name}"
            ),
        ),
        ("-admin", format!("ClusterRoleBinding.rbac.authorization.k8s.io {name}-admin")),
        ("-changed", format!("ConfigMap {}/own: data", world.namespace)),
        ("-left", "ConfigMap own".to_owned()),
        ("-other", "its Secret has another name or namespace".to_owned()),
        ("-pending", "its revision 1 is pending-upgrade".to_owned()),
        ("-library", "is a library, which installs nothing".to_owned()),
        ("-path", "etc/x".to_owned()),
        ("-random", "no".to_owned()),
        ("-nonsense", "it is not a release as Helm stores it".to_owned()),
    ]);
    for (suffix, change) in forged {
        let release = format!("{name}{suffix}");
        forge(world, &release, change).await;
        let by = format!("{}/{release}", world.namespace);
        let options = ["--class", &class, "--apply", "--yes"];
        let refused = session.run(&[&["migrate", "helm", &by][..], &options, &OF_THE_CONTROLLER].concat()).await;
        assert!(matches!(refused.code, Some(1 | 8)), "{suffix}: {refused:?}");
        assert!(refused.stderr.contains(&expected[suffix]), "{suffix}: {}", refused.stderr);
        assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
        assert!(world.deployments().get_opt(&release).await.unwrap().is_none(), "{suffix}");
        // As the administrator sees it without `--apply`.
        let shown = session.run(&["migrate", "helm", &by, "--class", &class]).await;
        assert!(matches!(shown.code, Some(1 | 8)), "{suffix}: {shown:?}");
    }
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let now = roles.get(&theirs.name_any()).await.unwrap();
    assert_eq!((now.uid(), now.owner_references()), (theirs.uid(), [].as_slice()));
    let all: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(all.list(&ListParams::default()).await.unwrap().items.is_empty());
    session.world.finish().await;
}

/// A user who may write BundleDeployments, and not the Secrets of a release, has the administrator delete them.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_another_user_began_is_not_continued() {
    let session = Session::start().await;
    let world = &session.world;
    let class = class(world).await;
    let name = world.name();
    let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}});
    forge(world, &name, |release| release["template"] = own.to_string().into()).await;
    let secret = secrets(world).get(&format!("sh.helm.release.v1.{name}.v1")).await.unwrap();
    let listed = json!([{"apiVersion": "v1", "kind": "Secret", "namespace": world.namespace, "name": secret.name_any(),
        "uid": secret.uid()}]);
    // It is healthy, has the name of the release, and lists its Secret.
    let image =
        world.push(&Bundle::empty().with("manifests/other.yaml", &bundles::config_map("other", "another user"))).await;
    let _: BundleDeployment = world
        .create(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": name, "annotations": {pending::ANNOTATION: listed.to_string()}},
            "spec": world.spec("core-rukpak-io-plain", &image),
        }))
        .await;
    world.ready(&name).await;
    let refused = migrate(&session, &format!("{}/{name}", world.namespace), &class, &[]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    for part in ["spec.provisionerClassName", "spec.source", &format!("chandler delete {name} --orphan")] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(releases(world).await, [secret.name_any()]);
    session.world.finish().await;
}
