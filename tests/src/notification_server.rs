//! An HTTP server that takes notifications, also with TLS.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc};

use http::{HeaderMap, Request, Response, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// A notification that was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path of the request.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Received {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// How a request is answered.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// With this status.
    Status(u16),
    /// With 429, asking to wait for this number of seconds.
    Later(u64),
    /// Never.
    Silence,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    replies: VecDeque<Reply>,
    /// The requests that are not answered, and whose connection is open.
    open: usize,
}

/// A server on loopback. It stops when it is dropped.
pub struct NotificationServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl NotificationServer {
    /// A server that answers the first requests like this, and all others with 204.
    pub async fn start(replies: &[Reply]) -> Self {
        Self::serve(replies, None).await
    }

    /// Like [`start`](Self::start), with TLS and a certificate for this name. Also returns the certificate of the authority in PEM.
    pub async fn start_with_tls(name: &str) -> (Self, String) {
        let (acceptor, authority) = identity(name);
        (Self::serve(&[], Some(acceptor)).await, authority)
    }

    async fn serve(replies: &[Reply], tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(Mutex::new(State { replies: replies.iter().copied().collect(), ..State::default() }));
        let task = tokio::spawn(accept(listener, tls, Arc::clone(&state)));
        Self { address, state, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of the server without TLS, with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was received so far.
    pub fn received(&self) -> Vec<Received> {
        self.state.lock().received.clone()
    }

    /// The number of requests that wait for an answer.
    pub fn open(&self) -> usize {
        self.state.lock().open
    }
}

impl Drop for NotificationServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A certificate for a name, and the certificate of its authority in PEM.
pub(crate) fn identity(name: &str) -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        );
    (TlsAcceptor::from(Arc::new(config.expect("a certificate with its key"))), authority.pem())
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, tls) = (Arc::clone(&state), tls.clone());
        connections.spawn(async move {
            match tls {
                None => serve(stream, state).await,
                Some(tls) => {
                    // A client that does not trust the certificate ends the handshake.
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, state).await;
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<State>>) {
    let service = service_fn(move |request: Request<Incoming>| answer(request, Arc::clone(&state)));
    // A client may close the connection at any time.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Counts a request until it is answered, or its connection is closed.
struct Open(Arc<Mutex<State>>);

impl Open {
    fn new(state: Arc<Mutex<State>>) -> Self {
        state.lock().open += 1;
        Self(state)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let _open = Open::new(Arc::clone(&state));
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let reply = {
        let mut state = state.lock();
        state.received.push(Received { path: parts.uri.path().to_owned(), headers: parts.headers, body });
        state.replies.pop_front().unwrap_or(Reply::Status(204))
    };
    let response = match reply {
        Reply::Status(status) => Response::builder().status(status),
        Reply::Later(seconds) => Response::builder().status(429).header(RETRY_AFTER, seconds),
        Reply::Silence => std::future::pending().await,
    };
    Ok(response.body(Empty::new()).expect("a valid response"))
}
