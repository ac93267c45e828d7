//! A client layer that counts requests and connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper_util::client::legacy::connect::HttpInfo;
use kube::client::Body;
use tower::{Layer, Service};

use crate::requests::{reconciles, request::RequestKind};

/// Requests by verb and resource.
pub type Counts = BTreeMap<RequestKind, u64>;

/// Counts the requests of a client. Clones share their state.
#[derive(Clone)]
pub struct Recorder {
    system_namespace: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    counts: Counts,
    /// The client's address in each connection.
    connections: BTreeSet<SocketAddr>,
}

impl Recorder {
    /// A recorder for a controller with this namespace for its own records.
    pub fn new(system_namespace: &str) -> Self {
        Self { system_namespace: system_namespace.to_owned(), state: Arc::default() }
    }

    /// The requests so far.
    pub fn counts(&self) -> Counts {
        self.locked().counts.clone()
    }

    /// The number of connections that were opened so far and on which the API server answered.
    pub fn connections(&self) -> usize {
        self.locked().connections.len()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Layer<S> for Recorder {
    type Service = RecordingService<S>;

    fn layer(&self, inner: S) -> RecordingService<S> {
        RecordingService { inner, recorder: self.clone() }
    }
}

/// The service of a [`Recorder`].
pub struct RecordingService<S> {
    inner: S,
    recorder: Recorder,
}

impl<S, B> Service<Request<Body>> for RecordingService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> BoxFuture<'static, Result<S::Response, S::Error>> {
        let recorder = self.recorder.clone();
        let kind = RequestKind::of(&request, &recorder.system_namespace);
        // The client calls this in the span of the task that sends the request.
        reconciles::record(&kind);
        *recorder.locked().counts.entry(kind).or_default() += 1;
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            if let Some(connection) = response.extensions().get::<HttpInfo>() {
                recorder.locked().connections.insert(connection.local_addr());
            }
            Ok(response)
        })
    }
}
