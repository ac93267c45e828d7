//! The listener, and what it serves.

use std::{
    collections::BTreeSet,
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use chandler_catalog::Indexes;
use chandler_content::Store;
use chandler_core::Digest;
use chandler_tls::TlsSettings;
use chandler_turns::Requester;
use kube::Client;
use tokio::sync::watch;

use crate::{
    announcement::Announcement,
    bundles::Bundles,
    callers::Callers,
    catalogs::Catalogs,
    certificate, https,
    relay::Relayed,
    routes::{self, Service},
    uploads::Uploads,
};

/// What the controller holds. Only what it found itself counts, never a status: others may write that.
pub trait Holdings: Send + Sync {
    /// The content of a BundleDeployment.
    fn bundle(&self, name: &str) -> Holding;
    /// The digest of the content of a Catalog that is in use.
    fn catalog(&self, name: &str) -> Option<Digest>;
    /// Whether content may be uploaded for a BundleDeployment.
    fn target(&self, name: &str) -> Target;
    /// Content with so many bytes came into the cache, whether or not a BundleDeployment takes it.
    fn stored(&self, content: &Digest, bytes: u64);
    /// Content was uploaded for a BundleDeployment.
    fn uploaded(&self, name: &str);
}

/// What is known of the content of a BundleDeployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Its digest.
    Content(Digest),
    /// It has none, or does not exist.
    Nothing,
    /// It exists, and was not looked at since the start.
    Unknown,
}

/// A BundleDeployment as a target of uploads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Its source is an upload.
    Upload {
        /// Its UID.
        uid: String,
        /// The digest that the spec asks for.
        digest: Option<String>,
        /// The ServiceAccount that the spec names.
        account: Option<UploadAccount>,
        /// The account whose share of the cache the content takes.
        requester: Requester,
    },
    /// Its source has this type.
    Other(String),
    /// It does not exist.
    Absent,
}

/// The ServiceAccount on whose behalf uploaded content is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The name of the Service of the cluster, and of the ConfigMap in the same namespace that announces it. Default
    /// `chandler-content`.
    pub service: String,
    /// The URL by which clients reach the address. Default: the Service, or the address itself if it is on loopback.
    pub url: Option<String>,
    /// A Secret of type `kubernetes.io/tls` in the system namespace. Default: certificates are made.
    pub tls_secret: Option<String>,
}

impl Options {
    /// The defaults, for an address.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, service: "chandler-content".to_owned(), url: None, tls_secret: None }
    }
}

/// A service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen on {address} for {what}")]
    Listen {
        /// What would be served: content, metrics or probes.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Connections cannot be accepted.
    #[error("connections for {what} cannot be accepted")]
    Accept {
        /// What is served.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

/// A bound address, on which nothing is served yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    options: Options,
    namespace: String,
    url: String,
}

/// What is served.
pub struct Served {
    /// Reviews callers, and writes the ConfigMap.
    pub client: Client,
    /// What the controller holds.
    pub holdings: Arc<dyn Holdings>,
    /// Where the content is.
    pub store: Store,
    /// Where the indexes of catalogs are.
    pub indexes: Indexes,
    /// What connections may negotiate. A change affects new connections.
    pub tls: watch::Receiver<TlsSettings>,
}

impl Listener {
    /// Binds the address. `namespace` is the system namespace.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub fn bind(options: Options, namespace: &str) -> Result<Self, ServeError> {
        let (what, address) = ("content", options.address);
        let socket = bind(what, address)?;
        let bound = socket.local_addr().map_err(|source| ServeError::Listen { what, address, source })?;
        let url = match &options.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if bound.ip().is_loopback() => format!("https://{bound}"),
            None => format!("https://{}.{namespace}.svc", options.service),
        };
        Ok(Self { socket, options, namespace: namespace.to_owned(), url })
    }

    /// The URL by which clients reach the service, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Serves until `shutdown` completes, and then ends the answers that are under way.
    ///
    /// # Errors
    /// Connections cannot be accepted.
    pub async fn serve(self, served: Served, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let secret = self.options.tls_secret.as_deref();
        let certificates = certificate::of_service("content", &served.client, &self.namespace, secret, self.names());
        let announcement = Announcement {
            client: served.client.clone(),
            namespace: self.namespace.clone(),
            name: self.options.service.clone(),
            url: self.url.clone(),
        };
        let tls = served.tls.clone();
        let router = routes::router(service(served));
        let serving = https::Serving {
            socket: self.socket,
            what: "content",
            url: self.url,
            tls,
            limits: https::Limits::default(),
        };
        serving
            .run(router, certificates, Some(announcement), shutdown)
            .await
            .map_err(|source| ServeError::Accept { what: "content", source })
    }

    /// The names in a certificate that is generated here, including names for a port that `kubectl port-forward` opens.
    fn names(&self) -> BTreeSet<String> {
        let mut names = https::names(&self.options.service, &self.namespace);
        let host = http::Uri::try_from(&self.url).ok().and_then(|url| url.host().map(str::to_owned));
        names.extend(host.map(|host| host.trim_matches(['[', ']']).to_owned()));
        names
    }
}

impl Relayed for Listener {
    const WHAT: &'static str = "content";

    fn address(&self) -> Result<SocketAddr, ServeError> {
        local_address(Self::WHAT, self.options.address, &self.socket)
    }

    fn shared(&self) -> Result<Self, ServeError> {
        let socket = shared(Self::WHAT, self.options.address, &self.socket)?;
        Ok(Self { socket, options: self.options.clone(), namespace: self.namespace.clone(), url: self.url.clone() })
    }

    fn into_socket(self) -> TcpListener {
        self.socket
    }
}

/// The address of a bound socket.
pub(crate) fn local_address(
    what: &'static str,
    address: SocketAddr,
    socket: &TcpListener,
) -> Result<SocketAddr, ServeError> {
    socket.local_addr().map_err(|source| ServeError::Listen { what, address, source })
}

/// Another handle of a bound socket.
pub(crate) fn shared(what: &'static str, address: SocketAddr, socket: &TcpListener) -> Result<TcpListener, ServeError> {
    socket.try_clone().map_err(|source| ServeError::Listen { what, address, source })
}

/// Binds an address, for tokio.
pub(crate) fn bind(what: &'static str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    let failed = |source| ServeError::Listen { what, address, source };
    let socket = TcpListener::bind(address).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket)
}

fn service(served: Served) -> Arc<Service> {
    let Served { client, holdings, store, indexes, tls: _ } = served;
    Arc::new(Service {
        callers: Callers::new(client),
        bundles: Bundles::new(store.clone()),
        uploads: Uploads::new(store.clone(), Arc::clone(&holdings)),
        holdings,
        catalogs: Catalogs::new(store, indexes),
    })
}
