//! An HTTP proxy on the loopback interface.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// A proxy that connects every client to one server, whichever it asks for, and the heads of the requests that it received.
pub struct Proxy {
    /// Where it listens, as in `127.0.0.1:3128`.
    pub address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Connects to this server, or answers every request with this status.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn start(server: SocketAddr, refusal: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heads) = (listener.local_addr().unwrap().to_string(), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(client, server, refusal, Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    /// The heads of all requests until now, with their line ends.
    ///
    /// # Panics
    /// A connection panicked.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn forward(client: TcpStream, server: SocketAddr, refusal: Option<&str>, seen: Arc<Mutex<Vec<String>>>) {
    let (mut client, mut head) = (BufReader::new(client), String::new());
    while client.read_line(&mut head).await.is_ok_and(|read| read > 2) {}
    seen.lock().unwrap().push(head.clone());
    if let Some(status) = refusal {
        let _ = client.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
        return;
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    } else {
        // One request on each connection, with a path in place of the URL.
        let path = head.split_once("://").and_then(|(before, rest)| {
            let (method, (_, path)) = (before.strip_suffix("http")?, rest.split_once('/')?);
            Some(format!("{method}/{path}"))
        });
        let head = path.unwrap_or(head).replacen("\r\n", "\r\nConnection: close\r\n", 1);
        server.write_all(head.as_bytes()).await.unwrap();
    }
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
