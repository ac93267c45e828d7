//! Blocks some requests of a client for a while, such as the watches of one kind; all others go through.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::{Client, Config, client::Body};
use tokio::sync::watch;
use tower::{Layer, Service};

/// Selects requests by method and path.
type Matches = dyn Fn(&Method, &str) -> bool + Send + Sync;

/// Blocks some requests of a client while it is active. Clones share their state.
#[derive(Clone)]
pub struct Interruption {
    /// Selects the requests to block.
    matches: Arc<Matches>,
    /// Whether requests are blocked.
    active: Arc<watch::Sender<bool>>,
    /// How many requests were blocked.
    blocked: Arc<watch::Sender<usize>>,
}

impl Interruption {
    /// Blocks reads of the kind with this plural name. Not active yet.
    pub fn of(plural: &'static str) -> Self {
        Self::matching(move |method, path| method == Method::GET && path.ends_with(plural))
    }

    /// Blocks all requests for objects of the kind with this plural name. Not active yet.
    pub fn of_kind(plural: &str) -> Self {
        let part = format!("/{plural}");
        Self::matching(move |_, path| path.contains(&part))
    }

    /// Blocks all requests for objects in a namespace, as an admission webhook without a response does. Not active yet.
    pub fn of_namespace(namespace: &str) -> Self {
        let part = format!("/namespaces/{namespace}/");
        Self::matching(move |_, path| path.contains(&part))
    }

    fn matching(matches: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Self {
        Self { matches: Arc::new(matches), active: Arc::new(watch::Sender::new(false)), blocked: Arc::default() }
    }

    /// A client whose requests are blocked while this is active.
    pub fn client(&self, config: Config) -> Client {
        chandler_client::builder(config).expect("a usable configuration").with_layer(self).build()
    }

    /// Ends current watches, and blocks requests from now on.
    pub fn begin(&self) {
        self.active.send_replace(true);
    }

    /// Unblocks requests.
    pub fn end(&self) {
        self.active.send_replace(false);
    }

    /// Waits until a request was blocked.
    pub async fn request_blocked(&self) {
        let mut blocked = self.blocked.subscribe();
        let waited = tokio::time::timeout(crate::wait::PATIENCE, blocked.wait_for(|count| *count > 0)).await;
        assert!(waited.is_ok(), "no request was blocked");
    }

    /// Completes when this becomes active or inactive.
    fn until(&self, wanted: bool) -> BoxFuture<'static, ()> {
        let mut active = self.active.subscribe();
        Box::pin(async move {
            // If the sender was dropped, nothing is blocked any more.
            let _ = active.wait_for(|active| *active == wanted).await;
        })
    }
}

impl<S> Layer<S> for Interruption {
    type Service = Interrupted<S>;

    fn layer(&self, inner: S) -> Interrupted<S> {
        Interrupted { inner, interruption: self.clone() }
    }
}

/// The service of an [`Interruption`] layer.
#[derive(Clone)]
pub struct Interrupted<S> {
    inner: S,
    interruption: Interruption,
}

impl<S, B> Service<Request<Body>> for Interrupted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Stream<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let matches = (self.interruption.matches)(request.method(), request.uri().path());
        let interruption = self.interruption.clone();
        // Nothing is sent before this future is polled.
        let response = self.inner.call(request);
        Box::pin(async move {
            if matches {
                if *interruption.active.borrow() {
                    interruption.blocked.send_modify(|count| *count += 1);
                }
                interruption.until(false).await;
            }
            let response = response.await?;
            Ok(response.map(|inner| Stream { inner, end: matches.then(|| interruption.until(true)) }))
        })
    }
}

/// A response body that ends when the interruption becomes active.
pub struct Stream<B> {
    inner: B,
    end: Option<BoxFuture<'static, ()>>,
}

impl<B: HttpBody + Unpin> HttpBody for Stream<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready()) {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
