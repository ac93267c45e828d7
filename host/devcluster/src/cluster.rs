//! Starts and stops a development cluster.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use chandler_devcluster_apimachinery::schema::GroupVersionKind;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    api::Api,
    clock::Clock,
    controllers,
    faults::{Exposure, Fault, FaultId, Report},
    http::{
        credentials::{Credentials, CredentialsError},
        listen::Server,
    },
    identity::Identities,
    metadata,
    persistence::Kept,
    service::Service,
    store::{Expected, Key, Limits, Mismatch, OpenError, Recovered, Snapshot},
    workloads,
};

/// The options of a development cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 picks one. Anything but a loopback address needs a [`token`](Self::token).
    pub bind: SocketAddr,
    /// The administrator's bearer token; random when `None`.
    pub token: Option<String>,
    /// The directory in which state is kept across restarts; in memory when `None`. It is created if it does not exist.
    pub data: Option<PathBuf>,
    /// Whether Deployments become available, Jobs complete and so on; see [`workloads`](mod@workloads).
    pub workloads: bool,
    /// The simulated behaviour of workloads and its timing; a clone of these rules can be changed while the cluster runs.
    pub rules: workloads::Rules,
    /// How long a new CRD takes to be established; until then its objects are answered with 404.
    pub established_delay: Duration,
    /// How much history is kept for watches and for lists at past revisions.
    pub history: Limits,
    /// The clock.
    pub clock: Clock,
    /// Makes uids and generated names the same in every run; random when `None`.
    pub seed: Option<u64>,
    /// The faults that are injected from the start.
    pub faults: Vec<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            data: None,
            workloads: true,
            rules: workloads::Rules::default(),
            established_delay: Duration::from_millis(50),
            history: Limits::default(),
            clock: Clock::system(),
            seed: None,
            faults: Vec::new(),
        }
    }
}

/// Why a development cluster did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address can be reached from other machines, and no token was chosen.
    #[error("{0} is not a loopback address: set a token to listen on it")]
    NotLoopback(SocketAddr),
    /// The token is not valid in a header.
    #[error("the token is empty or contains characters other than visible ASCII")]
    Token,
    /// The address is taken or not this machine's.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// No credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The kept state cannot be used.
    #[error(transparent)]
    Data(#[from] OpenError),
    /// The kubeconfig made for the own client cannot be used.
    #[error("failed to create a client for the development cluster")]
    Kubeconfig(#[from] KubeconfigError),
    /// No client.
    #[error("failed to create a client for the development cluster")]
    Client(#[from] Box<kube::Error>),
}

/// Why an object was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// No CRD defines its kind, or the CRD is not established yet.
    #[error("the kind of {0} is not served")]
    NotServed(String),
    /// An object of its kind and name is stored.
    #[error("{0} exists")]
    Exists(String),
}

/// A running development cluster; stops when dropped.
pub struct DevCluster {
    api: Arc<Api>,
    url: String,
    kubeconfig: String,
    client: kube::Client,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for DevCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevCluster").field("url", &self.url).finish_non_exhaustive()
    }
}

impl DevCluster {
    /// Starts a cluster: when this returns, its API answers and its first namespaces exist.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        if !options.bind.ip().is_loopback() && options.token.is_none() {
            return Err(StartError::NotLoopback(options.bind));
        }
        if options
            .token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(StartError::Token);
        }
        let kept = Kept::open(options.data.as_deref(), options.history)?;
        let listener = kept.listen(options.bind).await;
        let listener = listener.map_err(|source| StartError::Listen { address: options.bind, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Listen { address: options.bind, source })?;
        kept.keep_address(address)?;
        let credentials = Credentials::new(address, options.token, &kept.secrets)?;
        let url = format!("https://{address}");
        let kubeconfig = credentials.kubeconfig(&url);

        let api = Arc::new(Api {
            store: kept.store,
            clock: options.clock,
            identities: options.seed.map(Identities::seeded).unwrap_or_default(),
            authenticator: credentials.authenticator(&url, &kept.secrets)?,
            ..Api::default()
        });
        for fault in options.faults {
            api.faults.add(fault);
        }
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        controllers::start(&api, &credentials.authority_pem, address, options.established_delay, &shutdown, &mut tasks);
        let server = Server { api: Arc::clone(&api) };
        tasks.spawn(server.serve(listener, TlsAcceptor::from(Arc::clone(&credentials.tls)), shutdown.clone()));

        let client = client(&kubeconfig).await?;
        if options.workloads {
            let simulation =
                workloads::Simulation { clock: api.clock.clone(), rules: options.rules, ..Default::default() };
            let service = Service::new(Arc::clone(&api), shutdown.clone());
            let (client, shutdown) = (service.exposed(Exposure::Simulation).client(), shutdown.clone());
            tasks.spawn(workloads::simulate_workloads(client, simulation, async move { shutdown.cancelled().await }));
        }
        Ok(Self { api, url, kubeconfig, client, shutdown, tasks })
    }

    /// A kubeconfig for the administrator, YAML. It holds the token: treat it as a secret.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    /// A client for the administrator.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The API without sockets, for clients in this process: the same answers, nothing to encrypt and nothing to connect to.
    ///
    /// Requests come from the administrator unless another user is chosen. [`Service::client`] is a client over it.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use chandler_devcluster::{DevCluster, Options};
    /// use k8s_openapi::api::core::v1::Namespace;
    ///
    /// let cluster = DevCluster::start(Options::default()).await?;
    /// let client = kube::Client::new(cluster.service(), "default");
    /// let namespaces = kube::Api::<Namespace>::all(client).list(&Default::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn service(&self) -> Service {
        Service::new(Arc::clone(&self.api), self.shutdown.clone())
    }

    /// The address, e.g. `https://127.0.0.1:34567`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The recovered state, if the persistent state was not closed cleanly.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.api.store.recovered()
    }

    /// Makes requests fail from now on; the result names the fault in [`faults`](Self::faults).
    pub fn inject(&self, fault: Fault) -> FaultId {
        self.api.faults.add(fault)
    }

    /// The faults and what they did so far.
    pub fn faults(&self) -> Vec<Report> {
        self.api.faults.list()
    }

    /// Removes all faults. Returns what they did. Their effects on watches that they already hit continue.
    pub fn clear_faults(&self) -> Vec<Report> {
        self.api.faults.clear()
    }

    /// The revision of the last write: equal before and after what wrote nothing.
    pub fn revision(&self) -> u64 {
        self.api.store.revision()
    }

    /// Forgets the history: watches from earlier revisions get 410, as after etcd's compaction.
    pub fn compact(&self) {
        self.api.store.compact(self.api.store.revision());
    }

    /// The state of the cluster now, as a snapshot of etcd has it.
    pub fn snapshot(&self) -> Snapshot {
        self.api.store.snapshot()
    }

    /// Takes the state of an earlier snapshot, as after etcd was restored from it: what was written since is lost, and resource versions go
    /// back. Close the connections of clients before, as a real restoration does, which needs a restart of the API server: a watch that
    /// continues from a later version is then silent until the cluster gets there. Returns false, and changes nothing, if the cluster keeps
    /// its state in a directory: restore a copy of that while the cluster is stopped.
    pub fn rewind(&self, snapshot: &Snapshot) -> bool {
        self.api.store.rewind(snapshot)
    }

    /// Stores objects as they are, as if etcd had them: with their UIDs, owner references, status and managed fields, and without admission,
    /// defaults and validation. The kinds of custom resources must be served. Each object gets a new resource version.
    ///
    /// # Errors
    /// The first object that exists, or whose kind is not served; those before it are stored.
    pub fn put_stored(&self, objects: Vec<serde_json::Value>) -> Result<(), PutError> {
        let registry = self.api.registry.snapshot();
        for object in objects {
            let text = |name: &str| object.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let name = metadata::name(&object).to_owned();
            let what = format!("{kind}.{api_version} {name}");
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let resource = registry.kind(&GroupVersionKind::new(group, version, kind));
            let Some(resource) = resource else { return Err(PutError::NotServed(what)) };
            let namespace = metadata::namespace(&object).to_owned();
            let key = Key::new(Arc::clone(&resource.table), namespace, name);
            let stored = self.api.store.put(key, Expected::Absent, object);
            stored.map_err(|Mismatch| PutError::Exists(what))?;
        }
        Ok(())
    }

    /// Stops serving and waits until everything has ended; persistent state is then on disk, and the directory is released.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
        let store = self.api.store.clone();
        // It fails when the runtime ends, too; the store is closed then when it is dropped.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

impl Drop for DevCluster {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn client(kubeconfig: &str) -> Result<kube::Client, StartError> {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    // Otherwise kube takes a proxy from the environment, although this server is on this machine.
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.proxy_url = Some("http://none.invalid".to_owned());
    }
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    kube::Client::try_from(config).map_err(|error| StartError::Client(Box::new(error)))
}
