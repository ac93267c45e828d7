//! The versions and the change log.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;
use tokio::sync::watch;

use super::{
    Batch, Change, Changed, Compacted, Event, Expected, Key, Limits, Listing, Mismatch, Object, Scope, object::weight,
};

/// Namespace and name.
type Place = (String, String);

/// What the store holds; a lock stands around it.
#[derive(Debug)]
pub(crate) struct State {
    limits: Limits,
    revision: u64,
    /// Revisions up to this one cannot be watched from or listed at, except the latest.
    compacted: u64,
    tables: HashMap<Arc<str>, Table>,
    /// The revisions of the events are consecutive.
    log: VecDeque<Event>,
    superseded_bytes: usize,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Place, Vec<Version>>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Version {
    revision: u64,
    /// `None` says that the object was deleted.
    object: Option<Arc<Object>>,
}

impl Default for Table {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), changed: watch::Sender::new(0) }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            revision: 1,
            compacted: 0,
            tables: HashMap::new(),
            log: VecDeque::new(),
            superseded_bytes: 0,
            changed: watch::Sender::new(0),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        let table = self.tables.get(&key.resource)?;
        table.objects.get(&(key.namespace.clone(), key.name.clone()))?.last()?.object.clone()
    }

    pub(crate) fn put(&mut self, key: Key, expected: Expected, value: Value) -> Result<Arc<Object>, Mismatch> {
        let current = self.get(&key);
        let change = match (expected, &current) {
            (Expected::Absent, None) => Change::Added,
            (Expected::Revision(revision), Some(current)) if current.revision() == revision => Change::Modified,
            _ => return Err(Mismatch),
        };
        let object = Arc::new(Object::new(value, self.revision + 1));
        self.commit(Event { change, key, object: Arc::clone(&object), previous: current });
        Ok(object)
    }

    pub(crate) fn delete(&mut self, key: &Key, revision: u64, last: Option<Value>) -> Result<Arc<Object>, Mismatch> {
        let current = self.get(key).filter(|current| current.revision() == revision).ok_or(Mismatch)?;
        let object = Arc::new(Object::new(last.unwrap_or_else(|| current.value().clone()), self.revision + 1));
        self.commit(Event {
            change: Change::Deleted,
            key: key.clone(),
            object: Arc::clone(&object),
            previous: Some(current),
        });
        Ok(object)
    }

    fn commit(&mut self, event: Event) {
        self.revision += 1;
        let revision = self.revision;
        let table = self.tables.entry(Arc::clone(&event.key.resource)).or_default();
        let object = (event.change != Change::Deleted).then(|| Arc::clone(&event.object));
        let place = (event.key.namespace.clone(), event.key.name.clone());
        table.objects.entry(place).or_default().push(Version { revision, object });
        table.changed.send_replace(revision);
        self.changed.send_replace(revision);
        self.superseded_bytes += event.previous.as_ref().map_or(0, |previous| weight(previous.value()));
        self.log.push_back(event);
        self.trim();
    }

    /// Compacts when the history has grown to twice its limit, so that the cost of a pass is shared by many writes.
    fn trim(&mut self) {
        let length = self.revision - self.compacted;
        if length > self.limits.revisions.saturating_mul(2) {
            self.compact(self.revision - self.limits.revisions);
        } else if self.superseded_bytes > self.limits.bytes && length > 1 {
            self.compact(self.revision - length / 2);
        }
    }

    pub(crate) fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        if revision <= self.compacted {
            return;
        }
        self.compacted = revision;
        while self.log.front().is_some_and(|event| event.object.revision() <= revision) {
            let event = self.log.pop_front();
            let bytes = event.and_then(|event| event.previous).map_or(0, |previous| weight(previous.value()));
            self.superseded_bytes = self.superseded_bytes.saturating_sub(bytes);
        }
        for table in self.tables.values_mut() {
            table.objects.retain(|_, versions| {
                // The newest version at or before the compaction is still what a later revision shows.
                let keep_from = versions.iter().rposition(|version| version.revision <= revision).unwrap_or(0);
                versions.drain(..keep_from);
                !matches!(versions.as_slice(), [only] if only.object.is_none() && only.revision <= revision)
            });
        }
    }

    pub(crate) fn list(&self, scope: &Scope, revision: Option<u64>) -> Result<Listing, Compacted> {
        match revision {
            Some(revision) if revision < self.revision => {
                if revision < self.compacted {
                    return Err(self.compacted_error(revision));
                }
                Ok(self.list_at(scope, revision))
            }
            _ => Ok(self.list_now(scope)),
        }
    }

    pub(crate) fn list_now(&self, scope: &Scope) -> Listing {
        self.list_at(scope, self.revision)
    }

    fn list_at(&self, scope: &Scope, revision: u64) -> Listing {
        let mut objects = Vec::new();
        match &scope.resource {
            Some(resource) => {
                if let Some((resource, table)) = self.tables.get_key_value(resource) {
                    table.collect(resource, scope.namespace.as_deref(), revision, &mut objects);
                }
            }
            None => {
                for (resource, table) in &self.tables {
                    table.collect(resource, scope.namespace.as_deref(), revision, &mut objects);
                }
            }
        }
        Listing { objects, revision }
    }

    pub(crate) fn subscribe(&mut self, scope: &Scope, after: u64) -> Result<Changed, Compacted> {
        if after < self.compacted {
            return Err(self.compacted_error(after));
        }
        Ok(self.subscribe_now(scope))
    }

    pub(crate) fn subscribe_now(&mut self, scope: &Scope) -> Changed {
        match &scope.resource {
            Some(resource) => self.tables.entry(Arc::clone(resource)).or_default().changed.subscribe(),
            None => self.changed.subscribe(),
        }
    }

    pub(crate) fn batch(&self, scope: &Scope, after: u64, limit: usize) -> Result<Batch, Compacted> {
        if after < self.compacted {
            return Err(self.compacted_error(after));
        }
        let first = self.log.partition_point(|event| event.object.revision() <= after);
        let mut batch = Batch { events: Vec::new(), revision: self.revision };
        for event in self.log.range(first..).filter(|event| scope.contains(&event.key)) {
            batch.events.push(event.clone());
            if batch.events.len() == limit {
                batch.revision = event.object.revision();
                break;
            }
        }
        Ok(batch)
    }

    fn compacted_error(&self, requested: u64) -> Compacted {
        Compacted { requested, oldest: self.compacted }
    }
}

impl Table {
    fn collect(&self, resource: &Arc<str>, namespace: Option<&str>, revision: u64, into: &mut Vec<(Key, Arc<Object>)>) {
        let start = (namespace.unwrap_or_default().to_owned(), String::new());
        for ((found, name), versions) in self.objects.range(start..) {
            if namespace.is_some_and(|namespace| namespace != found) {
                break;
            }
            let version = versions.iter().rev().find(|version| version.revision <= revision);
            if let Some(object) = version.and_then(|version| version.object.as_ref()) {
                into.push((Key::new(Arc::clone(resource), found.clone(), name.clone()), Arc::clone(object)));
            }
        }
    }
}
