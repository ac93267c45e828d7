//! Answers after which the client sends a request again: the API server is overloaded, or has no time. Callers see only the last answer.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::{Layer, Service};

/// The status codes of all answers to a request: an extension of the request, which its repetitions share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Mutex<Vec<u16>>>);

impl Answers {
    /// The codes of the answers but the last, after which the client sent the request again.
    pub(crate) fn repeated(&self) -> Vec<u16> {
        let mut codes = std::mem::take(&mut *self.0.lock());
        codes.pop();
        codes
    }
}

/// Notes the answers to requests that have [`Answers`]. Belongs below the layer that repeats requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoteAnswers;

impl<S> Layer<S> for NoteAnswers {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Noting(inner)
    }
}

/// A service whose answers are noted.
#[derive(Clone, Debug)]
pub(crate) struct Noting<S>(S);

impl<S, B> Service<Request<Body>> for Noting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answers = request.extensions().get::<Answers>().cloned();
        let sent = self.0.call(request);
        async move {
            let answer = sent.await;
            if let Some(Answers(codes)) = answers {
                codes.lock().push(answer.as_ref().map_or(0, |response| response.status().as_u16()));
            }
            answer
        }
        .boxed()
    }
}
