//! Publishes Events.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Mutex, PoisonError},
};

use chandler_core::text::printable;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use kube::runtime::events::EventType;
use kube::{
    Client, Resource,
    runtime::events::{Event, Recorder, Reporter},
};

/// The bytes of an Event's note that the API server accepts (`events.k8s.io/v1`: at most 1 KiB).
const NOTE_BYTES: usize = 1000;

/// The number of Events that one recorder publishes.
const EVENTS_PER_RECORDER: u32 = 1000;

/// Publishes Events.
///
/// A recorder of kube keeps every Event of the last six minutes to count recurring ones, and scans all of them for each Event that
/// it publishes. Where thousands of objects change, that takes hundreds of MiB and most of the time. So a recorder is replaced after
/// a while; an Event that recurs afterwards is counted anew.
pub struct Events {
    new_recorder: Box<dyn Fn() -> Recorder + Send + Sync>,
    current: Mutex<Current>,
}

struct Current {
    recorder: Recorder,
    published: u32,
}

/// The content of an Event.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// Normal or Warning.
    pub type_: EventType,
    /// Why: a CamelCase word.
    pub reason: &'a str,
    /// The action that was taken or that failed: a CamelCase word.
    pub action: &'a str,
    /// The message. What is too long for an Event is cut.
    pub message: &'a str,
}

impl Events {
    /// Publishes with this client in the name of this reporter.
    pub fn new(client: Client, reporter: Reporter) -> Self {
        Self::with_recorders(move || Recorder::new(client.clone(), reporter.clone()))
    }

    fn with_recorders(new_recorder: impl Fn() -> Recorder + Send + Sync + 'static) -> Self {
        let current = Mutex::new(Current { recorder: new_recorder(), published: 0 });
        Self { new_recorder: Box::new(new_recorder), current }
    }

    /// Publishes one Event about an object. A failure is only logged: no reconcile depends on an Event.
    pub async fn publish<K>(&self, object: &K, notice: Notice<'_>)
    where
        K: Resource<DynamicType = ()> + Debug,
    {
        let event = Event {
            type_: notice.type_,
            reason: notice.reason.to_owned(),
            note: Some(note(notice.message)),
            action: notice.action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder().publish(&event, &object.object_ref(&())).await {
            tracing::debug!(%error, "failed to publish an Event");
        }
    }

    /// The recorder for the next Event.
    fn recorder(&self) -> Recorder {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.published == EVENTS_PER_RECORDER {
            *current = Current { recorder: (self.new_recorder)(), published: 0 };
        }
        current.published += 1;
        current.recorder.clone()
    }
}

/// The conditions whose status or reason changed, with the Event types that `classify` assigns to them. It receives the condition
/// before, if there was one, and after; none means that the transition has no Event. Of conditions with the same message only
/// the first is returned: one cause often changes several conditions.
pub fn transitions<'a>(
    old: &[Condition],
    new: &'a [Condition],
    classify: impl Fn(Option<&Condition>, &Condition) -> Option<EventType>,
) -> Vec<(EventType, &'a Condition)> {
    let mut messages = BTreeSet::new();
    let changed = new.iter().filter_map(|condition| {
        let before = old.iter().find(|old| old.type_ == condition.type_);
        let is_changed = before.is_none_or(|old| old.status != condition.status || old.reason != condition.reason);
        let type_ = classify(before, condition).filter(|_| is_changed)?;
        Some((type_, condition))
    });
    changed.filter(|(_, condition)| messages.insert(&condition.message)).collect()
}

fn note(message: &str) -> String {
    let message = printable(message);
    let mut end = message.len().min(NOTE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[tokio::test]
    async fn a_recorder_is_replaced_before_it_keeps_too_many_events() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let recorders = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&recorders);
        let events = Events::with_recorders(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Recorder::new(client.clone(), "test".into())
        });
        for (published, expected) in [(EVENTS_PER_RECORDER, 1), (1, 2), (EVENTS_PER_RECORDER, 3)] {
            for _ in 0..published {
                let _ = events.recorder();
            }
            assert_eq!(recorders.load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn only_classified_transitions_are_returned_and_each_message_once() {
        let old = [condition("A", "True", "Fine", ""), condition("B", "True", "Fine", "")];
        let new = [
            condition("A", "False", "Broken", "x"),
            condition("B", "True", "Fine", "another message of the same reason"),
            condition("C", "False", "Broken", "x"),
            condition("Silent", "False", "Broken", "y"),
            condition("D", "True", "Fine", "z"),
        ];
        let classify = |before: Option<&Condition>, condition: &Condition| match before {
            _ if condition.type_ == "Silent" => None,
            Some(_) => Some(EventType::Warning),
            None => Some(EventType::Normal),
        };
        let of = |old: &[Condition]| -> Vec<(EventType, String)> {
            let transitions = transitions(old, &new, classify);
            transitions.into_iter().map(|(type_, condition)| (type_, condition.type_.clone())).collect()
        };
        assert_eq!(of(&old), [(EventType::Warning, "A".to_owned()), (EventType::Normal, "D".to_owned())]);
        assert!(of(&new).is_empty());
    }

    #[test]
    fn a_note_is_cut_between_characters() {
        let note = note(&"ä".repeat(600));
        assert_eq!(note.chars().count(), NOTE_BYTES / 2);
    }
}
