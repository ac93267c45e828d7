//! A cluster with a registry and a running controller.

use std::{collections::BTreeMap, env, fmt::Debug, fs, os::unix::fs::symlink, path::Path, time::Duration};

use chandler_api::BundleDeployment;
use chandler_controller::{ClusterOperatorMode, ClusterOperatorSettings, Options, TargetOptions};
use chandler_devcluster::DevCluster;
use chandler_devregistry::Registry;
use chandler_permissions::AccountPolicy;
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::{
    ClusterResourceScope,
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use tracing_subscriber::{Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::{
    Cluster, Run,
    bundles::Bundle,
    cleanup,
    container::{self, Containers, Rights},
    content_service,
    in_process::{self, InProcess},
    preflight, renders,
    requests::reconciles,
    run, wait,
};

/// Everything that an end-to-end test needs. End the test with [`World::finish`], which deletes what the test created. If the test
/// panics, dropping the world deletes as much as possible within two minutes.
///
/// All its objects have its [`Run`] in their names and as a label, and its controllers select only these.
pub struct World {
    /// A client with all rights.
    pub client: Client,
    /// A registry on loopback that the controller pulls from.
    pub registry: Registry,
    /// The namespace to install into, for this test only.
    pub namespace: String,
    /// The namespace from which the controller reads Secrets and ConfigMaps, for this test only.
    pub system_namespace: String,
    run: Run,
    finished: bool,
    cache: TempDir,
    /// What starts its controllers, unless they run in this process.
    containers: Option<Box<Containers>>,
    /// Whether the last controller that started is in a container.
    is_contained: bool,
    /// Whether containers installed bundles with the account [`container::INSTALLER`]: then later controllers do, too.
    has_installer: bool,
    controller: Option<Controller>,
    cluster: Cluster,
}

struct Controller {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// Another empty cache directory, but for the compiled code. All worlds share that: compiling the provisioners for each of them took a third of
/// the time of all tests. It is in the target directory, so that later runs have it too; code of another engine is never used.
pub fn empty_cache() -> TempDir {
    let cache = tempfile::tempdir().expect("a temporary directory");
    let program = env::current_exe().expect("the path of this program");
    let code = program.parent().expect("its directory").join("code-of-tests");
    fs::create_dir_all(&code).expect("the target directory can be written");
    symlink(code, cache.path().join("code")).expect("a symbolic link");
    cache
}

impl World {
    /// A cluster with the CRDs, two namespaces, a registry and a running controller.
    pub async fn new() -> Self {
        Self::on(Cluster::acquire().await).await
    }

    /// Like [`World::new`], with all controllers in this process: for a test that compares two of them, which need the same cache.
    pub async fn in_process(reason: InProcess) -> Self {
        let mut world = Self::without_controller(Cluster::acquire().await).await;
        in_process::note(Some(reason));
        world.containers = None;
        world.start_controller();
        world
    }

    /// Like [`World::new`], on a given cluster.
    pub async fn on(cluster: Cluster) -> Self {
        let mut world = Self::without_controller(cluster).await;
        world.start_controller();
        world
    }

    /// Like [`World::on`], without a controller.
    pub async fn without_controller(cluster: Cluster) -> Self {
        logging();
        let client = cluster.client();
        let run = Run::new();
        let world = Self {
            registry: Registry::start(chandler_devregistry::Options::default()).await.expect("a registry"),
            namespace: run.name().to_owned(),
            system_namespace: run.system_namespace(),
            run,
            finished: false,
            cache: empty_cache(),
            containers: Containers::from_environment().map(Box::new),
            is_contained: false,
            has_installer: false,
            controller: None,
            cluster,
            client,
        };
        preflight::install_crds(&world.client).await.unwrap_or_else(|refusal| panic!("{refusal:#}"));
        for name in [&world.namespace, &world.system_namespace] {
            let _: Namespace = world.create(json!({"metadata": {"name": name}})).await;
        }
        world
    }

    /// Identifies the objects of this world.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Creates a cluster-scoped object with the label of the run. Its name must contain the name of the run, as [`World::name`]
    /// does.
    pub async fn create<K>(&self, mut object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    {
        self.mark(&mut object);
        let object: K = serde_json::from_value(object).expect("an object of its kind");
        Api::all(self.client.clone()).create(&PostParams::default(), &object).await.expect("the object is accepted")
    }

    /// Adds the label of the run to an object that a test creates by other means.
    pub fn mark(&self, object: &mut Value) {
        self.run.mark(object);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        // An object in a namespace of the run is deleted with that namespace.
        let named = text("/metadata/name").contains(self.run.name());
        assert!(named || text("/metadata/namespace").contains(self.run.name()), "the clean-up would not find {object}");
    }

    /// A client configuration with all rights, from which tests derive clients of other users.
    pub fn config(&self) -> kube::Config {
        self.cluster.config()
    }

    /// A kubeconfig with all rights, as YAML; `None` if `KUBECONFIG` names one.
    pub fn kubeconfig(&self) -> Option<String> {
        self.cluster.kubeconfig()
    }

    /// Whether the API server is the embedded control plane.
    pub fn is_embedded(&self) -> bool {
        self.cluster.is_embedded()
    }

    /// The process of the API server, if this process started one.
    pub fn server_process(&self) -> Option<u32> {
        self.cluster.process()
    }

    /// Whether a garbage collector runs, which also orphans objects.
    pub fn collects_garbage(&self) -> bool {
        self.cluster.has_controllers()
    }

    /// Whether a controller type-checks the expressions in admission policies.
    pub fn checks_policies(&self) -> bool {
        !self.is_embedded() && self.cluster.has_controllers()
    }

    /// The embedded control plane, if the API server is one.
    pub fn embedded(&self) -> Option<&DevCluster> {
        self.cluster.devcluster()
    }

    /// Starts the controller, with the cache of the previous one. Like all methods that take no client, it starts a container if
    /// [`container::DIRECTORY`] is set, and otherwise a controller in this process.
    pub fn start_controller(&mut self) {
        self.start_controller_changed(|_| {});
    }

    /// Starts the controller with changed options.
    pub fn start_controller_changed(&mut self, change: impl FnOnce(&mut Options)) {
        self.start(self.cluster.config(), Rights::Granted, change, |world, _| world.client.clone());
    }

    /// Starts the controller for BundleDeployments without an account: it installs them with its own permissions, also in a container.
    pub fn start_controller_without_account(&mut self) {
        self.start(self.cluster.config(), Rights::ClusterAdmin, |_| {}, |world, _| world.client.clone());
    }

    /// Starts the controller on the API server of this configuration, such as a proxy before the world's.
    pub fn start_controller_at(&mut self, config: kube::Config) {
        let client = |_: &Self, config| chandler_client::client(config).expect("a client");
        self.start(config, Rights::Granted, |_| {}, client);
    }

    /// Starts the controller with this user agent; a container has the one of the command. [`container::agent`] says which.
    pub fn start_controller_as(&mut self, agent: &'static str) {
        let mut config = self.cluster.config();
        config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
        let client = |_: &Self, config| Client::try_from(config).expect("a client");
        self.start(config, Rights::Granted, |_| {}, client);
    }

    /// Starts the controller with changed options and with its ServiceAccount, to which the test has granted permissions.
    pub async fn start_controller_deployed(&mut self, change: impl FnOnce(&mut Options)) {
        let token = content_service::token(self, &self.system_namespace, "chandler").await;
        let client = |_: &Self, mut config: kube::Config| {
            config.auth_info =
                kube::config::AuthInfo { token: Some(token.into()), ..kube::config::AuthInfo::default() };
            Client::try_from(config).expect("a client")
        };
        self.start(self.cluster.config(), Rights::OfTest, change, client);
    }

    /// Starts the controller in this process, with its own client.
    pub fn start_controller_on(&mut self, reason: InProcess, client: Client) {
        self.start_controller_with(reason, client, |_| {});
    }

    /// Starts the controller in this process, with its own client and changed options.
    pub fn start_controller_with(&mut self, reason: InProcess, client: Client, change: impl FnOnce(&mut Options)) {
        let mut options = self.options();
        change(&mut options);
        in_process::note(Some(reason));
        self.start_in_process(client, options);
    }

    fn start(
        &mut self,
        config: kube::Config,
        rights: Rights,
        change: impl FnOnce(&mut Options),
        client: impl FnOnce(&Self, kube::Config) -> Client,
    ) {
        assert!(self.controller.is_none(), "a controller is already running");
        self.has_installer = self.containers.is_some() && rights == Rights::Granted;
        let mut options = self.options();
        change(&mut options);
        let Some(containers) = &self.containers else {
            let client = client(self, config);
            return self.start_in_process(client, options);
        };
        let (server, is_embedded) = ((self.client.clone(), config.clone()), self.is_embedded());
        match containers.launch(server, &self.run, is_embedded, options.clone(), rights) {
            Ok(launch) => {
                in_process::note(None);
                self.is_contained = true;
                let (stop, stopped) = oneshot::channel::<()>();
                self.controller = Some(Controller { stop, running: tokio::spawn(container::run(launch, stopped)) });
            }
            Err(reason) => {
                in_process::note(Some(reason));
                let client = client(self, config);
                self.start_in_process(client, options);
            }
        }
    }

    fn start_in_process(&mut self, client: Client, options: Options) {
        assert!(self.controller.is_none(), "a controller is already running");
        self.is_contained = false;
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            chandler_controller::run(client, options, shutdown).await.expect("the controller runs until it is stopped");
        });
        self.controller = Some(Controller { stop, running });
    }

    /// The options of this world's controllers.
    pub fn options(&self) -> Options {
        let installer = self.has_installer.then(|| container::installer(&self.run));
        Options {
            accounts: AccountPolicy::new(false, installer),
            watch_selector: run::selector([&self.run]),
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache.path().to_path_buf(),
            allow_unsigned: true,
            decisions_from_config_maps: true,
            targets: TargetOptions { most: 4, poll_interval: Duration::from_secs(1), allow_loopback: true },
            platform_resolution: self.platform(),
            cluster_operators: ClusterOperatorSettings {
                mode: ClusterOperatorMode::None,
                ..ClusterOperatorSettings::default()
            },
            ..Options::default()
        }
    }

    /// The directory of the controller's caches. A controller in this process has another one than the containers.
    pub fn cache(&self) -> &Path {
        match &self.containers {
            Some(containers) if self.is_contained => containers.cache(),
            _ => self.cache.path(),
        }
    }

    /// Stops the controller and waits until it has stopped.
    pub async fn stop_controller(&mut self) {
        let controller = self.controller.take().expect("the controller runs");
        let _ = controller.stop.send(());
        let stopped = tokio::time::timeout(wait::PATIENCE, controller.running).await;
        stopped.expect("the controller stops in time").expect("the controller does not panic");
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
        format!("{}-bd", self.run)
    }

    /// The name of the Resolution of this run's PlatformOperators.
    pub fn platform(&self) -> String {
        self.run.platform()
    }

    /// The ConfigMaps of the install namespace.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates or changes a BundleDeployment of this run, as `kubectl apply` would.
    pub async fn apply(&self, name: &str, spec: Value) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec
        });
        self.mark(&mut object);
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
        found.expect("a ready BundleDeployment exists")
    }

    /// Deletes a BundleDeployment and waits until it is gone.
    pub async fn delete(&self, name: &str) {
        self.deployments().delete(name, &DeleteParams::default()).await.expect("the BundleDeployment exists");
        wait::until(&self.deployments(), name, "gone", |deployment| deployment.is_none()).await;
    }

    /// Deletes what this world created, and stops the controller.
    pub async fn finish(mut self) {
        let runs = [self.run.clone()].into();
        if self.controller.is_none() && cleanup::has_deployments(&self.client, &runs).await {
            self.start_controller();
        }
        let left = cleanup::remove_reconciled(&self.client, &runs, wait::PATIENCE).await;
        if self.containers.is_some() && self.controller.is_some() {
            // Before its account is deleted.
            self.stop_controller().await;
        }
        cleanup::remove_others(&self.client, &runs).await;
        if self.controller.is_some() {
            self.stop_controller().await;
        }
        self.finished = true;
        assert!(left.is_empty(), "{}", left.join("\n"));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.finished || !self.cluster.outlives_this() {
            return;
        }
        if let Some(controller) = self.controller.take() {
            controller.running.abort();
        }
        cleanup::remove_blocking(self.cluster.config(), self.run.clone(), !self.cluster.has_controllers());
    }
}

/// A condition of a BundleDeployment.
pub fn condition<'a>(deployment: &'a BundleDeployment, type_: &str) -> Option<&'a Condition> {
    deployment.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

fn logging() {
    // An error means that another test was first.
    let written = tracing_subscriber::fmt::layer()
        .with_test_writer()
        .with_filter(tracing_subscriber::EnvFilter::from_default_env());
    let _ = tracing_subscriber::registry().with(written).with(renders::layer()).with(reconciles::layer()).try_init();
}
