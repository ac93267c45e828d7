//! An API server that answers watches with one event, and keeps them open.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::{Client, Config};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(4);
/// A request that is never answered.
pub(super) const UNANSWERED: &str = "/unanswered";
/// A watch with more events than fit into any window.
pub(super) const FLOOD: &str = "/flood?watch=true";

/// A number that tests wait for.
#[derive(Clone, Default)]
struct Gauge(Arc<watch::Sender<usize>>);

/// Counts while it lives.
struct Counted(Gauge);

impl Gauge {
    fn count(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.clone())
    }

    fn get(&self) -> usize {
        *self.0.borrow()
    }

    async fn reach(&self, wanted: impl Fn(usize) -> bool) {
        let mut seen = self.0.subscribe();
        let reached = tokio::time::timeout(PATIENCE, seen.wait_for(|count| wanted(*count))).await;
        assert!(reached.is_ok(), "the count stays at {}", self.get());
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[derive(Clone, Default)]
struct Counts {
    accepted: Arc<AtomicUsize>,
    connections: Gauge,
    watches: Gauge,
    unanswered: Gauge,
    /// Pieces that floods have sent.
    pieces: Gauge,
    /// The `User-Agent` of the last request.
    agent: Arc<watch::Sender<String>>,
    /// Events of all watches.
    event: Arc<watch::Sender<()>>,
    /// Ends of all connections.
    close: Arc<watch::Sender<()>>,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    certificate: Vec<u8>,
    counts: Counts,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::with_streams(100).await
    }

    /// With this limit of streams of a connection.
    pub(super) async fn with_streams(limit: u32) -> Self {
        Self::serve(Some(limit)).await
    }

    pub(super) async fn http1() -> Self {
        Self::serve(None).await
    }

    /// Agrees on HTTP/2, and closes each connection without a word.
    pub(super) async fn hanging_up() -> Self {
        Self::serve(Some(0)).await
    }

    /// `None`: HTTP/1.1; `Some(0)`: no stream, and no connection for long.
    async fn serve(streams: Option<u32>) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let mut tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let version: &[u8] = if streams.is_some() { b"h2" } else { b"http/1.1" };
        tls.alpn_protocols = vec![version.to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Counts::default();
        tokio::spawn(accept(listener, acceptor, streams, counts.clone()));
        Self { address, certificate: certified.cert.der().to_vec(), counts }
    }

    /// A configuration for this server, at the address of it or of a proxy.
    pub(super) fn config(&self, address: SocketAddr) -> Config {
        let mut config = Config::new(Uri::try_from(format!("https://{address}")).unwrap());
        config.root_cert = Some(vec![self.certificate.clone()]);
        config.proxy_url = None;
        config
    }

    pub(super) fn client(&self) -> Client {
        chandler_client::client(self.config(self.address)).unwrap()
    }

    /// The `User-Agent` of the last request.
    pub(super) fn agent(&self) -> String {
        self.counts.agent.borrow().clone()
    }

    /// How many connections there were.
    pub(super) fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub(super) fn connections(&self) -> usize {
        self.counts.connections.get()
    }

    pub(super) async fn connections_become(&self, count: usize) {
        self.counts.connections.reach(|seen| seen == count).await;
    }

    /// How many watches are open.
    pub(super) fn watches(&self) -> usize {
        self.counts.watches.get()
    }

    pub(super) async fn watches_become(&self, count: usize) {
        self.counts.watches.reach(|seen| seen == count).await;
    }

    pub(super) async fn unanswered_become(&self, count: usize) {
        self.counts.unanswered.reach(|seen| seen == count).await;
    }

    /// Waits until this many floods have filled their windows of at most 512 KiB.
    pub(super) async fn floods_stall(&self, count: usize) {
        self.counts.pieces.reach(|pieces| pieces >= count * (512 << 10) / PIECE).await;
    }

    /// Sends an event to all watches.
    pub(super) fn send_event(&self) {
        self.counts.event.send_replace(());
    }

    /// All connections take no new streams, and end with their last one.
    pub(super) fn close_gracefully(&self) {
        self.counts.close.send_replace(());
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, streams: Option<u32>, counts: Counts) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        counts.accepted.fetch_add(1, Ordering::SeqCst);
        let (acceptor, counts) = (acceptor.clone(), counts.clone());
        tokio::spawn(async move {
            let _open = counts.connections.count();
            let stream = acceptor.accept(stream).await;
            if streams == Some(0) {
                return;
            }
            if let Ok(stream) = stream {
                serve_connection(TokioIo::new(stream), streams, &counts).await;
            }
        });
    }
}

async fn serve_connection(
    stream: TokioIo<tokio_rustls::server::TlsStream<TcpStream>>,
    streams: Option<u32>,
    counts: &Counts,
) {
    let mut close = counts.close.subscribe();
    let service = service_fn(|request| answer(request, counts.clone()));
    if let Some(limit) = streams {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_concurrent_streams(limit);
        let mut connection = pin!(builder.serve_connection(stream, service));
        tokio::select! {
            _ = &mut connection => return,
            _ = close.changed() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    counts: Counts,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let agent = request.headers().get("user-agent").and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    counts.agent.send_replace(agent.to_owned());
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let body = match request.uri().path() {
        UNANSWERED => {
            let _waiting = counts.unanswered.count();
            futures::future::pending().await
        }
        "/flood" => flood(counts),
        _ if watch => events(counts),
        _ => Full::new(Bytes::from_static(b"{}")).boxed_unsync(),
    };
    Ok(Response::new(body))
}

/// One event at once, and another one whenever the test says so.
fn events(counts: Counts) -> UnsyncBoxBody<Bytes, Infallible> {
    let open = counts.watches.count();
    let event = || Ok(Frame::data(Bytes::from_static(b"{}\n")));
    let later = stream::unfold((open, counts.event.subscribe()), move |(open, mut next)| async move {
        next.changed().await.ok()?;
        Some((event(), (open, next)))
    });
    StreamBody::new(stream::once(std::future::ready(event())).chain(later)).boxed_unsync()
}

/// The size of a piece of a flood, in bytes.
const PIECE: usize = 16 << 10;

fn flood(counts: Counts) -> UnsyncBoxBody<Bytes, Infallible> {
    let pieces = stream::repeat_with(move || {
        std::mem::forget(counts.pieces.count());
        Ok(Frame::data(Bytes::from_static(&[b' '; PIECE])))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// A proxy before a server, which can stop to forward anything without closing a connection.
pub(super) struct Silence {
    pub(super) address: SocketAddr,
    /// The connections of earlier generations are silent.
    generation: Arc<watch::Sender<usize>>,
    refused: Arc<AtomicBool>,
    bytes: Gauge,
}

impl Silence {
    pub(super) async fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = Self { address, generation: Arc::default(), refused: Arc::default(), bytes: Gauge::default() };
        let (generation, refused, bytes) = (this.generation.clone(), this.refused.clone(), this.bytes.clone());
        let server = server.address;
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if refused.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(forward(client, server, generation.subscribe(), bytes.clone()));
            }
        });
        this
    }

    /// Nothing passes on the open connections any more, and neither side is notified.
    pub(super) fn begin(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Whether new connections are closed at once.
    pub(super) fn refuse(&self, refused: bool) {
        self.refused.store(refused, Ordering::SeqCst);
    }

    /// Waits until this many more bytes have passed.
    pub(super) async fn bytes_pass(&self, count: usize) {
        let until = self.bytes.get() + count;
        self.bytes.reach(|passed| passed >= until).await;
    }
}

async fn forward(client: TcpStream, server: TcpStream, mut silence: watch::Receiver<usize>, bytes: Gauge) {
    let (mut client_in, mut client_out) = client.into_split();
    let (mut server_in, mut server_out) = server.into_split();
    tokio::select! {
        () = copy(&mut client_in, &mut server_out, &bytes) => {}
        () = copy(&mut server_in, &mut client_out, &bytes) => {}
        // The sockets stay open.
        _ = silence.changed() => std::future::pending().await,
    }
}

async fn copy(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, bytes: &Gauge) {
    let mut buffer = [0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        bytes.0.send_modify(|count| *count += read);
    }
}
