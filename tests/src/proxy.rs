//! A server behind a proxy that can be taken away and brought back: connections end, and new ones are refused.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// A proxy on loopback for one server. It ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
    refused: Arc<watch::Sender<usize>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Forwards connections to this server, as `host:port`.
    pub async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let open = Arc::new(watch::Sender::new(true));
        let refused = Arc::<watch::Sender<usize>>::default();
        let task = tokio::spawn(serve(listener, server, open.subscribe(), Arc::clone(&refused)));
        Self { address, open, refused, task }
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A configuration whose requests go through the proxy.
    pub fn config(&self, mut config: kube::Config) -> kube::Config {
        let mut parts = config.cluster_url.into_parts();
        parts.authority = Some(self.address.to_string().parse().expect("an authority"));
        config.cluster_url = http::Uri::from_parts(parts).expect("a URL");
        config
    }

    /// Ends all connections, and refuses new ones from now on.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Waits until so many more connections were refused.
    pub async fn refuses(&self, count: usize) {
        let mut connections = self.refused.subscribe();
        let least = *connections.borrow() + count;
        let waited = tokio::time::timeout(crate::wait::PATIENCE, connections.wait_for(|now| *now >= least)).await;
        assert!(waited.is_ok(), "no client connects");
    }

    /// Accepts connections again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a configuration connects to.
pub fn server_of(config: &kube::Config) -> String {
    let url = &config.cluster_url;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    format!("{}:{port}", url.host().expect("a host"))
}

async fn serve(
    listener: TcpListener,
    server: String,
    mut open: watch::Receiver<bool>,
    refused: Arc<watch::Sender<usize>>,
) {
    loop {
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&listener, &server, &mut connections) => {}
            closed = open.wait_for(|open| !open) => if closed.is_err() { return },
        }
        drop(connections);
        let refuse = async {
            while let Ok((connection, _)) = listener.accept().await {
                drop(connection);
                refused.send_modify(|refused| *refused += 1);
            }
        };
        tokio::select! {
            () = refuse => {}
            opened = open.wait_for(|open| *open) => if opened.is_err() { return },
        }
    }
}

async fn accept(listener: &TcpListener, server: &str, connections: &mut JoinSet<()>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let server = server.to_owned();
        connections.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(&server).await {
                // An error means that one side has closed the connection.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
