//! The tests themselves: what they did not make they leave alone, and what they made goes, whatever becomes of them.

use std::{collections::BTreeMap, fmt::Debug};

use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_tests::{Cluster, Run, World, bundles::Bundle, cleanup, guard, run::LABEL, wait};
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

/// Objects that no test of this run made: of a user, of another run, and one whose label was copied.
struct Others {
    client: Client,
    deployments: Vec<BundleDeployment>,
    classes: Vec<ProvisionerClass>,
}

impl Others {
    async fn make(cluster: &Cluster) -> Self {
        let client = cluster.client();
        guard::install_crds(&client).await.expect("our CRDs");
        let another = Run::new();
        // Names of runs are unique, so that nothing that was left over is in the way.
        let foreign = format!("foreign-{}", another.name().trim_start_matches("e2e-"));
        let mut this = Self { client, deployments: Vec::new(), classes: Vec::new() };
        for (name, labels) in [
            (foreign.clone(), json!({"example.com/owner": "somebody"})),
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

    /// What became of those that somebody touched.
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

/// A test in a world: a class, a role for the whole cluster, and a release with a role, a CRD and a namespace.
async fn play(world: &World) {
    let name = world.name();
    let class = json!({"metadata": {"name": name}, "spec": {"image": "registry.invalid/none:v1"}});
    let _: ProvisionerClass = world.create(class).await;
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    apply(world, &[role(&name)]).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{}-inner", world.run())}});
    let bundle = Bundle::empty()
        .with("manifests/definition.yaml", &crate::deletion::crd(world).0)
        .with("manifests/namespace.json", &namespace.to_string())
        .with("manifests/role.json", &role(&format!("{name}-released")).to_string());
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
}

/// What is left of a run, namespaces that are on their way left out.
async fn left(client: &Client, run: &Run) -> BTreeMap<&'static str, Vec<String>> {
    let mut left = BTreeMap::new();
    left.insert("BundleDeployments", named::<BundleDeployment>(client, run).await);
    left.insert("ProvisionerClasses", named::<ProvisionerClass>(client, run).await);
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
    // A deleted CRD is there until its custom resources are gone.
    wait::eventually("nothing of the run is left", || async { left(client, run).await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_made_is_left_alone_by_a_test_that_ends() {
    let cluster = Cluster::acquire().await;
    let others = Others::make(&cluster).await;
    let world = World::on(cluster.clone()).await;
    let run = world.run().clone();
    play(&world).await;
    assert_eq!(left(&cluster.client(), &run).await.len(), 5, "the test made something of each kind");
    world.finish().await;
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&cluster.client(), &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_made_is_left_alone_by_a_test_that_panics() {
    let cluster = Cluster::acquire().await;
    let others = Others::make(&cluster).await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let test = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            let world = World::on(cluster).await;
            tell.send(world.run().clone()).expect("somebody listens");
            play(&world).await;
            panic!("as a test that fails");
        }
    });
    let run = told.await.expect("the world began");
    assert!(test.await.is_err_and(|error| error.is_panic()));
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&cluster.client(), &run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_test_left_is_found_later_and_removed() {
    let cluster = Cluster::acquire().await;
    let client = cluster.client();
    let others = Others::make(&cluster).await;
    let mut world = World::on(cluster.clone()).await;
    play(&world).await;
    // As if it had been killed.
    world.stop_controller().await;
    let runs = [world.run().clone()].into();
    let now = Timestamp::now();
    assert!(!cleanup::dead(&client, now).await.contains(world.run()), "it may still run");
    let dead = cleanup::dead(&client, now + SignedDuration::from_hours(2)).await;
    assert!(dead.contains(world.run()), "{dead:?}");
    let removed = cleanup::remove_alone(cluster.config(), &runs, !cluster.has_controllers()).await;
    assert_eq!(removed.expect("a controller"), [""; 0]);
    let touched = others.touched().await;
    others.remove().await;
    assert_eq!(touched, [""; 0]);
    assert_gone(&client, world.run()).await;
    world.finish().await;
}

#[tokio::test]
async fn a_cluster_with_objects_of_others_is_refused_unless_that_is_allowed() {
    let cluster = Cluster::acquire().await;
    let client = cluster.client();
    let others = Others::make(&cluster).await;
    let refused = guard::admit(&client, false).await;
    let allowed = guard::admit(&client, true).await;
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
    allowed.expect("it is allowed");
}

#[tokio::test]
async fn crds_that_objects_of_others_depend_on_are_not_replaced() {
    let cluster = Cluster::acquire().await;
    if std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty()) {
        eprintln!("skipped: it changes CRDs of the cluster");
        return;
    }
    let others = Others::make(&cluster).await;
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let name = "bundledeployments.core.rukpak.io";
    let ours = crds.get(name).await.expect("it is there");
    guard::install_crds(&cluster.client()).await.expect("nothing is to be done");
    let now = crds.get(name).await.expect("it is there");
    assert_eq!(now.resource_version(), ours.resource_version(), "what is so already is not written");

    let older = Patch::Merge(json!({"spec": {"names": {"shortNames": ["older"]}}}));
    let older = crds.patch(name, &PatchParams::default(), &older).await.expect("another version");
    let refusal = guard::install_crds(&cluster.client()).await.expect_err("others depend on it").to_string();
    let foreign = others.deployments[0].name_any();
    assert!(refusal.contains(name) && refusal.contains(&format!("BundleDeployment {foreign}")), "{refusal}");
    let now = crds.get(name).await.expect("it is there");
    assert_eq!(now.spec, older.spec, "nothing is written");

    others.remove().await;
    guard::install_crds(&cluster.client()).await.expect("nobody depends on it");
    let now = crds.get(name).await.expect("it is there");
    assert_eq!(now.spec, ours.spec);
}
