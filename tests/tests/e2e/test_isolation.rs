//! Tests of the tests: they leave foreign objects alone, and delete their own, even if they panic or are killed.

use std::{collections::BTreeMap, fmt::Debug};

use chandler_api::{BundleDeployment, Catalog, ProvisionerClass};
use chandler_tests::{Cluster, Run, World, bundles::Bundle, cleanup, preflight, run::LABEL, wait};
use k8s_openapi::{
    api::{core::v1::Namespace, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{PLAIN, permissions::apply};

/// Foreign objects: of a user, of another run, and one with a copied label.
struct ForeignObjects {
    client: Client,
    deployments: Vec<BundleDeployment>,
    classes: Vec<ProvisionerClass>,
}

impl ForeignObjects {
    async fn create(cluster: &Cluster) -> Self {
        let client = cluster.client();
        preflight::install_crds(&client).await.expect("Chandler's CRDs");
        let another = Run::new();
        // Names of runs are unique, so leftovers cannot collide.
        let foreign = format!("foreign-{}", another.name().trim_start_matches("e2e-"));
        let mut this = Self { client, deployments: Vec::new(), classes: Vec::new() };
        for (name, labels) in [
            (foreign.clone(), json!({"example.com/owner": "another-user"})),
            (format!("{foreign}-copied"), json!({LABEL: Run::new().name()})),
            (format!("{another}-bd"), json!({LABEL: another.name()})),
        ] {
            let metadata = json!({"name": name, "labels": labels});
            let source = json!({"type": "image", "image": {"ref": "registry.invalid/none:v1"}});
            let spec = json!({"installNamespace": "default", "provisionerClassName": PLAIN, "source": source});
            this.deployments.push(create(&this.client, json!({"metadata": metadata, "spec": spec})).await);
            let spec = json!({"image": "registry.invalid/none:v1"});
            this.classes.push(create(&this.client, json!({"metadata": metadata, "spec": spec})).await);
        }
        this
    }

    /// Descriptions of the foreign objects that were changed.
    async fn touched(&self) -> Vec<String> {
        let mut touched = changed(&self.client, &self.deployments).await;
        touched.extend(changed(&self.client, &self.classes).await);
        touched
    }

    async fn remove(&self) {
        remove(&self.client, &self.deployments).await;
        remove(&self.client, &self.classes).await;
    }
}

async fn create<K>(client: &Client, object: serde_json::Value) -> K
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).expect("an object of its kind");
    Api::all(client.clone()).create(&PostParams::default(), &object).await.expect("the object is accepted")
}

async fn changed<K>(client: &Client, before: &[K]) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let mut changed = Vec::new();
    for object in before {
        let now = api.get_opt(&object.name_any()).await.expect("the API server answers");
        if now.as_ref().map(K::meta) != Some(object.meta()) {
            changed.push(format!("{} {} became {now:?}", K::kind(&()), object.name_any()));
        }
    }
    changed
}

async fn remove<K>(client: &Client, objects: &[K])
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    for object in objects {
        let preconditions = Preconditions { uid: object.uid(), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let _ = Api::<K>::all(client.clone()).delete(&object.name_any(), &parameters).await;
    }
}

/// Acts as a test: creates a class, a catalog, a ClusterRole, and a release with a ClusterRole, a CRD and a namespace.
async fn act_as_test(world: &World) {
    let name = world.name();
    let class = json!({"metadata": {"name": name}, "spec": {"image": "registry.invalid/none:v1"}});
    let _: ProvisionerClass = world.create(class).await;
    let source = json!({"type": "image", "image": {"ref": "registry.invalid/none:v1"}});
    let _: Catalog = world.create(json!({"metadata": {"name": name}, "spec": {"source": source}})).await;
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    apply(world, &[role(&name)]).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{}-inner", world.run())}});
    let bundle = Bundle::empty()
        .with("manifests/definition.yaml", &crate::deletion_policy::crd(world).0)
        .with("manifests/namespace.json", &namespace.to_string())
        .with("manifests/role.json", &role(&format!("{name}-released")).to_string());
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
}

/// The remaining objects of a run, without terminating namespaces.
async fn left(client: &Client, run: &Run) -> BTreeMap<&'static str, Vec<String>> {
    let mut left = BTreeMap::new();
    left.insert("BundleDeployments", named::<BundleDeployment>(client, run).await);
    left.insert("ProvisionerClasses", named::<ProvisionerClass>(client, run).await);
    left.insert("Catalogs", named::<Catalog>(client, run).await);
    left.insert("ClusterRoles", named::<ClusterRole>(client, run).await);
    left.insert("definitions", named::<CustomResourceDefinition>(client, run).await);
    left.insert("Namespaces", named::<Namespace>(client, run).await);
    left.retain(|_, names| !names.is_empty());
    left
}

async fn named<K>(client: &Client, run: &Run) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await.expect("the API server answers");
    let is_namespace = K::kind(&()) == "Namespace";
    let there = all.into_iter().filter(|object| !(is_namespace && object.meta().deletion_timestamp.is_some()));
    there.map(|object| object.name_any()).filter(|name| name.contains(run.name())).collect()
}

async fn assert_gone(client: &Client, run: &Run) {
    // A deleted CRD exists until its custom resources are deleted.
    wait::eventually("nothing of the run is left", || async { left(client, run).await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_leaves_foreign_objects_alone() {
    let cluster = Cluster::acquire().await;
    let others = ForeignObjects::create(&cluster).await;
    let world = World::on(cluster.clone()).await;
    let run = world.run().clone();
    act_as_test(&world).await;
    assert_eq!(left(&cluster.client(), &run).await.len(), 6, "the test made something of each kind");
    world.finish().await;
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&cluster.client(), &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panicking_test_leaves_foreign_objects_alone() {
    let cluster = Cluster::acquire().await;
    let others = ForeignObjects::create(&cluster).await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let test = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            let world = World::on(cluster).await;
            sender.send(world.run().clone()).expect("a receiver");
            act_as_test(&world).await;
            panic!("a failing test");
        }
    });
    let run = receiver.await.expect("the world started");
    assert!(test.await.is_err_and(|error| error.is_panic()));
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&cluster.client(), &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leftovers_of_a_killed_test_are_found_and_deleted() {
    let cluster = Cluster::acquire().await;
    let client = cluster.client();
    let others = ForeignObjects::create(&cluster).await;
    let mut world = World::on(cluster.clone()).await;
    act_as_test(&world).await;
    // As if the test had been killed.
    world.stop_controller().await;
    let runs = [world.run().clone()].into();
    let now = Timestamp::now();
    assert!(!cleanup::killed_runs(&client, now).await.contains(world.run()), "the run may still be active");
    let killed = cleanup::killed_runs(&client, now + SignedDuration::from_hours(2)).await;
    assert!(killed.contains(world.run()), "{killed:?}");
    let removed = cleanup::remove_alone(cluster.config(), &runs, !cluster.has_controllers()).await;
    assert_eq!(removed.expect("a controller"), [""; 0]);
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&client, world.run()).await;
    world.finish().await;
}

#[tokio::test]
async fn a_cluster_with_foreign_objects_is_refused_unless_allowed() {
    let cluster = Cluster::acquire().await;
    let client = cluster.client();
    let others = ForeignObjects::create(&cluster).await;
    let refused = preflight::check(&client, false).await;
    let allowed = preflight::check(&client, true).await;
    others.remove().await;
    let refusal = refused.expect_err("it is refused").to_string();
    let [foreign, copied, another] = &others.deployments[..] else { panic!("three of them") };
    for part in [
        format!("BundleDeployment {}, ", foreign.name_any()),
        format!("BundleDeployment {}, ", copied.name_any()),
        format!("ProvisionerClass {}, ", foreign.name_any()),
        "CHANDLER_E2E_SHARED_CLUSTER=1".to_owned(),
        "--watch-selector '!chandler.dev/e2e-run'".to_owned(),
    ] {
        assert!(refusal.contains(&part), "{part}: {refusal}");
    }
    assert!(!refusal.contains(&another.name_any()), "{refusal}");
    allowed.expect("the environment allows it");
}

#[tokio::test]
async fn crds_of_foreign_objects_are_not_replaced() {
    let cluster = Cluster::acquire().await;
    if std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty()) {
        eprintln!("skipped: this test changes CRDs of the cluster");
        return;
    }
    let others = ForeignObjects::create(&cluster).await;
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let name = "bundledeployments.core.rukpak.io";
    let ours = crds.get(name).await.expect("the object exists");
    preflight::install_crds(&cluster.client()).await.expect("the CRDs are up to date");
    let now = crds.get(name).await.expect("the object exists");
    assert_eq!(now.resource_version(), ours.resource_version(), "an unchanged CRD is not written");

    let older = Patch::Merge(json!({"spec": {"names": {"shortNames": ["older"]}}}));
    let older = crds.patch(name, &PatchParams::default(), &older).await.expect("another version");
    let refusal =
        preflight::install_crds(&cluster.client()).await.expect_err("foreign objects depend on the CRD").to_string();
    let foreign = others.deployments[0].name_any();
    assert!(refusal.contains(name) && refusal.contains(&format!("BundleDeployment {foreign}")), "{refusal}");
    let now = crds.get(name).await.expect("the object exists");
    assert_eq!(now.spec, older.spec, "nothing is written");

    others.remove().await;
    preflight::install_crds(&cluster.client()).await.expect("no foreign object depends on the CRD");
    let now = crds.get(name).await.expect("the object exists");
    assert_eq!(now.spec, ours.spec);
}
