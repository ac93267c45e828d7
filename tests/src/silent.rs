//! A registry that accepts connections and never answers.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What became of the connections to a silent registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// How many came about.
    pub opened: usize,
    /// How many of them the other side has given up.
    pub given_up: usize,
}

/// A registry that accepts connections and never answers. It ends when it is dropped.
pub struct Silent {
    address: SocketAddr,
    connections: Arc<watch::Sender<Connections>>,
    task: JoinHandle<()>,
}

impl Silent {
    /// Starts one on a port of loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(watch::Sender::new(Connections::default()));
        let task = tokio::spawn(accept(listener, Arc::clone(&connections)));
        Self { address, connections, task }
    }

    /// An image of this registry.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}:v1", self.address)
    }

    /// What became of its connections so far.
    pub fn connections(&self) -> Connections {
        *self.connections.borrow()
    }

    /// Waits until the connections are as wanted.
    pub async fn until(&self, what: &str, wanted: impl FnMut(&Connections) -> bool) {
        let mut connections = self.connections.subscribe();
        let in_time = tokio::time::timeout(crate::wait::PATIENCE, connections.wait_for(wanted)).await;
        assert!(in_time.is_ok(), "{what}: {:?}", self.connections());
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, connections: Arc<watch::Sender<Connections>>) {
    let mut held = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.send_modify(|connections| connections.opened += 1);
        held.spawn(hold(stream, Arc::clone(&connections)));
    }
}

/// Listens until the other side has had enough.
async fn hold(mut stream: TcpStream, connections: Arc<watch::Sender<Connections>>) {
    let mut heard = [0; 1024];
    while stream.read(&mut heard).await.is_ok_and(|count| count > 0) {}
    connections.send_modify(|connections| connections.given_up += 1);
}
