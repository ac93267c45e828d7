//! A controller that loses sight of something for a while: requests about it are interrupted, and everything else goes on.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tokio::sync::watch;
use tower::{Layer, Service};

/// Which requests are concerned, by method and path.
type Concerns = dyn Fn(&Method, &str) -> bool + Send + Sync;

/// Interrupts some requests. A clone is the same.
#[derive(Clone)]
pub struct Interruption {
    /// Which ones.
    concerns: Arc<Concerns>,
    /// Whether they are interrupted.
    active: Arc<watch::Sender<bool>>,
    /// How many requests it has struck.
    struck: Arc<watch::Sender<usize>>,
}

impl Interruption {
    /// One of the kind with this plural name, which has not begun.
    pub fn of(plural: &'static str) -> Self {
        Self::where_(move |method, path| method == Method::GET && path.ends_with(plural))
    }

    /// One of everything in a namespace: what a webhook does that never answers. It has not begun.
    pub fn of_namespace(namespace: &str) -> Self {
        let part = format!("/namespaces/{namespace}/");
        Self::where_(move |_, path| path.contains(&part))
    }

    fn where_(concerns: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Self {
        Self { concerns: Arc::new(concerns), active: Arc::new(watch::Sender::new(false)), struck: Arc::default() }
    }

    /// A client that is interrupted.
    pub fn client(&self, config: Config) -> Client {
        ClientBuilder::try_from(config).expect("a usable configuration").with_layer(self).build()
    }

    /// Ends the watches that there are; requests wait from now on.
    pub fn begin(&self) {
        self.active.send_replace(true);
    }

    /// Lets them go on.
    pub fn end(&self) {
        self.active.send_replace(false);
    }

    /// Waits until it strikes a request.
    pub async fn strikes(&self) {
        let mut struck = self.struck.subscribe();
        let waited = tokio::time::timeout(crate::wait::PATIENCE, struck.wait_for(|count| *count > 0)).await;
        assert!(waited.is_ok(), "no request was interrupted");
    }

    /// Ready when it is as wanted.
    fn until(&self, wanted: bool) -> BoxFuture<'static, ()> {
        let mut active = self.active.subscribe();
        Box::pin(async move {
            // An error would say that the sender is gone: then nothing is interrupted any more.
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

/// A client's service with an [`Interruption`].
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
        let concerned = (self.interruption.concerns)(request.method(), request.uri().path());
        let interruption = self.interruption.clone();
        // Nothing is sent before this is polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            if concerned {
                if *interruption.active.borrow() {
                    interruption.struck.send_modify(|count| *count += 1);
                }
                interruption.until(false).await;
            }
            let answer = answer.await?;
            Ok(answer.map(|inner| Stream { inner, end: concerned.then(|| interruption.until(true)) }))
        })
    }
}

/// A body that ends when the interruption begins.
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
