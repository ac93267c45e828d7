//! Items of lists with keys that occur twice, where an API server only finds that in an update.
//!
//! The types of built-in kinds call some lists maps (`x-kubernetes-list-type: map`): their items have a key. For most of them the API
//! server refuses a duplicate key in every request. The lists of this module are the rest: a create accepts a duplicate, at most with a
//! warning, and each later server-side apply of the same object is refused with `duplicate entries for key`. The keys are in the OpenAPI
//! documents of k8s.io/api; the checks of a create in `k8s.io/kubernetes/pkg/apis/core/validation`.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// The fields that identify an item, each with the default of the API server.
type Keys = &'static [(&'static str, Option<&'static str>)];

const NAME: Keys = &[("name", None)];
/// The lists of a pod.
const OF_A_POD: &[(&str, Keys)] = &[("hostAliases", &[("ip", None)]), ("imagePullSecrets", NAME)];
/// The lists of a container.
const OF_A_CONTAINER: &[(&str, Keys)] =
    &[("env", NAME), ("ports", &[("containerPort", None), ("protocol", Some("TCP"))])];
/// The lists of a ServiceAccount. Its pull secrets have no keys.
const OF_AN_ACCOUNT: &[(&str, Keys)] = &[("secrets", NAME)];

/// What an API server does with duplicates in these lists, for messages.
pub const ACCEPTED_ONCE: &str = "an API server accepts it once and refuses each later update";

/// An item with the key of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateItem {
    /// The JSON pointer to the list.
    pub list: String,
    /// The index of the first item with the key.
    pub first: usize,
    /// The index of this item.
    pub index: usize,
    /// The key, as the API server writes it: `[name="MODE"]`.
    pub key: String,
}

impl DuplicateItem {
    /// The JSON pointer to the item.
    pub fn pointer(&self) -> String {
        format!("{}/{}", self.list, self.index)
    }
}

impl fmt::Display for DuplicateItem {
    /// `spec.template.spec.containers[0].env: duplicate entries for key [name="MODE"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.list.split('/').skip(1).enumerate() {
            match segment.parse::<usize>() {
                Ok(index) => write!(f, "[{index}]")?,
                Err(_) if place == 0 => f.write_str(segment)?,
                Err(_) => write!(f, ".{segment}")?,
            }
        }
        write!(f, ": duplicate entries for key {}", self.key)
    }
}

/// The items of an object that a create accepts and an apply refuses, in the order of the lists.
pub fn duplicate_items(object: &Value) -> Vec<DuplicateItem> {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut found = Vec::new();
    if (text("apiVersion"), text("kind")) == ("v1", "ServiceAccount") {
        of_lists(object, "", OF_AN_ACCOUNT, &mut found);
    } else if let Some(pod) = pod_pointer(text("apiVersion"), text("kind"))
        && let Some(spec) = object.pointer(pod)
    {
        found = of_pod(spec, pod);
    }
    found
}

/// The JSON pointer to the specification of the pods of a built-in kind.
pub fn pod_pointer(api_version: &str, kind: &str) -> Option<&'static str> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match (group, kind) {
        ("", "Pod") => "/spec",
        ("", "PodTemplate") => "/template/spec",
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => "/spec/template/spec",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => return None,
    })
}

/// The items of the specification of a pod, which is at this JSON pointer.
pub fn of_pod(spec: &Value, pointer: &str) -> Vec<DuplicateItem> {
    let mut found = Vec::new();
    of_lists(spec, pointer, OF_A_POD, &mut found);
    for containers in ["initContainers", "containers"] {
        let items = spec.get(containers).and_then(Value::as_array).into_iter().flatten();
        for (index, container) in items.enumerate() {
            of_lists(container, &format!("{pointer}/{containers}/{index}"), OF_A_CONTAINER, &mut found);
        }
    }
    found
}

fn of_lists(object: &Value, pointer: &str, lists: &[(&str, Keys)], found: &mut Vec<DuplicateItem>) {
    for (name, keys) in lists {
        let items = object.get(name).and_then(Value::as_array).into_iter().flatten();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, item) in items.enumerate() {
            let Some(key) = key_of(item, keys) else { continue };
            if let Some(first) = seen.get(&key) {
                found.push(DuplicateItem { list: format!("{pointer}/{name}"), first: *first, index, key });
            } else {
                seen.insert(key, index);
            }
        }
    }
}

/// The key of an item, or `None` if it lacks a part of it. API servers refuse such an item by another rule.
fn key_of(item: &Value, keys: Keys) -> Option<String> {
    let parts = keys.iter().map(|(name, default)| {
        let value = item.get(name).filter(|value| !value.is_null()).cloned();
        let value = value.or_else(|| default.map(Value::from))?;
        Some(format!("{name}={value}"))
    });
    let parts: Option<Vec<String>> = parts.collect();
    parts.map(|parts| format!("[{}]", parts.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(object: &Value) -> Vec<String> {
        duplicate_items(object).iter().map(|found| format!("{} {found}", found.pointer())).collect()
    }

    #[test]
    fn items_with_equal_keys_are_found_in_pods_of_every_kind() {
        let spec = json!({
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}],
            "imagePullSecrets": [{"name": "pull"}, {"name": "pull"}, {}],
            "initContainers": [{"name": "i", "env": [{"name": "A"}, {"name": "A"}, {"name": "A"}]}],
            "containers": [{"name": "c"}, {
                "name": "d",
                "env": [{"name": "MODE", "value": "a"}, {"name": "OTHER"}, {"name": "MODE", "value": "b"}],
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}],
            }],
        });
        for (api_version, kind, pointer) in [
            ("v1", "Pod", "/spec"),
            ("v1", "PodTemplate", "/template/spec"),
            ("v1", "ReplicationController", "/spec/template/spec"),
            ("apps/v1", "StatefulSet", "/spec/template/spec"),
            ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template/spec"),
        ] {
            let mut object = json!({"apiVersion": api_version, "kind": kind});
            for part in pointer.split('/').skip(1).scan(String::new(), |path, part| {
                path.push('/');
                path.push_str(part);
                Some(path.clone())
            }) {
                let (parent, name) = part.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap()[name] = json!({});
            }
            *object.pointer_mut(pointer).unwrap() = spec.clone();
            let pointers: Vec<String> = duplicate_items(&object).iter().map(DuplicateItem::pointer).collect();
            let expected = [
                "/hostAliases/1",
                "/imagePullSecrets/1",
                "/initContainers/0/env/1",
                "/initContainers/0/env/2",
                "/containers/1/env/2",
                "/containers/1/ports/2",
            ];
            assert_eq!(pointers, expected.map(|place| format!("{pointer}{place}")), "{kind}");
        }
        insta::assert_snapshot!(of_pod(&spec, "/spec").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @r#"
        spec.hostAliases: duplicate entries for key [ip="10.0.0.1"]
        spec.imagePullSecrets: duplicate entries for key [name="pull"]
        spec.initContainers[0].env: duplicate entries for key [name="A"]
        spec.initContainers[0].env: duplicate entries for key [name="A"]
        spec.containers[1].env: duplicate entries for key [name="MODE"]
        spec.containers[1].ports: duplicate entries for key [containerPort=80,protocol="TCP"]
        "#);
    }

    #[test]
    fn accounts_are_checked_and_custom_kinds_are_not() {
        let secrets = json!([{"name": "a"}, {"name": "a"}]);
        let mut account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": secrets, "imagePullSecrets": secrets});
        assert_eq!(found(&account), [r#"/secrets/1 secrets: duplicate entries for key [name="a"]"#]);
        account["apiVersion"] = json!("example.com/v1");
        assert!(found(&account).is_empty());
        let env = json!([{"name": "a"}, {"name": "a"}]);
        let pods = json!({"template": {"spec": {"containers": [{"env": env}]}}});
        assert!(found(&json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": pods})).is_empty());
        for odd in
            [json!(null), json!({"kind": 1}), json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": "x"}})]
        {
            assert!(found(&odd).is_empty(), "{odd}");
        }
    }
}
