//! An API server for a test.
//!
//! | environment | server |
//! |---|---|
//! | nothing | the embedded control plane, one for each test |
//! | `KUBECONFIG` | that cluster; tests take turns on it |
//! | `KUBEBUILDER_ASSETS` | `etcd` and `kube-apiserver` from that directory, and `kube-controller-manager` where it is there; tests take turns |
//!
//! On a server without a controller manager [`stand_in`] does what a test needs of one, as an ordinary client.

use std::{env, path::PathBuf, sync::Arc};

use chandler_devcluster::{DevCluster, Options};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard, oneshot};

use crate::{envtest::Envtest, stand_in};

/// An API server that a test may use as its own until it is dropped.
pub struct Cluster {
    client: Client,
    config: Config,
    /// Whether garbage is collected and namespaces are emptied.
    controllers: bool,
    /// Keeps the simulation of workloads alive.
    _simulation: Option<oneshot::Sender<()>>,
    embedded: Option<DevCluster>,
    envtest: Option<Envtest>,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl Cluster {
    /// The server that the environment names.
    pub async fn acquire() -> Self {
        rustls_provider();
        match Source::from_environment() {
            Source::Embedded => Self::embedded(Options::default()).await,
            Source::Kubeconfig => {
                let turn = turn().await;
                let config = Config::infer().await.expect("KUBECONFIG names a usable cluster");
                Self::external(config, None, Some(turn)).await
            }
            Source::Assets(directory) => {
                let turn = turn().await;
                let envtest = Envtest::start(&directory).await.expect("KUBEBUILDER_ASSETS names usable binaries");
                Self::external(envtest.config().clone(), Some(envtest), Some(turn)).await
            }
        }
    }

    /// An embedded control plane with options of its own, for tests about what only it can do.
    pub async fn embedded(options: Options) -> Self {
        rustls_provider();
        let embedded = DevCluster::start(options).await.expect("the embedded control plane starts");
        let client = embedded.client();
        let kubeconfig = Kubeconfig::from_yaml(&embedded.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.expect("a configuration of the embedded control plane");
        let embedded = Some(embedded);
        Self { client, config, controllers: true, _simulation: None, embedded, envtest: None, _turn: None }
    }

    async fn external(config: Config, envtest: Option<Envtest>, turn: Option<OwnedMutexGuard<()>>) -> Self {
        let client = Client::try_from(config.clone()).expect("a client");
        let manager = has_controller_manager(&client).await;
        let controllers = manager || envtest.as_ref().is_some_and(Envtest::has_controllers);
        let simulation = if manager {
            None
        } else {
            let (stop, stopped) = oneshot::channel();
            let simulated = client.clone();
            tokio::spawn(stand_in::run(simulated, !controllers, async move {
                let _ = stopped.await;
            }));
            Some(stop)
        };
        Self { client, config, controllers, _simulation: simulation, embedded: None, envtest, _turn: turn }
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// How to reach it with all rights, for clients as other users.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// A kubeconfig with all rights, YAML; `None` where `KUBECONFIG` names one.
    pub fn kubeconfig(&self) -> Option<String> {
        let embedded = self.embedded.as_ref().map(DevCluster::kubeconfig);
        embedded.or_else(|| self.envtest.as_ref().map(|envtest| envtest.kubeconfig().to_owned()))
    }

    /// Whether garbage is collected and deleted namespaces are emptied: by a controller manager, or by the embedded control plane.
    pub fn has_controllers(&self) -> bool {
        self.controllers
    }

    /// The embedded control plane, where this is that.
    pub fn devcluster(&self) -> Option<&DevCluster> {
        self.embedded.as_ref()
    }

    /// Whether this is the embedded control plane.
    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
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

/// Tests install cluster-scoped objects of the same names, so on a shared server one runs after the other.
async fn turn() -> OwnedMutexGuard<()> {
    static TURN: OnceCell<Arc<Mutex<()>>> = OnceCell::const_new();
    let turn = TURN.get_or_init(|| async { Arc::new(Mutex::new(())) }).await;
    Arc::clone(turn).lock_owned().await
}

/// A running controller manager holds a lease; a bare API server has none.
async fn has_controller_manager(client: &Client) -> bool {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get_opt("kube-controller-manager").await.ok().flatten();
    lease.and_then(|lease| lease.spec).is_some_and(|spec| spec.holder_identity.is_some_and(|holder| !holder.is_empty()))
}

fn rustls_provider() {
    // An error says that another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
