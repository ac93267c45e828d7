//! Reads what is below the objects of a BundleDeployment, with the rights of the user.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;
use chandler_rollout::{causes, has_causes};
use futures::{StreamExt as _, stream};
use kube::Client;
use serde_json::Value;

use super::cluster::{self, Members};
use crate::view::tree::{ObjectHealth, ObjectStatus, TreeNode};

/// How many objects are looked below.
const OBJECTS: usize = 200;
/// How many unhealthy objects are explained.
const EXPLAINED: usize = 20;
/// How many objects are looked below at once.
const CONCURRENCY: usize = 8;

/// What is below the objects.
#[derive(Debug, Default)]
pub struct Below(Vec<(ObjectKey, Vec<TreeNode>)>);

impl Below {
    /// The objects with what is below them.
    pub fn nodes(&self, objects: &[ObjectStatus]) -> Vec<TreeNode> {
        let of = |key: &ObjectKey| self.0.iter().find(|(owner, _)| owner == key).map(|(_, nodes)| nodes.clone());
        let node = |object: &ObjectStatus| TreeNode {
            object: object.clone(),
            dependents: of(&object.key).unwrap_or_default(),
        };
        objects.iter().map(node).collect()
    }
}

/// Whether objects of this kind own Pods or what leads to them.
pub(super) fn has_dependents(key: &ObjectKey) -> bool {
    has_causes(&key.group, &key.kind) || (key.group.as_str(), key.kind.as_str()) == ("batch", "CronJob")
}

/// Replaces the messages of unhealthy objects by the causes below them. Objects that may not be read are skipped.
pub async fn explain(client: &Client, members: &mut Members) {
    let unhealthy: BTreeSet<ObjectKey> = unhealthy(members).collect();
    let looks = members.workloads.iter().filter(|(key, _)| unhealthy.contains(key)).map(|(key, object)| async move {
        let dependents = causes::dependents(client, object).await.ok()?;
        Some((key.clone(), causes::cause(client, object, dependents).await.ok().flatten()?))
    });
    let found: Vec<Option<(ObjectKey, String)>> = stream::iter(looks).buffered(CONCURRENCY).collect().await;
    for (key, cause) in found.into_iter().flatten() {
        set_cause(members, &key, cause);
    }
}

/// Reads what is below all objects, and replaces the messages of unhealthy ones by the causes there.
pub async fn read(client: &Client, members: &mut Members) -> Below {
    let unhealthy: BTreeSet<ObjectKey> = unhealthy(members).collect();
    let looks = members.workloads.iter().take(OBJECTS).map(|(key, object)| {
        let explained = unhealthy.contains(key);
        async move {
            let dependents = match causes::dependents(client, object).await {
                Ok(dependents) => dependents,
                Err(error) => return (key.clone(), Err(error.to_string()), None),
            };
            let nodes = nodes(object, &dependents);
            let cause = if explained { causes::cause(client, object, dependents).await.ok().flatten() } else { None };
            (key.clone(), Ok(nodes), cause)
        }
    });
    let found: Vec<_> = stream::iter(looks).buffered(CONCURRENCY).collect().await;
    let (mut below, mut refused) = (Below::default(), Vec::new());
    for (key, nodes, cause) in found {
        match nodes {
            Ok(nodes) => below.0.push((key.clone(), nodes)),
            Err(error) => refused.push(format!("what is below {key}: {error}")),
        }
        if let Some(cause) = cause {
            set_cause(members, &key, cause);
        }
    }
    // The others are refused for the same reason.
    members.unreadable.extend(refused.into_iter().take(1));
    below
}

fn unhealthy(members: &Members) -> impl Iterator<Item = ObjectKey> {
    let unhealthy = members.objects.iter().filter(|object| object.health != ObjectHealth::Healthy);
    unhealthy.filter(|object| has_dependents(&object.key)).take(EXPLAINED).map(|object| object.key.clone())
}

fn set_cause(members: &mut Members, key: &ObjectKey, cause: String) {
    for object in members.objects.iter_mut().filter(|object| object.key == *key) {
        object.message = Some(cause.clone());
    }
}

/// The objects that an object owns, with those that they own.
fn nodes(owner: &Value, dependents: &[Value]) -> Vec<TreeNode> {
    let mut nodes: Vec<TreeNode> = causes::owned(owner, dependents)
        .into_iter()
        .map(|object| TreeNode { object: status(object), dependents: nodes(object, dependents) })
        .filter(|node| !is_retired(node, dependents))
        .collect();
    nodes.sort_by(|a, b| (&a.object.key.kind, &a.object.key.name).cmp(&(&b.object.key.kind, &b.object.key.name)));
    nodes
}

/// A ReplicaSet of an earlier revision.
fn is_retired(node: &TreeNode, dependents: &[Value]) -> bool {
    let key = &node.object.key;
    let is_it = |object: &&Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        text("/kind") == Some(key.kind.as_str()) && text("/metadata/name") == Some(key.name.as_str())
    };
    let is_empty = |set: &Value| set.pointer("/spec/replicas").and_then(Value::as_i64) == Some(0);
    key.kind == "ReplicaSet" && node.dependents.is_empty() && dependents.iter().find(is_it).is_some_and(is_empty)
}

fn status(object: &Value) -> ObjectStatus {
    let mut status = cluster::object_status(object);
    if status.health != ObjectHealth::Healthy
        && let Some(cause) = causes::own_cause(object)
    {
        status.message = Some(cause);
    }
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, owner: &str, spec: &Value, status: &Value) -> Value {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": api_version, "kind": kind, "spec": spec, "status": status,
               "metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": [{"uid": owner}]}})
    }

    #[test]
    fn dependents_are_nested_by_owner_and_retired_sets_left_out() {
        let failing = json!({"phase": "Pending", "containerStatuses": [{"name": "main", "image": "x:1", "ready": false,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "x:1: not found"}}}]});
        let dependents = [
            object("ReplicaSet", "old", "d", &json!({"replicas": 0}), &json!({})),
            object("ReplicaSet", "new", "d", &json!({"replicas": 1}), &json!({})),
            object("Pod", "p", "new", &json!({}), &failing),
            object("Pod", "foreign", "other", &json!({}), &json!({})),
        ];
        let deployment = object("Deployment", "d", "", &json!({}), &json!({}));
        let nodes = nodes(&deployment, &dependents);
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].object.key.to_string(), "ReplicaSet.apps n/new");
        let pod = &nodes[0].dependents[0].object;
        assert_eq!((pod.key.to_string().as_str(), pod.health), ("Pod n/p", ObjectHealth::Unhealthy));
        assert_eq!(pod.message.as_deref(), Some("ImagePullBackOff: x:1: not found"));
    }
}
