//! The listener, and what it serves.

use std::{
    collections::BTreeSet,
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum_server::{Handle, tls_rustls::RustlsConfig};
use chandler_catalog::Indexes;
use chandler_content::Store;
use chandler_core::Digest;
use futures::{Stream, StreamExt as _, stream::BoxStream};
use hyper_util::rt::TokioTimer;
use kube::{Api, Client};

use crate::{
    announcement::Announcement,
    bundles::Bundles,
    callers::Callers,
    catalogs::Catalogs,
    certificate,
    routes::{self, Service},
    uploads::Uploads,
};

/// How long a client may take for the header of a request, also of the next one on a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long answers may take after a shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);

/// What the controller holds. Only what it found itself counts, never a status: others may write that.
pub trait Holdings: Send + Sync {
    /// The content of a BundleDeployment.
    fn bundle(&self, name: &str) -> Holding;
    /// The digest of the content of a Catalog that is in use.
    fn catalog(&self, name: &str) -> Option<Digest>;
    /// Whether content may be uploaded for a BundleDeployment.
    fn target(&self, name: &str) -> Target;
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
    },
    /// Its source has this type.
    Other(String),
    /// It does not exist.
    Absent,
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

/// The service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("the content service cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Connections cannot be accepted.
    #[error("the content service failed")]
    Accept(#[source] io::Error),
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
}

impl Listener {
    /// Binds the address. `namespace` is the system namespace.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub fn bind(options: Options, namespace: &str) -> Result<Self, ServeError> {
        let address = options.address;
        let failed = |source| ServeError::Listen { address, source };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
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
        let mut certificates = self.certificates(&served.client);
        let mut shutdown = pin!(shutdown);
        let first = tokio::select! {
            first = certificates.next() => first,
            () = &mut shutdown => None,
        };
        let Some(first) = first else { return Ok(()) };
        let config = RustlsConfig::from_config(first.config);
        let announcement = Announcement {
            client: served.client.clone(),
            namespace: self.namespace.clone(),
            name: self.options.service.clone(),
            url: self.url.clone(),
        };
        let handle = Handle::new();
        let router = routes::router(service(served));
        let mut https = axum_server::from_tcp_rustls(self.socket, config.clone()).map_err(ServeError::Accept)?;
        https.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        https.http_builder().http2().timer(TokioTimer::new()).max_concurrent_streams(16);
        tracing::info!(url = self.url, "the content service runs");
        let mut serving = pin!(https.handle(handle.clone()).serve(router.into_make_service()));
        tokio::select! {
            ended = &mut serving => return ended.map_err(ServeError::Accept),
            () = renew(certificates, &config, &announcement, first.authority) => {}
            () = shutdown => {}
        }
        handle.graceful_shutdown(Some(GRACE));
        serving.await.map_err(ServeError::Accept)
    }

    fn certificates(&self, client: &Client) -> BoxStream<'static, certificate::Served> {
        match &self.options.tls_secret {
            Some(secret) => {
                certificate::of_secret(Api::namespaced(client.clone(), &self.namespace), secret.clone()).boxed()
            }
            None => certificate::made(self.names()).boxed(),
        }
    }

    /// The names in a certificate that is generated here, including names for a port that `kubectl port-forward` opens.
    fn names(&self) -> BTreeSet<String> {
        let (service, namespace) = (&self.options.service, &self.namespace);
        let mut names: BTreeSet<String> = ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
        names.extend([format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]);
        let host = http::Uri::try_from(&self.url).ok().and_then(|url| url.host().map(str::to_owned));
        names.extend(host.map(|host| host.trim_matches(['[', ']']).to_owned()));
        names
    }
}

fn service(served: Served) -> Arc<Service> {
    let Served { client, holdings, store, indexes } = served;
    Arc::new(Service {
        callers: Callers::new(client),
        bundles: Bundles::new(store.clone()),
        uploads: Uploads::new(store.clone(), Arc::clone(&holdings)),
        holdings,
        catalogs: Catalogs::new(store, indexes),
    })
}

/// Announces the service, and serves each further certificate. Never returns.
async fn renew(
    mut certificates: impl Stream<Item = certificate::Served> + Unpin,
    config: &RustlsConfig,
    announcement: &Announcement,
    mut authority: Option<String>,
) {
    loop {
        announcement.publish(authority.as_deref()).await;
        match certificates.next().await {
            Some(next) => {
                config.reload_from_config(next.config);
                authority = next.authority;
                tracing::info!("the content service has another certificate");
            }
            None => std::future::pending().await,
        }
    }
}
