//! A cluster with a registry and a running controller.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use chandler_api::BundleDeployment;
use chandler_controller::Options;
use chandler_devcluster::DevCluster;
use chandler_devregistry::Registry;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{Cluster, bundles::Bundle, wait};

/// Everything that an end-to-end test needs. End the test with [`World::finish`], which removes what it made.
pub struct World {
    /// A client with all rights.
    pub client: Client,
    /// A registry on loopback that the controller pulls from.
    pub registry: Registry,
    /// The namespace to install into, of this test alone.
    pub namespace: String,
    /// Where the controller looks for Secrets and ConfigMaps, of this test alone.
    pub system_namespace: String,
    cache: TempDir,
    controller: Option<Controller>,
    cluster: Cluster,
}

struct Controller {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl World {
    /// A cluster with the CRDs, two namespaces, a registry and a running controller.
    pub async fn new() -> Self {
        Self::on(Cluster::acquire().await).await
    }

    /// The same on a given cluster.
    pub async fn on(cluster: Cluster) -> Self {
        let mut world = Self::without_controller(cluster).await;
        world.start_controller();
        world
    }

    /// The same with nobody who does anything about BundleDeployments.
    pub async fn without_controller(cluster: Cluster) -> Self {
        logging();
        let client = cluster.client();
        let unique = unique();
        let world = Self {
            registry: Registry::start(chandler_devregistry::Options::default()).await.expect("a registry"),
            namespace: format!("e2e-{unique}"),
            system_namespace: format!("e2e-system-{unique}"),
            cache: tempfile::tempdir().expect("a temporary directory"),
            controller: None,
            cluster,
            client,
        };
        world.install_crds().await;
        for name in [world.namespace.clone(), world.system_namespace.clone()] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
            Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
        }
        world
    }

    /// How to reach the API server with all rights, for clients as other users.
    pub fn config(&self) -> kube::Config {
        self.cluster.config()
    }

    /// Whether the API server is the embedded control plane.
    pub fn is_embedded(&self) -> bool {
        self.cluster.is_embedded()
    }

    /// Whether garbage is collected, and objects are orphaned, by somebody.
    pub fn collects_garbage(&self) -> bool {
        self.cluster.has_controllers()
    }

    /// Whether something checks the types of the expressions in admission policies.
    pub fn checks_policies(&self) -> bool {
        !self.is_embedded() && self.cluster.has_controllers()
    }

    /// The embedded control plane, where the API server is that.
    pub fn embedded(&self) -> Option<&DevCluster> {
        self.cluster.devcluster()
    }

    /// Starts the controller, with the cache that an earlier one left.
    pub fn start_controller(&mut self) {
        self.start_controller_on(self.client.clone());
    }

    /// Starts the controller with a client of its own.
    pub fn start_controller_on(&mut self, client: Client) {
        self.start_controller_with(client, |_| {});
    }

    /// Starts the controller with a client of its own and changed options.
    pub fn start_controller_with(&mut self, client: Client, change: impl FnOnce(&mut Options)) {
        assert!(self.controller.is_none(), "one controller is enough");
        let mut options = self.options();
        change(&mut options);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            chandler_controller::run(client, options, shutdown).await.expect("the controller runs until it is stopped");
        });
        self.controller = Some(Controller { stop, running });
    }

    /// How a controller of this world runs.
    pub fn options(&self) -> Options {
        Options {
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache().to_path_buf(),
            allow_unsigned: true,
            ..Options::default()
        }
    }

    /// Where the controller keeps its caches.
    pub fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// Stops the controller and waits until it is gone.
    pub async fn stop_controller(&mut self) {
        let controller = self.controller.take().expect("the controller runs");
        let _ = controller.stop.send(());
        let stopped = tokio::time::timeout(wait::PATIENCE, controller.running).await;
        stopped.expect("the controller stops when asked").expect("the controller does not panic");
    }

    /// Pushes a bundle and returns the reference of its image, with the digest.
    pub async fn push(&self, bundle: &Bundle) -> String {
        let pushed =
            self.registry.push_bundle_directory("bundles/sample", "latest", bundle.path(), &BTreeMap::new()).await;
        let pushed = pushed.expect("the registry takes the bundle");
        let (repository, _tag) = pushed.reference.rsplit_once(':').expect("a tag");
        format!("{repository}@{}", pushed.digest)
    }

    /// A name that no other test uses.
    pub fn name(&self) -> String {
        self.namespace.replace("e2e-", "bd-")
    }

    /// Creates or changes a BundleDeployment, as `kubectl apply` would.
    pub async fn apply(&self, name: &str, spec: Value) -> BundleDeployment {
        let object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec
        });
        let parameters = PatchParams::apply("e2e").force();
        self.deployments().patch(name, &parameters, &Patch::Apply(object)).await.expect("the object is accepted")
    }

    /// Deploys a pushed image with a class.
    pub async fn deploy(&self, name: &str, class: &str, image: &str) -> BundleDeployment {
        self.apply(name, self.spec(class, image)).await
    }

    /// A spec with an image source.
    pub fn spec(&self, class: &str, image: &str) -> Value {
        json!({
            "installNamespace": self.namespace,
            "provisionerClassName": class,
            "source": {"type": "image", "image": {"ref": image}},
        })
    }

    /// All BundleDeployments.
    pub fn deployments(&self) -> Api<BundleDeployment> {
        Api::all(self.client.clone())
    }

    /// Waits until a condition of the current generation has this status and reason.
    pub async fn condition(&self, name: &str, type_: &str, status: &str, reason: &str) -> BundleDeployment {
        let what = format!("{type_}={status}/{reason}");
        let found = wait::until(&self.deployments(), name, &what, |deployment| {
            deployment.is_some_and(|deployment| {
                let current = deployment.status.as_ref().and_then(|status| status.observed_generation);
                current == deployment.metadata.generation
                    && condition(deployment, type_)
                        .is_some_and(|condition| condition.status == status && condition.reason == reason)
            })
        })
        .await;
        found.expect("a condition belongs to an object")
    }

    /// Waits until the BundleDeployment is ready for its current generation.
    pub async fn ready(&self, name: &str) -> BundleDeployment {
        let found = wait::until(&self.deployments(), name, "ready", |deployment| {
            deployment.is_some_and(|deployment| {
                condition(deployment, "Ready").is_some_and(|ready| {
                    ready.status == "True" && ready.observed_generation == deployment.metadata.generation
                })
            })
        })
        .await;
        found.expect("what is ready exists")
    }

    /// Deletes a BundleDeployment and waits until it is gone.
    pub async fn delete(&self, name: &str) {
        self.deployments().delete(name, &DeleteParams::default()).await.expect("the object is there");
        wait::until(&self.deployments(), name, "gone", |deployment| deployment.is_none()).await;
    }

    /// Removes all BundleDeployments and stops the controller.
    pub async fn finish(mut self) {
        for deployment in self.deployments().list(&ListParams::default()).await.expect("the API server answers") {
            let name = deployment.metadata.name.expect("a stored object has a name");
            // Custom resources that the test left are in nobody's way.
            let everything = Patch::Merge(json!({"spec": {"deletion": {"policy": "Delete", "crds": "Delete"}}}));
            let _ = self.deployments().patch(&name, &PatchParams::default(), &everything).await;
            self.delete(&name).await;
        }
        if self.controller.is_some() {
            self.stop_controller().await;
        }
        for name in [&self.namespace, &self.system_namespace] {
            // A bare API server never finishes this, so nobody waits.
            let _ = Api::<Namespace>::all(self.client.clone()).delete(name, &DeleteParams::default()).await;
        }
    }

    async fn install_crds(&self) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for crd in chandler_api::crds() {
            let name = crd.metadata.name.clone().expect("a CRD has a name");
            let parameters = PatchParams::apply("e2e").force();
            api.patch(&name, &parameters, &Patch::Apply(&crd)).await.expect("the CRD is accepted");
            wait::until(&api, &name, "established", |crd| {
                let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
                conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition.type_ == "Established" && condition.status == "True")
            })
            .await;
        }
    }
}

/// A condition of a BundleDeployment.
pub fn condition<'a>(deployment: &'a BundleDeployment, type_: &str) -> Option<&'a Condition> {
    deployment.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Differs between tests, processes and runs, so that nothing left on a shared server is in the way.
fn unique() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count}", now.as_secs() & 0xff_ffff, std::process::id())
}

fn logging() {
    // An error says that another test was first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_test_writer()
        .try_init();
}
