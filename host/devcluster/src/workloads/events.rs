//! Records Events as client-go's recorder does: repeated Events are counted, similar ones are aggregated, and there is a
//! bound on how many are kept.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::{
    action::Note,
    fields::{hexadecimal, text},
    kind::Kind,
    pods::NODE,
};
use crate::{
    clock::{Clock, Moment},
    metadata,
};

/// How many Events may wait to be written; more are dropped, since no controller may wait for them.
const WAITING: usize = 4096;
/// How many Events are kept; the oldest are deleted.
const KEPT: usize = 4096;
/// How many messages of one reason an object may have within [`WINDOW`] before they are combined.
const ALIKE: usize = 10;
const WINDOW: Duration = Duration::from_mins(10);
const ATTEMPTS: u32 = 3;

/// Accepts Events to record.
#[derive(Clone, Debug)]
pub(super) struct Recorder(mpsc::Sender<Occurrence>);

#[derive(Debug)]
struct Occurrence {
    involved: Value,
    note: Note,
}

impl Recorder {
    /// A recorder, and the future that writes its Events until the recorder is dropped.
    pub(super) fn new(client: Client, clock: Clock) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), Teller { client, clock, book: Book::default() }.run(receiver))
    }

    /// Tells an Event about an object; it is dropped when too many wait.
    pub(super) fn record_event(&self, kind: Kind, object: &Value, note: Note) {
        let involved = json!({
            "apiVersion": kind.api_version(), "kind": kind.name(), "name": metadata::name(object),
            "namespace": metadata::namespace(object), "uid": metadata::uid(object),
            "resourceVersion": metadata::text(object, "resourceVersion"),
        });
        if self.0.try_send(Occurrence { involved, note }).is_err() {
            tracing::debug!("too many Events of simulated workloads wait; one was dropped");
        }
    }
}

/// The recorded Events.
#[derive(Debug, Default)]
struct Book {
    counts: HashMap<String, i64>,
    /// Namespace and name of the Events, oldest first.
    order: VecDeque<(String, String)>,
    alike: HashMap<String, (Moment, HashSet<String>)>,
}

/// The request to send.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    First { name: String, message: String },
    Again { name: String, count: i64 },
}

impl Book {
    fn note(&mut self, occurrence: &Occurrence, now: Option<Moment>) -> Entry {
        let Occurrence { involved, note } = occurrence;
        let subject = format!("{}/{}/{}", text(involved, "/uid"), note.component, note.reason);
        let mut message = note.message.clone();
        if let Some(now) = now {
            let (until, messages) = self.alike.entry(subject.clone()).or_insert_with(|| (now + WINDOW, HashSet::new()));
            if *until <= now {
                (*until, *messages) = (now + WINDOW, HashSet::new());
            }
            if messages.len() < ALIKE {
                messages.insert(message.clone());
            } else if !messages.contains(&message) {
                "(combined from similar events)".clone_into(&mut message);
            }
            if self.alike.len() > KEPT {
                self.alike.retain(|_, (until, _)| *until > now);
            }
            if self.alike.len() > KEPT {
                self.alike.clear();
            }
        }
        let digest: [u8; 32] = Sha256::digest(format!("{subject}/{}/{message}", note.warning)).into();
        let hash: String = hexadecimal(&digest).chars().take(16).collect();
        let name = format!("{}.{hash}", text(involved, "/name"));
        let combined = message != note.message;
        let count = self.counts.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return Entry::Again { name, count: *count };
        }
        let message = if combined { format!("{message}: {}", note.message) } else { message };
        self.order.push_back((namespace(involved).to_owned(), name.clone()));
        Entry::First { name, message }
    }

    /// The Event that must go to make room.
    fn surplus(&mut self) -> Option<(String, String)> {
        if self.order.len() <= KEPT {
            return None;
        }
        let oldest = self.order.pop_front()?;
        self.counts.remove(&oldest.1);
        Some(oldest)
    }
}

/// Where an Event about an object is kept.
fn namespace(involved: &Value) -> &str {
    match text(involved, "/namespace") {
        "" => "default",
        namespace => namespace,
    }
}

struct Teller {
    client: Client,
    clock: Clock,
    book: Book,
}

impl Teller {
    async fn run(mut self, mut occurrences: mpsc::Receiver<Occurrence>) {
        while let Some(occurrence) = occurrences.recv().await {
            let entry = self.book.note(&occurrence, Some(self.clock.moment()));
            self.write(&occurrence, entry).await;
            if let Some((namespace, name)) = self.book.surplus() {
                // Whether it was there does not matter.
                let _ = self.api(&namespace).delete(&name, &DeleteParams::default()).await;
            }
        }
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Event"), "events");
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    async fn write(&self, occurrence: &Occurrence, entry: Entry) {
        let api = self.api(namespace(&occurrence.involved));
        for attempt in 1..=ATTEMPTS {
            let written = match &entry {
                Entry::First { name, message } => self.create(&api, occurrence, name, message).await,
                Entry::Again { name, count } => self.count(&api, name, *count).await,
            };
            match written {
                Ok(()) => return,
                Err(kube::Error::Api(status)) if matches!(status.code, 400..=422) => return,
                Err(error) if attempt == ATTEMPTS => tracing::debug!(%error, "failed to write an Event"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50) * attempt).await,
            }
        }
    }

    async fn create(
        &self,
        api: &Api<DynamicObject>,
        occurrence: &Occurrence,
        name: &str,
        message: &str,
    ) -> kube::Result<()> {
        let Occurrence { involved, note } = occurrence;
        let now = self.clock.timestamp();
        let on_node = note.component == "kubelet";
        let mut source = json!({"component": note.component});
        if on_node {
            metadata::as_map(&mut source).insert("host".to_owned(), NODE.into());
        }
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": namespace(involved)},
            "involvedObject": involved, "reason": note.reason, "message": message,
            "type": if note.warning { "Warning" } else { "Normal" }, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now, "source": source,
            "reportingComponent": note.component, "reportingInstance": if on_node { NODE } else { "" },
        });
        let event: DynamicObject = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
        match api.create(&PostParams::default(), &event).await {
            // Told by an earlier run.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let known = api.get(name).await?;
                let count = known.data.get("count").and_then(Value::as_i64).unwrap_or(1);
                self.count(api, name, count + 1).await
            }
            created => created.map(drop),
        }
    }

    async fn count(&self, api: &Api<DynamicObject>, name: &str, count: i64) -> kube::Result<()> {
        let change = json!({"count": count, "lastTimestamp": self.clock.timestamp()});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrence(uid: &str, message: String) -> Occurrence {
        let involved = json!({"kind": "Pod", "name": "web", "namespace": "n", "uid": uid});
        Occurrence { involved, note: Note::normal("kubelet", "BackOff", message) }
    }

    #[test]
    fn the_same_event_counts_up_and_many_alike_are_combined() {
        let clock = Clock::manual(time::OffsetDateTime::UNIX_EPOCH);
        let mut book = Book::default();
        let tell =
            |book: &mut Book, message: &str| book.note(&occurrence("1", message.to_owned()), Some(clock.moment()));
        let Entry::First { name, message } = tell(&mut book, "again") else { panic!("new") };
        assert_eq!(message, "again");
        assert_eq!(tell(&mut book, "again"), Entry::Again { name: name.clone(), count: 2 });
        for number in 1..ALIKE {
            assert!(matches!(tell(&mut book, &number.to_string()), Entry::First { .. }));
        }
        let Entry::First { message, .. } = tell(&mut book, "one more") else { panic!("the first that is combined") };
        assert_eq!(message, "(combined from similar events): one more");
        assert!(matches!(tell(&mut book, "and more"), Entry::Again { count: 2, .. }));
        assert_eq!(tell(&mut book, "again"), Entry::Again { name, count: 3 });
        clock.advance(WINDOW);
        assert!(matches!(tell(&mut book, "after a while"), Entry::First { message, .. } if message == "after a while"));
        let other = book.note(&occurrence("2", "again".to_owned()), None);
        assert!(matches!(other, Entry::First { .. }), "another object of the name");
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut book = Book::default();
        for number in 0..KEPT {
            book.note(&occurrence(&number.to_string(), String::new()), None);
            assert_eq!(book.surplus(), None);
        }
        book.note(&occurrence("last", String::new()), None);
        assert!(book.surplus().is_some());
        assert_eq!((book.order.len(), book.counts.len()), (KEPT, KEPT));
    }
}
