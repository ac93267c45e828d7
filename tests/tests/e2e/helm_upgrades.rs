//! A Helm chart in five versions: installed, upgraded, rolled back and removed. Objects that stay in the chart keep their UIDs, a generated
//! password keeps its value, and nothing of an earlier version is left.

use std::collections::{BTreeMap, BTreeSet};

use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    class_updates::{create_class, push, wasm},
    deletion_policy::{delete, gone, reports},
};

/// A password that is generated once, and the workload.
const WEB: &str = r"apiVersion: v1
kind: Secret
metadata: {name: web}
data: {password: {{ randAlphaNum 12 | b64enc }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {version: {{ .Chart.Version | quote }}}}
    spec: {containers: [{name: main, image: registry.k8s.io/pause:3.10}]}
";

/// A hook whose template changes with the versions 3 and 5. The template of a Job is immutable.
const MIGRATION: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.k8s.io/pause:3.10, args: ["--schema={{ div (add1 (semver .Chart.Version).Major) 2 }}"]}]
"#;

/// The API group of the chart's CRD, which no other test uses.
fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

fn crd_name(world: &World) -> String {
    format!("berths.{}", group(world))
}

fn berths(world: &World) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group(world), "v1", "Berth"), "berths");
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

/// The CRD: version 2 adds the field `lines`, version 4 the field `depth`.
fn crd(world: &World, version: u32) -> String {
    let mut fields = json!({"length": {"type": "integer"}});
    for (since, field) in [(2, "lines"), (4, "depth")] {
        if version >= since {
            fields[field] = json!({"type": "integer"});
        }
    }
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(world)},
        "spec": {
            "group": group(world), "scope": "Namespaced",
            "names": {"kind": "Berth", "plural": "berths", "singular": "berth", "listKind": "BerthList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    crd.to_string()
}

/// The objects that only some versions have: version 2 adds one, which version 3 removes, and version 4 renames one.
fn config_maps(version: u32) -> BTreeSet<&'static str> {
    let lamp = if version < 4 { "lamp" } else { "lantern" };
    let tides = (version == 2).then_some("tides");
    tides.into_iter().chain([lamp]).collect()
}

fn chart(world: &World, version: u32) -> Bundle {
    let chart = Bundle::empty()
        .with("Chart.yaml", &format!("apiVersion: v2\nname: harbour\nversion: {version}.0.0\n"))
        .with("crds/berths.yaml", &crd(world, version))
        .with("templates/web.yaml", WEB)
        .with("templates/migration.yaml", MIGRATION);
    config_maps(version)
        .into_iter()
        .fold(chart, |chart, name| chart.with(&format!("templates/{name}.yaml"), &config_map(name, "chart")))
}

/// The objects of the kinds in the chart, with their UIDs.
async fn objects(world: &World) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (group, version, kind) in
        [("", "v1", "ConfigMap"), ("", "v1", "Secret"), ("apps", "v1", "Deployment"), ("batch", "v1", "Job")]
    {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), &world.namespace, &resource);
        for object in api.list(&ListParams::default()).await.expect("the objects") {
            let name = object.metadata.name.expect("a name");
            found.insert(format!("{kind} {name}"), object.metadata.uid.expect("a UID"));
        }
    }
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    if let Some(crd) = crds.get_opt(&crd_name(world)).await.expect("an answer") {
        found.insert("CRD berths".to_owned(), crd.metadata.uid.expect("a UID"));
    }
    found
}

/// The names of the objects of a version.
fn expected(version: u32) -> BTreeSet<String> {
    let names = ["CRD berths", "Deployment web", "Job migration", "Secret web"].map(str::to_owned);
    names.into_iter().chain(config_maps(version).into_iter().map(|name| format!("ConfigMap {name}"))).collect()
}

/// The chart in a world, as the last check found it.
struct Installed {
    world: World,
    name: String,
    /// Objects that others created before.
    foreign: BTreeSet<String>,
    objects: BTreeMap<String, String>,
    password: String,
}

impl Installed {
    /// Compares the cluster with a version, and with the objects before: only those in `recreated` are new ones.
    async fn check(&mut self, version: u32, recreated: &[&str]) {
        self.world.ready(&self.name).await;
        let mut now = objects(&self.world).await;
        now.retain(|object, _| !self.foreign.contains(object));
        assert_eq!(now.keys().cloned().collect::<BTreeSet<_>>(), expected(version), "version {version}");
        let changed: Vec<&str> = now
            .iter()
            .filter(|(object, uid)| self.objects.get(*object).is_some_and(|before| before != *uid))
            .map(|(object, _)| object.as_str())
            .collect();
        assert_eq!(changed, recreated, "version {version}");
        self.objects = now;

        let secrets: Api<Secret> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let data = secrets.get("web").await.expect("the Secret").data.unwrap_or_default();
        let password = String::from_utf8(data["password"].0.clone()).expect("text");
        assert_eq!(password.len(), 12);
        if !self.password.is_empty() {
            assert_eq!(password, self.password, "version {version}");
        }
        self.password = password;
        let deployments: Api<Deployment> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let pods = deployments.get("web").await.expect("the Deployment").spec.expect("a spec").template.metadata;
        let annotations = pods.and_then(|metadata| metadata.annotations).unwrap_or_default();
        assert_eq!(annotations["version"], format!("{version}.0.0"));
    }

    /// The fields of the CRD.
    async fn fields(&self) -> Vec<String> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.world.client.clone());
        let crd = crds.get(&crd_name(&self.world)).await.expect("the CRD");
        let versions = serde_json::to_value(crd.spec.versions).expect("JSON");
        let fields = versions.pointer("/0/schema/openAPIV3Schema/properties/spec/properties");
        fields.and_then(Value::as_object).expect("fields").keys().cloned().collect()
    }

    fn berths(&self) -> Api<DynamicObject> {
        berths(&self.world)
    }
}

#[tokio::test]
async fn a_chart_is_installed_upgraded_rolled_back_and_removed() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, helm) = push(&world, wasm("helm.wasm"));
    create_class(&world, &class, json!({}), &image, &helm).await;
    let foreign = objects(&world).await.into_keys().chain(["ConfigMap kube-root-ca.crt".to_owned()]).collect();
    let (objects_before, password) = (BTreeMap::new(), String::new());
    let mut installed = Installed { world, name: name.clone(), foreign, objects: objects_before, password };
    let job = ["Job migration"];
    let steps: [(u32, &[&str]); 5] = [(1, &[]), (2, &[]), (3, &job), (4, &[]), (5, &job)];
    for (version, recreated) in steps {
        let image = installed.world.push(&chart(&installed.world, version)).await;
        installed.world.deploy(&name, &class, &image).await;
        installed.check(version, recreated).await;
    }
    assert_eq!(installed.fields().await, ["depth", "length", "lines"]);
    let berth = json!({"apiVersion": format!("{}/v1", group(&installed.world)), "kind": "Berth",
        "metadata": {"name": "north"}, "spec": {"depth": 9}});
    let berth: DynamicObject = serde_json::from_value(berth).expect("an object");
    installed.berths().create(&PostParams::default(), &berth).await.expect("the object is accepted");

    // Two versions back. The CRD keeps the field that a stored object uses.
    let pin = Patch::Merge(json!({"spec": {"rollout": {"toRevision": 3}}}));
    let deployments = installed.world.deployments();
    deployments.patch(&name, &PatchParams::default(), &pin).await.expect("the change is accepted");
    installed.check(3, &job).await;
    assert_eq!(installed.fields().await, ["depth", "length", "lines"]);
    let kept = installed.berths().get("north").await.expect("the object");
    assert_eq!(kept.data["spec"]["depth"], 9);

    installed.berths().delete("north", &DeleteParams::default()).await.expect("the deletion is accepted");
    installed.world.delete(&name).await;
    let left = objects(&installed.world).await;
    let left: Vec<&String> = left.keys().filter(|object| !installed.foreign.contains(*object)).collect();
    assert!(left.is_empty(), "{left:?}");
    installed.world.finish().await;
}

/// `helm upgrade` and `helm uninstall` never delete a CRD of `crds/`.
#[tokio::test]
async fn a_crd_that_a_chart_drops_is_pruned_only_without_custom_resources() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, helm) = push(&world, wasm("helm.wasm"));
    create_class(&world, &class, json!({}), &image, &helm).await;
    let chart = |version: &str| {
        let about = format!("apiVersion: v2\nname: harbour\nversion: {version}\n");
        Bundle::empty().with("Chart.yaml", &about).with("templates/lamp.yaml", &config_map("lamp", version))
    };
    let image = world.push(&chart("1.0.0").with("crds/berths.yaml", &crd(&world, 1))).await;
    world.deploy(&name, &class, &image).await;
    world.ready(&name).await;
    let berth = json!({"apiVersion": format!("{}/v1", group(&world)), "kind": "Berth", "metadata": {"name": "north"}});
    let berth: DynamicObject = serde_json::from_value(berth).expect("an object");
    berths(&world).create(&PostParams::default(), &berth).await.expect("the object is accepted");

    let image = world.push(&chart("2.0.0")).await;
    world.deploy(&name, &class, &image).await;
    let deployment = world.ready(&name).await;
    let warnings = deployment.status.and_then(|status| status.release).unwrap_or_default().warnings;
    assert!(warnings.iter().any(|warning| warning.code == "CustomResourcesExist"), "{warnings:?}");
    berths(&world).get("north").await.expect("the object stays");
    // The deletion waits as well.
    delete(&world, &name).await;
    reports(&world, &name, "CustomResourcesExist", "north").await;
    berths(&world).get("north").await.expect("the object stays");
    berths(&world).delete("north", &DeleteParams::default()).await.expect("the deletion is accepted");
    gone(&world, &name).await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    assert!(crds.get_opt(&crd_name(&world)).await.expect("a response").is_none());

    // Without custom resources, the upgrade prunes it.
    let name = world.name();
    let image = world.push(&chart("3.0.0").with("crds/berths.yaml", &crd(&world, 1))).await;
    world.deploy(&name, &class, &image).await;
    world.ready(&name).await;
    let image = world.push(&chart("4.0.0")).await;
    world.deploy(&name, &class, &image).await;
    world.ready(&name).await;
    wait::until(&crds, &crd_name(&world), "pruned", |crd| crd.is_none()).await;
    world.finish().await;
}
