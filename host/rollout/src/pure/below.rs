//! Where the objects below a workload are. Pure.

use serde_json::{Map, Value};

/// The label selector of a workload's Pods, as a list request takes it; none if it selects nothing or everything.
pub(crate) fn selector(object: &Value) -> Option<String> {
    let selector = object.pointer("/spec/selector")?.as_object()?;
    let labels = |labels: &Map<String, Value>| -> Vec<String> {
        labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect()
    };
    // A ReplicationController has the labels themselves.
    let is_plain = object.get("kind").and_then(Value::as_str) == Some("ReplicationController");
    let mut terms = match selector.get("matchLabels").and_then(Value::as_object) {
        _ if is_plain => labels(selector),
        Some(selected) => labels(selected),
        None => Vec::new(),
    };
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten().filter(|_| !is_plain) {
        terms.push(term(expression)?);
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

fn term(expression: &Value) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    match expression.get("operator")?.as_str()? {
        "In" => Some(format!("{key} in ({})", values.join(","))),
        "NotIn" => Some(format!("{key} notin ({})", values.join(","))),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
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
