//! Reads fields of an object that may be missing or have another type.

use serde_json::Value;

/// Reads fields of a live object. A field that is missing or has another type reads as empty.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a Value);

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) observed_generation: Option<i64>,
}

impl Condition<'_> {
    pub(crate) fn is(&self, kind: &str, status: &str) -> bool {
        self.kind == kind && self.status == status
    }

    /// Its message, or its reason if the message is empty.
    pub(crate) fn text(&self) -> String {
        let text = if self.message.is_empty() { self.reason } else { self.message };
        if text.is_empty() { format!("condition {} is {}", self.kind, self.status) } else { text.to_owned() }
    }
}

impl<'a> Reader<'a> {
    /// The string at this pointer; empty if there is none.
    pub(crate) fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer)?.as_i64()
    }

    /// A counter in `status`; zero if it is missing.
    pub(crate) fn count(self, field: &str) -> i64 {
        self.0.get("status").and_then(|status| status.get(field)?.as_i64()).unwrap_or(0)
    }

    pub(crate) fn flag(self, pointer: &str) -> bool {
        self.0.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn list(self, pointer: &str) -> impl Iterator<Item = Reader<'a>> + use<'a> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten().map(Reader)
    }

    pub(crate) fn group_kind(self) -> (&'a str, &'a str) {
        let group = self.text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        (group, self.text("/kind"))
    }

    pub(crate) fn annotation(self, name: &str) -> Option<&'a str> {
        self.0.get("metadata")?.get("annotations")?.get(name)?.as_str()
    }

    pub(crate) fn is_terminating(self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    pub(crate) fn conditions(self) -> impl Iterator<Item = Condition<'a>> + use<'a> {
        self.list("/status/conditions").map(|condition| Condition {
            kind: condition.text("/type"),
            status: condition.text("/status"),
            reason: condition.text("/reason"),
            message: condition.text("/message"),
            observed_generation: condition.number("/observedGeneration"),
        })
    }

    pub(crate) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.kind == kind)
    }
}

/// The message about an object that is being deleted, with the finalizers that hold it.
pub fn terminating(object: Reader<'_>) -> String {
    let finalizers: Vec<&str> =
        object.list("/metadata/finalizers").filter_map(|finalizer| finalizer.0.as_str()).collect();
    match finalizers.as_slice() {
        [] => "is being deleted".to_owned(),
        [one] => format!("is being deleted, held by finalizer {one}"),
        several => format!("is being deleted, held by finalizers {}", several.join(", ")),
    }
}
