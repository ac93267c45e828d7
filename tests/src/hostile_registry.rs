//! A registry that accepts connections and responds as a hostile one would.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// Counts of the connections to a hostile registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// How many were opened.
    pub opened: usize,
    /// How many of them the client has closed.
    pub closed: usize,
}

/// How a hostile registry responds.
#[derive(Clone, Debug)]
enum Behaviour {
    Silent,
    Trickling(Duration),
    Redirecting(String),
}

/// A registry that never serves content. It stops when it is dropped.
pub struct HostileRegistry {
    address: SocketAddr,
    connections: Arc<watch::Sender<Connections>>,
    task: JoinHandle<()>,
}

impl HostileRegistry {
    /// Starts a registry that never responds.
    pub async fn silent() -> Self {
        Self::start(Behaviour::Silent).await
    }

    /// Starts a registry whose response never ends and is sent byte by byte, with this pause after each.
    pub async fn trickling(pause: Duration) -> Self {
        Self::start(Behaviour::Trickling(pause)).await
    }

    /// Starts a registry that redirects every request to this URL.
    pub async fn redirecting(url: &str) -> Self {
        Self::start(Behaviour::Redirecting(url.to_owned())).await
    }

    async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(watch::Sender::new(Connections::default()));
        let task = tokio::spawn(accept(listener, behaviour, Arc::clone(&connections)));
        Self { address, connections, task }
    }

    /// An image of this registry by tag.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}:v1", self.address)
    }

    /// An image of this registry by digest.
    pub fn image_at(&self, name: &str, digest: &str) -> String {
        format!("{}/{name}@{digest}", self.address)
    }

    /// The connections so far.
    pub fn connections(&self) -> Connections {
        *self.connections.borrow()
    }

    /// Waits until the connections satisfy the condition.
    pub async fn until(&self, what: &str, wanted: impl FnMut(&Connections) -> bool) {
        let mut connections = self.connections.subscribe();
        let in_time = tokio::time::timeout(crate::wait::PATIENCE, connections.wait_for(wanted)).await;
        assert!(in_time.is_ok(), "{what}: {:?}", self.connections());
    }
}

impl Drop for HostileRegistry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, behaviour: Behaviour, connections: Arc<watch::Sender<Connections>>) {
    let mut held = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.send_modify(|connections| connections.opened += 1);
        held.spawn(hold(stream, behaviour.clone(), Arc::clone(&connections)));
        while held.try_join_next().is_some() {}
    }
}

/// Responds until the client closes the connection.
async fn hold(stream: TcpStream, behaviour: Behaviour, connections: Arc<watch::Sender<Connections>>) {
    let (requests, answers) = stream.into_split();
    match behaviour {
        Behaviour::Silent => closed(requests).await,
        Behaviour::Trickling(pause) => tokio::select! {
            () = closed(requests) => {}
            () = trickle(answers, pause) => {}
        },
        Behaviour::Redirecting(url) => redirect(requests, answers, &url).await,
    }
    connections.send_modify(|connections| connections.closed += 1);
}

async fn closed(mut requests: OwnedReadHalf) {
    let mut request = [0; 1024];
    while requests.read(&mut request).await.is_ok_and(|count| count > 0) {}
}

async fn trickle(mut answers: OwnedWriteHalf, pause: Duration) {
    let beginning = b"HTTP/1.1 200 OK\r\nX-Padding: ";
    for byte in beginning.iter().chain(std::iter::repeat(&b'x')) {
        if answers.write_all(&[*byte]).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Responds to each request with the redirect. Requests are small and arrive in one piece on loopback.
async fn redirect(mut requests: OwnedReadHalf, mut answers: OwnedWriteHalf, url: &str) {
    let answer = format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n");
    let mut request = [0; 8192];
    while requests.read(&mut request).await.is_ok_and(|count| count > 0) {
        if answers.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
