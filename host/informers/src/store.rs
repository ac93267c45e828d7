//! The objects of one informer, as last observed or written. Pure.
//!
//! Events of the watch and answers to writes arrive in any order; the newest resource version wins.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use chandler_core::resource_version::compare;
use serde_json::Value;

use crate::{body::Body, claims::Claims};

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// None for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// An object that the watch or a write returned.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The set that its label names; the informer watches only objects with one.
    pub(crate) set: Option<String>,
    /// The owner that its label names.
    pub(crate) owner: Option<String>,
    pub(crate) claims: Claims,
    pub(crate) json: Vec<u8>,
}

/// The objects of a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    /// Their current state.
    pub objects: Vec<Value>,
    /// Objects whose state is unknown; they must be read, and may not exist.
    pub unknown: Vec<Id>,
}

/// Which objects of a set a caller needs whole. It is first asked about a name; if it declines, again with what shows whom the object belongs to:
/// the object without everything except its identity, its controller, and the labels and annotations of Chandler.
pub type Wanted<'a> = &'a (dyn Fn(&Id, Option<&Value>) -> bool + Sync);

/// The outcome of a write.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The API server returned the object.
    Written(&'a Value),
    /// The object with this UID is gone.
    Deleted(&'a str),
    /// Nothing changed.
    Refused,
    /// The object may have changed: the API server did not answer, or another client was faster.
    Unknown,
}

/// An object of the store.
#[derive(Debug)]
struct Entry {
    uid: String,
    version: String,
    set: Option<String>,
    owner: Option<String>,
    /// The object, and what shows whom it belongs to. `None` if the state is unknown.
    body: Option<(Body, Claims)>,
    /// The list during or after which it was observed last.
    list: u64,
    /// Whether the watch delivered this version. A list that began before a write need not contain what was written.
    confirmed: bool,
}

/// Writes in progress to one object.
#[derive(Debug, Default)]
struct WritesInProgress {
    count: usize,
    /// The newest event during the writes.
    held: Option<Held>,
}

/// An event that may be the effect of a write.
#[derive(Debug)]
struct Held {
    version: String,
    /// Whether it reports a deletion.
    deleted: bool,
    /// The owners to reconcile if it is the effect of something else.
    owners: Owners,
    /// The owners that lost the object to another one: they are reconciled in any case.
    former_owners: Owners,
}

impl Held {
    /// Whether it happened after the write that returned this version.
    fn is_after(&self, version: &str) -> bool {
        is_newer(&self.version, version) || (self.deleted && !is_older(&self.version, version))
    }
}

/// An object that this process removed from the selection of the watch. The watch has yet to report it.
#[derive(Debug)]
struct Tombstone {
    uid: String,
    /// The version of the write that removed it; none for a deletion, whose version is unknown.
    version: Option<String>,
    /// The last version that was known. Older events are late.
    after: String,
    list: u64,
}

/// The objects of one informer.
#[derive(Debug)]
pub(crate) struct Store {
    objects: HashMap<Id, Entry>,
    /// Sorted, as the API server lists them.
    sets: HashMap<String, BTreeSet<Id>>,
    in_progress: HashMap<Id, WritesInProgress>,
    tombstones: HashMap<Id, Tombstone>,
    /// The number of lists that began.
    lists: u64,
    /// The memory that it shares with other stores.
    memory: Memory,
    /// Its part of that memory.
    bytes: usize,
    /// An object that was older in a list than the watch had reported before.
    rewound: Option<Id>,
}

/// The owners to reconcile.
type Owners = BTreeSet<String>;

/// The memory for the objects of several stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    used: Arc<AtomicUsize>,
    /// The maximum in bytes. The state of further objects is unknown.
    limit: usize,
}

impl Memory {
    /// Memory for this many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes);
    }
}

impl Store {
    /// An empty store.
    pub(crate) fn new(memory: Memory) -> Self {
        let (objects, sets, in_progress, tombstones) = Default::default();
        Self { objects, sets, in_progress, tombstones, lists: 0, memory, bytes: 0, rewound: None }
    }

    /// The object that shows that the storage of the API server went back in time, once.
    pub(crate) fn take_rewound(&mut self) -> Option<Id> {
        self.rewound.take()
    }

    /// The objects of a set that are wanted, in one or all namespaces. Only these are read into memory.
    pub(crate) fn members(&self, set: &str, namespace: Option<&str>, wanted: Wanted<'_>) -> Members {
        let mut members = Members::default();
        let ids = self.sets.get(set).into_iter().flatten();
        for id in ids.filter(|id| namespace.is_none() || id.namespace.as_deref() == namespace) {
            let Some((body, claims)) = self.objects.get(id).and_then(|entry| entry.body.as_ref()) else {
                members.unknown.push(id.clone());
                continue;
            };
            if !wanted(id, None) && !wanted(id, Some(&claims.read())) {
                continue;
            }
            match body.read() {
                Some(object) => members.objects.push(object),
                None => members.unknown.push(id.clone()),
            }
        }
        members
    }

    /// A list begins.
    pub(crate) fn begin_list(&mut self) {
        self.lists += 1;
    }

    /// A list is complete: objects that it did not contain are gone. Returns the owners to reconcile.
    pub(crate) fn end_list(&mut self) -> Owners {
        let list = self.lists;
        let gone: Vec<Id> =
            self.objects.iter().filter(|(_, entry)| entry.list < list).map(|(id, _)| id.clone()).collect();
        let mut owners = Owners::new();
        for id in gone {
            owners.extend(self.remove(&id).and_then(|entry| entry.owner));
        }
        // The list may be older than what was written meanwhile, or newer than its deletion by another client.
        let unconfirmed: Vec<Id> =
            self.objects.iter().filter(|(_, entry)| !entry.confirmed).map(|(id, _)| id.clone()).collect();
        for id in unconfirmed {
            self.forget_body(&id);
        }
        self.tombstones.retain(|_, tombstone| tombstone.list >= list);
        owners
    }

    /// The watch reports an object. Returns the owners to reconcile.
    pub(crate) fn observe(&mut self, seen: Seen) -> Owners {
        if let Some(tombstone) = self.tombstones.get(&seen.id) {
            let is_late = tombstone.uid == seen.uid
                && tombstone.version.as_ref().is_none_or(|version| !is_newer(&seen.version, version));
            if is_late || is_older(&seen.version, &tombstone.after) {
                return Owners::new();
            }
            self.tombstones.remove(&seen.id);
        }
        let list = self.lists;
        if let Some(entry) = self.objects.get_mut(&seen.id) {
            // What the watch reported, it reported before this list began, and the list is consistent. The written version may be newer
            // than the list.
            let was_before = entry.confirmed && entry.list < list && entry.uid == seen.uid;
            if was_before && is_older(&seen.version, &entry.version) {
                self.rewound = Some(seen.id.clone());
            }
            entry.list = list;
            let known = entry.body.is_some();
            if known && !is_newer(&seen.version, &entry.version) {
                entry.confirmed |= seen.version == entry.version;
                return Owners::new();
            }
            if is_older(&seen.version, &entry.version) {
                return Owners::new();
            }
        }
        let (id, version, owner) = (seen.id.clone(), seen.version.clone(), seen.owner.clone());
        let before = self.insert(seen, true).and_then(|entry| entry.owner);
        let former_owners = former_owner(before.as_deref(), owner.as_deref());
        let owners = before.into_iter().chain(owner).collect();
        self.hold_back(&id, Held { version, deleted: false, owners, former_owners })
    }

    /// The watch reports that an object was deleted, or no longer has the label. Returns the owners to reconcile.
    pub(crate) fn observe_deletion(&mut self, seen: Seen) -> Owners {
        if let Some(tombstone) = self.tombstones.get(&seen.id) {
            let is_expected = tombstone.uid == seen.uid;
            if !is_expected && is_older(&seen.version, &tombstone.after) {
                return Owners::new();
            }
            self.tombstones.remove(&seen.id);
            if is_expected {
                return Owners::new();
            }
        }
        if self.objects.get(&seen.id).is_some_and(|entry| is_older(&seen.version, &entry.version)) {
            // It was written since.
            return Owners::new();
        }
        let before = self.remove(&seen.id);
        let owners = before.and_then(|entry| entry.owner).into_iter().chain(seen.owner).collect();
        self.hold_back(&seen.id, Held { version: seen.version, deleted: true, owners, former_owners: Owners::new() })
    }

    /// A write to an object begins: what the watch reports until it ends may be its effect.
    pub(crate) fn begin_write(&mut self, id: &Id) {
        self.in_progress.entry(id.clone()).or_default().count += 1;
    }

    /// A write ended with this object. Returns the owners to reconcile because of events during the write.
    pub(crate) fn end_with(&mut self, seen: Seen) -> Owners {
        let (id, version) = (seen.id.clone(), seen.version.clone());
        let held = self.in_progress.get(&id).and_then(|writes| writes.held.as_ref());
        let is_current = !held.is_some_and(|held| held.is_after(&version));
        let is_current = is_current
            && self.objects.get(&id).is_none_or(|entry| {
                if entry.body.is_some() {
                    is_newer(&version, &entry.version)
                } else {
                    !is_older(&version, &entry.version)
                }
            });
        let mut former_owners = Owners::new();
        if seen.set.is_none() {
            // The watch will report that the object left its selection.
            if is_current && self.remove(&id).is_some() {
                let (after, list) = (version.clone(), self.lists);
                let tombstone = Tombstone { uid: seen.uid, version: Some(version.clone()), after, list };
                self.tombstones.insert(id.clone(), tombstone);
            }
        } else if is_current {
            self.tombstones.remove(&id);
            let owner = seen.owner.clone();
            let before = self.insert(seen, false).and_then(|entry| entry.owner);
            former_owners = former_owner(before.as_deref(), owner.as_deref());
        }
        former_owners.extend(self.finish_write(&id, |held| held.is_after(&version)));
        former_owners
    }

    /// A write ended with the deletion of the object. Returns the owners to reconcile because of events during the write.
    pub(crate) fn end_deleted(&mut self, id: &Id, uid: &str) -> Owners {
        let known = self.objects.get(id).map(|entry| &entry.version);
        let before = self.tombstones.get(id).map(|tombstone| &tombstone.after);
        let newest = known.into_iter().chain(before).reduce(|a, b| if is_older(a, b) || a.is_empty() { b } else { a });
        let after = newest.cloned().unwrap_or_default();
        if self.objects.get(id).is_some_and(|entry| entry.uid == uid || entry.uid.is_empty()) {
            self.remove(id);
        } else {
            // Another object of this name is older, or newer.
            self.forget_body(id);
        }
        let tombstone = Tombstone { uid: uid.to_owned(), version: None, after, list: self.lists };
        self.tombstones.insert(id.clone(), tombstone);
        self.finish_write(id, |_| false)
    }

    /// A write ended without a change.
    pub(crate) fn end_refused(&mut self, id: &Id) -> Owners {
        self.finish_write(id, |_| true)
    }

    /// A write to an object of this set ended, and its outcome is unknown: the object must be read.
    pub(crate) fn end_unknown(&mut self, id: &Id, set: Option<&str>) -> Owners {
        self.mark_unknown(id, set);
        self.finish_write(id, |_| true)
    }

    /// The state of an object of this set is unknown: it must be read.
    fn mark_unknown(&mut self, id: &Id, set: Option<&str>) {
        if self.objects.contains_key(id) {
            self.forget_body(id);
        } else if let Some(set) = set {
            let entry = Entry {
                uid: String::new(),
                version: String::new(),
                set: Some(set.to_owned()),
                owner: None,
                body: None,
                list: self.lists,
                confirmed: true,
            };
            self.sets.entry(set.to_owned()).or_default().insert(id.clone());
            self.objects.insert(id.clone(), entry);
        }
    }

    /// Stores an object that was unknown, as it was read: `None` if it does not exist.
    pub(crate) fn confirm(&mut self, id: &Id, seen: Option<Seen>) {
        let Some(entry) = self.objects.get(id).filter(|entry| entry.body.is_none()) else { return };
        match seen {
            Some(seen) if is_older(&seen.version, &entry.version) => {}
            Some(seen) if seen.set.is_some() => drop(self.insert(seen, false)),
            _ => drop(self.remove(id)),
        }
    }

    /// Inserts an object, and returns the one before.
    fn insert(&mut self, seen: Seen, confirmed: bool) -> Option<Entry> {
        let Seen { id, uid, version, set, owner, claims, json } = seen;
        let before = self.remove(&id);
        let body = Some((Body::new(json), claims)).filter(|body| self.memory.take(bytes(body)));
        self.bytes += body.as_ref().map_or(0, bytes);
        if let Some(set) = &set {
            self.sets.entry(set.clone()).or_default().insert(id.clone());
        }
        self.objects.insert(id, Entry { uid, version, set, owner, body, list: self.lists, confirmed });
        before
    }

    fn remove(&mut self, id: &Id) -> Option<Entry> {
        let entry = self.objects.remove(id)?;
        self.give_back(entry.body.as_ref());
        if let Some(set) = &entry.set
            && let Some(ids) = self.sets.get_mut(set)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.sets.remove(set);
            }
        }
        Some(entry)
    }

    fn forget_body(&mut self, id: &Id) {
        let body = self.objects.get_mut(id).and_then(|entry| entry.body.take());
        self.give_back(body.as_ref());
    }

    fn give_back(&mut self, body: Option<&(Body, Claims)>) {
        let bytes = body.map_or(0, bytes);
        self.bytes -= bytes;
        self.memory.give_back(bytes);
    }

    /// Holds an event back while the object is being written. Returns the owners to reconcile now.
    fn hold_back(&mut self, id: &Id, mut event: Held) -> Owners {
        let Some(writes) = self.in_progress.get_mut(id) else { return event.owners };
        if let Some(earlier) = writes.held.take() {
            event.owners.extend(earlier.owners);
            event.former_owners.extend(earlier.former_owners);
        }
        writes.held = Some(event);
        Owners::new()
    }

    /// A write ended. Returns the owners that were held back, if the newest event is not the write's.
    fn finish_write(&mut self, id: &Id, is_foreign: impl Fn(&Held) -> bool) -> Owners {
        let Some(writes) = self.in_progress.get_mut(id) else { return Owners::new() };
        let held = writes.held.take();
        writes.count = writes.count.saturating_sub(1);
        if writes.count == 0 {
            self.in_progress.remove(id);
        }
        held.map(|held| if is_foreign(&held) { held.owners } else { held.former_owners }).unwrap_or_default()
    }
}

fn bytes((body, claims): &(Body, Claims)) -> usize {
    body.len() + claims.len()
}

/// The owner before, if the object has another one now.
fn former_owner(before: Option<&str>, now: Option<&str>) -> Owners {
    before.filter(|_| now.is_some() && before != now).map(str::to_owned).into_iter().collect()
}

/// Whether version `a` is newer than `b`, or cannot be compared with it.
fn is_newer(a: &str, b: &str) -> bool {
    !matches!(compare(a, b), Some(Ordering::Less | Ordering::Equal))
}

/// Whether version `a` is known to be older than `b`.
fn is_older(a: &str, b: &str) -> bool {
    compare(a, b) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests;
