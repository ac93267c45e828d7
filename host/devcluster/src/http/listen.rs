//! Sockets, TLS and limits.

use std::{sync::Arc, time::Duration};

use chandler_core::browser::{self, Stated};
use http::{HeaderName, HeaderValue, Request, Response, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::admit;
use crate::{
    api::Api,
    faults::watch::Reset,
    respond::{self, Body},
    status::Status,
};

/// The most connections at a time.
const CONNECTIONS: usize = 1024;
/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send a request's headers, the time between two requests of a connection included. Clients in Rust and Go keep
/// idle connections for 90 seconds; a server that closes them earlier resets requests that are on their way.
const HEADERS: Duration = Duration::from_mins(2);

/// Everything that a connection needs.
#[derive(Clone, Debug)]
pub struct Server {
    /// The API.
    pub api: Arc<Api>,
}

impl Server {
    /// Serves until shutdown; open connections are then closed.
    pub async fn serve(self, listener: TcpListener, tls: TlsAcceptor, shutdown: CancellationToken) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let permit = tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                Ok(permit) = Arc::clone(&permits).acquire_owned() => permit,
            };
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of file descriptors, most likely: wait for connections to close.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let (server, tls) = (self.clone(), tls.clone());
            connections.spawn(async move {
                server.connection(stream, tls).await;
                drop(permit);
            });
        }
        connections.shutdown().await;
    }

    async fn connection(self, stream: TcpStream, tls: TlsAcceptor) {
        // Watch events are small and wanted at once.
        let _ = stream.set_nodelay(true);
        let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        };
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(250);
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { server.request(request).await }
        });
        if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%error, "connection ended");
        }
    }

    /// Tells whose request it is, and answers it.
    async fn request(&self, request: Request<Incoming>) -> Result<Response<Body>, Reset> {
        if let Err(foreign) = browser::refuse(stated(&request)) {
            tracing::debug!(%foreign, "request of a web page");
            return Ok(respond::status(&Status::foreign(foreign.to_string())));
        }
        let Api { store, clock, authenticator, .. } = &*self.api;
        let header = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        match authenticator.authenticate(store, clock.now(), header) {
            Ok(user) => admit::answer(&self.api, user, request).await,
            Err(rejected) => {
                tracing::debug!(%rejected, "request not authenticated");
                Ok(respond::status(&Status::unauthorized()))
            }
        }
    }
}

/// The headers that identify requests of browsers. A duplicate or non-text header counts as an invalid value.
fn stated(request: &Request<Incoming>) -> Stated<'_> {
    let one = |name: HeaderName| {
        let mut values = request.headers().get_all(name).iter();
        let first = values.next()?.to_str().unwrap_or_default();
        Some(if values.next().is_some() { "" } else { first })
    };
    let authority = || request.uri().authority().map(http::uri::Authority::as_str);
    Stated {
        host: one(header::HOST).or_else(authority),
        origin: one(header::ORIGIN),
        fetch_site: one(HeaderName::from_static("sec-fetch-site")),
    }
}
