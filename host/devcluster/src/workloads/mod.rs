//! Workloads that become ready without running anything.
//!
//! An ordinary controller over a client: it watches Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, Pods,
//! PersistentVolumeClaims, LoadBalancer Services and APIServices and writes the status that a healthy cluster would come to. It
//! also serves a bare kube-apiserver, which has no controller-manager; it must not run against a real cluster.
//!
//! What it shall pretend is told by the annotation [`ANNOTATION`] on the object or on its Pod template; an image from a registry
//! under `.invalid` cannot be pulled.
//!
//! | module | holds |
//! |---|---|
//! | `behaviour` | what is to be pretended |
//! | `conditions` | status conditions with their times |
//! | `controllers` | statuses of what runs Pods |
//! | `others` | statuses of claims, Services, APIServices |

mod behaviour;
mod conditions;
mod controllers;
mod others;

use std::time::Duration;

use futures::{StreamExt as _, stream::select_all};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, GroupVersionKind, Patch, PatchParams},
    core::ApiResource,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Map, Value, json};

pub use self::behaviour::{ANNOTATION, Behaviour};
use crate::clock::Clock;

/// Computes the status that an object should have; `None` when it is none of the simulation's business.
type Simulate = fn(&Value, &str) -> Option<Value>;

/// Group, version, kind, plural, and what computes the status.
const SIMULATED: &[(&str, &str, &str, &str, Simulate)] = &[
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", others::claim),
    ("", "v1", "Pod", "pods", controllers::pod),
    ("", "v1", "Service", "services", others::service),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices", others::api_service),
    ("apps", "v1", "DaemonSet", "daemonsets", controllers::daemon_set),
    ("apps", "v1", "Deployment", "deployments", controllers::deployment),
    ("apps", "v1", "ReplicaSet", "replicasets", controllers::replica_set),
    ("apps", "v1", "StatefulSet", "statefulsets", controllers::stateful_set),
    ("batch", "v1", "Job", "jobs", controllers::job),
];

/// The field manager of the simulation.
const MANAGER: &str = "devcluster-workloads";
/// How often a status that could not be written is tried again.
const ATTEMPTS: u32 = 5;

/// Simulates until `shutdown` is ready; times in statuses are those of the clock.
pub async fn simulate_workloads(client: Client, clock: Clock, shutdown: impl Future<Output = ()>) {
    let streams = SIMULATED.iter().map(|(group, version, kind, plural, simulate)| {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let objects = watcher(api, watcher::Config::default()).default_backoff().touched_objects();
        objects.map(move |object| (resource.clone(), *simulate, object)).boxed()
    });
    let mut objects = select_all(streams);
    let work = async {
        while let Some((resource, simulate, object)) = objects.next().await {
            match object {
                Ok(object) => act(&client, &clock, &resource, simulate, &object).await,
                Err(error) => tracing::debug!(%error, kind = resource.kind, "watching for the simulation failed"),
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = shutdown => {}
    }
}

/// Writes the status that an object should have, where it differs.
async fn act(client: &Client, clock: &Clock, resource: &ApiResource, simulate: Simulate, object: &DynamicObject) {
    if object.metadata.deletion_timestamp.is_some() {
        return;
    }
    let Ok(value) = serde_json::to_value(object) else { return };
    let Some(wanted) = simulate(&value, &clock.timestamp()) else { return };
    let Some(change) = difference(value.get("status").unwrap_or(&Value::Null), &wanted) else { return };
    let name = object.name_any();
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    // The uid keeps the status from another object of the same name.
    let patch = json!({"metadata": {"uid": object.metadata.uid}, "status": change});
    for attempt in 1..=ATTEMPTS {
        match api
            .patch_status(
                &name,
                &PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() },
                &Patch::Merge(&patch),
            )
            .await
        {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
            Err(error) if attempt == ATTEMPTS => {
                tracing::warn!(%error, kind = resource.kind, name, "the simulated status could not be written");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100) * attempt).await,
        }
    }
}

/// The merge patch from one status to another; `None` when they are equal.
fn difference(present: &Value, wanted: &Value) -> Option<Value> {
    let nothing = Map::new();
    let (present, wanted) = (present.as_object().unwrap_or(&nothing), wanted.as_object().unwrap_or(&nothing));
    let mut change: Map<String, Value> = wanted
        .iter()
        .filter(|(field, value)| present.get(*field) != Some(*value))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    let gone = present.keys().filter(|field| !wanted.contains_key(*field));
    change.extend(gone.map(|field| (field.clone(), Value::Null)));
    (!change.is_empty()).then_some(Value::Object(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_changed_where_it_differs() {
        let present = json!({"a": 1, "b": 2, "c": {"x": 1}});
        assert_eq!(difference(&present, &present), None);
        assert_eq!(difference(&present, &json!({"a": 1, "c": {"x": 2}})), Some(json!({"b": null, "c": {"x": 2}})));
        assert_eq!(difference(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
    }

    /// A status that is written and comes back must not be written again: the simulation would run in circles.
    #[test]
    fn every_simulation_settles_after_one_write() {
        let template = json!({"spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        let spec = json!({
            "replicas": 2, "completions": 1, "template": template, "containers": [{"name": "c", "image": "nginx"}],
            "type": "LoadBalancer", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        });
        for (_, _, kind, _, simulate) in SIMULATED {
            for behaviour in [None, Some("stall"), Some("fail"), Some("crash-loop")] {
                let mut object = json!({
                    "kind": kind, "metadata": {"name": "x", "uid": "u", "generation": 3}, "spec": spec, "status": {}});
                if let Some(behaviour) = behaviour {
                    object["metadata"]["annotations"] = json!({ANNOTATION: behaviour});
                }
                let Some(first) = simulate(&object, "2026-01-01T00:00:00Z") else { continue };
                object["status"] = first.clone();
                let second = simulate(&object, "2026-01-01T00:00:09Z").unwrap_or(first.clone());
                assert_eq!(second, first, "{kind} {behaviour:?}");
            }
        }
    }
}
