//! Where the objects below a workload are. Pure.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use serde::Deserialize as _;
use serde_json::Value;

/// The label selector of a workload's Pods, as a list request takes it, or `None` if it selects nothing or everything.
pub(crate) fn selector(object: &Value) -> Option<String> {
    let selector = object.pointer("/spec/selector")?;
    // A ReplicationController has the labels themselves.
    let selector = if object.get("kind").and_then(Value::as_str) == Some("ReplicationController") {
        BTreeMap::<String, String>::deserialize(selector).ok()?.into_iter().collect()
    } else {
        Selector::try_from(LabelSelector::deserialize(selector).ok()?).ok()?
    };
    (!selector.selects_all()).then(|| selector.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_written_as_a_list_request_takes_them() {
        for (kind, wanted, expected) in [
            ("Deployment", json!({"matchLabels": {"app": "a", "tier": "b"}}), Some("app=a,tier=b")),
            (
                "StatefulSet",
                json!({"matchLabels": {"app": "a"}, "matchExpressions": [
                    {"key": "b", "operator": "In", "values": ["c", "d"]}, {"key": "e", "operator": "NotIn", "values": ["f"]},
                    {"key": "g", "operator": "Exists"}, {"key": "h", "operator": "DoesNotExist"}]}),
                Some("app=a,b in (c,d),e notin (f),g,!h"),
            ),
            ("ReplicationController", json!({"app": "a"}), Some("app=a")),
            // A request for everything, or for more than the workload selects, would read foreign Pods.
            ("Deployment", json!({}), None),
            (
                "Deployment",
                json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "b", "operator": "New"}]}),
                None,
            ),
            ("Deployment", json!(null), None),
        ] {
            let object = json!({"kind": kind, "spec": {"selector": wanted}});
            assert_eq!(selector(&object).as_deref(), expected, "{object}");
        }
    }
}
