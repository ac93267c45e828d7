use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";
/// For what a test does not wait for.
const LONG: Duration = Duration::from_hours(1);
/// For what a test waits for.
const SHORT: Duration = Duration::from_millis(50);

/// A server that answers every request with `hello`.
struct Server {
    address: SocketAddr,
    authority: String,
    serving: JoinHandle<io::Result<()>>,
}

impl Server {
    async fn new(limits: Limits) -> Self {
        let socket = crate::server::bind("tests", ([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        let served = pin!(certificate::made("tests", names("tests", "ns"))).next().await.unwrap();
        let authority = served.authority.clone().unwrap();
        let (_, tls) = watch::channel(TlsSettings::default());
        let serving = Serving { socket, what: "tests", url: String::new(), tls, limits };
        let router = Router::new().fallback(async || "hello");
        let certificates = futures::stream::iter([served]).chain(futures::stream::pending());
        let serving = serving.run(router, Box::pin(certificates), None, std::future::pending());
        Self { address, authority, serving: tokio::spawn(serving) }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection after the TLS handshake, for this protocol.
    async fn secure(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        self.try_secure(protocol).await.unwrap()
    }

    async fn try_secure(&self, protocol: &[u8]) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(TlsSettings::default().provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.connect().await).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn limits() -> Limits {
    let rate = Rate { at_once: 100, every: LONG };
    let handshakes = Rates { of_one: rate, of_all: rate };
    Limits { connections: 4, handshakes, handshake: LONG, header: LONG, idle: LONG }
}

/// What a server sends until it ends the connection, which it may do by a reset.
async fn rest(mut stream: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    String::from_utf8_lossy(&read).into_owned()
}

/// Sends a request, and reads its answer. The connection stays open.
async fn ask(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let (mut read, mut buffer) = (String::new(), [0; 256]);
    while !read.ends_with("hello") {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            number => read.push_str(&String::from_utf8_lossy(&buffer[..number])),
        }
    }
    Ok(read)
}

#[tokio::test]
async fn open_connections_keep_no_one_out_and_the_idle_ones_end() {
    let server = Server::new(limits()).await;
    // Before the handshake, and after it.
    let silent = server.connect().await;
    let mut secure = Vec::new();
    for _ in 0..4 {
        secure.push(server.secure(HTTP1).await);
    }
    assert_eq!(rest(silent).await, "");
    let mut other = server.secure(HTTP1).await;
    assert!(ask(&mut other).await.unwrap().starts_with("HTTP/1.1 200 OK"));
    assert_eq!(rest(secure.remove(0)).await, "");
}

#[tokio::test]
async fn a_source_with_too_many_handshakes_gets_no_further_one_and_its_connections_stay() {
    let handshakes = Rates { of_one: Rate { at_once: 2, every: LONG }, ..limits().handshakes };
    let server = Server::new(Limits { handshakes, ..limits() }).await;
    let mut secure = server.secure(HTTP1).await;
    let _second = server.secure(HTTP1).await;
    for _ in 0..8 {
        assert!(server.try_secure(HTTP1).await.is_err());
    }
    assert!(ask(&mut secure).await.unwrap().starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_connection_that_takes_too_long_ends() {
    let server = Server::new(Limits { handshake: SHORT, ..limits() }).await;
    assert_eq!(rest(server.connect().await).await, "", "no handshake");
    let server = Server::new(Limits { header: SHORT, ..limits() }).await;
    for (protocol, sent) in [
        (HTTP1, &b""[..]),
        (HTTP1, b"PRI"),
        (HTTP1, b"GET / HTTP/1.1\r\nx: "),
        (HTTP2, b""),
        (HTTP2, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
    ] {
        let mut stream = server.secure(protocol).await;
        stream.write_all(sent).await.unwrap();
        let rest = rest(stream).await;
        assert!(!rest.contains("hello"), "{rest}");
    }
    let mut stream = server.secure(HTTP1).await;
    ask(&mut stream).await.unwrap();
    assert_eq!(rest(stream).await, "", "no further request");
}

#[tokio::test]
async fn a_connection_of_http_2_that_is_idle_after_a_request_ends() {
    let server = Server::new(Limits { idle: SHORT, ..limits() }).await;
    let mut stream = server.secure(HTTP2).await;
    // The preface, settings, and a request: GET, https, / and the authority x.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
    stream.write_all(b"\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x87\x84\x41\x01x").await.unwrap();
    let rest = rest(stream).await;
    assert!(rest.contains("hello"), "{rest:?}");
}

#[tokio::test]
async fn a_large_header_is_refused() {
    let server = Server::new(limits()).await;
    for lines in [false, true] {
        let mut stream = server.secure(HTTP1).await;
        let value = if lines { "a\r\nx: ".repeat(10_000) } else { "a".repeat(2 * usize::from(HEADER_BYTES)) };
        // The server may end the connection before it has read everything.
        let _ = stream.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\nx: {value}").as_bytes()).await;
        let answer = rest(stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    // The longest token that callers may have.
    let mut stream = server.secure(HTTP1).await;
    let token = "a".repeat(16 << 10);
    stream
        .write_all(format!("GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n").as_bytes())
        .await
        .unwrap();
    stream.write_all(b"connection: close\r\n\r\n").await.unwrap();
    assert!(rest(stream).await.ends_with("hello"));
}

#[tokio::test]
async fn connections_end_with_the_server_that_is_dropped() {
    let server = Server::new(limits()).await;
    let mut stream = server.secure(HTTP1).await;
    ask(&mut stream).await.unwrap();
    server.serving.abort();
    assert_eq!(rest(stream).await, "");
}
