//! Garbage collection along owner references, as kube-controller-manager's collector does it.
//!
//! A graph of owner references is maintained from the change log. Decisions are made from the store: an object is deleted when every
//! owner that it names is gone, and keeps only references to existing owners. Owners that wait for their dependants
//! (`foregroundDeletion`) or orphan them (`orphan`) are processed first.
//!
//! Admission policies see the collector's ServiceAccount as the user. What they deny is tried again later.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use chandler_devcluster_apimachinery::{access::User, schema::GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::object::{change_if, remove_finalizer};
use crate::{
    api::{
        Api,
        delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation},
    },
    metadata,
    registry::Snapshot,
    store::{Change, Event, Key, Object, Scope},
};

/// The user of the collector, as with `--use-service-account-credentials` of kube-controller-manager.
const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// Its groups.
const GROUPS: [&str; 3] = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
/// When denied changes are tried again.
const RETRY: Duration = Duration::from_millis(500);

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug)]
struct Owner {
    kind: GroupVersionKind,
    name: String,
    uid: String,
    blocks_deletion: bool,
}

/// The known state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    /// It lives, or cannot be looked up: better to keep than to delete by mistake.
    Solid,
    /// It is being deleted and waits for its dependants.
    Waiting,
    /// It is gone.
    Absent,
}

#[derive(Debug, Default)]
struct Graph {
    nodes: HashMap<String, Node>,
    dependants: HashMap<String, HashSet<String>>,
}

#[derive(Debug)]
struct Node {
    key: Key,
    owners: Vec<String>,
}

impl Graph {
    /// Takes in a state of an object; returns the uids of owners that it no longer names.
    fn insert(&mut self, key: &Key, object: &Value) -> Vec<String> {
        let uid = metadata::uid(object).to_owned();
        let owners: Vec<String> = owners(object).into_iter().map(|owner| owner.uid).collect();
        for owner in &owners {
            self.dependants.entry(owner.clone()).or_default().insert(uid.clone());
        }
        let before = self.nodes.insert(uid.clone(), Node { key: key.clone(), owners: owners.clone() });
        let dropped = before.map(|node| node.owners).unwrap_or_default();
        let dropped: Vec<String> = dropped.into_iter().filter(|owner| !owners.contains(owner)).collect();
        for owner in &dropped {
            self.forget(owner, &uid);
        }
        dropped
    }

    /// Takes out an object; returns the uids of the owners that it named.
    fn remove(&mut self, uid: &str) -> Vec<String> {
        let owners = self.nodes.remove(uid).map(|node| node.owners).unwrap_or_default();
        for owner in &owners {
            self.forget(owner, uid);
        }
        owners
    }

    fn forget(&mut self, owner: &str, dependant: &str) {
        if let Some(dependants) = self.dependants.get_mut(owner) {
            dependants.remove(dependant);
            if dependants.is_empty() {
                self.dependants.remove(owner);
            }
        }
    }

    fn dependants(&self, uid: &str) -> Vec<String> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }
}

/// The controller.
pub struct GarbageCollector {
    api: Arc<Api>,
    user: Arc<User>,
    graph: Graph,
    queue: VecDeque<String>,
    /// The objects whose change a policy denied.
    denied: Vec<String>,
}

impl GarbageCollector {
    /// A collector over an API.
    pub fn new(api: Arc<Api>) -> Self {
        let user = Arc::new(User::new(USER, &GROUPS));
        Self { api, user, graph: Graph::default(), queue: VecDeque::new(), denied: Vec::new() }
    }

    /// Works until dropped.
    pub async fn run(mut self) {
        loop {
            let (listing, mut watch) = self.api.store.list_and_watch(Scope::everything());
            self.graph = Graph::default();
            for (key, object) in &listing.objects {
                let value = object.peek();
                self.graph.insert(key, &value);
                // No other objects are considered.
                if metadata::is_deleting(&value) || !owners(&value).is_empty() {
                    self.queue.push_back(metadata::uid(&value).to_owned());
                }
            }
            let mut retry = Instant::now() + RETRY;
            loop {
                self.work();
                let batch = if self.denied.is_empty() {
                    retry = Instant::now() + RETRY;
                    watch.next().await
                } else if let Ok(batch) = timeout_at(retry, watch.next()).await {
                    batch
                } else {
                    self.queue.extend(self.denied.drain(..));
                    retry = Instant::now() + RETRY;
                    continue;
                };
                let Ok(batch) = batch else { break };
                for event in &batch.events {
                    self.observe(event);
                }
            }
        }
    }

    fn observe(&mut self, event: &Event) {
        let object = event.object.value();
        let uid = metadata::uid(object).to_owned();
        if event.change == Change::Deleted {
            // Dependants lose an owner; owners lose a dependant that they may wait for.
            self.queue.extend(self.graph.dependants(&uid));
            let owners = self.graph.remove(&uid);
            self.queue.extend(owners);
        } else {
            let dropped = self.graph.insert(&event.key, object);
            self.queue.extend(dropped);
            if waits(object).is_some() {
                self.queue.extend(self.graph.dependants(&uid));
            }
            self.queue.push_back(uid);
        }
    }

    fn work(&mut self) {
        let mut done = HashSet::new();
        while let Some(uid) = self.queue.pop_front() {
            // The changes of a decision arrive as events.
            if done.insert(uid.clone()) && !self.process(&uid) && !self.denied.contains(&uid) {
                self.denied.push(uid);
            }
        }
    }

    /// Whether it is processed: no policy denies a change.
    fn process(&self, uid: &str) -> bool {
        let Some((key, object)) = self.live(uid) else { return true };
        let snapshot = self.api.registry.snapshot();
        // Not kept in its parsed form: after a start every object that has an owner is looked at.
        let value = object.peek();
        if metadata::is_deleting(&value) {
            return match waits(&value) {
                Some(Propagation::Orphan) => self.orphan(&snapshot, uid, &key),
                Some(Propagation::Foreground) => self.finish_foreground(&snapshot, uid, &key),
                _ => true,
            };
        }
        let owners = owners(&value);
        if owners.is_empty() {
            return true;
        }
        let states: Vec<(String, OwnerState)> =
            owners.iter().map(|owner| (owner.uid.clone(), self.state(&snapshot, owner, &key))).collect();
        let any = |wanted: OwnerState| states.iter().any(|(_, state)| *state == wanted);
        if any(OwnerState::Solid) {
            let gone: Vec<&String> =
                states.iter().filter(|(_, state)| *state != OwnerState::Solid).map(|(uid, _)| uid).collect();
            return gone.is_empty() || self.change(&snapshot, &key, |object| drop_owners(object, &gone));
        }
        let propagation = match waits(object.value()) {
            Some(wanted) => wanted,
            None if any(OwnerState::Waiting) && !self.graph.dependants(uid).is_empty() => Propagation::Foreground,
            None => Propagation::Background,
        };
        let Some(resource) = snapshot.table(&key.resource) else { return true };
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(uid.to_owned()),
            stated: json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1",
                           "propagationPolicy": format!("{propagation:?}"), "preconditions": {"uid": uid}}),
            ..DeleteOptions::default()
        };
        match self.api.remove_as(&self.user, resource, &key, &options) {
            // Gone already, or another object of the same name by now.
            Err(error) => error.reason == "NotFound" || error.reason == "Conflict",
            Ok(_) => true,
        }
    }

    /// The stored object with a uid.
    fn live(&self, uid: &str) -> Option<(Key, Arc<Object>)> {
        let key = self.graph.nodes.get(uid)?.key.clone();
        let object = self.api.store.get(&key)?;
        let found = metadata::uid(&object.peek()) == uid;
        found.then_some((key, object))
    }

    /// Looks an owner up where a dependant's owner must be: in its namespace, or cluster-scoped.
    fn state(&self, snapshot: &Snapshot, owner: &Owner, dependant: &Key) -> OwnerState {
        let Some(resource) = snapshot.kind(&owner.kind) else { return OwnerState::Solid };
        if resource.namespaced() && dependant.namespace.is_empty() {
            return OwnerState::Solid;
        }
        let namespace = if resource.namespaced() { dependant.namespace.as_str() } else { "" };
        match self.api.store.get(&Key::new(Arc::clone(&resource.table), namespace, owner.name.clone())) {
            Some(found) if metadata::uid(found.value()) == owner.uid => {
                let waiting =
                    metadata::is_deleting(found.value()) && waits(found.value()) == Some(Propagation::Foreground);
                if waiting { OwnerState::Waiting } else { OwnerState::Solid }
            }
            _ => OwnerState::Absent,
        }
    }

    fn orphan(&self, snapshot: &Snapshot, uid: &str, key: &Key) -> bool {
        let owner = uid.to_owned();
        let mut forgotten = true;
        for dependant in self.graph.dependants(uid) {
            if let Some((dependant, _)) = self.live(&dependant) {
                forgotten &= self.change(snapshot, &dependant, |object| drop_owners(object, &[&owner]));
            }
        }
        // Without the finalizer, the dependants would be deleted.
        forgotten && self.change(snapshot, key, |object| remove_finalizer(object, ORPHAN))
    }

    fn finish_foreground(&self, snapshot: &Snapshot, uid: &str, key: &Key) -> bool {
        let blocked =
            self.graph.dependants(uid).iter().filter_map(|dependant| self.live(dependant)).any(|(_, dependant)| {
                owners(dependant.value()).iter().any(|owner| owner.uid == uid && owner.blocks_deletion)
            });
        blocked || self.change(snapshot, key, |object| remove_finalizer(object, FOREGROUND))
    }

    /// Whether no policy denies the change.
    fn change(&self, snapshot: &Snapshot, key: &Key, with: impl Fn(&mut Value)) -> bool {
        let Some(resource) = snapshot.table(&key.resource) else { return true };
        let admitted = Cell::new(true);
        change_if(&self.api, resource, key, with, |old, object| {
            admitted.set(self.api.admits_update(&self.user, resource, key, (old, object)));
            admitted.get()
        });
        admitted.get()
    }
}

fn owners(object: &Value) -> Vec<Owner> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    references
        .map(|reference| {
            let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            Owner {
                kind: GroupVersionKind::from_api_version(text("apiVersion"), text("kind")),
                name: text("name").to_owned(),
                uid: text("uid").to_owned(),
                blocks_deletion: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
            }
        })
        .collect()
}

/// The deletion policy for dependants in an object's finalizers.
fn waits(object: &Value) -> Option<Propagation> {
    metadata::finalizers(object).into_iter().find_map(|finalizer| match finalizer {
        FOREGROUND => Some(Propagation::Foreground),
        ORPHAN => Some(Propagation::Orphan),
        _ => None,
    })
}

fn drop_owners(object: &mut Value, gone: &[&String]) {
    let map = metadata::of(object);
    if let Some(references) = map.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        references.retain(|reference| {
            let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
            !gone.iter().any(|gone| *gone == uid)
        });
        if references.is_empty() {
            map.remove("ownerReferences");
        }
    }
}
