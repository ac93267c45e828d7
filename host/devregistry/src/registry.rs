//! A running registry.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
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

use crate::{Authentication, Fault, FaultOn, service::Service, tls};

/// How a registry runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 for any that is free.
    pub port: u16,
    /// Whether it speaks TLS, with a certificate of its own.
    pub tls: bool,
    /// What clients must show.
    pub authentication: Authentication,
    /// The bytes that it holds at most, and those of one request. Default 1 GiB.
    pub most_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { port: 0, tls: false, authentication: Authentication::None, most_bytes: 1 << 30 }
    }
}

/// Why a registry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be had.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Tls(String),
}

/// A registry on the loopback interface; it stops, and forgets everything, when it is dropped.
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
        let service = Arc::new(Service::new(base, options.authentication, options.most_bytes));
        let server = tokio::spawn(accept(listener, tls, Arc::clone(&service))).abort_handle();
        Ok(Self { service, address, authority, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its name in image references: address and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The certificate that clients must trust, in PEM, if it speaks TLS.
    pub fn certificate_authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Makes it fail from now on, or stop failing.
    pub fn set_fault(&self, fault: Option<(FaultOn, Fault)>) {
        self.service.set_fault(fault);
    }

    /// The first ten thousand requests so far, as `GET /v2/…`.
    pub fn requests(&self) -> Vec<String> {
        self.service.requests()
    }
}

/// Accepts connections until it is dropped, and all connections with it.
async fn accept(listener: TcpListener, tls: Option<Arc<ServerConfig>>, service: Arc<Service>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), Arc::clone(&service)));
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    // Out of file descriptors, most likely; others must get a turn to close theirs.
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
            Err(error) => tracing::debug!(%error, "a client did not agree on TLS"),
        },
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, service: Arc<Service>) {
    let answer = service_fn(|request| service.answer(request));
    let served = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}
