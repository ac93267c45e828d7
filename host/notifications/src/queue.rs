//! The notifications that wait for one server.
//!
//! All of it is bounded, whatever happens in the cluster: the notifications that wait, the repetitions that are remembered, and what is sent in
//! a minute.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::AlertSeverity;
use chandler_core::Digest;
use k8s_openapi::jiff::Timestamp;

use crate::Notification;

/// The most notifications that wait for a server. Beyond that, the oldest is dropped.
pub const WAITING: usize = 100;
/// The most notifications that are sent in a minute.
pub const PER_MINUTE: u32 = 30;
/// How long a notification is not sent again.
pub const REPETITION: Duration = Duration::from_hours(1);
/// The most notifications that are remembered for that.
const REMEMBERED: usize = 1024;

const MINUTE: Duration = Duration::from_mins(1);

/// The notifications that wait for one server, the oldest first.
#[derive(Debug)]
pub struct Queue {
    /// The name of the Alert.
    alert: String,
    waiting: VecDeque<Arc<Notification>>,
    sent_before: HashMap<Digest, Sent>,
    order: VecDeque<(Instant, Digest)>,
    /// The minute that is counted, and the number that was sent in it.
    minute: Option<(Instant, u32)>,
    left_out: LeftOut,
}

/// When a notification was sent, and about which object.
#[derive(Debug)]
struct Sent {
    since: Instant,
    uid: String,
    severity: AlertSeverity,
}

/// What was left out since the last notification that says so.
#[derive(Debug, Default)]
struct LeftOut {
    number: u64,
    severity: AlertSeverity,
}

impl LeftOut {
    fn add(&mut self, notification: &Notification) {
        self.number += 1;
        self.severity = self.severity.max(notification.severity);
    }
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Waits,
    /// It waits, and the oldest one was dropped.
    DroppedOldest,
    /// It was sent within the last hour, or waits.
    Repetition,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this notification.
    Send(Arc<Notification>),
    /// Look again after this time: the limit of the minute is reached. This number of notifications was left out just now.
    Wait(Duration, u64),
    /// Nothing waits.
    Idle,
}

impl Queue {
    /// An empty queue of the Alert of this name.
    pub fn new(alert: &str) -> Self {
        Self {
            alert: alert.to_owned(),
            waiting: VecDeque::new(),
            sent_before: HashMap::new(),
            order: VecDeque::new(),
            minute: None,
            left_out: LeftOut::default(),
        }
    }

    /// Takes a notification.
    pub fn push(&mut self, notification: Arc<Notification>, now: Instant) -> Pushed {
        self.forget(now);
        let content = notification.content();
        if self.sent_before.contains_key(&content) {
            return Pushed::Repetition;
        }
        let Notification { uid, severity, .. } = notification.as_ref();
        self.sent_before.insert(content.clone(), Sent { since: now, uid: uid.clone(), severity: *severity });
        self.order.push_back((now, content));
        let is_full = self.waiting.len() >= WAITING;
        if is_full && let Some(oldest) = self.waiting.pop_front() {
            self.leave_out(&oldest);
        }
        self.waiting.push_back(notification);
        if is_full { Pushed::DroppedOldest } else { Pushed::Waits }
    }

    /// What to do now. A notification that is returned is out of the queue.
    pub fn next(&mut self, now: Instant, time: Timestamp) -> Next {
        let (begin, sent) =
            self.minute.filter(|(begin, _)| now.saturating_duration_since(*begin) < MINUTE).unwrap_or((now, 0));
        if sent >= PER_MINUTE {
            let left_out = self.waiting.len() as u64;
            for notification in std::mem::take(&mut self.waiting) {
                self.leave_out(&notification);
            }
            let pause = MINUTE.saturating_sub(now.saturating_duration_since(begin));
            return if self.left_out.number > 0 { Next::Wait(pause, left_out) } else { Next::Idle };
        }
        // They are older than those that wait.
        let next = if self.left_out.number > 0 {
            let LeftOut { number, severity } = std::mem::take(&mut self.left_out);
            Some(Arc::new(Notification::left_out(&self.alert, number, severity, time)))
        } else {
            self.waiting.pop_front()
        };
        let Some(notification) = next else { return Next::Idle };
        self.minute = Some((begin, sent + 1));
        Next::Send(notification)
    }

    /// Notes any notification about an object, also one that the Alert does not select: a problem that comes back after a change for the better
    /// is not a repetition.
    pub fn note(&mut self, notification: &Notification) {
        if notification.severity == AlertSeverity::Info {
            self.sent_before.retain(|_, sent| sent.uid != notification.uid || sent.severity == AlertSeverity::Info);
        }
    }

    /// The delivery failed: if the same happens again, it is not a repetition.
    pub fn failed(&mut self, notification: &Notification) {
        self.sent_before.remove(&notification.content());
    }

    fn leave_out(&mut self, notification: &Notification) {
        self.left_out.add(notification);
        self.failed(notification);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Drops all notifications, as if nothing had happened.
    pub fn clear(&mut self) {
        *self = Self { minute: self.minute, ..Self::new(&self.alert) };
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, content)) = self.order.front() {
            if self.order.len() < REMEMBERED && now.saturating_duration_since(*since) < REPETITION {
                return;
            }
            // It may have been sent again since.
            if self.sent_before.get(content).is_some_and(|sent| sent.since == *since) {
                self.sent_before.remove(content);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::notification;

    fn numbered(number: usize) -> Arc<Notification> {
        Arc::new(Notification { message: number.to_string(), ..notification() })
    }

    fn sent(queue: &mut Queue, now: Instant) -> Vec<String> {
        let mut messages = Vec::new();
        while let Next::Send(notification) = queue.next(now, Timestamp::UNIX_EPOCH) {
            messages.push(notification.message.clone());
        }
        messages
    }

    #[test]
    fn a_flood_needs_bounded_memory_and_is_reported_once() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        let pushed: Vec<Pushed> = (0..10_000).map(|number| queue.push(numbered(number), now)).collect();
        assert_eq!(pushed.iter().filter(|pushed| **pushed == Pushed::DroppedOldest).count(), 10_000 - WAITING);
        assert_eq!((queue.waiting.len(), queue.sent_before.len(), queue.order.len()), (WAITING, WAITING, REMEMBERED));
        assert!(queue.waiting.capacity() <= 4 * WAITING && queue.sent_before.capacity() <= 4 * REMEMBERED);
        let first = sent(&mut queue, now);
        assert_eq!(first.len(), PER_MINUTE as usize);
        assert!(first[0].starts_with("9900 more notifications were left out"), "{}", first[0]);
        assert_eq!(first[1], "9900", "the newest survive");
        // The rest of the minute is left out, and that is said once the minute has passed.
        queue.push(numbered(10_001), now);
        assert!(matches!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Wait(pause, 1) if pause == MINUTE));
        let later = sent(&mut queue, now + MINUTE);
        assert_eq!(later.len(), 1);
        assert!(later[0].starts_with("72 more notifications were left out"), "{}", later[0]);
        assert!(sent(&mut queue, now + 2 * MINUTE).is_empty());
    }

    #[test]
    fn a_notification_is_sent_once_an_hour() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        assert_eq!(queue.push(numbered(1), now), Pushed::Waits);
        assert_eq!(queue.push(numbered(1), now), Pushed::Repetition);
        assert_eq!(sent(&mut queue, now), ["1"]);
        assert_eq!(queue.push(numbered(1), now + MINUTE), Pushed::Repetition);
        assert_eq!(queue.push(numbered(2), now + MINUTE), Pushed::Waits);
        assert_eq!(queue.push(numbered(1), now + REPETITION), Pushed::Waits);
        let other = Notification { uid: "another object of the same name".to_owned(), ..(*numbered(1)).clone() };
        assert_eq!(queue.push(Arc::new(other), now + REPETITION), Pushed::Waits);
    }

    #[test]
    fn the_limit_is_per_minute_and_nothing_is_left_out_below_it() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..PER_MINUTE as usize {
            queue.push(numbered(number), now);
        }
        assert_eq!(sent(&mut queue, now).len(), PER_MINUTE as usize);
        assert_eq!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Idle);
        queue.push(numbered(100), now + MINUTE);
        assert_eq!(sent(&mut queue, now + MINUTE), ["100"]);
    }

    #[test]
    fn what_was_not_delivered_is_not_a_repetition_when_it_happens_again() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        queue.push(numbered(1), now);
        assert_eq!(sent(&mut queue, now), ["1"]);
        queue.failed(&numbered(1));
        assert_eq!(queue.push(numbered(1), now + MINUTE), Pushed::Waits);
        // The first occurrence ends later than an hour ago, and the second has not.
        assert_eq!(queue.push(numbered(1), now + REPETITION), Pushed::Repetition);
        assert_eq!(queue.push(numbered(1), now + REPETITION + MINUTE), Pushed::Waits);
    }

    #[test]
    fn a_problem_that_comes_back_is_not_a_repetition() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        let problem = Arc::new(Notification { severity: AlertSeverity::Warning, ..notification() });
        let fixed = Notification { severity: AlertSeverity::Info, message: "fixed".to_owned(), ..notification() };
        assert_eq!(queue.push(Arc::clone(&problem), now), Pushed::Waits);
        queue.note(&problem);
        queue.note(&Notification { uid: "another object".to_owned(), ..fixed.clone() });
        assert_eq!(queue.push(Arc::clone(&problem), now), Pushed::Repetition);
        queue.note(&fixed);
        assert_eq!(queue.push(problem, now), Pushed::Waits);
    }

    #[test]
    fn what_waits_can_be_dropped() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        queue.push(numbered(1), now);
        queue.clear();
        assert!(queue.is_empty() && queue.next(now, Timestamp::UNIX_EPOCH) == Next::Idle);
    }
}
