//! The connections that a replica passes on: a limited number, of which the one that was idle for the longest time gives way.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The bytes that are read at once.
const BUFFER: usize = 8 << 10;

/// The connections that are passed on. Clones share them.
#[derive(Clone)]
pub(super) struct Connections {
    held: Arc<Mutex<Vec<Arc<Activity>>>>,
    /// Counts uses.
    uses: Arc<AtomicU64>,
    most: usize,
    stall: Duration,
}

/// When a connection was last used, and whether it has to end.
struct Activity {
    /// The number of its last use.
    last: AtomicU64,
    ends: CancellationToken,
}

/// A connection that is passed on.
pub(super) struct Connection {
    connections: Connections,
    activity: Arc<Activity>,
}

impl Connections {
    /// No connections yet, and at most so many at once. An end of a connection has to take its bytes within `stall`.
    pub(super) fn new(most: usize, stall: Duration) -> Self {
        Self { held: Arc::default(), uses: Arc::default(), most, stall }
    }

    /// Adds a connection. If there are too many, the one that was idle for the longest time ends: connections that do nothing must not keep
    /// others from being served.
    pub(super) fn add(&self) -> Connection {
        let activity = Arc::new(Activity { last: AtomicU64::new(self.used()), ends: CancellationToken::new() });
        let mut held = self.held.lock();
        if held.len() >= self.most {
            let idle = held.iter().enumerate().min_by_key(|(_, other)| other.last.load(Ordering::Relaxed));
            if let Some(index) = idle.map(|(index, _)| index) {
                held.swap_remove(index).ends.cancel();
            }
        }
        held.push(Arc::clone(&activity));
        Connection { connections: self.clone(), activity }
    }

    fn used(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }
}

impl Connection {
    /// Completes when this connection gives way to another one.
    pub(super) async fn gives_way(&self) {
        self.activity.ends.cancelled().await;
    }

    /// Passes bytes on in both directions until the server has sent its last one, or an end does not take its bytes. A caller may end its
    /// half before that.
    ///
    /// # Errors
    /// An end is gone, or does not take its bytes.
    pub(super) async fn pass<C, S>(&self, caller: C, server: S) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite,
        S: AsyncRead + AsyncWrite,
    {
        let (mut from_caller, mut to_caller) = split(caller);
        let (mut from_server, mut to_server) = split(server);
        let requests = async {
            self.copy(&mut from_caller, &mut to_server).await?;
            std::future::pending::<io::Result<()>>().await
        };
        tokio::select! {
            answered = self.copy(&mut from_server, &mut to_caller) => answered,
            failed = requests => failed,
        }
    }

    /// Copies until the reader ends, and then ends the writer.
    async fn copy(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = reader.read(&mut buffer).await?;
            self.activity.last.store(self.connections.used(), Ordering::Relaxed);
            if read == 0 {
                return timeout(self.connections.stall, writer.shutdown()).await?;
            }
            timeout(self.connections.stall, writer.write_all(buffer.get(..read).unwrap_or_default())).await??;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.held.lock().retain(|other| !Arc::ptr_eq(other, &self.activity));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn the_connection_that_was_idle_longest_gives_way() {
        let connections = Connections::new(2, Duration::from_millis(10));
        let (first, second) = (connections.add(), connections.add());
        // The first one is used.
        let (mut caller, relayed) = duplex(64);
        let (upstream, mut leader) = duplex(64);
        caller.write_all(b"a").await.unwrap();
        {
            let mut passing = std::pin::pin!(first.pass(relayed, upstream));
            assert!((&mut passing).now_or_never().is_none());
        }
        assert_eq!(leader.read_u8().await.unwrap(), b'a');
        let third = connections.add();
        assert!(second.gives_way().now_or_never().is_some());
        assert!(first.gives_way().now_or_never().is_none() && third.gives_way().now_or_never().is_none());
        drop((second, third));
        let _fourth = connections.add();
        assert!(first.gives_way().now_or_never().is_none(), "a place is free");
    }

    #[tokio::test]
    async fn a_connection_ends_when_the_server_ends_or_the_caller_does_not_read() {
        let connections = Connections::new(2, Duration::from_millis(10));
        // The caller neither reads nor ends: the first bytes fit, and the rest does not.
        let (_caller, relayed) = duplex(4);
        let (upstream, mut leader) = duplex(64);
        leader.write_all(b"more than four").await.unwrap();
        let ended = connections.add().pass(relayed, upstream).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // The server ends, and the caller stays.
        let (mut caller, relayed) = duplex(64);
        let (upstream, mut leader) = duplex(64);
        leader.write_all(b"bye").await.unwrap();
        drop(leader);
        connections.add().pass(relayed, upstream).await.unwrap();
        let mut answer = String::new();
        caller.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "bye");
        assert!(connections.held.lock().is_empty());
    }
}
