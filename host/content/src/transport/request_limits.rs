//! Limits concurrent requests to one server, and to all.
//!
//! Few requests wait for a slow server at the same time, so that it cannot hold sockets and memory without bound. All together leave most file
//! descriptors of the process to its other work: requests to the API server must not fail because many servers are slow. Of all places,
//! half are for servers that no other request is sent to, so that requests to other servers rarely wait. Where requests wait, their requesters
//! take turns, so that the sources of one tenant delay another tenant's by one request.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use chandler_registries::normalized;
use chandler_turns::{Permit, Requester, Turns};
use parking_lot::Mutex;

/// The most concurrent requests to one server.
const AT_ONCE: usize = 8;
/// The descriptors of a request: connections, also to where it is redirected, and the files that it writes.
const DESCRIPTORS: u64 = 4;
/// The most and the fewest requests to all servers together, whatever the limit on descriptors.
const MOST: u64 = 512;
const FEWEST: u64 = 16;

/// The running requests by server.
pub(crate) struct RequestLimits {
    servers: Mutex<HashMap<String, Weak<Turns>>>,
    all: Turns,
    /// Turns for servers that another request is already sent to.
    further: Turns,
}

/// A request may be sent while this lives.
pub(crate) struct RequestPermit {
    _server: Permit,
    _further: Option<Permit>,
    _all: Permit,
    /// Keeps the slots of the server known.
    _slots: Arc<Turns>,
}

impl Default for RequestLimits {
    /// For half of the file descriptors that this process may open.
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = (limit / 2 / DESCRIPTORS).clamp(FEWEST, MOST);
        Self::of(usize::try_from(most).unwrap_or(AT_ONCE))
    }
}

impl RequestLimits {
    fn of(most: usize) -> Self {
        let (all, further) = (Turns::new(most), Turns::new(most / 2));
        Self { servers: Mutex::default(), all, further }
    }

    /// Waits for a free slot at a server (`host` or `host:port`), and holds it while the permit lives.
    pub(crate) async fn acquire(&self, requester: &Requester, server: &str) -> Option<RequestPermit> {
        // Other spellings of its name give no further slots.
        let server = normalized(server);
        let slots = {
            let mut all = self.servers.lock();
            // Permits and waiters keep the slots of a server alive.
            all.retain(|_, slots| slots.strong_count() > 0);
            let known = all.get(&server).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let slots = Arc::new(Turns::new(AT_ONCE));
                all.insert(server, Arc::downgrade(&slots));
                slots
            })
        };
        // None is ever closed. In this order a request that waits for its server holds no place of others.
        let server = slots.acquire(requester).await?;
        let is_further = slots.available() + 1 < AT_ONCE;
        let further = if is_further { Some(self.further.acquire(requester).await?) } else { None };
        let all = self.all.acquire(requester).await?;
        Some(RequestPermit { _server: server, _further: further, _all: all, _slots: slots })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn requester() -> Requester {
        Requester::new("a", "a")
    }

    #[tokio::test]
    async fn requests_to_one_server_do_not_block_another() {
        let limits = RequestLimits::default();
        let mut inside = Vec::new();
        for _ in 0..AT_ONCE {
            inside.push(limits.acquire(&requester(), "slow.example.com").await);
        }
        for spelling in ["slow.example.com", "SLOW.example.com", "slow.example.com:443"] {
            assert!(limits.acquire(&requester(), spelling).now_or_never().is_none(), "{spelling}");
        }
        assert!(limits.acquire(&requester(), "other.example.com").now_or_never().flatten().is_some());
        inside.pop();
        assert!(limits.acquire(&requester(), "slow.example.com").now_or_never().flatten().is_some());
        inside.clear();
        drop(limits.acquire(&requester(), "other.example.com").await);
        assert_eq!(limits.servers.lock().len(), 1, "unused servers are removed");
    }

    #[tokio::test]
    async fn a_few_slow_servers_leave_places_for_others() {
        let limits = RequestLimits::of(20);
        let mut inside = Vec::new();
        for server in 0..5 {
            for _ in 0..AT_ONCE {
                inside.extend(
                    limits.acquire(&requester(), &format!("slow{server}.example.com")).now_or_never().flatten(),
                );
            }
        }
        // The first of each, and ten further ones.
        assert_eq!(inside.len(), 15);
        for server in 0..5 {
            inside
                .push(limits.acquire(&requester(), &format!("{server}.example.com")).now_or_never().flatten().unwrap());
        }
        assert!(limits.acquire(&requester(), "one-too-many.example.com").now_or_never().is_none());
        inside.pop();
        assert!(limits.acquire(&requester(), "one-too-many.example.com").now_or_never().is_some());
    }

    #[tokio::test]
    async fn thousands_of_dead_servers_of_one_requester_delay_another_by_one_request() {
        let limits = RequestLimits::of(16);
        let mut inside = Vec::new();
        let (many, other) = (requester(), Requester::new("b", "b"));
        let names: Vec<String> = (0..2500).map(|number| format!("dead{number}.example.com")).collect();
        let mut waiting = Vec::new();
        for name in &names {
            // A task that has received many permits gets no further ones until it yields.
            tokio::task::yield_now().await;
            let mut entering = Box::pin(limits.acquire(&many, name));
            match entering.as_mut().now_or_never() {
                Some(permit) => inside.extend(permit),
                None => waiting.push(entering),
            }
        }
        assert_eq!((inside.len(), waiting.len()), (16, 2484));
        tokio::task::yield_now().await;
        let mut honest = Box::pin(limits.acquire(&other, "honest.example.com"));
        assert!(honest.as_mut().now_or_never().is_none());
        // The first of the many that waits has its turn, and then the other requester.
        inside.pop();
        assert!(honest.as_mut().now_or_never().is_none());
        inside.pop();
        assert!(honest.as_mut().now_or_never().flatten().is_some());
    }
}
