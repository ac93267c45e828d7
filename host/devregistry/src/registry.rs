//! A running registry.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use crate::{Authentication, Fault, FaultOn, disk::Directory, service::Service, storage::Storage, tls};

/// The options of a registry.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 for any free port.
    pub port: u16,
    /// Whether it uses TLS, with its own certificate.
    pub tls: bool,
    /// The credentials that it requires.
    pub authentication: Authentication,
    /// The most bytes that it stores, and the most of one request. Default 1 GiB.
    pub most_bytes: u64,
    /// The directory that stores the content, for the next registry with this directory; in memory only when `None`. It is created if it
    /// does not exist. Only one registry may use it at a time.
    pub directory: Option<PathBuf>,
    /// Whether it lists the referrers of a manifest. Without, clients keep the list in a tag, as before version 1.1 of the specification.
    /// Default true.
    pub referrers: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            tls: false,
            authentication: Authentication::None,
            most_bytes: 1 << 30,
            directory: None,
            referrers: true,
        }
    }
}

/// Why a registry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be bound.
    #[error("failed to listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The error.
        source: std::io::Error,
    },
    /// The certificate cannot be issued.
    #[error("failed to issue a certificate: {0}")]
    Tls(String),
    /// The directory cannot be used.
    #[error("failed to read the content of the registry in {path}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
}

/// A registry on the loopback interface. Dropping it stops it; content that is not in a directory is lost.
pub struct Registry {
    pub(crate) service: Arc<Service>,
    address: SocketAddr,
    authority: Option<String>,
    server: AbortHandle,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Registry {
    /// Starts a registry on the current tokio runtime.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let failed = |source| StartError::Listen { port: options.port, source };
        let listener = TcpListener::bind((loopback, options.port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (tls, authority) = options
            .tls
            .then(|| tls::server(loopback))
            .transpose()?
            .map_or((None, None), |(tls, pem)| (Some(tls), Some(pem)));
        let scheme = if options.tls { "https" } else { "http" };
        let base = format!("{scheme}://{address}");
        let storage = storage(&options)?;
        let service = Arc::new(Service::new(base, options, storage));
        let server = tokio::spawn(accept(listener, tls, Arc::clone(&service))).abort_handle();
        Ok(Self { service, address, authority, server })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The registry in image references: address and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The PEM certificate that clients must trust, if it uses TLS.
    pub fn certificate_authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Injects a fault from now on, or none.
    pub fn set_fault(&self, fault: Option<(FaultOn, Fault)>) {
        self.service.set_fault(fault);
    }

    /// The first ten thousand requests, as `GET /v2/…`.
    pub fn requests(&self) -> Vec<String> {
        self.service.requests()
    }
}

/// The content of the directory, or none.
fn storage(options: &Options) -> Result<Storage, StartError> {
    let Some(path) = &options.directory else { return Ok(Storage::new(options.most_bytes)) };
    let opened = Directory::open(path).and_then(|directory| Storage::open(options.most_bytes, directory));
    opened.map_err(|source| StartError::Directory { path: path.clone(), source })
}

/// Accepts connections. Dropping the future closes all of them.
async fn accept(listener: TcpListener, tls: Option<Arc<ServerConfig>>, service: Arc<Service>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), Arc::clone(&service)));
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to accept a connection");
                    // Most likely the process is out of file descriptors; yield so that other tasks can close some.
                    tokio::task::yield_now().await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<Arc<ServerConfig>>, service: Arc<Service>) {
    match tls {
        None => serve(stream, service).await,
        Some(config) => match TlsAcceptor::from(config).accept(stream).await {
            Ok(stream) => serve(stream, service).await,
            Err(error) => tracing::debug!(%error, "TLS handshake failed"),
        },
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, service: Arc<Service>) {
    let handler = service_fn(|request| service.handle(request));
    let served = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), handler).await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection failed");
    }
}
