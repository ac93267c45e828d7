//! Serves over HTTPS until shutdown, with certificates that change.

use std::{collections::BTreeSet, io, net::TcpListener, pin::pin, time::Duration};

use axum::Router;
use axum_server::{Handle, tls_rustls::RustlsConfig};
use futures::{Stream, StreamExt as _};
use hyper_util::rt::TokioTimer;

use crate::{announcement::Announcement, certificate};

/// How long a client may take for the header of a request, also of the next one on a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long answers may take after a shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);

/// A bound address.
pub(crate) struct Serving {
    pub(crate) socket: TcpListener,
    /// What is served, for the log.
    pub(crate) what: &'static str,
    pub(crate) url: String,
}

impl Serving {
    /// Serves once there is a certificate, until `shutdown` completes, and then ends the answers that are under way. An
    /// announcement is published with the authority of each certificate.
    pub(crate) async fn run(
        self,
        router: Router,
        certificates: impl Stream<Item = certificate::Served> + Unpin,
        announcement: Option<Announcement>,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut certificates = certificates;
        let mut shutdown = pin!(shutdown);
        let first = tokio::select! {
            first = certificates.next() => first,
            () = &mut shutdown => None,
        };
        let Some(first) = first else { return Ok(()) };
        let config = RustlsConfig::from_config(first.config);
        let handle = Handle::new();
        let mut https = axum_server::from_tcp_rustls(self.socket, config.clone())?;
        https.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        https.http_builder().http2().timer(TokioTimer::new()).max_concurrent_streams(16);
        tracing::info!(url = self.url, what = self.what, "serving over HTTPS");
        let mut serving = pin!(https.handle(handle.clone()).serve(router.into_make_service()));
        tokio::select! {
            ended = &mut serving => return ended,
            () = renew(certificates, &config, announcement, first.authority) => {}
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

/// Announces the service, if there is an announcement, and serves each further certificate. Never returns.
async fn renew(
    mut certificates: impl Stream<Item = certificate::Served> + Unpin,
    config: &RustlsConfig,
    announcement: Option<Announcement>,
    mut authority: Option<String>,
) {
    loop {
        if let Some(announcement) = &announcement {
            announcement.publish(authority.as_deref()).await;
        }
        match certificates.next().await {
            Some(next) => {
                config.reload_from_config(next.config);
                authority = next.authority;
                tracing::info!("the served certificate was replaced");
            }
            None => std::future::pending().await,
        }
    }
}
