//! Whether the API server answers, and when it answers again.
//!
//! Each request that is retried would otherwise find out alone, each after a pause of its own, and pauses are long after many failures. So the
//! first request that fails raises an alarm, and one task asks the API server until it answers. Then the pauses end.
//!
//! It may also answer with an earlier state: etcd was restored from a snapshot. What notices that reports it here.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chandler_core::{DescriptorsExhausted, descriptors_exhausted};
use futures::Stream;
use http::{Request, StatusCode};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(3);
/// The time between two questions to an API server that does not answer, and the least time after a false alarm. Jitter shortens it by
/// up to a fifth.
const INTERVAL: Duration = Duration::from_secs(1);
/// A server that just started may refuse every client, since it does not know the roles yet. After this many refusals in a row, it refuses
/// this client.
const REFUSALS: u32 = 3;

/// Whether the API server answers. Clones share their state. By default it always does.
#[derive(Clone, Debug, Default)]
pub struct Availability(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// How often it stopped and began to answer: odd while it does not.
    changes: watch::Sender<u64>,
    /// Whether a task asks it.
    asking: AtomicBool,
    /// When it last began to answer again.
    returned: Mutex<Option<Instant>>,
    /// What shows that its storage went back in time.
    rewound: watch::Sender<Option<String>>,
}

/// A client whose failures are noticed, with the state that they are noticed in.
pub fn monitored(client: &Client) -> (Client, Availability) {
    every(client, INTERVAL)
}

/// [`monitored`] with another time between two questions.
fn every(client: &Client, interval: Duration) -> (Client, Availability) {
    let availability = Availability::default();
    let (inner, state) = (client.clone(), Arc::clone(&availability.0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, state) = (inner.clone(), Arc::clone(&state));
        async move {
            let answer = inner.send(request).await;
            let failed = match &answer {
                Ok(response) => is_outage(response.status()),
                Err(_) => true,
            };
            if failed && !state.asking.swap(true, Ordering::Relaxed) {
                tokio::spawn(ask(inner, Arc::downgrade(&state), interval));
            }
            answer
        }
    });
    (Client::new(service, client.default_namespace()), availability)
}

/// Whether a proxy or an API server that starts or stops answers like this. An internal error concerns one request.
fn is_outage(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// Asks until there is an answer. Ends early when no client of the state is left.
async fn ask(client: Client, state: Weak<State>, interval: Duration) {
    let (mut refusals, mut questions) = (0, 0_u64);
    let jitter = RandomState::new();
    loop {
        let answer = tokio::time::timeout(ANSWER, answer(&client)).await.unwrap_or(Answer::None(None));
        let Some(state) = state.upgrade() else { return };
        refusals = if answer == Answer::Refusal { refusals + 1 } else { 0 };
        let is_down = state.is_down();
        if answer == Answer::Ready || refusals >= REFUSALS || (refusals > 0 && !is_down) {
            if is_down {
                tracing::info!("the API server answers again");
                *state.returned.lock() = Some(Instant::now());
                state.changes.send_modify(|changes| *changes += 1);
            } else {
                // A false alarm must not have it asked all the time.
                tokio::time::sleep(interval).await;
            }
            state.asking.store(false, Ordering::Relaxed);
            return;
        }
        if !is_down {
            if let Answer::None(Some(exhausted)) = answer {
                tracing::warn!("no request reaches the API server: {exhausted}");
            } else {
                tracing::warn!("the API server does not answer");
            }
            state.changes.send_modify(|changes| *changes += 1);
        }
        drop(state);
        questions += 1;
        let share = u32::try_from(jitter.hash_one(questions) % 200).unwrap_or_default();
        tokio::time::sleep(interval.saturating_sub(interval * share / 1000)).await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Ready,
    /// It does not let this client ask.
    Refusal,
    /// No answer, perhaps because it could not be asked.
    None(Option<DescriptorsExhausted>),
}

async fn answer(client: &Client) -> Answer {
    let Ok(request) = Request::get("/readyz").body(Body::empty()) else { return Answer::Refusal };
    match client.send(request).await.map(|response| response.status()) {
        Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Answer::Refusal,
        Ok(status) if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => Answer::None(None),
        Ok(_) => Answer::Ready,
        Err(error) => Answer::None(descriptors_exhausted(&error)),
    }
}

impl State {
    fn is_down(&self) -> bool {
        !self.changes.borrow().is_multiple_of(2)
    }
}

impl Availability {
    /// Whether the API server does not answer.
    pub fn is_down(&self) -> bool {
        self.0.is_down()
    }

    /// Waits for this time, or until the API server answers again if that is earlier. While it does not answer, that may take up to
    /// `longest`. Returns whether it answers again.
    pub async fn pause(&self, duration: Duration, longest: Duration) -> bool {
        let mut changes = self.0.changes.subscribe();
        let before = *changes.borrow_and_update();
        let duration = if before.is_multiple_of(2) { duration } else { longest };
        let answers_again = changes.wait_for(|changes| changes.is_multiple_of(2) && *changes != before);
        tokio::time::timeout(duration, answers_again).await.is_ok_and(|answers| answers.is_ok())
    }

    /// When the API server began to answer again, if it ever stopped. For a few seconds it may refuse more than it should.
    pub fn returned(&self) -> Option<Instant> {
        *self.0.returned.lock()
    }

    /// Notes that the storage of the API server went back in time, because etcd was restored from a snapshot: an object is older than
    /// it was. `what` names it. Everything that this process knows of the cluster may be wrong.
    pub fn note_rewind(&self, what: &str) {
        self.0.rewound.send_if_modified(|rewound| {
            let is_first = rewound.is_none();
            rewound.get_or_insert_with(|| what.to_owned());
            is_first
        });
    }

    /// Completes when the storage of the API server went back in time, with what shows it.
    pub async fn rewound(&self) -> String {
        let mut rewound = self.0.rewound.subscribe();
        // The sender lives as long as this.
        let found = rewound.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or_default()
    }

    /// Yields each time that the API server answers again.
    pub fn returns(&self) -> impl Stream<Item = ()> + Send + use<> {
        futures::stream::unfold(self.0.changes.subscribe(), |mut changes| async move {
            loop {
                changes.changed().await.ok()?;
                if changes.borrow_and_update().is_multiple_of(2) {
                    return Some(((), changes));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicU16, AtomicUsize},
    };

    use futures::{FutureExt as _, StreamExt as _};
    use http::Response;

    use super::*;

    /// An API server that answers each question with one status and everything else with another one.
    #[derive(Clone, Default)]
    struct Server {
        status: Arc<AtomicU16>,
        questions: Arc<AtomicUsize>,
    }

    impl Server {
        fn new(status: u16) -> (Self, Client, Availability) {
            let server = Self::default();
            server.set(status);
            let (client, availability) = every(&server.client(), Duration::from_millis(1));
            (server, client, availability)
        }

        fn client(&self) -> Client {
            let server = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move {
                    let mut status = 503;
                    if request.uri().path() == "/readyz" {
                        server.questions.fetch_add(1, Ordering::SeqCst);
                        status = server.status.load(Ordering::SeqCst);
                    }
                    Ok::<_, Infallible>(Response::builder().status(status).body(Body::empty()).unwrap())
                }
            });
            Client::new(service, "default")
        }

        fn set(&self, status: u16) {
            self.status.store(status, Ordering::SeqCst);
        }

        fn questions(&self) -> usize {
            self.questions.load(Ordering::SeqCst)
        }
    }

    async fn request(client: &Client) {
        let request = Request::get("/api/v1/namespaces").body(Body::empty()).unwrap();
        assert!(client.send(request).await.is_ok());
    }

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let waited = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_mins(1), waited).await.is_ok(), "{what}");
    }

    #[tokio::test]
    async fn pauses_end_when_the_server_answers_again() {
        let (server, client, availability) = Server::new(503);
        let mut returns = Box::pin(availability.returns());
        request(&client).await;
        until("the outage is noticed", || availability.is_down()).await;
        assert!(returns.next().now_or_never().is_none() && availability.returned().is_none());
        let pause = availability.pause(Duration::ZERO, Duration::from_hours(1));
        let returned = async { server.set(200) };
        assert!(tokio::join!(pause, returned).0);
        assert!(!availability.is_down() && availability.returned().is_some());
        assert_eq!(returns.next().await, Some(()));
    }

    #[tokio::test]
    async fn a_request_that_fails_alone_is_no_outage() {
        for status in [200, 404, 403] {
            let (server, client, availability) = Server::new(status);
            for times in 1..4 {
                request(&client).await;
                until("the alarm is over", || {
                    server.questions() == times && !availability.0.asking.load(Ordering::SeqCst)
                })
                .await;
            }
            assert_eq!(*availability.0.changes.borrow(), 0, "{status}");
        }
    }

    #[tokio::test]
    async fn a_server_that_refuses_everybody_may_have_just_started() {
        let (server, client, availability) = Server::new(503);
        request(&client).await;
        until("the outage is noticed", || availability.is_down()).await;
        let before = server.questions();
        server.set(403);
        until("it answers again", || !availability.is_down()).await;
        assert!(server.questions() >= before + REFUSALS as usize);
    }

    #[tokio::test]
    async fn the_task_ends_with_the_clients() {
        let (server, client, availability) = Server::new(503);
        request(&client).await;
        until("the outage is noticed", || availability.is_down()).await;
        drop((client, availability));
        until("no task asks", || Arc::strong_count(&server.questions) == 1).await;
    }

    #[tokio::test]
    async fn a_rewind_is_told_with_what_showed_it_first() {
        let availability = Availability::default();
        assert!(availability.rewound().now_or_never().is_none());
        availability.note_rewind("ConfigMap n/x");
        availability.note_rewind("ConfigMap n/y");
        assert_eq!(availability.clone().rewound().await, "ConfigMap n/x");
    }

    #[tokio::test]
    async fn a_pause_without_an_outage_ends_by_itself() {
        let availability = Availability::default();
        assert!(!availability.pause(Duration::from_millis(1), Duration::from_hours(1)).await);
        assert_eq!(availability.returned(), None);
    }
}
