//! Maps an object to its decision, and a change to the affected objects.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    action::Decision,
    api_services, budgets,
    cache::{Cache, Change},
    cron_jobs, daemon_sets, deployments,
    fields::{controller, generation, labels, list, text},
    jobs,
    kind::{Key, Kind},
    labels::{matches_all, selects},
    pods, replica_sets, services, stateful_sets, volumes,
    world::World,
};
use crate::metadata;

/// The decision about an object.
pub(super) fn reconcile(world: &World<'_>, kind: Kind, object: &Value) -> Decision {
    match kind {
        Kind::ApiService => api_services::reconcile(world, object),
        Kind::CronJob => cron_jobs::reconcile(world, object),
        Kind::DaemonSet => daemon_sets::reconcile(world, object),
        Kind::Deployment => deployments::reconcile(world, object),
        Kind::Job => jobs::reconcile(world, object),
        Kind::Node if metadata::name(object) == pods::NODE => pods::reconcile_node(world),
        Kind::PersistentVolume => volumes::reconcile_volume(world, object),
        Kind::PersistentVolumeClaim => volumes::reconcile_claim(world, object),
        Kind::Pod => pods::reconcile(world, object),
        Kind::PodDisruptionBudget => budgets::reconcile(world, object),
        Kind::ReplicaSet => replica_sets::reconcile(world, object),
        Kind::Service => services::reconcile(world, object),
        Kind::StatefulSet => stateful_sets::reconcile(world, object),
        Kind::ControllerRevision | Kind::EndpointSlice | Kind::Endpoints | Kind::Node => Decision::default(),
    }
}

/// The decision about an object that does not exist.
pub(super) fn reconcile_missing(world: &World<'_>, key: &Key) -> Decision {
    match key.kind {
        Kind::Service => services::reconcile_missing(world, key),
        _ if *key == pods::node_key() => pods::reconcile_node(world),
        _ => Decision::default(),
    }
}

/// The objects that a change concerns: itself, its controllers before and after, and who selects it.
pub(super) fn affected(cache: &Cache, key: &Key, change: &Change, keys: &mut HashSet<Key>) {
    keys.insert(key.clone());
    let is_said_anew = is_said_anew(change);
    for object in [&change.before, &change.after].into_iter().flatten() {
        if let Some(reference) = controller(object)
            && let Some(kind) = Kind::of_reference(reference)
        {
            keys.insert(Key::new(kind, &key.namespace, text(reference, "/name")));
        }
        match key.kind {
            Kind::Pod => {
                selecting(cache, key, object, keys);
                let claims = list(object, "/spec/volumes").iter();
                let claims = claims.map(|volume| text(volume, "/persistentVolumeClaim/claimName"));
                let claims = claims.filter(|claim| !claim.is_empty());
                keys.extend(claims.map(|claim| Key::new(Kind::PersistentVolumeClaim, &key.namespace, claim)));
            }
            Kind::ReplicaSet => adopting(cache, Kind::Deployment, key, object, keys),
            Kind::PersistentVolume => {
                let claim = |field: &str| text(object, &format!("/spec/claimRef/{field}")).to_owned();
                keys.insert(Key::new(Kind::PersistentVolumeClaim, &claim("namespace"), &claim("name")));
            }
            Kind::PersistentVolumeClaim => {
                keys.insert(Key::new(Kind::PersistentVolume, "", text(object, "/spec/volumeName")));
            }
            Kind::Service | Kind::Endpoints => {
                keys.insert(Key::new(Kind::Service, &key.namespace, &key.name));
                keys.extend(api_services::naming(cache, key));
            }
            Kind::Node => {
                keys.extend(cache.keys().filter(|key| matches!(key.kind, Kind::Pod | Kind::DaemonSet)).cloned());
            }
            _ => {}
        }
        if is_said_anew || change.after.is_none() {
            below(cache, object, keys);
        }
    }
}

/// Whether an object's annotations or its specification changed, which determine the objects that it controls.
fn is_said_anew(change: &Change) -> bool {
    let said = |object: &Option<std::sync::Arc<Value>>| {
        object.as_ref().map(|object| (object.pointer("/metadata/annotations").cloned(), generation(object)))
    };
    said(&change.before) != said(&change.after)
}

/// The objects below a workload, down to its Pods, whose simulated behaviour has changed.
fn below(cache: &Cache, object: &Value, keys: &mut HashSet<Key>) {
    for dependant in cache.dependants(metadata::uid(object)) {
        if dependant.kind == Kind::ReplicaSet
            && let Some(set) = cache.get(&dependant)
        {
            keys.extend(cache.dependants(metadata::uid(set)));
        }
        keys.insert(dependant);
    }
}

fn selecting(cache: &Cache, key: &Key, pod: &Value, keys: &mut HashSet<Key>) {
    for service in cache.namespace(Kind::Service, &key.namespace) {
        let selector = service.pointer("/spec/selector");
        if selector.is_some() && matches_all(selector, labels(pod)) {
            keys.insert(Key::of(Kind::Service, service));
        }
    }
    for budget in cache.namespace(Kind::PodDisruptionBudget, &key.namespace) {
        if selects(budget.pointer("/spec/selector"), labels(pod)) {
            keys.insert(Key::of(Kind::PodDisruptionBudget, budget));
        }
    }
    for kind in [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet] {
        adopting(cache, kind, key, pod, keys);
    }
}

/// The objects that may adopt an object without a controller.
fn adopting(cache: &Cache, kind: Kind, key: &Key, object: &Value, keys: &mut HashSet<Key>) {
    if controller(object).is_some() {
        return;
    }
    for owner in cache.namespace(kind, &key.namespace) {
        if selects(owner.pointer("/spec/selector"), labels(object)) {
            keys.insert(Key::of(kind, owner));
        }
    }
}
