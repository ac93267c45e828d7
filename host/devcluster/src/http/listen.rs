//! Sockets, TLS and limits.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chandler_devcluster_access::User;
use http::{HeaderValue, Request, Response, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
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

use super::{
    legacy, promise,
    represent::represent,
    respond::{self, Body},
};
use crate::{
    api::Api, authorization::request::attributes, faults::watch::Reset, request::query::Query, status::Status,
};

/// The longest request body: kube-apiserver's limit for JSON.
pub const BODY_LIMIT: usize = 3 << 20;
/// The most connections at a time.
const CONNECTIONS: usize = 1024;
/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send a request's headers.
const HEADERS: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const BODY: Duration = Duration::from_mins(1);

/// Everything that a connection needs.
#[derive(Clone, Debug)]
pub struct Server {
    /// The API.
    pub api: Arc<Api>,
}

impl Server {
    /// Serves until told to stop; open connections are then closed.
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

    /// Tells whose request it is, and lets it in when that user may do what it is about.
    fn admit(&self, parts: &Parts) -> Result<User, Status> {
        let Api { store, clock, authenticator, authorizer, .. } = &*self.api;
        let header = parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let user = authenticator.authenticate(store, clock.now(), header).map_err(|rejected| {
            tracing::debug!(%rejected, "request not authenticated");
            Status::unauthorized()
        })?;
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let wanted = attributes(&parts.method, parts.uri.path(), &query);
        let user = authorizer.impersonate(store, user, &parts.headers, &wanted)?;
        authorizer.authorize(store, &user, &wanted)?;
        Ok(user)
    }

    async fn request(&self, request: Request<Incoming>) -> Result<Response<Body>, Reset> {
        let (mut parts, body) = request.into_parts();
        if let Some(uri) = legacy::modern(&parts.uri) {
            parts.uri = uri;
        }
        match self.admit(&parts) {
            Ok(user) => drop(parts.extensions.insert(Arc::new(user))),
            Err(status) => return Ok(respond::status(&status)),
        }
        let body = match tokio::time::timeout(BODY, Limited::new(body, BODY_LIMIT).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Ok(respond::status(&Status::too_large(BODY_LIMIT)));
            }
            Ok(Err(error)) => {
                return Ok(respond::status(&Status::bad_request(format!("cannot read the body: {error}"))));
            }
            Err(_) => return Ok(respond::status(&Status::bad_request("the body did not arrive in time"))),
        };
        let request: Request<Bytes> = Request::from_parts(parts, body);
        tracing::trace!(method = %request.method(), uri = %request.uri(), "request");
        let response = promise::handle(&self.api, &request).await?;
        represent(&request, response).await
    }
}
