//! The stored roles and bindings, read once for each change.

use std::sync::{Arc, Mutex, PoisonError};

use chandler_devcluster_access::PolicySet;
use serde_json::Value;

use crate::store::{Listing, Scope, Store, Watch};

/// The tables that the policy is made of.
const TABLES: [(&str, Set); 4] = [
    ("roles.rbac.authorization.k8s.io", |policy, objects| policy.set_roles(objects)),
    ("clusterroles.rbac.authorization.k8s.io", |policy, objects| policy.set_cluster_roles(objects)),
    ("rolebindings.rbac.authorization.k8s.io", |policy, objects| policy.set_role_bindings(objects)),
    ("clusterrolebindings.rbac.authorization.k8s.io", |policy, objects| policy.set_cluster_role_bindings(objects)),
];

/// Puts the objects of one table into a policy.
type Set = fn(&mut PolicySet, Vec<&Value>);

/// The policy of a store. A write is seen by every decision after it: each asks the store's log what has happened since the
/// last one, and reads those tables anew that have changed.
#[derive(Debug, Default)]
pub struct Cache(Mutex<Option<State>>);

#[derive(Debug)]
struct State {
    policy: Arc<PolicySet>,
    /// In the order of [`TABLES`].
    watches: Vec<Watch>,
    /// All changes up to this revision are in the policy.
    revision: u64,
}

impl Cache {
    /// The current policy. Always call this with the same store.
    pub fn current(&self, store: &Store) -> Arc<PolicySet> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.get_or_insert_with(|| State::read(store));
        state.catch_up(store);
        Arc::clone(&state.policy)
    }
}

fn read(store: &Store, policy: &mut PolicySet, table: &str, set: Set) -> Watch {
    let scope = Scope { resource: Some(table.into()), namespace: None };
    let (Listing { objects, .. }, watch) = store.list_and_watch(scope);
    let objects: Vec<_> = objects.iter().map(|(_, object)| object.peek()).collect();
    set(policy, objects.iter().map(AsRef::as_ref).collect());
    watch
}

impl State {
    fn read(store: &Store) -> Self {
        let mut policy = PolicySet::default();
        let revision = store.revision();
        let watches = TABLES.iter().map(|(table, set)| read(store, &mut policy, table, *set)).collect();
        Self { policy: Arc::new(policy), watches, revision }
    }

    fn catch_up(&mut self, store: &Store) {
        let revision = store.revision();
        if revision == self.revision {
            return;
        }
        for (watch, (table, set)) in self.watches.iter_mut().zip(TABLES) {
            // Falling behind the history counts as a change.
            if watch.ready().map_or(true, |batch| !batch.events.is_empty()) {
                *watch = read(store, Arc::make_mut(&mut self.policy), table, set);
            }
        }
        self.revision = revision;
    }
}
