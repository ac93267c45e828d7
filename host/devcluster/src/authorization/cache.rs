//! The stored roles and bindings, read once for each change.

use std::sync::{Arc, Mutex, PoisonError};

use chandler_devcluster_access::PolicySet;
use serde_json::Value;

use crate::store::{Change, Compacted, Listing, Scope, Store, Watch};

/// One of the tables that the policy is made of, and how a change of it changes the policy.
struct Table {
    name: &'static str,
    set: fn(&mut PolicySet, Vec<&Value>),
    put: fn(&mut PolicySet, &Value),
    remove: fn(&mut PolicySet, &Value),
}

const TABLES: [Table; 4] = [
    Table {
        name: "roles.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_roles(objects),
        put: PolicySet::put_role,
        remove: PolicySet::remove_role,
    },
    Table {
        name: "clusterroles.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_cluster_roles(objects),
        put: PolicySet::put_cluster_role,
        remove: PolicySet::remove_cluster_role,
    },
    Table {
        name: "rolebindings.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_role_bindings(objects),
        put: PolicySet::put_role_binding,
        remove: PolicySet::remove_role_binding,
    },
    Table {
        name: "clusterrolebindings.rbac.authorization.k8s.io",
        set: |policy, objects| policy.set_cluster_role_bindings(objects),
        put: PolicySet::put_cluster_role_binding,
        remove: PolicySet::remove_cluster_role_binding,
    },
];

/// The policy of a store. A write is seen by every decision after it: each asks the store's log what has happened since the
/// last one. A table is read anew only when the log no longer reaches back that far.
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

fn read(store: &Store, policy: &mut PolicySet, table: &Table) -> Watch {
    let scope = Scope { resource: Some(table.name.into()), namespace: None };
    let (Listing { objects, .. }, watch) = store.list_and_watch(scope);
    let objects: Vec<_> = objects.iter().map(|(_, object)| object.peek()).collect();
    (table.set)(policy, objects.iter().map(AsRef::as_ref).collect());
    watch
}

/// Puts what has happened to a table since the last decision into the policy.
fn follow(watch: &mut Watch, policy: &mut Arc<PolicySet>, table: &Table) -> Result<(), Compacted> {
    loop {
        let events = watch.ready()?.events;
        if events.is_empty() {
            return Ok(());
        }
        let policy = Arc::make_mut(policy);
        for event in events {
            let change = if event.change == Change::Deleted { table.remove } else { table.put };
            change(policy, event.object.peek().as_ref());
        }
    }
}

impl State {
    fn read(store: &Store) -> Self {
        let mut policy = PolicySet::default();
        let revision = store.revision();
        let watches = TABLES.iter().map(|table| read(store, &mut policy, table)).collect();
        Self { policy: Arc::new(policy), watches, revision }
    }

    fn catch_up(&mut self, store: &Store) {
        let revision = store.revision();
        if revision == self.revision {
            return;
        }
        for (watch, table) in self.watches.iter_mut().zip(&TABLES) {
            if follow(watch, &mut self.policy, table).is_err() {
                *watch = read(store, Arc::make_mut(&mut self.policy), table);
            }
        }
        self.revision = revision;
    }
}
