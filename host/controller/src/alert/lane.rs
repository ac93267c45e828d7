//! What waits for the server of one Alert, and the task that sends it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::Alert;
use chandler_monitoring::{Metrics, NotificationOutcome};
use chandler_notifications::{Failure, Next, Notification, Pushed, Queue, filter};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::delivery::Delivery;

/// The timeout of an attempt, including the read of the Secret.
const ATTEMPT: Duration = Duration::from_secs(30);
/// The time in which [`WRITES`] writes of a status are allowed.
const WINDOW: Duration = Duration::from_mins(6);
/// The most writes of a status in that time: one a minute on average, and a state that changes soon is shown soon.
const WRITES: usize = 6;
/// How often a delivery that changes nothing else is reported.
const REPORTED: Duration = Duration::from_mins(1);

/// An Alert in use.
pub(crate) struct Lane {
    name: String,
    uid: Option<String>,
    /// The Alert as it is now; `None` once it is not in use.
    alert: watch::Sender<Option<Arc<Alert>>>,
    state: Mutex<State>,
    /// Wakes the task.
    waiting: Notify,
    idle: Arc<Notify>,
}

struct State {
    queue: Queue,
    is_sending: bool,
    known: Known,
    /// When a reconcile was last requested, and the outcome at that time.
    reported: Option<(Instant, Option<Failure>)>,
    writes: VecDeque<Instant>,
}

/// What is known of the deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) last: Option<Attempt>,
    /// The notifications that were dropped.
    pub(super) dropped: u64,
}

/// An attempt to deliver a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) time: Timestamp,
    pub(super) failure: Option<Failure>,
    /// The generation of the Alert.
    pub(super) generation: Option<i64>,
}

impl Lane {
    pub(super) fn new(alert: &Alert, idle: &Arc<Notify>) -> Self {
        let name = alert.name_any();
        let state = State {
            queue: Queue::new(&name),
            is_sending: false,
            known: Known::default(),
            reported: None,
            writes: VecDeque::new(),
        };
        Self {
            name,
            uid: alert.uid(),
            alert: watch::Sender::new(Some(Arc::new(alert.clone()))),
            state: Mutex::new(state),
            waiting: Notify::new(),
            idle: Arc::clone(idle),
        }
    }

    pub(super) fn uid(&self) -> Option<String> {
        self.uid.clone()
    }

    /// The Alert has changed, or not.
    pub(super) fn configure(&self, alert: &Alert) {
        if alert.spec.suspend {
            self.state.lock().queue.clear();
        }
        self.alert.send_if_modified(|current| {
            let is_same = current.as_ref().is_some_and(|it| it.metadata.generation == alert.metadata.generation);
            if !is_same {
                *current = Some(Arc::new(alert.clone()));
            }
            !is_same
        });
    }

    /// A Secret has changed. If the Alert uses it, a delivery that waits before another attempt makes it now. Returns whether the Alert uses it.
    pub(super) fn secret_changed(&self, secret: &str) -> bool {
        self.alert.send_if_modified(|current| {
            let reference = current.as_ref().and_then(|alert| alert.spec.provider.secret_ref.as_ref());
            reference.is_some_and(|reference| reference.name == secret)
        })
    }

    /// The Alert is not in use any more.
    pub(super) fn end(&self) {
        self.alert.send_replace(None);
        self.state.lock().queue.clear();
        self.idle.notify_waiters();
    }

    /// Takes a notification about an object with these labels, if the Alert selects it. Never waits for the server.
    pub(super) fn take(
        &self,
        notification: &Arc<Notification>,
        labels: Option<&BTreeMap<String, String>>,
        metrics: &Metrics,
    ) {
        let selects = |alert: &Arc<Alert>| {
            !alert.spec.suspend && filter::selects(alert.spec.filter.as_ref(), notification, labels)
        };
        let is_selected = self.alert.borrow().as_ref().is_some_and(selects);
        let mut state = self.state.lock();
        state.queue.note(notification);
        if !is_selected {
            return;
        }
        match state.queue.push(Arc::clone(notification), Instant::now()) {
            Pushed::Waits => {}
            Pushed::DroppedOldest => {
                state.known.dropped += 1;
                metrics.notified(NotificationOutcome::Dropped, 1);
            }
            Pushed::Repetition => metrics.notified(NotificationOutcome::Suppressed, 1),
        }
        drop(state);
        self.waiting.notify_one();
    }

    pub(super) fn known(&self) -> Known {
        self.state.lock().known.clone()
    }

    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !state.is_sending && state.queue.is_empty()
    }

    /// The status was written.
    pub(super) fn note_write(&self, now: Instant) {
        self.state.lock().writes.push_back(now);
    }

    /// How long to wait with a write of the status.
    pub(super) fn before_write(&self, now: Instant) -> Option<Duration> {
        let writes = &mut self.state.lock().writes;
        writes.retain(|write| now.saturating_duration_since(*write) < WINDOW);
        let oldest = writes.front().filter(|_| writes.len() >= WRITES)?;
        Some(WINDOW.saturating_sub(now.saturating_duration_since(*oldest)))
    }

    /// What to do now.
    pub(super) fn next(&self, now: Instant) -> Next {
        let mut state = self.state.lock();
        let next = state.queue.next(now, Timestamp::now());
        state.is_sending = matches!(next, Next::Send(_));
        if !state.is_sending {
            self.idle.notify_waiters();
        }
        next
    }

    /// Sends until the Alert is not in use any more. A request that then waits for its answer is interrupted.
    pub(super) async fn run(self: Arc<Self>, delivery: Arc<Delivery>) {
        let mut alert = self.alert.subscribe();
        tokio::select! {
            _ = alert.wait_for(Option::is_none) => {}
            () = self.send_all(&delivery) => {}
        }
    }

    async fn send_all(&self, delivery: &Delivery) {
        loop {
            match self.next(Instant::now()) {
                Next::Send(notification) => self.deliver(&notification, delivery).await,
                Next::Wait(pause, left_out) => {
                    delivery.metrics.notified(NotificationOutcome::Suppressed, left_out);
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.waiting.notified() => {}
                    }
                }
                Next::Idle => self.waiting.notified().await,
            }
        }
    }

    /// Delivers a notification, with the attempts and pauses of [`Failure::pause`].
    async fn deliver(&self, notification: &Notification, delivery: &Delivery) {
        let (mut alert, began, mut attempts) = (self.alert.subscribe(), Instant::now(), 0);
        loop {
            let current = alert.borrow_and_update().clone();
            let Some(current) = current.filter(|alert| !alert.spec.suspend) else { return };
            attempts += 1;
            let result = timeout(ATTEMPT, delivery.attempt(&current, notification)).await;
            let failure = result.unwrap_or(Err(Failure::TimedOut)).err();
            self.note(failure.clone(), current.metadata.generation, delivery);
            let Some(failure) = failure else {
                return delivery.metrics.notified(NotificationOutcome::Delivered, 1);
            };
            let Some(pause) = failure.pause(attempts, began.elapsed()) else {
                tracing::warn!(alert = self.name, %failure, attempts, "a notification was not delivered");
                self.state.lock().queue.failed(notification);
                return delivery.metrics.notified(NotificationOutcome::Failed, 1);
            };
            // A correction of the spec or of the Secret is used at once.
            tokio::select! {
                () = sleep(pause) => {}
                _ = alert.changed() => {}
            }
        }
    }

    /// Notes an attempt, and requests a reconcile if it changes what the status says.
    fn note(&self, failure: Option<Failure>, generation: Option<i64>, delivery: &Delivery) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.known.last = Some(Attempt { time: Timestamp::now(), failure: failure.clone(), generation });
        let is_known = state.reported.as_ref().is_some_and(|(reported, before)| {
            *before == failure && now.saturating_duration_since(*reported) < REPORTED
        });
        if !is_known {
            state.reported = Some((now, failure));
            drop(state);
            delivery.request_reconcile(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{AlertProvider, AlertSpec};

    use super::*;

    #[test]
    fn a_status_is_written_once_a_minute_on_average() {
        let spec = AlertSpec {
            provider: AlertProvider::default(),
            filter: None,
            summary: None,
            labels: BTreeMap::new(),
            suspend: false,
        };
        let (lane, begin) = (Lane::new(&Alert::new("chat", spec), &Arc::default()), Instant::now());
        let mut writes = 0;
        for second in 0..3600 {
            let now = begin + Duration::from_secs(second);
            if lane.before_write(now).is_none() {
                lane.note_write(now);
                writes += 1;
            }
        }
        assert_eq!(writes, 60);
        let now = begin + Duration::from_hours(2);
        assert_eq!(lane.before_write(now), None);
        (0..WRITES).for_each(|_| lane.note_write(now));
        assert_eq!(
            lane.before_write(now + Duration::from_secs(1)),
            Some(WINDOW.saturating_sub(Duration::from_secs(1)))
        );
    }
}
