//! Where a controller crashes: a client layer that counts requests, and lets none through after the crash.

use std::{
    env,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{Layer, Service};

/// The point at which a controller crashes. Requests and idle periods are counted from 0, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The controller does not crash.
    Never,
    /// Before this request is sent to the API server.
    BeforeRequest(u64),
    /// After the API server has processed this request, and before the controller receives the response.
    AfterRequest(u64),
    /// When the controller's thread becomes idle for this time: every task is at an await point.
    Idle(u64),
}

/// How many of all points a test visits: as many as `CHANDLER_CRASH_POINTS` says, which may be `all`.
pub fn count(default: usize, all: usize) -> usize {
    match env::var("CHANDLER_CRASH_POINTS").ok().as_deref() {
        Some("all") => all,
        Some(number) => number.parse().unwrap_or(default).min(all),
        None => default.min(all),
    }
}

/// What a controller did until it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The requests that it sent: `METHOD path`, with `(dry run)` appended to dry runs.
    pub requests: Vec<String>,
    /// How often its thread became idle.
    pub idle_periods: u64,
    /// Its successful writes, without dry runs: `METHOD path`.
    pub writes: Vec<String>,
    /// How often it called a provisioner.
    pub provisioner_calls: u64,
    /// Whether it reached its crash point.
    pub crashed: bool,
}

/// Crashes a controller at its crash point, and records its activity. Clones share their state.
#[derive(Clone)]
pub struct CrashInjector(Arc<Shared>);

struct Shared {
    crash_point: CrashPoint,
    requests: Mutex<Vec<String>>,
    idle_periods: AtomicU64,
    provisioner_calls: AtomicU64,
    writes: Mutex<Vec<String>>,
    /// Whether the controller reached its crash point.
    reached: watch::Sender<bool>,
    /// Whether the controller crashed, at its crash point or because the test killed it.
    crashed: watch::Sender<bool>,
}

impl CrashInjector {
    /// Creates an injector for this crash point.
    pub fn new(crash_point: CrashPoint) -> Self {
        Self(Arc::new(Shared {
            crash_point,
            requests: Mutex::default(),
            idle_periods: AtomicU64::default(),
            provisioner_calls: AtomicU64::default(),
            writes: Mutex::default(),
            reached: watch::Sender::new(false),
            crashed: watch::Sender::new(false),
        }))
    }

    /// What the controller did so far.
    pub fn activity(&self) -> Activity {
        let Shared { requests, idle_periods, provisioner_calls, writes, reached, .. } = &*self.0;
        Activity {
            requests: locked(requests).clone(),
            idle_periods: idle_periods.load(Ordering::SeqCst),
            writes: locked(writes).clone(),
            provisioner_calls: provisioner_calls.load(Ordering::SeqCst),
            crashed: *reached.borrow(),
        }
    }

    /// Crashes the controller now.
    pub fn crash(&self) {
        self.0.crashed.send_replace(true);
    }

    /// Completes when the controller has crashed.
    pub async fn crashed(&self) {
        // Only a dropped sender is an error, and `self` holds the sender.
        let _ = self.0.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }

    /// Records that the controller's thread became idle.
    pub fn record_idle(&self) {
        let number = self.0.idle_periods.fetch_add(1, Ordering::SeqCst);
        self.crash_at(CrashPoint::Idle(number));
    }

    /// Records a provisioner call.
    pub(crate) fn record_provisioner_call(&self) {
        self.0.provisioner_calls.fetch_add(1, Ordering::SeqCst);
    }

    fn has_crashed(&self) -> bool {
        *self.0.crashed.borrow()
    }

    /// Crashes the controller if this is its crash point. Returns whether it crashed.
    fn crash_at(&self, point: CrashPoint) -> bool {
        let crashes = self.0.crash_point == point && !self.has_crashed();
        if crashes {
            self.0.reached.send_replace(true);
            self.crash();
        }
        crashes
    }
}

fn locked(list: &Mutex<Vec<String>>) -> parking_lot::MutexGuard<'_, Vec<String>> {
    list.lock()
}

impl<S> Layer<S> for CrashInjector {
    type Service = CrashService<S>;

    fn layer(&self, inner: S) -> CrashService<S> {
        CrashService { inner, injector: self.clone() }
    }
}

/// The service of a [`CrashInjector`] layer.
#[derive(Clone)]
pub struct CrashService<S> {
    inner: S,
    injector: CrashInjector,
}

impl<S, B> Service<Request<Body>> for CrashService<S>
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
        let injector = self.injector.clone();
        if injector.has_crashed() {
            return Box::pin(pending());
        }
        let (text, writes) = describe(&request);
        let number = {
            let mut requests = locked(&injector.0.requests);
            requests.push(text.clone());
            requests.len() as u64 - 1
        };
        if injector.crash_at(CrashPoint::BeforeRequest(number)) {
            return Box::pin(pending());
        }
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            if writes && response.as_ref().is_ok_and(|success| success.status().is_success()) {
                locked(&injector.0.writes).push(text);
            }
            if injector.crash_at(CrashPoint::AfterRequest(number)) || injector.has_crashed() {
                pending::<()>().await;
            }
            response
        })
    }
}

/// Describes a request for the record, and returns whether it is a write.
pub(crate) fn describe(request: &Request<Body>) -> (String, bool) {
    let (method, uri) = (request.method(), request.uri());
    let dry_run = uri.query().is_some_and(|query| query.contains("dryRun"));
    let writes = *method != Method::GET && !dry_run && !uri.path().starts_with("/apis/authorization.k8s.io/");
    (format!("{method} {}{}", uri.path(), if dry_run { " (dry run)" } else { "" }), writes)
}
