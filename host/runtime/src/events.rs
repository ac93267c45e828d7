//! Publishes Events.
//!
//! They are `events.k8s.io/v1`. An Event that recurs with the same note is counted in a series (`series`); any other one is a new
//! object, so that no text is lost. An object has a limited number of new ones (`rate`).

mod rate;
mod series;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Debug,
    sync::Arc,
    time::Instant,
};

use chandler_core::{Digest, text::printable};
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta},
    jiff::Timestamp,
};
pub use kube::runtime::events::EventType;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use self::{
    rate::Rates,
    series::{Published, Write},
};

/// The bytes of an Event's note that the API server accepts (`events.k8s.io/v1`: at most 1 KiB).
const NOTE_BYTES: usize = 1000;

/// The bytes of an object's name that the name of an Event begins with; a point and a number follow, and 253 are allowed.
const NAME_BYTES: usize = 220;

/// The namespace of Events about cluster-scoped objects.
const CLUSTER_NAMESPACE: &str = "default";

/// The annotation of a new Event with the ID of the trace in which it was published, while traces are exported.
pub const TRACE_ID: &str = "chandler.dev/trace-id";

/// Publishes Events in the name of one reporter.
pub struct Events {
    client: Client,
    reporter: String,
    published: Mutex<Published>,
    rates: Mutex<Rates>,
    announced: Option<Announce>,
}

/// Takes each Event that is published. It is called within a reconcile, and must neither wait nor fail.
pub type Announce = Arc<dyn Fn(&Announcement<'_>) + Send + Sync>;

/// An Event that is published.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// The object that it is about.
    pub regarding: &'a ObjectReference,
    /// The object itself.
    pub object: &'a dyn Any,
    /// The labels of the object.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// The content. The message is the note of the Event: printable, and cut.
    pub notice: Notice<'a>,
    /// When it is published.
    pub time: Timestamp,
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
    /// The message, which is made printable, and cut if it is too long for an Event.
    pub message: &'a str,
}

impl Events {
    /// Publishes with this client in the name of this controller.
    pub fn new(client: Client, reporter: impl Into<String>) -> Self {
        Self {
            client,
            reporter: reporter.into(),
            published: Mutex::default(),
            rates: Mutex::default(),
            announced: None,
        }
    }

    /// Also gives each Event to this function, whether or not the API server accepts the Event.
    #[must_use]
    pub fn announcing(self, announce: Announce) -> Self {
        Self { announced: Some(announce), ..self }
    }

    /// Publishes one Event about an object. A failure is only logged: no reconcile depends on an Event.
    pub async fn publish<K>(&self, object: &K, notice: Notice<'_>)
    where
        K: Resource<DynamicType = ()> + Debug + 'static,
    {
        let (regarding, now) = (object.object_ref(&()), Timestamp::now());
        let note = printable(notice.message);
        let notice = Notice { message: cut(&note, NOTE_BYTES), ..notice };
        if let Some(announce) = &self.announced {
            let labels = object.meta().labels.as_ref();
            announce(&Announcement { regarding: &regarding, object, labels, notice, time: now });
        }
        if let Err(error) = self.write(regarding, notice, now).await {
            tracing::debug!(%error, "failed to publish an Event");
        }
    }

    async fn write(&self, regarding: ObjectReference, notice: Notice<'_>, now: Timestamp) -> Result<(), kube::Error> {
        let namespace = regarding.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let event = self.event(regarding.clone(), namespace, notice, now);
        let content = content(&event);
        let write = self.published().write(&content, Instant::now());
        if let Write::Count { name, count } = write {
            let series = EventSeries { count, last_observed_time: MicroTime(Timestamp::now()) };
            let patch = Patch::Merge(json!({"series": series}));
            match api.patch(&name, &PatchParams::default(), &patch).await {
                // The API server removes Events after an hour or so.
                Err(kube::Error::Api(status)) if status.is_not_found() => self.published().forget(&content),
                counted => return counted.map(drop),
            }
        }
        if !self.rates.lock().allow(object(&event), Instant::now()) {
            tracing::debug!(name = ?event.metadata.name, "the object has too many Events: this one is not published");
            return Ok(());
        }
        api.create(&PostParams::default(), &event).await?;
        let name = event.metadata.name.unwrap_or_default();
        self.published().created(content, name, Instant::now());
        Ok(())
    }

    fn event(&self, regarding: ObjectReference, namespace: &str, notice: Notice<'_>, now: Timestamp) -> Event {
        let Notice { type_, reason, action, message } = notice;
        let object = cut(regarding.name.as_deref().unwrap_or(&self.reporter), NAME_BYTES);
        let type_ = match type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", object.trim_end_matches(['.', '-']), now.as_nanosecond())),
                namespace: Some(namespace.to_owned()),
                annotations: chandler_traces::trace_id().map(|id| BTreeMap::from([(TRACE_ID.to_owned(), id)])),
                ..ObjectMeta::default()
            },
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            action: Some(action.to_owned()),
            note: Some(message.to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(regarding),
            reporting_controller: Some(self.reporter.clone()),
            reporting_instance: Some(self.reporter.clone()),
            ..Event::default()
        }
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock()
    }
}

/// The digest of the object that an Event is about.
fn object(event: &Event) -> Digest {
    let object = event.regarding.as_ref().map(|object| (&object.kind, &object.namespace, &object.name, &object.uid));
    Digest::of_json(&json!(object))
}

/// The digest of everything that a user sees of an Event but its time.
fn content(event: &Event) -> Digest {
    let object = event
        .regarding
        .as_ref()
        .map(|object| (&object.api_version, &object.kind, &object.namespace, &object.name, &object.uid));
    Digest::of_json(&json!([object, event.type_, event.reason, event.action, event.note]))
}

/// Forgets what has ended at this time, and at least half of all, what ends first.
fn make_room<V>(all: &mut HashMap<Digest, V>, now: Instant, end: impl Fn(&V) -> Instant) {
    let mut ends: Vec<Instant> = all.values().map(&end).collect();
    ends.sort_unstable();
    let median = ends.get(ends.len() / 2).copied().unwrap_or(now);
    all.retain(|_, value| end(value) > median.max(now));
}

/// The first bytes of a text, to the end of a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The conditions whose status or reason changed, with the Event types that `classify` assigns to them. It receives the condition before, if
/// there was one, and after; `None` means that the transition has no Event. If several conditions have the same message, only the first is
/// returned: one cause often changes several conditions.
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

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use http::{Method, Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::client::Body;
    use serde_json::Value;

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

    /// The requests of `Events` to an API server. If `expired`, it has deleted all Events.
    struct Server {
        events: Events,
        requests: Arc<Mutex<Vec<(Method, String, Value)>>>,
    }

    impl Server {
        fn new(expired: bool) -> Self {
            let requests = Arc::<Mutex<Vec<_>>>::default();
            let received = Arc::clone(&requests);
            let service = tower::service_fn(move |request: Request<Body>| {
                let received = Arc::clone(&received);
                async move {
                    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                    let body = request.into_body().collect_bytes().await.unwrap();
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    let gone = expired && method == Method::PATCH;
                    let (code, answer) = if gone {
                        (
                            404,
                            json!({"kind": "Status", "code": 404, "reason": "NotFound", "status": "Failure", "message": ""}),
                        )
                    } else {
                        (200, json!({"metadata": {}, "eventTime": null}))
                    };
                    received.lock().push((method, path, body));
                    let answer = Body::from(answer.to_string().into_bytes());
                    Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
                }
            });
            Self { events: Events::new(Client::new(service, "default"), "chandler"), requests }
        }

        async fn publish(&self, object: &str, message: &str) {
            let object = ConfigMap {
                metadata: ObjectMeta { name: Some(object.to_owned()), ..ObjectMeta::default() },
                ..ConfigMap::default()
            };
            let notice = Notice { type_: EventType::Normal, reason: "DriftRepaired", action: "Repair", message };
            self.events.publish(&object, notice).await;
        }

        /// Method and note, or count, of each request.
        fn requests(&self) -> Vec<String> {
            let describe = |(method, path, body): &(Method, String, Value)| {
                assert!(path.starts_with("/apis/events.k8s.io/v1/namespaces/default/events"), "{path}");
                let what = if body["series"].is_null() { &body["note"] } else { &body["series"]["count"] };
                format!("{method} {what}")
            };
            self.requests.lock().iter().map(describe).collect()
        }
    }

    #[tokio::test]
    async fn events_with_other_notes_are_not_merged() {
        let server = Server::new(false);
        for number in 0..12 {
            server.publish("a", &format!("repaired {number}")).await;
        }
        let expected: Vec<String> = (0..12).map(|number| format!("POST \"repaired {number}\"")).collect();
        assert_eq!(server.requests(), expected);
    }

    #[tokio::test]
    async fn an_object_has_a_limited_number_of_new_events() {
        let server = Server::new(false);
        for number in 0..200 {
            server.publish("a", &format!("repaired {number}")).await;
        }
        server.publish("b", "another object").await;
        let requests = server.requests();
        assert_eq!((requests.len(), requests[50].as_str()), (51, "POST \"another object\""));
        server.publish("a", "repaired 1").await;
        assert_eq!(server.requests()[51], "PATCH 2", "a known one is still counted");
    }

    #[tokio::test]
    async fn an_event_that_recurs_is_counted() {
        for (expired, third) in [(false, vec!["PATCH 3"]), (true, vec!["PATCH 2", "POST \"same\""])] {
            let server = Server::new(expired);
            server.publish("a", "same").await;
            server.publish("b", "same").await;
            server.publish("a", "same").await;
            server.publish("a", "same").await;
            let second = if expired { vec!["PATCH 2", "POST \"same\""] } else { vec!["PATCH 2"] };
            assert_eq!(server.requests(), [vec!["POST \"same\"", "POST \"same\""], second, third].concat());
        }
    }

    #[tokio::test]
    async fn an_announcement_says_what_the_event_says() {
        let announced = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&announced);
        let mut server = Server::new(false);
        server.events = server.events.announcing(Arc::new(move |it: &Announcement<'_>| {
            seen.lock().push(format!("{:?} {}", it.regarding.name, it.notice.message));
        }));
        let long = format!("a\u{200b}{}", "ä".repeat(600));
        server.publish("a", &long).await;
        server.publish("a", &long).await;
        let note = server.requests.lock()[0].2["note"].as_str().unwrap().to_owned();
        assert!(note.starts_with("a\\u{200B}ä") && note.len() <= NOTE_BYTES, "{note}");
        let expected = format!("Some(\"a\") {note}");
        assert_eq!(*announced.lock(), [expected.clone(), expected], "also one that is only counted");
    }

    #[tokio::test]
    async fn the_name_of_an_event_is_never_too_long() {
        let server = Server::new(false);
        server.publish(&format!("{}.x", "a".repeat(219)), "").await;
        let name = server.requests.lock()[0].2["metadata"]["name"].as_str().unwrap().to_owned();
        let (object, number) = name.split_once('.').unwrap();
        assert!(object == "a".repeat(219) && number.len() >= 15 && name.len() < 253, "{name}");
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
        assert_eq!(cut(&"ä".repeat(600), NOTE_BYTES + 1).chars().count(), NOTE_BYTES / 2);
        assert_eq!(cut("short", NOTE_BYTES), "short");
    }
}
