//! Opens one connection, and ends it when the server stops answering.

use std::{sync::Arc, time::Duration};

use http::Uri;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::connect::Connection as _,
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tower::{BoxError, ServiceExt as _};

use crate::{connector::Connector, pool::MAX_STREAMS};

/// How much of a body the server may send before it is read, in bytes.
const STREAM_WINDOW: u32 = 512 << 10;
/// The limit for all bodies of a connection: a body that is not read never delays another one.
#[expect(clippy::cast_possible_truncation, reason = "MAX_STREAMS is a small constant")]
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// How often it is checked whether the server has sent its settings.
const SETTINGS_POLL: Duration = Duration::from_millis(1);

/// When a silent server is checked, by a ping. A load balancer can drop a connection without a word, and a watch on it would wait until
/// its own timeout, of about five minutes.
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    /// The time without data from the server until a ping.
    pub interval: Duration,
    /// How long the server may take to answer it; then the connection and all of its requests fail.
    pub timeout: Duration,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(15) }
    }
}

/// The server, and how to connect to it.
pub(crate) struct Endpoint {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(crate) connector: HttpsConnector<Connector>,
    pub(crate) server: Uri,
    /// How long it may take until a connection can be used.
    pub(crate) timeout: Option<Duration>,
    pub(crate) keep_alive: KeepAlive,
}

/// An open HTTP/2 connection.
pub(crate) struct Opened {
    pub(crate) sender: SendRequest<Body>,
    /// How many streams the server accepts.
    pub(crate) streams: usize,
}

/// No connection could be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to connect to {server}")]
pub(crate) struct ConnectError {
    server: Uri,
    #[source]
    source: Arc<dyn std::error::Error + Send + Sync>,
}

/// The server ended a connection before it sent its settings.
#[derive(Debug, thiserror::Error)]
#[error("the server closed the connection before it could be used")]
struct Closed;

impl Endpoint {
    /// Opens a connection; `None` if the server chose HTTP/1.1.
    pub(crate) async fn open(&self) -> Result<Option<Opened>, ConnectError> {
        let opened = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, self.connect()).await.unwrap_or_else(|late| Err(late.into())),
            None => self.connect().await,
        };
        opened.map_err(|error| self.failed(error))
    }

    /// The error for a connection that could not be opened.
    pub(crate) fn failed(&self, error: BoxError) -> ConnectError {
        ConnectError { server: self.server.clone(), source: error.into() }
    }

    async fn connect(&self) -> Result<Option<Opened>, BoxError> {
        let stream = self.connector.clone().oneshot(self.server.clone()).await?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(None);
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // No request is sent before the server's limit is known.
            .initial_max_send_streams(0)
            .keep_alive_interval(self.keep_alive.interval)
            .keep_alive_timeout(self.keep_alive.timeout)
            // Otherwise a connection without requests would be found dead only by the next one.
            .keep_alive_while_idle(true)
            .handshake(stream)
            .await?;
        let mut connection = Box::pin(connection);
        // hyper reports the limit, but not when it learns it.
        let streams = loop {
            match connection.current_max_send_streams() {
                0 => tokio::select! {
                    // Without this, the loop would never end where no timeout is configured.
                    ended = &mut connection => return Err(ended.map_or_else(BoxError::from, |()| Closed.into())),
                    () = tokio::time::sleep(SETTINGS_POLL) => {}
                },
                limit => break limit,
            }
        };
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the API server failed");
            }
        });
        Ok(Some(Opened { sender, streams }))
    }
}
