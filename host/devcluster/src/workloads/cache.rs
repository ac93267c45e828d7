//! What the simulation knows of the API server's objects.
//!
//! Answers to its own writes are taken in at once, so that a decision never misses what an earlier one did: a ReplicaSet
//! whose watch lags behind would otherwise create its Pods twice.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    fields::controller_uid,
    kind::{Key, Kind},
};
use crate::metadata;

/// A change of the cache.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
}

#[derive(Debug)]
struct Entry {
    object: Arc<Value>,
    /// The list in which the object was last seen, or after which it was written.
    list: u64,
}

/// The objects of all [kinds](Kind).
#[derive(Debug, Default)]
pub(super) struct Cache {
    objects: BTreeMap<Key, Entry>,
    dependants: HashMap<String, HashSet<Key>>,
    /// Objects that were deleted; watches may still report them.
    gone: HashSet<String>,
    /// How many lists of a kind were begun, and whether one was finished.
    lists: HashMap<Kind, (u64, bool)>,
}

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key).map(|entry| &entry.object)
    }

    /// The object of a kind and name in a namespace.
    pub(super) fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.get(&Key::new(kind, namespace, name))
    }

    /// All objects of a kind in a namespace; empty for cluster-scoped ones.
    pub(super) fn namespace<'a>(&'a self, kind: Kind, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        let range = self.objects.range(Key::new(kind, namespace, "")..);
        range.take_while(move |(key, _)| key.kind == kind && key.namespace == namespace).map(|(_, entry)| &entry.object)
    }

    /// The objects of a kind whose controller has this uid, by name.
    pub(super) fn controlled(&self, kind: Kind, uid: &str) -> Vec<&Arc<Value>> {
        let mut keys: Vec<&Key> =
            self.dependants.get(uid).into_iter().flatten().filter(|key| key.kind == kind).collect();
        keys.sort_unstable();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
    }

    /// The objects of a kind in a namespace that have no controller, by name.
    pub(super) fn orphans(&self, kind: Kind, namespace: &str) -> Vec<&Arc<Value>> {
        self.controlled(kind, &no_controller(kind, namespace))
    }

    /// The places of everything that is controlled by an object.
    pub(super) fn dependants(&self, uid: &str) -> Vec<Key> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    /// Whether every kind has been listed.
    pub(super) fn is_complete(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.lists.get(kind).is_some_and(|(_, finished)| *finished))
    }

    /// Takes in a state of an object; `None` when it is known or outdated.
    pub(super) fn apply(&mut self, kind: Kind, mut object: Value) -> Option<Change> {
        if self.gone.contains(metadata::uid(&object)) {
            return None;
        }
        metadata::of(&mut object).remove("managedFields");
        let key = Key::of(kind, &object);
        let list = self.lists.get(&kind).map_or(0, |(list, _)| *list);
        if let Some(known) = self.objects.get_mut(&key) {
            known.list = list;
            if metadata::uid(&known.object) == metadata::uid(&object) && version(&known.object) >= version(&object) {
                return None;
            }
        }
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Entry { object: Arc::clone(&object), list });
        let before = before.map(|entry| entry.object);
        self.index(&key, before.as_deref(), Some(&object));
        Some(Change { before, after: Some(object) })
    }

    /// Forgets an object that a watch reports as deleted.
    pub(super) fn remove(&mut self, key: &Key, uid: &str) -> Option<Change> {
        if self.gone.remove(uid) {
            return None;
        }
        self.drop_object(key, uid)
    }

    /// Forgets an object that was deleted by the simulation itself; the watch will report it later.
    pub(super) fn deleted(&mut self, key: &Key, uid: &str) -> Option<Change> {
        let change = self.drop_object(key, uid)?;
        self.gone.insert(uid.to_owned());
        Some(change)
    }

    /// A new list of a kind begins.
    pub(super) fn begin_list(&mut self, kind: Kind) {
        self.lists.entry(kind).or_default().0 += 1;
    }

    /// A list of a kind is at its end: what was not in it is gone.
    pub(super) fn finish_list(&mut self, kind: Kind) -> Vec<(Key, Change)> {
        let (list, finished) = self.lists.entry(kind).or_default();
        *finished = true;
        let list = *list;
        let missing: Vec<(Key, String)> = self
            .objects
            .iter()
            .filter(|(key, entry)| key.kind == kind && entry.list < list)
            .map(|(key, entry)| (key.clone(), metadata::uid(&entry.object).to_owned()))
            .collect();
        missing.into_iter().filter_map(|(key, uid)| self.drop_object(&key, &uid).map(|change| (key, change))).collect()
    }

    fn drop_object(&mut self, key: &Key, uid: &str) -> Option<Change> {
        if metadata::uid(self.get(key)?) != uid {
            return None;
        }
        let before = self.objects.remove(key)?.object;
        self.index(key, Some(&before), None);
        Some(Change { before: Some(before), after: None })
    }

    fn index(&mut self, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        let (before, after) = (before.map(|object| index_of(key, object)), after.map(|object| index_of(key, object)));
        if before == after {
            return;
        }
        if let Some(before) = before
            && let Some(keys) = self.dependants.get_mut(&before)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.dependants.remove(&before);
            }
        }
        if let Some(after) = after {
            self.dependants.entry(after).or_default().insert(key.clone());
        }
    }
}

/// The uid of the controller, or a key for objects without one.
fn index_of(key: &Key, object: &Value) -> String {
    match controller_uid(object) {
        "" => no_controller(key.kind, &key.namespace),
        uid => uid.to_owned(),
    }
}

fn no_controller(kind: Kind, namespace: &str) -> String {
    format!("{}/{namespace}", kind.name())
}

/// Resource versions of one resource can be compared as numbers.
fn version(object: &Value) -> u64 {
    metadata::text(object, "resourceVersion").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, uid: &str, version: u64, owner: &str) -> Value {
        json!({"metadata": {
            "name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
            "ownerReferences": [{"uid": owner, "controller": true}], "managedFields": []}})
    }

    fn key(name: &str) -> Key {
        Key::new(Kind::Pod, "n", name)
    }

    #[test]
    fn outdated_states_and_reports_of_deleted_objects_are_ignored() {
        let mut cache = Cache::default();
        assert!(cache.apply(Kind::Pod, pod("a", "1", 5, "o")).is_some());
        assert!(cache.apply(Kind::Pod, pod("a", "1", 4, "o")).is_none());
        assert!(cache.apply(Kind::Pod, pod("a", "1", 5, "o")).is_none());
        assert!(cache.deleted(&key("a"), "1").is_some());
        assert!(cache.apply(Kind::Pod, pod("a", "1", 6, "o")).is_none(), "a late event of a deleted object");
        assert!(cache.remove(&key("a"), "1").is_none(), "known already");
        assert!(cache.apply(Kind::Pod, pod("a", "2", 7, "o")).is_some(), "another object of the name");
        assert!(cache.remove(&key("a"), "1").is_none(), "not this one");
        assert!(cache.get(&key("a")).is_some_and(|pod| pod.pointer("/metadata/managedFields").is_none()));
    }

    #[test]
    fn dependants_follow_their_controller() {
        let mut cache = Cache::default();
        cache.apply(Kind::Pod, pod("b", "2", 2, "o"));
        cache.apply(Kind::Pod, pod("a", "1", 1, "o"));
        let names = |cache: &Cache, uid: &str| -> Vec<String> {
            cache.controlled(Kind::Pod, uid).iter().map(|pod| metadata::name(pod).to_owned()).collect()
        };
        assert_eq!(names(&cache, "o"), ["a", "b"]);
        cache.apply(Kind::Pod, pod("a", "1", 3, "p"));
        assert_eq!((names(&cache, "o"), names(&cache, "p")), (vec!["b".to_owned()], vec!["a".to_owned()]));
        cache.remove(&key("a"), "1");
        assert!(names(&cache, "p").is_empty());
    }

    #[test]
    fn a_relist_removes_absent_objects_unless_written_since() {
        let mut cache = Cache::default();
        cache.begin_list(Kind::Pod);
        cache.apply(Kind::Pod, pod("old", "1", 1, ""));
        cache.apply(Kind::Pod, pod("kept", "2", 2, ""));
        assert!(cache.finish_list(Kind::Pod).is_empty());
        cache.begin_list(Kind::Pod);
        cache.apply(Kind::Pod, pod("written", "3", 9, ""));
        cache.apply(Kind::Pod, pod("kept", "2", 2, ""));
        let gone = cache.finish_list(Kind::Pod);
        assert_eq!(gone.iter().map(|(key, _)| key.name.as_str()).collect::<Vec<_>>(), ["old"]);
        assert!(cache.get(&key("written")).is_some() && cache.get(&key("kept")).is_some());
    }
}
