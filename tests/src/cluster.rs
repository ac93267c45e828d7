//! An API server for a test.
//!
//! | environment | server |
//! |---|---|
//! | unset | the embedded control plane, one for each test |
//! | `KUBECONFIG` | that cluster; tests take turns on it |
//! | `KUBEBUILDER_ASSETS` | `etcd` and `kube-apiserver` from that directory, and `kube-controller-manager` if it is there; tests take turns |
//!
//! [`preflight`] refuses a cluster that contains BundleDeployments or ProvisionerClasses of other users. Leftovers of killed runs
//! are deleted once they are more than an hour old. On a server without a controller manager, [`simulated_controllers`] does what
//! the tests need of one, as an ordinary client.

use std::{env, path::PathBuf, sync::Arc};

use chandler_devcluster::{DevCluster, Options};
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard, oneshot};

use crate::{cleanup, envtest::Envtest, preflight, simulated_controllers};

/// An API server that a test has for itself until the last clone is dropped.
#[derive(Clone)]
pub struct Cluster(Arc<Server>);

struct Server {
    client: Client,
    config: Config,
    /// Whether garbage is collected and namespaces are emptied.
    controllers: bool,
    /// Whether it keeps running when the tests end.
    outlives_tests: bool,
    /// Keeps the workload simulation running.
    _simulation: Option<oneshot::Sender<()>>,
    embedded: Option<DevCluster>,
    envtest: Option<Envtest>,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl Cluster {
    /// The server that the environment selects.
    pub async fn acquire() -> Self {
        rustls_provider();
        match Source::from_environment() {
            Source::Embedded => Self::embedded(Options::default()).await,
            Source::Kubeconfig => {
                let turn = turn().await;
                let config = Config::infer().await.expect("KUBECONFIG names a usable cluster");
                Self::external(config, None, turn).await
            }
            Source::Assets(directory) => {
                let turn = turn().await;
                let envtest = Envtest::start(&directory).await.expect("KUBEBUILDER_ASSETS names usable binaries");
                Self::external(envtest.config().clone(), Some(envtest), turn).await
            }
        }
    }

    /// An embedded control plane with these options, for tests about its own features.
    pub async fn embedded(options: Options) -> Self {
        rustls_provider();
        let embedded = DevCluster::start(options).await.expect("the embedded control plane starts");
        let client = embedded.client();
        let kubeconfig = Kubeconfig::from_yaml(&embedded.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.expect("a configuration of the embedded control plane");
        Self(Arc::new(Server {
            client,
            config,
            controllers: true,
            outlives_tests: false,
            _simulation: None,
            embedded: Some(embedded),
            envtest: None,
            _turn: None,
        }))
    }

    async fn external(config: Config, envtest: Option<Envtest>, turn: OwnedMutexGuard<()>) -> Self {
        let client = chandler_client::client(as_other_manager(config.clone())).expect("a client");
        let checked = preflight::check(&client, preflight::is_allowed()).await;
        checked.unwrap_or_else(|refusal| panic!("{refusal:#}"));
        let complete = simulated_controllers::are_needless(&client).await;
        let controllers = complete || envtest.as_ref().is_some_and(Envtest::has_controllers);
        let simulation = if complete {
            None
        } else {
            preflight::check_workloads(&client).await.unwrap_or_else(|refusal| panic!("{refusal:#}"));
            let (stop, stopped) = oneshot::channel();
            let simulated = client.clone();
            tokio::spawn(simulated_controllers::run(simulated, !controllers, async move {
                let _ = stopped.await;
            }));
            Some(stop)
        };
        let killed = cleanup::killed_runs(&client, Timestamp::now()).await;
        if !killed.is_empty() {
            cleanup::report(cleanup::remove_alone(config.clone(), &killed, !controllers).await);
        }
        Self(Arc::new(Server {
            client,
            config,
            controllers,
            outlives_tests: envtest.is_none(),
            _simulation: simulation,
            embedded: None,
            envtest,
            _turn: Some(turn),
        }))
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// A client configuration with all rights, from which tests derive clients of other users.
    pub fn config(&self) -> Config {
        self.0.config.clone()
    }

    /// A kubeconfig with all rights, as YAML; `None` if `KUBECONFIG` names one.
    pub fn kubeconfig(&self) -> Option<String> {
        let embedded = self.0.embedded.as_ref().map(DevCluster::kubeconfig);
        embedded.or_else(|| self.0.envtest.as_ref().map(|envtest| envtest.kubeconfig().to_owned()))
    }

    /// Whether garbage is collected and deleted namespaces are emptied: by a controller manager, or by the embedded control plane.
    pub fn has_controllers(&self) -> bool {
        self.0.controllers
    }

    /// The process of the API server, if this process started one.
    pub fn process(&self) -> Option<u32> {
        self.0.envtest.as_ref().and_then(|envtest| envtest.process("kube-apiserver"))
    }

    /// The embedded control plane, if this cluster is one.
    pub fn devcluster(&self) -> Option<&DevCluster> {
        self.0.embedded.as_ref()
    }

    /// Whether the server keeps running when this is dropped, so that leftovers stay.
    pub fn outlives_this(&self) -> bool {
        self.0.outlives_tests || Arc::strong_count(&self.0) > 1
    }

    /// Whether this is the embedded control plane.
    pub fn is_embedded(&self) -> bool {
        self.0.embedded.is_some()
    }
}

enum Source {
    Embedded,
    Kubeconfig,
    Assets(PathBuf),
}

impl Source {
    fn from_environment() -> Self {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        if set("KUBECONFIG").is_some() {
            Self::Kubeconfig
        } else if let Some(directory) = set("KUBEBUILDER_ASSETS") {
            Self::Assets(directory.into())
        } else {
            Self::Embedded
        }
    }
}

/// Tests install cluster-scoped objects with the same names, so they run one after another on a shared server.
async fn turn() -> OwnedMutexGuard<()> {
    static TURN: OnceCell<Arc<Mutex<()>>> = OnceCell::const_new();
    let turn = TURN.get_or_init(|| async { Arc::new(Mutex::new(())) }).await;
    Arc::clone(turn).lock_owned().await
}

fn rustls_provider() {
    // An error means that another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// For requests without a field manager, the API server takes its name from the `User-Agent`. With the controller's, a test's edits would
/// count as the controller's.
fn as_other_manager(mut config: Config) -> Config {
    config.headers.push((USER_AGENT, HeaderValue::from_static("chandler-tests")));
    config
}
