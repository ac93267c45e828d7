//! `deploymentConfig`: the administrator's changes to the operator's Deployments.
//!
//! The rules come from OLM v0's subscription configuration, except that volumes and mounts replace existing ones of the same name instead
//! of being appended. Init containers are not changed.

use serde_json::{Map, Value, json};

/// Changes a Deployment. Both are normalized.
pub(super) fn apply(deployment: &mut Value, config: &Value) {
    let items = |field: &str| config.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let Some(pod) = deployment.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) {
        for container in pod.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            replace_or_append(container, "env", items("env"));
            append_if_new(container, "envFrom", items("envFrom"));
            replace_or_append(container, "volumeMounts", items("volumeMounts"));
            if let Some(resources) = config.get("resources") {
                container.insert("resources".to_owned(), resources.clone());
            }
        }
        replace_or_append(pod, "volumes", items("volumes"));
        append_if_new(pod, "tolerations", items("tolerations"));
        if let Some(selector) = config.get("nodeSelector") {
            replace(pod, "nodeSelector", selector);
        }
        if let Some(Value::Object(affinity)) = config.get("affinity") {
            set_affinity(pod, affinity);
        }
    }
    if let Some(Value::Object(annotations)) = config.get("annotations").filter(|value| !is_empty(value)) {
        for pointer in ["/metadata", "/spec/template/metadata"] {
            add_annotations(deployment.pointer_mut(pointer), annotations);
        }
    }
}

fn name(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

/// Items replace the last existing one of their name; others are appended, including duplicates.
pub(super) fn replace_or_append(owner: &mut Map<String, Value>, field: &str, items: &[Value]) {
    if items.is_empty() {
        return;
    }
    let Some(list) = list(owner, field) else { return };
    let existing = list.len();
    for item in items {
        let old = list.iter_mut().take(existing).rev().find(|old| name(old) == name(item));
        match old {
            Some(old) => *old = item.clone(),
            None => list.push(item.clone()),
        }
    }
}

fn append_if_new(owner: &mut Map<String, Value>, field: &str, items: &[Value]) {
    if items.is_empty() {
        return;
    }
    let Some(list) = list(owner, field) else { return };
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

fn list<'a>(owner: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Vec<Value>> {
    owner.entry(field).or_insert_with(|| json!([])).as_array_mut()
}

/// An empty value removes the field.
fn replace(owner: &mut Map<String, Value>, field: &str, value: &Value) {
    if is_empty(value) {
        owner.remove(field);
    } else {
        owner.insert(field.to_owned(), value.clone());
    }
}

/// `{}` removes the affinity, an empty kind of it removes that kind, a non-empty one replaces it, an absent one is
/// kept.
fn set_affinity(pod: &mut Map<String, Value>, config: &Map<String, Value>) {
    if config.is_empty() {
        pod.remove("affinity");
        return;
    }
    let mut affinity = match pod.remove("affinity") {
        Some(Value::Object(affinity)) => affinity,
        _ => Map::new(),
    };
    for (kind, value) in config {
        if is_empty_affinity(value) {
            affinity.remove(kind);
        } else {
            affinity.insert(kind.clone(), value.clone());
        }
    }
    if !affinity.values().all(is_empty_affinity) {
        pod.insert("affinity".to_owned(), Value::Object(affinity));
    }
}

/// Whether it has neither a required nor a preferred term.
fn is_empty_affinity(affinity: &Value) -> bool {
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    // A node affinity has its terms one level deeper than pod affinities.
    let required = required.map(|required| required.get("nodeSelectorTerms").unwrap_or(required));
    let preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution");
    required.is_none_or(is_empty) && preferred.is_none_or(is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Existing values win.
fn add_annotations(metadata: Option<&mut Value>, annotations: &Map<String, Value>) {
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else { return };
    let Some(existing) = metadata.entry("annotations").or_insert_with(|| json!({})).as_object_mut() else { return };
    for (key, value) in annotations {
        existing.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({
            "metadata": {"name": "d"},
            "spec": {"template": {
                "metadata": {"annotations": {"kept": "old"}},
                "spec": {
                    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
                    "containers": [
                        {"name": "a", "env": [{"name": "A", "value": "old"}], "resources": {}},
                        {"name": "b", "envFrom": [{"prefix": "p"}], "resources": {"limits": {"cpu": "1"}}},
                    ],
                    "initContainers": [{"name": "i"}],
                    "nodeSelector": {"old": "yes"},
                    "tolerations": [{"key": "k"}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                },
            }},
        })
    }

    fn pod(config: &Value) -> Value {
        let mut deployment = deployment();
        apply(&mut deployment, config);
        deployment["spec"]["template"]["spec"].clone()
    }

    #[test]
    fn environment_replaces_by_name_in_every_container() {
        let env = json!([{"name": "A", "value": "new"}, {"name": "B", "value": "b"}]);
        let pod = pod(&json!({"env": env, "envFrom": [{"prefix": "p"}]}));
        assert_eq!(pod["containers"][0]["env"], env);
        assert_eq!(pod["containers"][1]["env"], env);
        assert_eq!(pod["containers"][0]["envFrom"], json!([{"prefix": "p"}]));
        assert_eq!(pod["containers"][1]["envFrom"], json!([{"prefix": "p"}]), "equal sources are not added again");
        assert_eq!(pod["initContainers"], json!([{"name": "i"}]));
    }

    #[test]
    fn volumes_resources_tolerations_and_selectors() {
        let pod = pod(&json!({
            "volumes": [{"name": "v", "secret": {}}, {"name": "w"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"requests": {"cpu": "2"}},
            "tolerations": [{"key": "k"}, {"key": "l"}],
            "nodeSelector": {"new": "yes"},
        }));
        assert_eq!(pod["volumes"], json!([{"name": "v", "secret": {}}, {"name": "w"}]));
        for container in pod["containers"].as_array().unwrap() {
            assert_eq!(container["volumeMounts"], json!([{"name": "v", "mountPath": "/v"}]));
            assert_eq!(container["resources"], json!({"requests": {"cpu": "2"}}));
        }
        assert_eq!(pod["tolerations"], json!([{"key": "k"}, {"key": "l"}]));
        assert_eq!(pod["nodeSelector"], json!({"new": "yes"}));
    }

    #[test]
    fn affinity_is_kept_erased_or_replaced_by_kind() {
        let kept = deployment()["spec"]["template"]["spec"]["affinity"].clone();
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k"}]});
        let empty_terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}});
        let cases = [
            (json!({}), kept.clone()),
            (json!({"affinity": {}}), Value::Null),
            (json!({"affinity": {"nodeAffinity": {}}}), Value::Null),
            (json!({"affinity": {"nodeAffinity": empty_terms}}), Value::Null),
            (json!({"affinity": {"podAffinity": {}}}), kept.clone()),
            (
                json!({"affinity": {"podAffinity": terms}}),
                json!({"nodeAffinity": kept["nodeAffinity"], "podAffinity": terms}),
            ),
            (json!({"affinity": {"nodeAffinity": {}, "podAffinity": terms}}), json!({"podAffinity": terms})),
        ];
        for (config, want) in cases {
            assert_eq!(pod(&config)["affinity"], want, "{config}");
        }
    }

    #[test]
    fn annotations_never_override() {
        let mut deployment = deployment();
        apply(&mut deployment, &json!({"annotations": {"kept": "new", "added": "yes"}}));
        assert_eq!(deployment["metadata"]["annotations"], json!({"kept": "new", "added": "yes"}));
        assert_eq!(deployment["spec"]["template"]["metadata"]["annotations"], json!({"kept": "old", "added": "yes"}));
    }
}
