//! A leader that stops for longer than its Lease lasts, at a chosen request, and then continues: its process was paused, or it lost its
//! connections to the API server.
//!
//! It runs on its own thread, like a [`crate::ControllerThread`]. A pause blocks this thread, so that also its timers stand still, as they do for
//! a process that receives SIGSTOP. A write that the pause interrupts has not been sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use chandler_controller::{ControllerError, Election, Options, Timing, options::LEASE};
use futures::{FutureExt as _, executor::block_on, future::BoxFuture};
use http::{Method, Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::{Client, Config, client::Body};
use parking_lot::Mutex;
use tokio::{
    runtime::Builder,
    sync::{oneshot, watch},
};
use tower::{Layer, Service};

use crate::{
    crash_point::describe,
    in_process::{self, InProcess},
    wait::PATIENCE,
};

/// How a leader stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its process is paused.
    Paused,
    /// No request of it gets to the API server, and no answer back.
    Partitioned,
}

/// Where a leader stops. Requests are counted from 0, without those for its Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPoint {
    /// It does not stop.
    Never,
    /// Before this request is sent to the API server.
    BeforeRequest(usize),
    /// After the API server has processed this request.
    AfterRequest(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Leading,
    Stopped,
    Resumed,
}

/// The state that all clients of a leader share.
#[derive(Clone)]
struct Shared(Arc<State>);

struct State {
    stop: Stop,
    point: StopPoint,
    phase: watch::Sender<Phase>,
    requests: Mutex<Vec<Sent>>,
    late_writes: Mutex<Vec<String>>,
}

/// A request that a leader sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// `METHOD path`, with `(dry run)` appended to dry runs.
    pub request: String,
    /// Whether it changes objects.
    pub writes: bool,
}

impl Shared {
    /// Stops at this point, and completes when the leader continues. Does nothing elsewhere.
    async fn stop_at(&self, point: StopPoint) {
        if self.0.point != point {
            return;
        }
        self.0.phase.send_if_modified(|phase| {
            let leads = *phase == Phase::Leading;
            if leads {
                *phase = Phase::Stopped;
            }
            leads
        });
        self.wait().await;
    }

    /// Completes while the leader is not stopped. In a pause, this blocks the thread.
    async fn wait(&self) {
        if *self.0.phase.borrow() != Phase::Stopped {
            return;
        }
        let mut phase = self.0.phase.subscribe();
        let resumed = phase.wait_for(|phase| *phase != Phase::Stopped);
        match self.0.stop {
            Stop::Partitioned => drop(resumed.await),
            Stop::Paused => {
                drop(block_on(resumed));
                // What comes next is not part of what was interrupted.
                tokio::task::yield_now().await;
            }
        }
    }

    fn client(&self, config: &Config, counts: bool) -> kube::Result<Client> {
        let builder = chandler_client::builder(config.clone())?;
        Ok(builder.with_layer(&Reach { shared: self.clone(), counts }).build())
    }
}

/// A controller with a Lease. It stops once, and continues when the test says so.
pub struct FormerLeader {
    shared: Shared,
    shutdown: Option<oneshot::Sender<()>>,
    thread: std::thread::JoinHandle<Result<(), ControllerError>>,
}

impl FormerLeader {
    /// Starts a controller with this identity, which stops at this point.
    pub fn start(
        config: Config,
        options: Options,
        (identity, timing): (&str, Timing),
        stop: Stop,
        point: StopPoint,
    ) -> Self {
        in_process::note(Some(InProcess::Pauses));
        let phase = watch::Sender::new(Phase::Leading);
        let state = State { stop, point, phase, requests: Mutex::default(), late_writes: Mutex::default() };
        let shared = Shared(Arc::new(state));
        let connect = {
            let (shared, config) = (shared.clone(), config.clone());
            move || shared.client(&config, false)
        };
        let election =
            Election::new(connect, &options.system_namespace, LEASE, identity.to_owned()).with_timing(timing);
        let options = Options { leader_election: Some(election), ..options };
        let (shutdown, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn({
            let shared = shared.clone();
            move || {
                let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
                let ended = runtime.block_on(async {
                    let client = shared.client(&config, true).expect("a usable configuration");
                    chandler_controller::run(client, options, stopped.map(|_| ())).await
                });
                runtime.shutdown_background();
                ended
            }
        });
        Self { shared, shutdown: Some(shutdown), thread }
    }

    /// Completes when it has stopped.
    pub async fn stopped(&self) {
        // Only a dropped sender is an error, and `self` holds the sender.
        let _ = self.shared.0.phase.subscribe().wait_for(|phase| *phase == Phase::Stopped).await;
    }

    /// Lets it continue.
    pub fn resume(&self) {
        self.shared.0.phase.send_replace(Phase::Resumed);
    }

    /// The requests that it sent.
    pub fn requests(&self) -> Vec<Sent> {
        self.shared.0.requests.lock().clone()
    }

    /// Shuts it down at once, although it has not stopped.
    pub async fn shut_down(mut self) -> Ended {
        self.resume();
        drop(self.shutdown.take());
        self.ended().await
    }

    /// Waits until it has ended by itself.
    pub async fn ended(self) -> Ended {
        let Self { shared, thread, shutdown } = self;
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let joined = tokio::time::timeout(PATIENCE, joined).await.expect("the controller ends in time");
        drop(shutdown);
        let result = joined.expect("the thread is joined").expect("the controller does not panic");
        Ended { result, late_writes: shared.0.late_writes.lock().clone() }
    }
}

/// How a leader ended.
#[derive(Debug)]
pub struct Ended {
    /// What the controller returned.
    pub result: Result<(), ControllerError>,
    /// The writes that it sent after it continued: `METHOD path`. Its Lease does not count.
    pub late_writes: Vec<String>,
}

#[derive(Clone)]
struct Reach {
    shared: Shared,
    /// Whether requests are counted: those for the Lease are not.
    counts: bool,
}

impl<S> Layer<S> for Reach {
    type Service = Reached<S>;

    fn layer(&self, inner: S) -> Reached<S> {
        Reached { inner, reach: self.clone() }
    }
}

/// The service of a [`Reach`] layer.
#[derive(Clone)]
struct Reached<S> {
    inner: S,
    reach: Reach,
}

impl<S, B> Service<Request<Body>> for Reached<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Held<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Reach { shared, counts } = self.reach.clone();
        let (text, writes) = describe(&request);
        let is_watch = *request.method() == Method::GET && request.uri().query().is_some_and(|it| it.contains("watch"));
        // Nothing is sent before this future is polled.
        let response = self.inner.call(request);
        Box::pin(async move {
            shared.wait().await;
            let number = counts.then(|| {
                let mut requests = shared.0.requests.lock();
                requests.push(Sent { request: text.clone(), writes });
                requests.len() - 1
            });
            if let Some(number) = number {
                shared.stop_at(StopPoint::BeforeRequest(number)).await;
            }
            if counts && writes && *shared.0.phase.borrow() == Phase::Resumed {
                shared.0.late_writes.lock().push(text);
            }
            let response = response.await;
            if let Some(number) = number {
                shared.stop_at(StopPoint::AfterRequest(number)).await;
            }
            shared.wait().await;
            Ok(response?.map(|inner| Held { inner, wait: None, shared: is_watch.then_some(shared) }))
        })
    }
}

/// The body of an answer. The events of a watch wait while the leader is stopped.
struct Held<B> {
    inner: B,
    wait: Option<BoxFuture<'static, ()>>,
    shared: Option<Shared>,
}

impl<B: HttpBody + Unpin> HttpBody for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if let Some(shared) = self.shared.clone() {
            let mut wait = self.wait.take().unwrap_or_else(|| Box::pin(async move { shared.wait().await }));
            if wait.as_mut().poll(context).is_pending() {
                self.wait = Some(wait);
                return Poll::Pending;
            }
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
