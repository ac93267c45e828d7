//! Sends a request, over HTTP/2 or HTTP/1.1.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use hyper_rustls::HttpsConnector;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use kube::client::Body;
use tower::Service;
use tracing::{Instrument as _, Span, field::Empty};

use crate::{
    body::ResponseBody,
    connection::{ConnectError, Endpoint},
    connector::Connector,
    pool::Pool,
};

/// How many connections are tried for a request that was not sent, because its connection was just closed.
const ATTEMPTS: usize = 3;

type Http1 = legacy::Client<TimeoutConnector<HttpsConnector<Connector>>, Body>;

/// Sends requests. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Transport(Arc<Inner>);

struct Inner {
    http1: Http1,
    /// `None` for a server without TLS.
    http2: Option<Http2>,
}

struct Http2 {
    /// Separate: a watch holds its stream for minutes, and no request waits for that.
    watches: Pool,
    requests: Pool,
    /// The server chose HTTP/1.1. It is not asked again.
    refused: AtomicBool,
    /// How long the server may take to answer.
    timeout: Option<Duration>,
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A connection failed.
    #[error(transparent)]
    Send(hyper::Error),
    /// No answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    /// Over HTTP/1.1.
    #[error(transparent)]
    Http1(#[from] legacy::Error),
}

impl Transport {
    /// Sends everything over HTTP/1.1.
    pub(crate) fn http1(http1: Http1) -> Self {
        Self(Arc::new(Inner { http1, http2: None }))
    }

    /// Lets the server choose.
    pub(crate) fn negotiated(endpoint: Endpoint, http1: Http1, timeout: Option<Duration>) -> Self {
        let endpoint = Arc::new(endpoint);
        let watches = Pool::new(Arc::clone(&endpoint));
        let requests = Pool::new(endpoint);
        let http2 = Http2 { watches, requests, refused: AtomicBool::new(false), timeout };
        Self(Arc::new(Inner { http1, http2: Some(http2) }))
    }
}

impl Inner {
    async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, TransportError> {
        let request = match &self.http2 {
            Some(http2) => match http2.send(request).await? {
                Sent::Answered(response) => return Ok(response),
                Sent::Refused(request) => request,
            },
            None => request,
        };
        let response = self.http1.request(request).await?;
        Ok(response.map(|body| ResponseBody::new(body, None)))
    }
}

/// What became of a request.
enum Sent {
    Answered(Response<ResponseBody>),
    /// The server does not speak HTTP/2.
    Refused(Request<Body>),
}

impl Http2 {
    async fn send(&self, mut request: Request<Body>) -> Result<Sent, TransportError> {
        let pool = if is_watch(&request) { &self.watches } else { &self.requests };
        let mut attempts = 1..=ATTEMPTS;
        loop {
            attempts.next();
            if self.refused.load(Ordering::Relaxed) {
                return Ok(Sent::Refused(request));
            }
            let Some((mut sender, place)) = pool.reserve().await? else {
                self.refused.store(true, Ordering::Relaxed);
                return Ok(Sent::Refused(request));
            };
            match self.in_time(sender.try_send_request(request)).await? {
                Ok(response) => {
                    return Ok(Sent::Answered(response.map(|body| ResponseBody::new(body, Some(place)))));
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !attempts.is_empty() => request = unsent,
                    _ => return Err(TransportError::Send(failed.into_error())),
                },
            }
        }
    }

    async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, TransportError> {
        match self.timeout {
            Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| TransportError::Timeout(limit)),
            None => Ok(answer.await),
        }
    }
}

/// Whether the server answers until the watch times out.
fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

impl Service<Request<Body>> for Transport {
    type Response = Response<ResponseBody>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let span = span(&request);
        let inner = Arc::clone(&self.0);
        let current = span.clone();
        async move {
            let answer = inner.send(request).await;
            match &answer {
                Ok(response) => {
                    current.record("http.status_code", response.status().as_u16());
                }
                Err(error) => tracing::debug!(%error, "a request failed"),
            }
            answer
        }
        .instrument(span)
        .boxed()
    }
}

/// The span of a request, like kube's client has it.
fn span(request: &Request<Body>) -> Span {
    tracing::debug_span!(
        "HTTP",
        http.method = %request.method(),
        http.url = %request.uri(),
        http.status_code = Empty,
        otel.name = request.extensions().get::<&'static str>().unwrap_or(&"HTTP"),
        otel.kind = "client",
    )
}
