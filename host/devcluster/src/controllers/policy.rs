//! The bootstrap policy, and aggregated ClusterRoles.

use std::sync::Arc;

use chandler_devcluster_apimachinery::access::{
    aggregation::aggregate,
    bootstrap,
    policy::{GROUP, Role},
};
use serde_json::Value;

use super::object::change;
use crate::{
    api::Api,
    metadata,
    pipeline::{refine, strategy},
    registry::Resource,
    store::{Expected, Key, Scope},
};

/// Creates missing roles and bindings of the bootstrap policy, and aggregates ClusterRoles.
pub fn bootstrap(api: &Api) {
    for bootstrap::Object { resource, namespace, mut value } in bootstrap::objects() {
        let Some(resource) = resource_of(api, resource) else { continue };
        let key = Key::new(Arc::clone(&resource.table), namespace, metadata::name(&value));
        if api.store.get(&key).is_some() {
            continue;
        }
        strategy::prepare_create(&resource, &mut value, &api.identities.uid(&key), &api.clock.timestamp());
        refine::default(&resource, &mut value);
        // A mismatch means that it exists.
        let _ = api.store.put(key, Expected::Absent, value);
    }
    gather_all(api);
}

fn resource_of(api: &Api, plural: &str) -> Option<Arc<Resource>> {
    api.registry.snapshot().resource(GROUP, "v1", plural).cloned()
}

/// The controller that aggregates the rules of ClusterRoles.
pub struct Aggregation {
    api: Arc<Api>,
}

impl Aggregation {
    /// A controller.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api }
    }

    /// Works until dropped.
    pub async fn run(self) {
        let Some(resource) = resource_of(&self.api, "clusterroles") else { return };
        let scope = Scope { resource: Some(Arc::clone(&resource.table)), namespace: None };
        loop {
            let (_, mut watch) = self.api.store.list_and_watch(scope.clone());
            gather_all(&self.api);
            while watch.next().await.is_ok() {
                gather_all(&self.api);
            }
        }
    }
}

/// Collects the rules of every aggregated ClusterRole, until nothing changes any more: they may aggregate one
/// another.
fn gather_all(api: &Api) {
    /// A longer chain continues with the next change.
    const ROUNDS: usize = 8;
    let Some(resource) = resource_of(api, "clusterroles") else { return };
    let scope = Scope { resource: Some(Arc::clone(&resource.table)), namespace: None };
    for _ in 0..ROUNDS {
        let listing = api.store.list_now(&scope);
        let all: Vec<_> = listing.objects.iter().map(|(key, object)| (key, object.peek())).collect();
        let mut changed = false;
        for (key, role) in &all {
            let Some(rules) = aggregate(role, all.iter().map(|(_, other)| other.as_ref())) else { continue };
            if Role::read(role).rules == rules {
                continue;
            }
            changed = true;
            let rules: Value = rules.iter().map(|rule| serde_json::to_value(rule).unwrap_or_default()).collect();
            change(api, &resource, key, |role| {
                metadata::as_map(role).insert("rules".to_owned(), rules.clone());
            });
        }
        if !changed {
            return;
        }
    }
}
