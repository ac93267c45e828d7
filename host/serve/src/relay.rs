//! What a replica does with connections while another replica is the leader: it passes their bytes on to the leader.
//!
//! The relay does not end TLS. Callers check the certificate of the leader themselves, and no replica but the leader sees a token. So the
//! address of the leader, which is read from the Lease, is not trusted: a server that answers there without the certificate of the service learns
//! nothing.

mod copying;

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    time::Duration,
};

use chandler_core::descriptors_exhausted;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};

use self::copying::copied;
use crate::{
    ServeError,
    shares::{Share, Shares, Source},
};

/// How many connections are passed on at once. Each takes two buffers of 8 KiB.
const MOST: usize = 512;
/// How long a connection waits for a leader: as long as a Lease lasts that is not renewed.
const ELECTION: Duration = Duration::from_secs(15);
/// How long it may take to connect to the leader.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the network may be silent before an end of a connection is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);
/// How long an end may take for bytes that it was sent. The leader waits this long for each part of an answer, too.
const STALL: Duration = Duration::from_secs(30);
/// How long nothing is accepted after a failure, for example when too many files are open.
const PAUSE: Duration = Duration::from_millis(500);

/// Where the leader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leader {
    /// Not known yet.
    #[default]
    Unknown,
    /// Another replica, which does not serve, or whose address is not usable.
    Elsewhere,
    /// Another replica, which serves at this address.
    At(SocketAddr),
    /// This replica.
    Here,
}

impl Leader {
    /// The leader by the address that it published, for a replica that listens on `own`. Addresses that only have a meaning on one machine
    /// or network are not used, and neither are other ports, so that a Lease cannot make this process a way into other services.
    ///
    /// `itself` is what this replica publishes. A Lease with that address is from before a restart: connections wait for the next leader,
    /// since this process would pass them on to itself without end.
    pub fn published(address: Option<&str>, own: SocketAddr, itself: Option<SocketAddr>) -> Self {
        let address = address.and_then(|address| address.parse::<SocketAddr>().ok()).map(canonical);
        match address {
            Some(address) if Some(address) == itself.map(canonical) => Self::Unknown,
            Some(address) if is_usable(address, own) => Self::At(address),
            _ => Self::Elsewhere,
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn is_usable(address: SocketAddr, own: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    // Replicas on one machine, as in tests, listen on different ports of one address.
    if own.ip().is_loopback() {
        return ip.is_loopback();
    }
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_special = ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || is_link_local;
    !is_special && address.port() == own.port()
}

/// The address that other replicas use for a service that listens on `bound`: the address itself, or `advertised` if it listens on all
/// addresses of the machine. `None` if neither says how it is reached.
pub fn published(bound: SocketAddr, advertised: Option<IpAddr>) -> Option<SocketAddr> {
    let ip = if bound.ip().is_unspecified() { advertised? } else { bound.ip() };
    Some(SocketAddr::new(ip, bound.port()))
}

/// A bound address whose connections can be passed on.
pub trait Relayed: Sized {
    /// What is served there, for messages.
    const WHAT: &'static str;

    /// The address that is bound.
    ///
    /// # Errors
    /// The system does not say.
    fn address(&self) -> Result<SocketAddr, ServeError>;

    /// Another handle of the same address: connections that no server has accepted yet are shared.
    ///
    /// # Errors
    /// The process has too many open files.
    fn shared(&self) -> Result<Self, ServeError>;

    /// The socket.
    fn into_socket(self) -> TcpListener;
}

/// Passes connections on until this replica is the leader. Does not complete: the accepted connections stay open until an end closes them, and
/// the ones that nothing has accepted remain for the server that listens next.
///
/// # Errors
/// Connections cannot be accepted.
pub async fn run<L: Relayed>(listener: L, leader: watch::Receiver<Leader>) -> Result<Infallible, ServeError> {
    let relayed = relay(listener.into_socket(), leader).await;
    relayed.map_err(|source| ServeError::Accept { what: L::WHAT, source })
}

async fn relay(socket: TcpListener, leader: watch::Receiver<Leader>) -> io::Result<Infallible> {
    let own = reachable(socket.local_addr()?);
    if *leader.borrow() != Leader::Here {
        socket.set_nonblocking(true)?;
        let socket = tokio::net::TcpListener::from_std(socket)?;
        let accepting = accept(&socket, own, &leader);
        let mut leads = leader.clone();
        tokio::select! {
            biased;
            // Without a sender, the process ends.
            _ = leads.wait_for(|leader| *leader == Leader::Here) => {}
            never = accepting => match never {},
        }
    }
    std::future::pending().await
}

/// The address at which this process reaches its own socket.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let loopback = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(loopback, bound.port())
}

async fn accept(socket: &tokio::net::TcpListener, own: SocketAddr, leader: &watch::Receiver<Leader>) -> Infallible {
    let connections = Shares::new(MOST, MOST);
    loop {
        match socket.accept().await {
            Ok((caller, address)) => {
                let (connection, leader) = (connections.take(Source::of(address.ip())), leader.clone());
                drop(tokio::spawn(async move {
                    tokio::select! {
                        () = pass(caller, own, leader, &connection) => {}
                        () = connection.gives_way() => {}
                    }
                }));
            }
            Err(error) => {
                if let Some(exhausted) = descriptors_exhausted(&error) {
                    tracing::warn!(error = %exhausted, "a connection could not be passed on to the leader");
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// Passes the bytes of a connection on. If that fails, the connection is closed, and the caller tries again.
async fn pass(caller: TcpStream, own: SocketAddr, mut leader: watch::Receiver<Leader>, connection: &Share<Source>) {
    let Some(address) = timely(ELECTION, address(&mut leader, own)).await.flatten() else {
        tracing::debug!("a connection was closed: no leader serves");
        return;
    };
    let connected = timely(CONNECT, TcpStream::connect(address)).await;
    let Some(Ok(server)) = connected else {
        tracing::debug!(%address, "a connection was closed: the leader does not answer");
        return;
    };
    for stream in [&caller, &server] {
        // An end that is gone without a word must not hold a place for good.
        let alive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 3);
        let _ = SockRef::from(stream).set_tcp_keepalive(&alive);
        let _ = stream.set_nodelay(true);
    }
    if let Err(error) = copied(connection, STALL, caller, server).await {
        tracing::debug!(%address, %error, "a connection that is passed on to the leader ended early");
    }
}

/// Waits for the address of a leader. `None` if the process ends.
async fn address(leader: &mut watch::Receiver<Leader>, own: SocketAddr) -> Option<SocketAddr> {
    let known = leader.wait_for(|leader| *leader != Leader::Unknown).await.ok()?;
    match *known {
        Leader::At(address) => Some(address),
        Leader::Here => Some(own),
        Leader::Unknown | Leader::Elsewhere => None,
    }
}

async fn timely<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    timeout(limit, future).await.ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_addresses_of_other_pods_and_the_port_of_the_service_are_used() {
        let own = socket("0.0.0.0:8443");
        for usable in ["10.1.2.3:8443", "[2001:db8::1]:8443", "192.168.0.9:8443"] {
            assert_eq!(Leader::published(Some(usable), own, None), Leader::At(socket(usable)));
        }
        for refused in [
            "",
            "10.1.2.3",
            "chandler:8443",
            "10.1.2.3:6443",
            "127.0.0.1:8443",
            "[::1]:8443",
            "0.0.0.0:8443",
            "[::]:8443",
            "169.254.169.254:8443",
            "[fe80::1]:8443",
            "224.0.0.1:8443",
            "255.255.255.255:8443",
            "[::ffff:127.0.0.1]:8443",
            "[::ffff:169.254.169.254]:8443",
        ] {
            assert_eq!(Leader::published(Some(refused), own, None), Leader::Elsewhere, "{refused}");
        }
        assert_eq!(Leader::published(None, own, None), Leader::Elsewhere);
        // What this replica published before it was restarted.
        let itself = Some(socket("10.1.2.3:8443"));
        for text in ["10.1.2.3:8443", "[::ffff:10.1.2.3]:8443"] {
            assert_eq!(Leader::published(Some(text), own, itself), Leader::Unknown);
        }
        assert_eq!(Leader::published(Some("10.1.2.4:8443"), own, itself), Leader::At(socket("10.1.2.4:8443")));
        // Replicas on one machine.
        let own = socket("127.0.0.1:8443");
        assert_eq!(Leader::published(Some("127.0.0.1:9000"), own, None), Leader::At(socket("127.0.0.1:9000")));
        assert_eq!(Leader::published(Some("10.1.2.3:8443"), own, None), Leader::Elsewhere);
    }

    #[test]
    fn a_service_on_all_addresses_is_published_with_the_advertised_one() {
        let pod = "10.1.2.3".parse().ok();
        assert_eq!(published(socket("0.0.0.0:8443"), pod), Some(socket("10.1.2.3:8443")));
        assert_eq!(published(socket("[::]:8443"), pod), Some(socket("10.1.2.3:8443")));
        assert_eq!(published(socket("10.9.9.9:8443"), pod), Some(socket("10.9.9.9:8443")));
        assert_eq!(published(socket("0.0.0.0:8443"), None), None);
    }

    /// Answers each connection with this text and what it read, once the caller has ended its half.
    async fn server(text: &'static str) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut read = Vec::new();
                stream.read_to_end(&mut read).await.unwrap();
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.write_all(&read).await.unwrap();
            }
        }));
        address
    }

    async fn ask(address: SocketAddr, text: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn connections_reach_the_leader_and_then_this_replica() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (leader, watched) = watch::channel(Leader::Unknown);
        let relay = tokio::spawn(relay(socket.try_clone().unwrap(), watched));
        // It waits until a leader is known.
        let early = tokio::spawn(async move { ask(address, b"early").await });
        leader.send_replace(Leader::At(server("first: ").await));
        assert_eq!(early.await.unwrap(), "first: early");
        leader.send_replace(Leader::At(server("second: ").await));
        assert_eq!(ask(address, &"x".repeat(100_000).into_bytes()).await.len(), "second: ".len() + 100_000);

        leader.send_replace(Leader::Here);
        let own = tokio::net::TcpListener::from_std(socket).unwrap();
        let late = tokio::spawn(async move { ask(address, b"late").await });
        let (mut stream, _) = own.accept().await.unwrap();
        stream.write_all(b"own").await.unwrap();
        drop(stream);
        assert_eq!(late.await.unwrap(), "own");
        assert!(!relay.is_finished());
        relay.abort();
    }

    #[tokio::test]
    async fn a_connection_is_closed_if_the_leader_does_not_answer() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (_leader, watched) = watch::channel(Leader::At(gone));
        let relay = tokio::spawn(relay(socket, watched));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        // Closed or reset, without an answer.
        let _ = stream.read_to_end(&mut answer).await;
        assert_eq!(answer, b"");
        relay.abort();
    }
}
