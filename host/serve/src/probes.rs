//! Answers the probes of the kubelet over HTTP: `/livez` and `/readyz`.
//!
//! The answers say nothing about objects, so that no caller is checked: the kubelet has no token. What limits a hostile caller is that
//! connections are few and short. When another one comes, the oldest ends, so that open connections do not keep the kubelet out, which would
//! restart the controller.

use std::{
    collections::VecDeque,
    future::Future,
    net::{SocketAddr, TcpListener},
    pin::pin,
    time::Duration,
};

use axum::{Router, extract::State, routing::get};
use chandler_monitoring::Health;
use http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};

use crate::{ServeError, server};

/// The number of connections that are open at once.
const CONNECTIONS: usize = 64;
/// How long a connection may be open. It has one request, whose answer needs no I/O.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A bound address, on which no probe is answered yet.
#[derive(Debug)]
pub struct ProbeListener {
    socket: TcpListener,
}

impl ProbeListener {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        Ok(Self { socket: server::bind("probes", address)? })
    }

    /// The address that is bound.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Answers probes until `shutdown` completes.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub async fn serve(self, health: Health, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let failed = |source| ServeError::Accept { what: "probes", source };
        let socket = tokio::net::TcpListener::from_std(self.socket).map_err(failed)?;
        let router = router(health);
        let mut open = Connections::default();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) => open.add(tokio::spawn(answer(stream, router.clone())).abort_handle()),
                    Err(error) => {
                        tracing::debug!(%error, "a connection of a probe could not be accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
    }
}

fn router(health: Health) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .fallback(async || (StatusCode::NOT_FOUND, "the paths are /livez and /readyz\n"))
        .with_state(health)
}

/// The answer itself shows that the process has time and threads.
async fn live(State(health): State<Health>) -> String {
    format!("{}\n", health.phase())
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let phase = health.phase();
    let status = if phase.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("{phase}\n"))
}

/// Answers one request, or ends the connection.
async fn answer(stream: TcpStream, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(TIMEOUT).keep_alive(false).max_buf_size(16 << 10);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Ok(Err(error)) = timeout(TIMEOUT, connection).await {
        tracing::debug!(%error, "the connection of a probe broke off");
    }
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Connections(VecDeque<AbortHandle>);

impl Connections {
    /// Adds one. Ends the oldest if there are too many.
    fn add(&mut self, connection: AbortHandle) {
        self.0.retain(|open| !open.is_finished());
        if self.0.len() >= CONNECTIONS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use chandler_monitoring::Phase;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_default();
        format!("{status} {}", answer.lines().last().unwrap_or_default())
    }

    #[tokio::test]
    async fn probes_say_what_the_controller_does() {
        let listener = ProbeListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let (address, health) = (listener.address().unwrap(), Health::default());
        let serving = tokio::spawn(listener.serve(health.clone(), std::future::pending()));
        assert_eq!(get(address, "/livez").await, "200 the controller starts");
        assert_eq!(get(address, "/readyz").await, "503 the controller starts");
        health.note(Phase::Standby);
        assert_eq!(get(address, "/readyz").await, "200 another controller holds the Lease; this one waits for it");
        health.note(Phase::Stopping);
        assert_eq!(get(address, "/livez").await, "200 the controller stops");
        assert_eq!(get(address, "/readyz").await, "503 the controller stops");
        assert_eq!(get(address, "/x").await, "404 the paths are /livez and /readyz");
        serving.abort();
    }

    #[tokio::test]
    async fn open_connections_do_not_keep_the_kubelet_out() {
        let listener = ProbeListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.address().unwrap();
        let serving = tokio::spawn(listener.serve(Health::default(), std::future::pending()));
        let mut hostile = Vec::new();
        for _ in 0..3 * CONNECTIONS {
            hostile.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(get(address, "/livez").await, "200 the controller starts");
        // The oldest ones were ended.
        assert_eq!(hostile[0].read(&mut [0; 8]).await.unwrap_or(0), 0);
        serving.abort();
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error_that_names_it() {
        let listener = ProbeListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let error = ProbeListener::bind(listener.address().unwrap()).unwrap_err().to_string();
        assert_eq!(error, format!("cannot listen on {} for probes", listener.address().unwrap()));
    }
}
