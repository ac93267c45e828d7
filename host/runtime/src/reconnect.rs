//! Watches that are tried again after errors.
//!
//! The pauses grow with each error in a row, and depend on the error. If the API server does not answer, the watch waits until it does.
//! kube's own backoff waits up to half a minute even if the API server answers earlier.
//!
//! When the API server answers again after an outage, everything is listed again. A watch that continued from the last resource version
//! would be deaf if etcd was restored from a snapshot meanwhile: the API server has nothing to report until its storage has reached that
//! version again, and what happens until then is never reported.

use std::{fmt::Debug, pin::Pin, time::Duration};

use chandler_client::Availability;
use futures::{Stream, StreamExt as _};
use kube::{
    Resource,
    runtime::watcher::{self, Event},
};

/// The pauses after errors of the connection: another attempt costs little.
const INTERRUPTED: Pauses = Pauses { first: Duration::from_millis(200), longest: Duration::from_secs(3) };
/// The pauses after refusals: the identity may not watch the kind, or the kind is not served.
const REFUSED: Pauses = Pauses { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
/// The longest pause while the API server does not answer.
const OUTAGE: Duration = Duration::from_secs(30);

struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Pauses {
    fn after(&self, errors: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(errors)).min(self.longest)
    }
}

/// The events of a watch, without its errors: the watch is tried again after each error. `watch` begins one with a list.
pub fn reconnecting<O, S>(
    watch: impl Fn() -> S + Send,
    availability: Availability,
) -> impl Stream<Item = Event<O>> + Send
where
    O: Resource<DynamicType = ()> + Debug + Send + 'static,
    S: Stream<Item = watcher::Result<Event<O>>> + Send,
{
    let returns = Box::pin(availability.returns());
    let state = Reconnecting { events: Box::pin(watch()), watch, returns, availability, errors: 0 };
    futures::stream::unfold(state, |mut state| async move {
        loop {
            let event = tokio::select! {
                // First: pending events of an old watch are of no use.
                biased;
                Some(()) = state.returns.next() => {
                    state.events = Box::pin((state.watch)());
                    continue;
                }
                event = state.events.next() => event?,
            };
            match event {
                // Each attempt begins like this.
                Ok(Event::Init) => return Some((Event::Init, state)),
                Ok(event) => {
                    state.errors = 0;
                    return Some((event, state));
                }
                Err(error) => {
                    log::<O>(&error, state.errors);
                    let pauses = if is_refusal(&error) { REFUSED } else { INTERRUPTED };
                    let returned = state.availability.pause(pauses.after(state.errors), OUTAGE).await;
                    state.errors = if returned { 0 } else { state.errors.saturating_add(1) };
                }
            }
        }
    })
}

/// A watch, and what begins it again.
struct Reconnecting<W, S, R> {
    watch: W,
    events: Pin<Box<S>>,
    /// When the API server answers again.
    returns: Pin<Box<R>>,
    availability: Availability,
    /// How many errors there were in a row.
    errors: u32,
}

fn is_refusal(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    // A version that is too old (410) is not a refusal: the next attempt lists.
    matches!(code, 400..=499 if code != 410 && code != 429)
}

/// Watches end all the time, and are continued. A user has to do something about a refusal.
fn log<O: Resource<DynamicType = ()>>(error: &watcher::Error, errors: u32) {
    let kind = O::kind(&());
    if is_refusal(error) && errors == 0 {
        tracing::warn!(%kind, %error, "the API server refuses the watch; it is tried again");
    } else {
        tracing::debug!(%kind, %error, "the watch was interrupted");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicU16, Ordering},
        },
    };

    use chandler_client::monitored;
    use futures::stream;
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body, core::Status};

    use super::*;

    fn refused(code: u16) -> watcher::Error {
        let status = Status { code, ..Status::default() };
        watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn pauses_after_refusals_grow_and_those_after_interruptions_stay_short() {
        let seconds = |pauses: &Pauses| (0..8).map(|errors| pauses.after(errors).as_secs_f64()).collect::<Vec<_>>();
        assert_eq!(seconds(&REFUSED), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(seconds(&INTERRUPTED), [0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(REFUSED.after(u32::MAX), REFUSED.longest);
    }

    #[test]
    fn only_an_answer_refuses() {
        for (code, expected) in
            [(403, true), (404, true), (401, true), (410, false), (429, false), (500, false), (503, false)]
        {
            assert_eq!(is_refusal(&refused(code)), expected, "{code}");
        }
        assert!(!is_refusal(&watcher::Error::NoResourceVersion));
    }

    #[tokio::test]
    async fn a_watch_goes_on_after_errors() {
        let events = || {
            stream::iter([
                Ok(Event::Init),
                Err(watcher::Error::NoResourceVersion),
                Ok(Event::<ConfigMap>::Init),
                Ok(Event::InitDone),
            ])
        };
        let events: Vec<_> = reconnecting(events, Availability::default()).collect().await;
        assert!(matches!(events.as_slice(), [Event::Init, Event::Init, Event::InitDone]), "{events:?}");
    }

    #[tokio::test]
    async fn everything_is_listed_again_when_the_api_server_answers_again() {
        let status = Arc::new(AtomicU16::new(503));
        let answer = Arc::clone(&status);
        let server = tower::service_fn(move |_: Request<Body>| {
            let status = answer.load(Ordering::SeqCst);
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(Body::empty()).unwrap()) }
        });
        let (client, availability) = monitored(&Client::new(server, "default"));
        let watch = || stream::iter([Ok(Event::<ConfigMap>::Init)]).chain(stream::pending());
        let mut events = Box::pin(reconnecting(watch, availability.clone()));
        assert!(matches!(events.next().await, Some(Event::Init)));
        assert!(client.send(Request::get("/api").body(Body::empty()).unwrap()).await.is_ok());
        while !availability.is_down() {
            tokio::task::yield_now().await;
        }
        status.store(200, Ordering::SeqCst);
        let again = tokio::time::timeout(Duration::from_mins(1), events.next()).await.unwrap();
        assert!(matches!(again, Some(Event::Init)), "{again:?}");
    }
}
