//! Connects to the API server, directly or through a proxy.

use std::{
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use chandler_core::reach::{Reach, reach};
use chandler_proxies::Proxy;
use futures::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{
        HttpConnector,
        dns::Name,
        proxy::{SocksV5, Tunnel},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::other_cluster::NearServer;

/// How long a connection over HTTP/1.1 is idle before the kernel checks it.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The time between two such checks without an answer.
const TCP_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How many checks without an answer end the connection.
const TCP_KEEP_ALIVE_RETRIES: u32 = 3;

/// Opens connections without the server's TLS.
#[derive(Clone)]
pub(crate) struct Connector {
    way: Way,
    proxy: Option<Arc<Proxy>>,
}

#[derive(Clone)]
enum Way {
    Direct(HttpConnector),
    /// Only to addresses that are not too near.
    Guarded(HttpConnector<Nearest>),
    /// `CONNECT` of HTTP.
    Tunnel(Tunnel<HttpConnector>),
    /// `CONNECT` over TLS.
    SecureTunnel(Tunnel<HttpsConnector<HttpConnector>>),
    Socks(SocksV5<HttpConnector>),
}

/// The proxy did not connect to the server.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect through the proxy {proxy}")]
struct ProxyFailed {
    proxy: Proxy,
    #[source]
    source: BoxError,
}

impl Connector {
    pub(crate) fn direct() -> Self {
        Self { way: Way::Direct(tcp()), proxy: None }
    }

    /// Directly, to names with an address that is not nearer than this. The address of a literal is not checked here.
    pub(crate) fn guarded(nearest: Nearest) -> Self {
        Self { way: Way::Guarded(configured(HttpConnector::new_with_resolver(nearest))), proxy: None }
    }

    /// Through this proxy.
    pub(crate) fn through(proxy: Proxy) -> std::io::Result<Self> {
        let address = proxy.address().clone();
        let way = if proxy.is_socks() {
            let socks = SocksV5::new(address, tcp());
            Way::Socks(match proxy.socks_credentials() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            })
        } else if proxy.is_secure() {
            // The proxy is not the cluster: its certificate is signed by an authority of the system.
            let tls = HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(Arc::unwrap_or_clone(chandler_tls::provider()))?;
            Way::SecureTunnel(tunnel(&proxy, tls.https_only().enable_http1().wrap_connector(tcp())))
        } else {
            Way::Tunnel(tunnel(&proxy, tcp()))
        };
        Ok(Self { way, proxy: Some(Arc::new(proxy)) })
    }
}

fn tunnel<C>(proxy: &Proxy, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.address().clone(), connector);
    match proxy.basic_authorization() {
        Some(authorization) => tunnel.with_auth(authorization.clone()),
        None => tunnel,
    }
}

fn tcp() -> HttpConnector {
    configured(HttpConnector::new())
}

fn configured<R>(mut connector: HttpConnector<R>) -> HttpConnector<R> {
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(TCP_KEEP_ALIVE));
    connector.set_keepalive_interval(Some(TCP_KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(TCP_KEEP_ALIVE_RETRIES));
    connector
}

/// Resolves names to their addresses that are not nearer than this: a name cannot have one address at a check and another one at
/// the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest(pub(crate) Reach);

impl Service<Name> for Nearest {
    type Response = std::vec::IntoIter<SocketAddr>;
    // Not an `io::Error`, inside of which the cause is not found.
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self(nearest) = *self;
        async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let exists = !found.is_empty();
            let allowed: Vec<SocketAddr> = found.into_iter().filter(|address| reach(address.ip()) <= nearest).collect();
            if exists && allowed.is_empty() { Err(NearServer.into()) } else { Ok(allowed.into_iter()) }
        }
        .boxed()
    }
}

/// A proxy needs a port, and takes 443 if there is none.
fn with_port(server: Uri) -> Uri {
    let usual = if server.scheme_str() == Some("http") { 80 } else { 443 };
    let authority = match (server.host(), server.port()) {
        (Some(host), None) => format!("{host}:{usual}").parse().ok(),
        _ => None,
    };
    let Some(authority) = authority else { return server };
    let mut parts = server.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or(server)
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match &mut self.way {
            Way::Direct(connector) => connector.poll_ready(cx).map_err(Into::into),
            Way::Guarded(connector) => connector.poll_ready(cx).map_err(Into::into),
            Way::Tunnel(connector) => connector.poll_ready(cx).map_err(Into::into),
            Way::SecureTunnel(connector) => connector.poll_ready(cx).map_err(Into::into),
            Way::Socks(connector) => connector.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting: Self::Future = match &mut self.way {
            Way::Direct(connector) => connector.call(server).map_ok(MaybeHttpsStream::Http).err_into().boxed(),
            Way::Guarded(connector) => connector.call(server).map_ok(MaybeHttpsStream::Http).err_into().boxed(),
            Way::Tunnel(connector) => {
                connector.call(with_port(server)).map_ok(MaybeHttpsStream::Http).err_into().boxed()
            }
            Way::SecureTunnel(connector) => connector.call(with_port(server)).err_into().boxed(),
            Way::Socks(connector) => {
                connector.call(with_port(server)).map_ok(MaybeHttpsStream::Http).err_into().boxed()
            }
        };
        let Some(proxy) = self.proxy.clone() else { return connecting };
        connecting.map_err(move |source| ProxyFailed { proxy: (*proxy).clone(), source }.into()).boxed()
    }
}
