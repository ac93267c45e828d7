//! Uploads that send a byte now and then.

use std::{
    io::{self, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};

/// The time between two bytes.
const BETWEEN_BYTES: Duration = Duration::from_secs(5);

/// Clients of the content service that upload for a BundleDeployment without end.
pub(crate) struct Drips {
    stopped: Arc<AtomicBool>,
    /// How many uploads the server has ended.
    ended: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Drips {
    /// Starts some clients with a token. `announced` is the ConfigMap of the content service.
    pub(crate) fn start(count: usize, announced: &ConfigMap, token: &str, deployment: &str) -> Self {
        let data = announced.data.as_ref().expect("data");
        let url: Uri = data["url"].parse().expect("a URL");
        let (host, port) = (url.host().expect("a host").to_owned(), url.port_u16().expect("a port"));
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(data["ca.crt"].as_bytes()) {
            roots.add(authority.expect("a certificate")).expect("an authority");
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = Arc::new(config);
        let request = format!(
            "PUT /uploads/{deployment}.tgz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let (stopped, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = || {
            let ended = Arc::clone(&ended);
            let (stopped, config, host, request) =
                (Arc::clone(&stopped), Arc::clone(&config), host.clone(), request.clone());
            thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    // The server refuses the upload, or ends it because it is slow.
                    if drip(&config, (&host, port), &request, &stopped).is_err() {
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(BETWEEN_BYTES);
                }
            })
        };
        let threads = (0..count).map(|_| client()).collect();
        Self { stopped, ended, threads }
    }

    /// Ends them. Returns how many uploads the server has ended.
    pub(crate) fn stop(self) -> u64 {
        self.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("no client panics");
        }
        self.ended.load(Ordering::Relaxed)
    }
}

fn drip(config: &Arc<ClientConfig>, server: (&str, u16), request: &str, stopped: &AtomicBool) -> io::Result<()> {
    let name = ServerName::try_from(server.0.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect(server)?);
    stream.write_all(request.as_bytes())?;
    while !stopped.load(Ordering::Relaxed) {
        stream.write_all(b"1\r\n\0\r\n")?;
        stream.flush()?;
        thread::sleep(BETWEEN_BYTES);
    }
    Ok(())
}
