//! Where a controller dies: a layer on its client that counts requests, and lets nothing through any more once it is dead.

use std::{
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::sync::watch;
use tower::{Layer, Service};

/// The place at which a controller dies. Everything is counted from 0, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// None.
    Never,
    /// Before this request to the API server is sent.
    Before(u64),
    /// After the API server has acted upon this request, and before the answer is seen.
    After(u64),
    /// When for so many times nothing of it could go on without something from outside: every task stands at an await point.
    Waiting(u64),
}

/// What a controller did until it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The requests that it sent: `METHOD path`, and `(dry run)` behind those that were to change nothing.
    pub requests: Vec<String>,
    /// How often it waited for something from outside.
    pub waits: u64,
    /// The requests that would change something, dry runs left out, that were answered with success: `METHOD path`.
    pub writes: Vec<String>,
    /// How often it called a provisioner.
    pub calls: u64,
    /// Whether it died where it should.
    pub cut: bool,
}

/// Ends a controller at a cut, and notes what it does. A clone is the same.
#[derive(Clone)]
pub struct Lifeline(Arc<Shared>);

struct Shared {
    cut: Cut,
    requests: Mutex<Vec<String>>,
    waits: AtomicU64,
    calls: AtomicU64,
    writes: Mutex<Vec<String>>,
    /// Whether it has come to its cut.
    reached: watch::Sender<bool>,
    /// Whether it is dead, for whatever reason.
    dead: watch::Sender<bool>,
}

impl Lifeline {
    /// One that ends at this cut.
    pub fn new(cut: Cut) -> Self {
        Self(Arc::new(Shared {
            cut,
            requests: Mutex::default(),
            waits: AtomicU64::default(),
            calls: AtomicU64::default(),
            writes: Mutex::default(),
            reached: watch::Sender::new(false),
            dead: watch::Sender::new(false),
        }))
    }

    /// What was done so far.
    pub fn life(&self) -> Life {
        let Shared { requests, waits, calls, writes, reached, .. } = &*self.0;
        Life {
            requests: locked(requests).clone(),
            waits: waits.load(Ordering::SeqCst),
            writes: locked(writes).clone(),
            calls: calls.load(Ordering::SeqCst),
            cut: *reached.borrow(),
        }
    }

    /// Ends it here.
    pub fn end(&self) {
        self.0.dead.send_replace(true);
    }

    /// Ready when it is dead.
    pub async fn ended(&self) {
        // An error would say that the sender is gone, which is held here.
        let _ = self.0.dead.subscribe().wait_for(|dead| *dead).await;
    }

    /// Notes that nothing goes on without something from outside.
    pub fn wait(&self) {
        let number = self.0.waits.fetch_add(1, Ordering::SeqCst);
        self.reach(Cut::Waiting(number));
    }

    /// Notes a call of a provisioner.
    pub(crate) fn call_provisioner(&self) {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
    }

    fn is_dead(&self) -> bool {
        *self.0.dead.borrow()
    }

    /// Whether it dies here.
    fn reach(&self, place: Cut) -> bool {
        let dies = self.0.cut == place && !self.is_dead();
        if dies {
            self.0.reached.send_replace(true);
            self.end();
        }
        dies
    }
}

fn locked(list: &Mutex<Vec<String>>) -> std::sync::MutexGuard<'_, Vec<String>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Layer<S> for Lifeline {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, lifeline: self.clone() }
    }
}

/// A client's service with a [`Lifeline`].
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    lifeline: Lifeline,
}

impl<S, B> Service<Request<Body>> for Counted<S>
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
        let lifeline = self.lifeline.clone();
        if lifeline.is_dead() {
            return Box::pin(pending());
        }
        let (text, writes) = told(&request);
        let number = {
            let mut requests = locked(&lifeline.0.requests);
            requests.push(text.clone());
            requests.len() as u64 - 1
        };
        if lifeline.reach(Cut::Before(number)) {
            return Box::pin(pending());
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if writes && answer.as_ref().is_ok_and(|response| response.status().is_success()) {
                locked(&lifeline.0.writes).push(text);
            }
            if lifeline.reach(Cut::After(number)) || lifeline.is_dead() {
                pending::<()>().await;
            }
            answer
        })
    }
}

/// A request as it is noted, and whether it would change something.
fn told(request: &Request<Body>) -> (String, bool) {
    let (method, uri) = (request.method(), request.uri());
    let dry_run = uri.query().is_some_and(|query| query.contains("dryRun"));
    let writes = *method != Method::GET && !dry_run && !uri.path().starts_with("/apis/authorization.k8s.io/");
    (format!("{method} {}{}", uri.path(), if dry_run { " (dry run)" } else { "" }), writes)
}
