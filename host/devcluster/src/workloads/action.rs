//! What a decision asks for.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    fields::difference,
    kind::{Key, Kind},
};
use crate::metadata;

/// An Event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    /// `{name}` is replaced by the name of a created object.
    pub(super) message: String,
    /// The reporting component, e.g. `deployment-controller`.
    pub(super) component: &'static str,
}

impl Note {
    pub(super) fn normal(component: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: false, reason, message: message.into(), component }
    }

    pub(super) fn warning(component: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(component, reason, message) }
    }
}

/// One request, or one Event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Creates an object, and records an Event about the object of the decision.
    Create { kind: Kind, object: Value, note: Option<Note>, failure: Option<Note> },
    /// Deletes an object of a uid at once or gracefully.
    Delete { key: Key, uid: String, now: bool, note: Option<Note> },
    /// Merges into an object, provided that it is as it was seen.
    Change { key: Key, change: Value },
    /// Merges into the status of an object of a uid.
    Status { key: Key, change: Value },
    /// Binds a Pod to a node.
    Bind { key: Key, uid: String, node: String },
    /// Tells an Event about the object that is decided upon.
    Tell(Note),
}

/// The actions for an object, in order; after a failure, the rest is left for the next attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Decision {
    pub(super) actions: Vec<Action>,
    /// When to look again even if nothing changes.
    pub(super) again: Option<Duration>,
}

impl Decision {
    pub(super) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(super) fn record_event(&mut self, note: Note) {
        self.push(Action::Tell(note));
    }

    /// Looks again after this time at the latest.
    pub(super) fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |again| again.min(after)));
    }

    /// Writes a status where it differs.
    pub(super) fn status(&mut self, kind: Kind, object: &Value, wanted: &Value) {
        if let Some(change) = difference(object.get("status").unwrap_or(&Value::Null), wanted) {
            let change = json!({"metadata": {"uid": metadata::uid(object)}, "status": change});
            self.push(Action::Status { key: Key::of(kind, object), change });
        }
    }

    /// Merges a change into an object, provided that it is as it was seen.
    pub(super) fn change(&mut self, kind: Kind, object: &Value, mut change: Value) {
        let preconditions = metadata::of(&mut change);
        preconditions.insert("uid".to_owned(), metadata::uid(object).into());
        preconditions.insert("resourceVersion".to_owned(), metadata::text(object, "resourceVersion").into());
        self.push(Action::Change { key: Key::of(kind, object), change });
    }

    pub(super) fn delete(&mut self, kind: Kind, object: &Value, note: Option<Note>) {
        let uid = metadata::uid(object).to_owned();
        self.push(Action::Delete { key: Key::of(kind, object), uid, now: false, note });
    }
}
