//! Label selectors of objects.

use serde_json::Value;

use super::fields::{list, text};

/// Whether a `LabelSelector` selects these labels. An absent selector selects nothing, an empty one everything.
pub(super) fn selects(selector: Option<&Value>, labels: &Value) -> bool {
    let Some(selector) = selector.filter(|selector| selector.is_object()) else { return false };
    matches_all(selector.get("matchLabels"), labels)
        && list(selector, "/matchExpressions").iter().all(|expression| matches_expression(expression, labels))
}

/// Whether all of these labels are among the others.
pub(super) fn matches_all(wanted: Option<&Value>, labels: &Value) -> bool {
    let mut wanted = wanted.and_then(Value::as_object).into_iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

fn matches_expression(expression: &Value, labels: &Value) -> bool {
    let label = labels.get(text(expression, "/key"));
    let among = label.is_some_and(|label| list(expression, "/values").contains(label));
    match text(expression, "/operator") {
        "In" => among,
        "NotIn" => !among,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select() {
        let labels = json!({"app": "web", "tier": "front"});
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let cases = [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "back"}}), false),
            (expression("In", "tier", &["front", "back"]), true),
            (expression("In", "tier", &["back"]), false),
            (expression("NotIn", "tier", &["back"]), true),
            (expression("NotIn", "absent", &["back"]), true),
            (expression("Exists", "app", &[]), true),
            (expression("DoesNotExist", "app", &[]), false),
            (expression("Unknown", "app", &[]), false),
        ];
        for (selector, expected) in cases {
            assert_eq!(selects(Some(&selector), &labels), expected, "{selector}");
        }
        assert!(!selects(None, &labels));
    }
}
