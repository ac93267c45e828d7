//! Serves over HTTPS until shutdown, with certificates that change.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    time::Duration,
};

use axum::Router;
use axum_server::{Handle, tls_rustls::RustlsConfig};
use chandler_tls::TlsSettings;
use futures::{Stream, StreamExt as _};
use hyper_util::rt::TokioTimer;
use tokio::sync::watch;

use crate::{
    announcement::Announcement,
    certificate,
    connection::Places,
    rates::{Rate, Rates},
};

/// The most bytes of the header of a request. A token may have half of them.
const HEADER_BYTES: u16 = 32 << 10;
/// The bytes of bodies that a client of HTTP/2 may send before they are read, on one connection.
const WINDOW: u32 = 128 << 10;
/// The requests at a time on a connection of HTTP/2.
const STREAMS: u32 = 16;
/// How long answers may take after a shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);

/// What the callers of one server may take before anything is known of them. docs/security.md has the sum of all servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most connections at once.
    pub(crate) connections: usize,
    /// The most TLS handshakes in a second.
    pub(crate) handshakes: Rates,
    /// How long a TLS handshake may take.
    pub(crate) handshake: Duration,
    /// How long a client may take for the header of a request, also of the next one on a connection of HTTP/1.
    pub(crate) header: Duration,
    /// How long nothing may be transferred on a connection: longer than any answer takes to begin.
    pub(crate) idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            handshakes: Rates {
                of_one: Rate { at_once: 128, every: Duration::from_secs(1) / 32 },
                of_all: Rate { at_once: 512, every: Duration::from_secs(1) / 128 },
            },
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(15),
            idle: Duration::from_mins(2),
        }
    }
}

/// Ends all connections when it is dropped: they are tasks of their own.
struct Connections(Handle<SocketAddr>);

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// A bound address.
pub(crate) struct Serving {
    pub(crate) socket: TcpListener,
    /// What is served, for the log.
    pub(crate) what: &'static str,
    pub(crate) url: String,
    /// What connections may negotiate. A change affects new connections.
    pub(crate) tls: watch::Receiver<TlsSettings>,
    pub(crate) limits: Limits,
}

impl Serving {
    /// Serves once there is a certificate, until `shutdown` completes, and then ends the answers that are under way. An
    /// announcement is published with the authority of each certificate. If this is dropped, all connections end.
    pub(crate) async fn run(
        self,
        router: Router,
        certificates: impl Stream<Item = certificate::Served> + Unpin,
        announcement: Option<Announcement>,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (mut certificates, mut tls, limits) = (certificates, self.tls, self.limits);
        let mut shutdown = pin!(shutdown);
        let first = tokio::select! {
            first = certificates.next() => first,
            () = &mut shutdown => None,
        };
        let Some(first) = first else { return Ok(()) };
        let config = first.config(&tls.borrow_and_update()).map_err(io::Error::other)?;
        let config = RustlsConfig::from_config(config);
        let handle = Handle::new();
        let _connections = Connections(handle.clone());
        let places = Places::new(limits.connections, limits.handshakes, limits.idle);
        let mut server = axum_server::from_tcp_rustls(self.socket, config.clone())?
            .map(|acceptor| acceptor.handshake_timeout(limits.handshake).acceptor(places))
            .first_request_timeout(limits.header);
        let mut http1 = server.http_builder().http1();
        http1.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEADER_BYTES.into());
        let mut http2 = server.http_builder().http2();
        http2.timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_header_list_size(HEADER_BYTES.into());
        http2.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
        tracing::info!(url = self.url, what = self.what, "serving over HTTPS");
        let mut serving = pin!(server.handle(handle.clone()).serve(router.into_make_service()));
        tokio::select! {
            ended = &mut serving => return ended,
            () = renew(certificates, tls, &config, announcement, first) => {}
            () = shutdown => {}
        }
        handle.graceful_shutdown(Some(GRACE));
        serving.await
    }
}

/// The names of a Service in a certificate that is generated here, including names for a port that `kubectl port-forward` opens.
pub(crate) fn names(service: &str, namespace: &str) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
    names.extend([format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]);
    names
}

/// Announces the service, if there is an announcement, and serves each further certificate, with the settings of TLS as they change. Never
/// returns.
async fn renew(
    mut certificates: impl Stream<Item = certificate::Served> + Unpin,
    mut tls: watch::Receiver<TlsSettings>,
    config: &RustlsConfig,
    announcement: Option<Announcement>,
    mut served: certificate::Served,
) {
    let announce = async |served: &certificate::Served| {
        if let Some(announcement) = &announcement {
            announcement.publish(served.authority.as_deref()).await;
        }
    };
    announce(&served).await;
    loop {
        let what = tokio::select! {
            Some(next) = certificates.next() => {
                served = next;
                announce(&served).await;
                "certificate was"
            }
            Ok(()) = tls.changed() => "TLS settings were",
            else => std::future::pending().await,
        };
        match served.config(&tls.borrow_and_update()) {
            Ok(next) => {
                config.reload_from_config(next);
                tracing::info!("the served {what} replaced");
            }
            Err(error) => tracing::warn!(%error, "the certificate cannot be served"),
        }
    }
}

#[cfg(test)]
mod tests;
