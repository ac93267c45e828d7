//! The HTTP/2 connections of one sort of request, and how many streams each one may have.

use std::sync::Arc;

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use hyper::client::conn::http2::SendRequest;
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};

use crate::connection::{ConnectError, Endpoint, Opened};

/// How many streams of a connection are used. API servers and load balancers accept 100 to 250; a request beyond that would wait until
/// another one ends, and watches end after minutes.
pub const MAX_STREAMS: usize = 80;

/// The connections. Requests fill the first one before they open the second.
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    endpoint: Arc<Endpoint>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    /// The connection that is being opened: all requests without a place wait for it, and fail with it.
    opening: Option<Opening>,
}

type Opening = Shared<BoxFuture<'static, Result<Version, ConnectError>>>;

/// What the server chose.
#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

/// The right to one stream of a connection, until it is dropped.
pub(crate) struct Place {
    _counted: Arc<()>,
}

struct Connection {
    sender: SendRequest<Body>,
    limit: usize,
    /// Each place holds a clone.
    places: Arc<()>,
}

impl Connection {
    fn new(opened: Opened) -> Self {
        Self { sender: opened.sender, limit: opened.streams.min(MAX_STREAMS), places: Arc::default() }
    }

    fn taken(&self) -> usize {
        Arc::strong_count(&self.places) - 1
    }

    fn reserve(&self) -> Option<(SendRequest<Body>, Place)> {
        let free = self.taken() < self.limit;
        free.then(|| (self.sender.clone(), Place { _counted: Arc::clone(&self.places) }))
    }
}

impl Pool {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self(Arc::new(Inner { endpoint, state: Mutex::default() }))
    }

    /// A place on a connection, which is opened if all places are taken. `None` if the server chose HTTP/1.1.
    pub(crate) async fn reserve(&self) -> Result<Option<(SendRequest<Body>, Place)>, ConnectError> {
        loop {
            let opening = {
                let mut state = self.0.lock();
                if let Some(reserved) = state.reserve() {
                    return Ok(Some(reserved));
                }
                state.opening.get_or_insert_with(|| self.open()).clone()
            };
            match opening.clone().await {
                Ok(Version::Http2) => {}
                Ok(Version::Http1) => return Ok(None),
                Err(error) => {
                    // Its task has done so, unless its runtime has ended.
                    self.0.lock().opening.take_if(|current| current.ptr_eq(&opening));
                    return Err(error);
                }
            }
        }
    }

    /// A task opens the connection, so that it does not stop half-way when the request that needs it is cancelled.
    fn open(&self) -> Opening {
        let inner = Arc::clone(&self.0);
        let endpoint = Arc::clone(&self.0.endpoint);
        let task = tokio::spawn(async move {
            let opened = inner.endpoint.open().await;
            let mut state = inner.lock();
            state.opening = None;
            opened.map(|opened| match opened {
                Some(opened) => {
                    state.connections.push(Connection::new(opened));
                    Version::Http2
                }
                None => Version::Http1,
            })
        });
        async move { task.await.unwrap_or_else(|error| Err(endpoint.failed(error.into()))) }.boxed().shared()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No state is invalid.
        self.state.lock()
    }
}

impl State {
    /// A place on an open connection.
    fn reserve(&mut self) -> Option<(SendRequest<Body>, Place)> {
        self.connections.retain(|connection| !connection.sender.is_closed());
        let reserved = self.connections.iter().find_map(Connection::reserve)?;
        // One without streams stays for the next burst. Dropping the sender closes the others.
        let mut spare = false;
        self.connections.retain(|connection| connection.taken() > 0 || !std::mem::replace(&mut spare, true));
        Some(reserved)
    }
}
