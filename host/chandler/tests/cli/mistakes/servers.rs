//! Servers that are not what a kubeconfig promises.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A port that nothing listens on.
pub(super) fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that answers every request with a page of HTML.
pub(super) fn website() -> SocketAddr {
    serve(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let page = "<h1>It works!</h1>";
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", page.len());
        let _ = stream.write_all(format!("{head}{page}").as_bytes());
    })
}

/// A TLS server with this certificate, and the certificate as PEM.
pub(super) fn tls(name: &str, expired: bool) -> (SocketAddr, String) {
    let mut certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if expired {
        (certificate.not_before, certificate.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    }
    let key = KeyPair::generate().unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let address = serve(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let _ = StreamOwned::new(connection, stream).read(&mut [0; 4096]);
    });
    (address, certificate.pem())
}

/// Handles one connection after another, until the test ends.
fn serve(handle: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(handle));
    address
}
