//! Elections against an API server of one Lease, in this process.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::BoxError;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

fn never() -> Shutdown {
    std::future::pending().boxed().shared()
}

fn quick() -> Timing {
    Timing { renewal: Duration::from_millis(1), retry: Duration::from_millis(1), ..Timing::default() }
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}

fn refusal(code: u16, reason: &str) -> Response<Body> {
    answer(
        code,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code}),
    )
}

/// An API server with Leases, which calls this after each write.
fn server(written: impl Fn(&Value) + Send + Sync + 'static) -> impl Fn() -> kube::Result<Client> + Send + Sync {
    let (stored, written) = (Arc::new(Mutex::new(None::<Value>)), Arc::new(written));
    move || {
        let (stored, written) = (Arc::clone(&stored), Arc::clone(&written));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (stored, written) = (Arc::clone(&stored), Arc::clone(&written));
            async move {
                if request.method() == Method::GET {
                    let stored = stored.lock().unwrap();
                    return Ok::<_, Infallible>(
                        stored.as_ref().map_or_else(|| refusal(404, "NotFound"), |it| answer(200, it)),
                    );
                }
                let bytes = request.into_body().collect_bytes().await.unwrap();
                let lease: Value = serde_json::from_slice(&bytes).unwrap();
                *stored.lock().unwrap() = Some(lease.clone());
                written(&lease);
                Ok(answer(200, &lease))
            }
        });
        Ok(Client::new(service, "default"))
    }
}

/// An API server that refuses to create the Lease this many times.
fn refusing(times: usize) -> impl Fn() -> kube::Result<Client> + Send + Sync {
    let created = Arc::new(AtomicUsize::new(0));
    move || {
        let created = Arc::clone(&created);
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = match request.method() {
                &Method::GET => refusal(404, "NotFound"),
                _ if created.fetch_add(1, Ordering::Relaxed) < times => refusal(403, "Forbidden"),
                _ => answer(
                    201,
                    &json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}}),
                ),
            };
            std::future::ready(Ok::<_, Infallible>(response))
        });
        Ok(Client::new(service, "default"))
    }
}

#[tokio::test]
async fn a_refusal_counts_once_it_lasts() {
    let election = |times, deadline| {
        Election::new(refusing(times), "n", "l", "me".to_owned()).with_timing(Timing { deadline, ..quick() })
    };
    let worked = while_leader(&election(3, HOUR), never(), |_, _| std::future::ready(7)).await;
    assert_eq!(worked.unwrap(), Some(7));
    let refused = election(usize::MAX, Duration::from_millis(10));
    let refused = while_leader(&refused, never(), |_, _| std::future::ready(())).await;
    assert!(matches!(refused, Err(ElectionError::Refused { .. })), "{refused:?}");
}

/// The work blocks the only thread of its runtime until the Lease was renewed.
#[tokio::test]
async fn the_lease_is_renewed_while_the_work_leaves_its_runtime_no_time() {
    let (renewals, renewed) = mpsc::channel();
    let connect = server(move |lease| renewals.send(lease["spec"]["holderIdentity"].clone()).unwrap_or_default());
    let election = Election::new(connect, "n", "l", "me".to_owned()).with_timing(quick());
    let work = |_, _| async move {
        for _ in 0..5 {
            assert_eq!(renewed.recv_timeout(Duration::from_mins(1)).expect("it is renewed"), "me");
        }
        renewed
    };
    let renewed = while_leader(&election, never(), work).await.unwrap().expect("it was elected");
    assert_eq!(renewed.try_iter().last(), Some(json!("")), "released at the end");
}

/// While the thread is blocked, the clock decides.
#[tokio::test]
async fn writes_wait_when_the_thread_that_renews_the_lease_is_stopped() {
    let (stop, stopped) = mpsc::channel::<()>();
    let stopped = Mutex::new(stopped);
    let writes = AtomicUsize::new(0);
    let connect = server(move |_| {
        if writes.fetch_add(1, Ordering::Relaxed) > 0 {
            // The thread of the election runs this.
            stopped.lock().unwrap().recv().unwrap_or_default();
        }
    });
    let timing = Timing { deadline: Duration::from_millis(50), ..quick() };
    let election = Election::new(connect, "n", "l", "me".to_owned()).with_timing(timing);
    let work = |_, fence: Fence| async move {
        fence.closed().await;
        drop(stop);
    };
    assert!(while_leader(&election, never(), work).await.unwrap().is_some());
}

#[tokio::test]
async fn after_a_crash_the_lease_is_not_released() {
    let (writes, written) = mpsc::channel();
    let connect = server(move |lease| writes.send(lease["spec"]["holderIdentity"].clone()).unwrap_or_default());
    let election = Election::new(connect, "n", "l", "me".to_owned()).with_timing(quick());
    let (elected, has_begun) = oneshot::channel();
    let mut leading = Box::pin(while_leader(&election, never(), |_, fence| async move {
        elected.send(fence).unwrap();
        std::future::pending::<()>().await;
    }));
    let fence = tokio::select! {
        _ = &mut leading => unreachable!("the work does not end"),
        fence = has_begun => fence.unwrap(),
    };
    drop(leading);
    drop(election);
    // The thread ends, and with it the server.
    let holders = tokio::task::spawn_blocking(move || written.iter().collect::<Vec<_>>()).await.unwrap();
    assert!(holders.iter().all(|holder| holder == "me"), "{holders:?}");
    fence.closed().await;
}

#[tokio::test]
async fn a_shutdown_before_the_election_ends_the_thread() {
    let election = Election::new(refusing(usize::MAX), "n", "l", "me".to_owned())
        .with_timing(Timing { deadline: HOUR, ..quick() });
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = shutdown(stopped.map(drop));
    let waiting = while_leader(&election, shutdown, |_, _| std::future::ready(()));
    let (waited, ()) = tokio::join!(waiting, async { drop(stop) });
    assert_eq!(waited.unwrap(), None);
}

#[tokio::test]
async fn the_reason_is_reported_if_there_is_no_client_and_if_the_thread_panics() {
    let config = || kube::Config::new("https://localhost".parse().unwrap());
    let connect = move || {
        let mut config = config();
        config.root_cert = Some(vec![b"no certificate".to_vec()]);
        chandler_client::client(config)
    };
    let election = Election::new(connect, "n", "l", "me".to_owned());
    let ended = while_leader(&election, never(), |_, _| std::future::ready(())).await;
    assert!(matches!(ended, Err(ElectionError::Client(_))), "{ended:?}");
    let election = Election::new(|| panic!("a bug"), "n", "l", "me".to_owned());
    let ended = while_leader(&election, never(), |_, _| std::future::ready(())).await;
    assert!(matches!(ended, Err(ElectionError::Panicked)), "{ended:?}");
}

#[tokio::test]
async fn the_leader_annotates_its_lease_and_those_that_wait_read_it() {
    let (sender, receiver) = mpsc::channel();
    let connect = Arc::new(server(move |lease| drop(sender.send(lease["metadata"]["annotations"].clone()))));
    let connect = move || {
        let connect = Arc::clone(&connect);
        move || connect()
    };
    let annotated = |value: Option<&str>| BTreeMap::from([("address".to_owned(), value.map(str::to_owned))]);
    let first =
        Election::new(connect(), "n", "l", "first".to_owned()).with_timing(quick()).annotated(annotated(Some("a")));
    let (seen, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    let second = Election::new(connect(), "n", "l", "second".to_owned())
        .with_timing(quick())
        .annotated(annotated(None))
        .when_waiting(move |annotations| drop(seen.send(annotations.clone())));
    let (stop, stopped) = oneshot::channel::<()>();
    let (lead, leads) = oneshot::channel();
    let leading = tokio::spawn(async move {
        let work = |_, _| async move {
            let _ = lead.send(());
            let _ = stopped.await;
        };
        while_leader(&first, never(), work).await
    });
    leads.await.unwrap();
    let follows = tokio::spawn(async move { while_leader(&second, never(), |_, _| async {}).await });
    assert_eq!(waiting.recv().await.unwrap(), BTreeMap::from([("address".to_owned(), "a".to_owned())]));
    stop.send(()).unwrap();
    leading.await.unwrap().unwrap();
    follows.await.unwrap().unwrap();
    let written: Vec<_> = receiver.try_iter().collect();
    assert_eq!(written.first(), Some(&json!({"address": "a"})));
    // The first removes it with the Lease.
    assert_eq!(written.last(), Some(&Value::Null), "{written:?}");
}

/// An API server of a Lease of another holder. It counts the reads, and lets candidates watch the Lease or refuses that.
struct Held {
    lease: Mutex<Value>,
    reads: AtomicUsize,
    watched: bool,
    /// The Lease changed.
    events: tokio::sync::Notify,
}

impl Held {
    fn new(watched: bool) -> Arc<Self> {
        let spec = json!({"holderIdentity": "other", "leaseDurationSeconds": 3600});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
            "metadata": {"name": "l", "uid": "u", "resourceVersion": "1"}});
        let (reads, events) = (AtomicUsize::new(0), tokio::sync::Notify::new());
        Arc::new(Self { lease: Mutex::new(lease), reads, watched, events })
    }

    fn release(&self) {
        let mut lease = self.lease.lock().unwrap();
        lease["spec"]["holderIdentity"] = json!("");
        lease["metadata"]["resourceVersion"] = json!("2");
        self.events.notify_one();
    }

    fn client(self: &Arc<Self>) -> Client {
        let held = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let held = Arc::clone(&held);
            async move {
                if request.uri().query().is_some_and(|query| query.contains("watch=")) {
                    if !held.watched {
                        return Ok::<_, Infallible>(whole(refusal(403, "Forbidden")));
                    }
                    assert!(request.uri().query().unwrap().contains("metadata.name"), "only this Lease is watched");
                    let event = async move {
                        held.events.notified().await;
                        let event = json!({"type": "MODIFIED", "object": *held.lease.lock().unwrap()});
                        Ok::<_, BoxError>(Frame::data(format!("{event}\n").into_bytes().into()))
                    };
                    let events = stream::once(event).chain(stream::pending());
                    return Ok(Response::new(StreamBody::new(events).boxed_unsync()));
                }
                if request.method() == Method::GET {
                    held.reads.fetch_add(1, Ordering::Relaxed);
                    return Ok(whole(answer(200, &held.lease.lock().unwrap())));
                }
                let bytes = request.into_body().collect_bytes().await.unwrap();
                let lease: Value = serde_json::from_slice(&bytes).unwrap();
                *held.lease.lock().unwrap() = lease.clone();
                Ok(whole(answer(200, &lease)))
            }
        });
        Client::new(service, "default")
    }
}

/// An answer in the form of a stream.
fn whole(answer: Response<Body>) -> Response<UnsyncBoxBody<<Body as hyper::body::Body>::Data, BoxError>> {
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

#[tokio::test]
async fn a_replica_that_waits_reads_the_lease_only_when_the_watch_shows_a_change() {
    let held = Held::new(true);
    // Only the watch can be in time.
    let timing = Timing { renewal: HOUR, retry: HOUR, ..Timing::default() };
    let (waits, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    let server = Arc::clone(&held);
    let election = Election::new(move || Ok(server.client()), "n", "l", "me".to_owned())
        .with_timing(timing)
        .when_waiting(move |_| waits.send(()).unwrap_or_default());
    let leads = tokio::spawn(async move { while_leader(&election, never(), |_, _| async {}).await });
    waiting.recv().await.unwrap();
    assert_eq!(held.reads.load(Ordering::Relaxed), 1);
    held.release();
    assert_eq!(leads.await.unwrap().unwrap(), Some(()));
    // Once more, before it was taken.
    assert_eq!(held.reads.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_replica_that_may_not_watch_the_lease_reads_it_again_and_again() {
    let held = Held::new(false);
    let server = Arc::clone(&held);
    let election = Election::new(move || Ok(server.client()), "n", "l", "me".to_owned()).with_timing(quick());
    let leads = tokio::spawn(async move { while_leader(&election, never(), |_, _| async {}).await });
    while held.reads.load(Ordering::Relaxed) < 5 {
        tokio::task::yield_now().await;
    }
    held.release();
    assert_eq!(leads.await.unwrap().unwrap(), Some(()));
}

/// An API server of one Lease that refuses a write of an older version, and that does not answer the write with this number although it
/// stores it. It reports each request: the method, and whether it was refused.
fn losing(answer_to: usize, request: mpsc::Sender<(Method, bool)>) -> impl Fn() -> kube::Result<Client> + Send + Sync {
    let (stored, writes) = (Arc::new(Mutex::new(None::<Value>)), Arc::new(AtomicUsize::new(0)));
    move || {
        let (stored, writes, requests) = (Arc::clone(&stored), Arc::clone(&writes), request.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (stored, writes, requests) = (Arc::clone(&stored), Arc::clone(&writes), requests.clone());
            async move {
                let method = request.method().clone();
                let bytes = request.into_body().collect_bytes().await.unwrap();
                let mut stored = stored.lock().unwrap();
                if method == Method::GET {
                    requests.send((method, false)).unwrap_or_default();
                    return Ok::<_, Infallible>(
                        stored.as_ref().map_or_else(|| refusal(404, "NotFound"), |it| answer(200, it)),
                    );
                }
                let mut lease: Value = serde_json::from_slice(&bytes).unwrap();
                let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
                let is_older = stored.as_ref().is_some_and(|stored| version(stored) != version(&lease));
                requests.send((method, is_older)).unwrap_or_default();
                if is_older {
                    return Ok(refusal(409, "Conflict"));
                }
                let number = writes.fetch_add(1, Ordering::Relaxed);
                lease["metadata"]["resourceVersion"] = json!(number.to_string());
                lease["metadata"]["uid"] = json!("u");
                *stored = Some(lease.clone());
                Ok(if number == answer_to { refusal(504, "Timeout") } else { answer(200, &lease) })
            }
        });
        Ok(Client::new(service, "default"))
    }
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_counts_and_is_not_written_against_an_older_version() {
    let (sender, requests) = mpsc::channel();
    let election = Election::new(losing(2, sender), "n", "l", "me".to_owned()).with_timing(quick());
    let work = |_, fence: Fence| async move {
        let seen: Vec<_> = (0..7).map(|_| requests.recv_timeout(Duration::from_mins(1)).expect("a request")).collect();
        assert!(fence.closed().now_or_never().is_none(), "writes pass");
        seen
    };
    let seen = while_leader(&election, never(), work).await.unwrap().expect("it was elected");
    let expected = [
        (Method::GET, false),
        (Method::POST, false),
        (Method::PUT, false),
        // Its answer is lost.
        (Method::PUT, false),
        // It had arrived, so the next renewal fits.
        (Method::GET, false),
        (Method::PUT, false),
        (Method::PUT, false),
    ];
    assert_eq!(seen, expected);
}
