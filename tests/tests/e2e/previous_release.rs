//! What an installation of the previous release has stored: the controller of this version recognises it as its own.
//!
//! `tests/fixtures/release-0.1` has the CRDs of release 0.1 (`crds.yaml`) and what an installation stored (`objects.json`): bundles in two
//! revisions, a bundle of an operator, a set that another resolver decided, objects of the other kinds, and the records, releases and the Lease of the
//! controller, with their UIDs, status and managed fields. The program of that release writes it, once:
//!
//! ```text
//! cargo nextest run --workspace --run-ignored only -E 'test(write_the_fixture_of_this_release)'
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use chandler_api::BundleDeployment;
use chandler_controller::{ClusterOperatorMode, ClusterOperatorSettings, Election, Options, options::LEASE};
use chandler_devcluster::DevCluster;
use chandler_tests::{Cluster, state, wait, world};
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, TypeMeta},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::PLAIN;

/// The namespace of the controller.
const SYSTEM: &str = "chandler-system";
/// The namespaces of bundles.
const NAMESPACES: [&str; 4] = [SYSTEM, "harbour", "operators", "fleet"];
/// The BundleDeployments of the fixture.
const DEPLOYMENTS: [&str; 5] = ["harbour", "operator", "decidedset-fleet", "fleet-a", "fleet-b"];
/// What the control plane creates in every namespace.
const OF_KUBERNETES: [&str; 2] = ["default", "kube-root-ca.crt"];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/release-0.1")).join(name)
}

/// A controller that reconciles everything, as in a cluster.
struct Controller {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    _cache: TempDir,
}

impl Controller {
    /// Starts a controller with an empty cache.
    fn start(client: &Client, identity: &str) -> Self {
        let (cache, connect) = (world::empty_cache(), client.clone());
        let options = Options {
            system_namespace: SYSTEM.to_owned(),
            cache_directory: cache.path().to_path_buf(),
            allow_unsigned: true,
            decisions_from_config_maps: true,
            cluster_operators: ClusterOperatorSettings {
                mode: ClusterOperatorMode::None,
                ..ClusterOperatorSettings::default()
            },
            leader_election: Some(Election::new(move || Ok(connect.clone()), SYSTEM, LEASE, identity.to_owned())),
            ..Options::default()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let client = client.clone();
        let running = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            chandler_controller::run(client, options, shutdown).await.expect("the controller runs until it is stopped");
        });
        Self { stop, running, _cache: cache }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.expect("the controller does not panic");
    }
}

async fn apply(client: &Client, object: &Value) {
    let types: TypeMeta = serde_json::from_value(object.clone()).expect("a type");
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).expect("a kind"));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().expect("a name");
    let applied = api.patch(name, &PatchParams::apply("fixture").force(), &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{object} is not applied: {error}"));
}

/// Applies CRDs, and waits until they are established.
async fn apply_crds(client: &Client, crds: &[Value]) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds {
        apply(client, crd).await;
    }
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().expect("a name");
        wait::until(&api, name, "established", |crd| {
            let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref()).into_iter().flatten();
            conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True")
        })
        .await;
    }
}

fn deployments(client: &Client) -> Api<BundleDeployment> {
    Api::all(client.clone())
}

/// Waits until all BundleDeployments of the fixture are ready, and the controller that runs has handled this request.
async fn settled(client: &Client, request: &str) -> Vec<BundleDeployment> {
    let (api, mut found) = (deployments(client), Vec::new());
    for name in DEPLOYMENTS {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": request}}}));
        wait::until(&api, name, "created", |it| it.is_some()).await;
        api.patch(name, &PatchParams::default(), &patch).await.expect("it may be changed");
        let ready = wait::until(&api, name, "ready and handled", |deployment| {
            deployment.is_some_and(|deployment| {
                let status = deployment.status.as_ref();
                let handled = status.and_then(|status| status.last_handled_reconcile_at.as_deref());
                handled == Some(request)
                    && world::condition(deployment, "Ready").is_some_and(|ready| {
                        ready.status == "True" && ready.observed_generation == deployment.metadata.generation
                    })
            })
        });
        found.extend(ready.await);
    }
    found
}

/// A key of an object, and the object.
type Objects = BTreeMap<(String, String, String), Value>;

/// Everything in the cluster but what the control plane derives from other objects or creates in every namespace.
async fn everything(client: &Client) -> Objects {
    let all = state::stored(client, None, &ListParams::default()).await.into_iter();
    let all = all.filter(|(_, object)| !OF_KUBERNETES.contains(&object.name_any().as_str()));
    all.map(|(kind, mut object)| {
        let key = (kind.kind.clone(), object.namespace().unwrap_or_default(), object.name_any());
        object.types = Some(TypeMeta { api_version: kind.api_version, kind: kind.kind });
        (key, serde_json::to_value(object).expect("JSON"))
    })
    .collect()
}

/// An immutable ConfigMap with files.
fn content(name: &str, files: &[(&str, &str)]) -> Value {
    let data: BTreeMap<&str, &str> = files.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": data,
           "metadata": {"name": name, "namespace": SYSTEM}})
}

fn deployment(name: &str, namespace: &str, sources: &[(&str, &str)]) -> Value {
    let sources: Vec<Value> =
        sources.iter().map(|(map, path)| json!({"configMap": {"name": map}, "path": path})).collect();
    json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name},
           "spec": {"installNamespace": namespace, "source": {"type": "configMaps", "configMaps": sources}}})
}

fn plain(mut deployment: Value) -> Value {
    deployment["spec"]["provisionerClassName"] = PLAIN.into();
    deployment
}

const PIER: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pier}\nspec:\n  selector: {matchLabels: {app: pier}}\n  \
                    template:\n    metadata: {labels: {app: pier}}\n    spec: {containers: [{name: pier, image: \
                    registry.k8s.io/pause:3.10}]}\n";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\n  annotations: {secrets.chandler.dev/generate: \
                      'password=password:24'}\n";

fn note(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{text: {text}}}\n")
}

/// The content of the two revisions of `harbour`.
fn revisions() -> [Value; 2] {
    let (one, two, added) = (note("berth", "one"), note("berth", "two"), note("added", "two"));
    let first = content("harbour-1", &[("map.yaml", &one), ("secret.yaml", SECRET), ("pier.yaml", PIER)]);
    let files = [("map.yaml", two.as_str()), ("secret.yaml", SECRET), ("pier.yaml", PIER), ("added.yaml", &added)];
    [first, content("harbour-2", &files)]
}

/// The bundle of an operator, as ConfigMaps.
fn operator() -> Vec<Value> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/registry/harbour-operator.v0.1.0"));
    let map = |part: &str| {
        let files = fs::read_dir(root.join(part)).expect("a directory").map(|file| file.expect("a file"));
        let files: Vec<(String, String)> = files
            .map(|file| {
                (file.file_name().into_string().expect("a name"), fs::read_to_string(file.path()).expect("text"))
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        content(&format!("operator-{part}"), &files)
    };
    vec![map("manifests"), map("metadata")]
}

/// The account, the content and the decision of a set with two members.
fn fleet() -> Vec<Value> {
    let account = json!({"name": "deployer", "namespace": "fleet"});
    let member = |name: &str, needs: &str| {
        let mut member = plain(deployment(name, "fleet", &[(name, "manifests")]));
        member["metadata"]["annotations"] = json!({"resolveset.chandler.dev/depends-on": needs});
        member["spec"]["serviceAccount"] = account.clone();
        member.to_string()
    };
    let (a, b) = (member("fleet-a", ""), member("fleet-b", "fleet-a"));
    let mut decision = content("decision-1", &[("a.json", &a), ("b.json", &b)]);
    decision["metadata"]["annotations"] = json!({
        "resolveset.chandler.dev/set": "fleet", "resolveset.chandler.dev/number": "1",
        "resolveset.chandler.dev/service-account": "fleet/deployer",
    });
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let paths = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "fleet-deployer"},
               "rules": [rule, paths]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "fleet-deployer"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fleet-deployer"},
               "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "fleet"}]}),
        content("fleet-a", &[("a.yaml", &note("a", "a"))]),
        content("fleet-b", &[("b.yaml", &note("b", "b"))]),
        decision,
    ]
}

/// Objects of other kinds of release 0.1, which need no server. It has neither Alerts nor Receivers.
fn others() -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "chandler.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let image = json!({"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}});
    vec![
        object("Catalog", "offers", json!({"source": image, "suspend": true})),
        object("PlatformPolicy", "platform", json!({"requirePlatformProperty": true})),
    ]
}

/// Installs everything of the fixture, and stops the controller.
async fn install(client: &Client) {
    for namespace in NAMESPACES {
        apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
    }
    let controller = Controller::start(client, "chandler-0");
    let [first, second] = revisions();
    for object in [first].into_iter().chain(operator()).chain(fleet()).chain(others()) {
        apply(client, &object).await;
    }
    apply(client, &plain(deployment("harbour", "harbour", &[("harbour-1", "manifests")]))).await;
    let paths = [("operator-manifests", "manifests"), ("operator-metadata", "metadata")];
    apply(client, &deployment("operator", "operators", &paths)).await;
    settled(client, "1").await;
    apply(client, &second).await;
    apply(client, &plain(deployment("harbour", "harbour", &[("harbour-2", "manifests")]))).await;
    settled(client, "2").await;
    controller.stop().await;
}

#[tokio::test]
#[ignore = "writes tests/fixtures: see the comment of this file"]
async fn write_the_fixture_of_this_release() {
    let cluster = Cluster::embedded(chandler_devcluster::Options::default()).await;
    let client = cluster.client();
    let crds: Vec<Value> = chandler_api::crds().iter().map(|crd| serde_json::to_value(crd).expect("JSON")).collect();
    apply_crds(&client, &crds).await;
    let before = everything(&client).await;
    install(&client).await;
    let stored = everything(&client).await;
    let new: Vec<&Value> = stored.iter().filter(|(key, _)| !before.contains_key(*key)).map(|(_, it)| it).collect();
    let text = serde_json::to_string_pretty(&new).expect("JSON");
    fs::write(fixture("objects.json"), text + "\n").expect("the fixture is written");
}

/// A control plane on which the previous release was installed, with the CRDs of this version, as an upgrade applies them first.
async fn upgraded() -> (Cluster, Vec<Value>) {
    let cluster = Cluster::embedded(chandler_devcluster::Options::default()).await;
    let client = cluster.client();
    let released = fs::read_to_string(fixture("crds.yaml")).expect("the CRDs of the release");
    let released: Vec<Value> = serde_saphyr::from_multiple(&released).expect("CRDs");
    apply_crds(&client, &released).await;
    let objects = fs::read_to_string(fixture("objects.json")).expect("the objects of the release");
    let mut objects: Vec<Value> = serde_json::from_str(&objects).expect("objects");
    // Owners before their dependents: the garbage collector deletes an object whose owner does not exist yet, and the controller would install
    // it again.
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("BundleDeployment") => 1,
        _ => 2,
    });
    let devcluster: &DevCluster = cluster.devcluster().expect("it is embedded");
    devcluster.put_stored(objects.clone()).expect("the objects are stored");
    let crds: Vec<Value> = chandler_api::crds().iter().map(|crd| serde_json::to_value(crd).expect("JSON")).collect();
    apply_crds(&client, &crds).await;
    (cluster, objects)
}

/// What tells one object from another one of its name, and a changed spec from the one before.
fn identity(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!([metadata["uid"], metadata["generation"], metadata["ownerReferences"], metadata["labels"]])
}

/// The reasons of the Events.
async fn reasons(client: &Client) -> BTreeSet<String> {
    let events: Api<Event> = Api::all(client.clone());
    let events = events.list(&ListParams::default()).await.expect("the events");
    events.items.into_iter().filter_map(|event| event.reason).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_of_the_previous_release_is_recognised_and_continues() {
    let (cluster, objects) = upgraded().await;
    let client = cluster.client();
    let before = everything(&client).await;
    assert!(before.len() >= objects.len(), "everything is there");
    let controller = Controller::start(&client, "chandler-1");
    let found = settled(&client, "3").await;

    let numbers = |name: &str| -> Vec<i64> {
        let deployment = found.iter().find(|deployment| deployment.name_any() == name).expect("it exists");
        deployment.status.iter().flat_map(|status| &status.history).map(|revision| revision.number).collect()
    };
    assert_eq!(numbers("harbour"), [1, 2], "no revision began");
    for name in ["operator", "decidedset-fleet", "fleet-a", "fleet-b"] {
        assert_eq!(numbers(name), [1], "{name}: no revision began");
    }
    let after = everything(&client).await;
    assert!(before.keys().eq(after.keys()), "nothing was created or deleted: {:?}", difference(&before, &after));
    for (key, object) in &before {
        // The CRDs of the release were upgraded by this test.
        assert_eq!(identity(object), identity(&after[key]), "{key:?} was created again or changed");
    }
    let reasons = reasons(&client).await;
    for reason in ["Adopted", "ObjectCollision", "DriftRepaired", "InstallationSucceeded", "UpgradeSucceeded"] {
        assert!(!reasons.contains(reason), "{reasons:?}");
    }

    // It owns everything: a rollback, without the content, removes what only the second revision has; a deletion removes the rest.
    let rollback = Patch::Merge(json!({"spec": {"rollout": {"toRevision": 1}}}));
    deployments(&client).patch("harbour", &PatchParams::default(), &rollback).await.expect("it may be changed");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "harbour");
    wait::until(&maps, "added", "gone", |map| map.is_none()).await;
    assert_eq!(maps.get("berth").await.expect("it stays").data.expect("data")["text"], "one");
    for name in ["harbour", "operator"] {
        deployments(&client).delete(name, &DeleteParams::default()).await.expect("it may be deleted");
        wait::until(&deployments(&client), name, "gone", |it| it.is_none()).await;
    }
    assert_eq!(state::content_of(&client, "harbour").await, [""; 0]);
    controller.stop().await;
}

fn difference(one: &Objects, other: &Objects) -> Vec<String> {
    let keys = |objects: &Objects| -> BTreeSet<String> { objects.keys().map(|key| format!("{key:?}")).collect() };
    keys(one).symmetric_difference(&keys(other)).cloned().collect()
}
