//! The versions and the change log, without locks.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::watch;

use crate::store::{
    Batch, Change, Compacted, Event, Expected, Key, Limits, Listing, Mismatch, Object, Page, PageRequest, Recovered,
    Scope,
    object::Meter,
    table::{Table, Version, superseded_bytes},
};

/// Tells that something in a scope may have changed; the value is a revision.
pub(crate) type Changed = watch::Receiver<u64>;

/// The content of the store, which a lock protects.
#[derive(Debug)]
pub(crate) struct State {
    limits: Limits,
    revision: u64,
    /// Revisions before this one can neither be watched from nor be listed at.
    compacted: u64,
    tables: HashMap<Arc<str>, Table>,
    /// The written keys by revision; the revisions are consecutive.
    log: VecDeque<(u64, Key)>,
    superseded_bytes: usize,
    /// The keys of expiring objects, by time in seconds since 1970.
    expiring: BTreeSet<(i64, Key)>,
    meter: Arc<Meter>,
    /// The size of parsed objects that could not be dropped last time, since readers hold them: another attempt would not help.
    held: AtomicUsize,
    changed: watch::Sender<u64>,
    /// How often an earlier state was restored. Watches from before continue at revisions that this state has not reached, or has
    /// given to other writes.
    restorations: u64,
}

/// The objects of a store at one revision, as a snapshot of etcd has them.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    objects: Vec<(Key, Version)>,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) key: Key,
    pub(crate) version: Version,
    /// The watchers to notify, once they may see the change.
    pub(crate) changed: [watch::Sender<u64>; 2],
}

impl Committed {
    pub(crate) fn notify(&self) {
        for changed in &self.changed {
            changed.send_replace(self.version.revision());
        }
    }
}

/// The persistent part.
#[derive(Debug)]
pub(crate) struct Restored {
    /// The next write gets a greater one.
    pub(crate) revision: u64,
    pub(crate) objects: Vec<(Key, Version)>,
    pub(crate) meter: Arc<Meter>,
    /// The recovered state, if the store was not closed cleanly.
    pub(crate) recovered: Option<Recovered>,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self::restore(limits, Restored { revision: 1, objects: Vec::new(), meter: Arc::default(), recovered: None })
    }

    /// The state after a restart: no history.
    pub(crate) fn restore(limits: Limits, restored: Restored) -> Self {
        let Restored { revision, objects, meter, recovered: _ } = restored;
        let mut state = Self {
            limits,
            revision,
            // A new store has no history to forget.
            compacted: if objects.is_empty() && revision == 1 { 0 } else { revision },
            tables: HashMap::new(),
            log: VecDeque::new(),
            superseded_bytes: 0,
            expiring: BTreeSet::new(),
            meter,
            held: AtomicUsize::new(0),
            changed: watch::Sender::new(0),
            restorations: 0,
        };
        state.fill(objects);
        state
    }

    fn fill(&mut self, objects: Vec<(Key, Version)>) {
        let state = self;
        for (key, version) in objects {
            state.expiring.extend(version.expires.map(|expires| (expires, key.clone())));
            let table = state.tables.entry(Arc::clone(&key.resource)).or_default();
            table.push(&key.namespace, &key.name, version);
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.list_at(&Scope { resource: None, namespace: None }, self.revision).objects;
        let objects = now.into_iter().filter_map(|(key, _)| {
            let version = self.get(&key)?.clone();
            Some((key, version))
        });
        Snapshot { revision: self.revision, objects: objects.collect() }
    }

    /// Takes the state of a snapshot: revisions continue from there, and there is no history.
    pub(crate) fn rewind(&mut self, snapshot: &Snapshot) {
        self.expiring.clear();
        self.log.clear();
        self.superseded_bytes = 0;
        (self.revision, self.compacted) = (snapshot.revision, snapshot.revision);
        self.restorations += 1;
        self.tables.values_mut().for_each(Table::clear);
        self.fill(snapshot.objects.clone());
        self.changed.send_replace(self.revision);
        for table in self.tables.values() {
            table.changed.send_replace(self.revision);
        }
    }

    pub(crate) fn restorations(&self) -> u64 {
        self.restorations
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Version> {
        let version = self.tables.get(&key.resource)?.get(&key.namespace, &key.name)?.latest();
        version.present().map(|_| version)
    }

    pub(crate) fn put(
        &mut self,
        key: Key,
        expected: Expected,
        value: Value,
        expires: Option<i64>,
    ) -> Result<Committed, Mismatch> {
        match (expected, self.get(&key)) {
            (Expected::Absent, None) => {}
            (Expected::Revision(revision), Some(current)) if current.revision() == revision => {}
            _ => return Err(Mismatch),
        }
        let object = Arc::new(Object::new(value, self.revision + 1, &self.meter));
        Ok(self.commit(key, Version { object, deleted: false, expires }))
    }

    pub(crate) fn delete(&mut self, key: &Key, revision: u64, last: Option<Value>) -> Result<Committed, Mismatch> {
        let current = self.get(key).filter(|current| current.revision() == revision).ok_or(Mismatch)?;
        let last = last.unwrap_or_else(|| current.object.peek().into_owned());
        let object = Arc::new(Object::new(last, self.revision + 1, &self.meter));
        Ok(self.commit(key.clone(), Version { object, deleted: true, expires: None }))
    }

    fn commit(&mut self, key: Key, version: Version) -> Committed {
        self.revision += 1;
        let table = self.tables.entry(Arc::clone(&key.resource)).or_default();
        if let Some(superseded) = table.push(&key.namespace, &key.name, version.clone()) {
            self.superseded_bytes += superseded_bytes(superseded);
            if let Some(expires) = superseded.expires {
                self.expiring.remove(&(expires, key.clone()));
            }
        }
        let changed = [table.changed.clone(), self.changed.clone()];
        self.expiring.extend(version.expires.map(|expires| (expires, key.clone())));
        self.log.push_back((self.revision, key.clone()));
        self.trim();
        Committed { key, version, changed }
    }

    /// The objects that have expired by a time.
    pub(crate) fn expired(&self, now: i64) -> Vec<(Key, u64)> {
        let expired = self.expiring.iter().take_while(|(expires, _)| *expires <= now);
        expired.filter_map(|(_, key)| Some((key.clone(), self.get(key)?.revision()))).collect()
    }

    pub(crate) fn next_expiry(&self) -> Option<i64> {
        self.expiring.first().map(|(expires, _)| *expires)
    }

    /// Compacts when the history has grown to twice its limit, so that the cost of a pass is shared by many writes.
    fn trim(&mut self) {
        let length = self.log.len() as u64;
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
        self.log.drain(..self.log.partition_point(|(written, _)| *written <= revision));
        for table in self.tables.values_mut() {
            let gone = table.compact(revision);
            self.superseded_bytes = self.superseded_bytes.saturating_sub(gone);
        }
    }

    /// Whether more is parsed than is allowed.
    pub(crate) fn has_too_much_parsed(&self) -> bool {
        let parsed = self.meter.bytes();
        let held = self.held.fetch_min(parsed, Ordering::Relaxed).min(parsed);
        parsed - held > self.limits.parsed_bytes
    }

    pub(crate) fn drop_parsed(&mut self) {
        self.tables.values_mut().for_each(Table::drop_parsed);
        self.held.store(self.meter.bytes(), Ordering::Relaxed);
    }

    /// The revision to list at.
    fn listed(&self, revision: Option<u64>) -> Result<u64, Compacted> {
        match revision {
            Some(revision) if revision < self.compacted => Err(self.compacted_error(revision)),
            _ => Ok(revision.map_or(self.revision, |revision| revision.min(self.revision))),
        }
    }

    pub(crate) fn list(&self, scope: &Scope, revision: Option<u64>) -> Result<Listing, Compacted> {
        Ok(self.list_at(scope, self.listed(revision)?))
    }

    pub(crate) fn list_now(&self, scope: &Scope) -> Listing {
        self.list_at(scope, self.revision)
    }

    fn list_at(&self, scope: &Scope, revision: u64) -> Listing {
        let mut objects = Vec::new();
        let namespace = scope.namespace.as_deref();
        if let Some(resource) = &scope.resource {
            if let Some((resource, table)) = self.tables.get_key_value(resource) {
                table.collect(resource, namespace, revision, &mut objects);
            }
        } else {
            let mut tables: Vec<_> = self.tables.iter().collect();
            tables.sort_unstable_by_key(|(resource, _)| *resource);
            for (resource, table) in tables {
                table.collect(resource, namespace, revision, &mut objects);
            }
        }
        Listing { objects, revision }
    }

    pub(crate) fn page(
        &self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        request: PageRequest<'_>,
    ) -> Result<Page, Compacted> {
        let revision = self.listed(request.revision)?;
        Ok(match self.tables.get_key_value(resource) {
            Some((resource, table)) => table.page(resource, namespace, revision, request),
            None => Page { objects: Vec::new(), revision, remaining: 0 },
        })
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

    /// Events of a scope after a revision, up to one that watchers may see.
    pub(crate) fn batch(&self, scope: &Scope, after: u64, visible: u64, limit: usize) -> Result<Batch, Compacted> {
        if after < self.compacted {
            return Err(self.compacted_error(after));
        }
        let visible = visible.min(self.revision);
        let mut batch = Batch { events: Vec::new(), revision: visible.max(after.min(self.revision)) };
        let first = self.log.partition_point(|(revision, _)| *revision <= after);
        let log = self.log.range(first..).take_while(|(revision, _)| *revision <= visible);
        for (revision, key) in log.filter(|(_, key)| scope.contains(key)) {
            batch.events.extend(self.event(*revision, key));
            if batch.events.len() == limit {
                batch.revision = *revision;
                break;
            }
        }
        Ok(batch)
    }

    fn event(&self, revision: u64, key: &Key) -> Option<Event> {
        let versions = self.tables.get(&key.resource)?.get(&key.namespace, &key.name)?;
        let (version, before) = versions.change(revision)?;
        let previous = before.and_then(Version::present).map(Arc::clone);
        let change = match (version.deleted, &previous) {
            (true, _) => Change::Deleted,
            (false, Some(_)) => Change::Modified,
            (false, None) => Change::Added,
        };
        Some(Event { change, key: key.clone(), object: Arc::clone(&version.object), previous })
    }

    fn compacted_error(&self, requested: u64) -> Compacted {
        Compacted { requested, oldest: self.compacted }
    }
}
