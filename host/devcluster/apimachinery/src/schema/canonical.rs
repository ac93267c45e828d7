//! Canonical forms: the one spelling that kube-apiserver stores of values with several.

use serde_json::{Map, Value};

use crate::schema::{
    model::{Presence, Scalar, Schema, Shape},
    quantity,
};

/// Rewrites the values of built-in types into what a Go struct makes of them.
///
/// Quantities become canonical (`1024Mi` to `1Gi`), and zero values follow [`Presence`]: `null` is the zero value, empty lists and maps
/// vanish where they are optional, structs that are not pointers appear. Invalid quantities stay, for validation to report. For custom
/// resources call only [`drop_nulls`].
pub fn canonicalize(schema: &Schema, value: &mut Value) {
    match (&schema.shape, &mut *value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            if let Some(values) = values {
                // In a map, `null` is the zero value of the type of values.
                for child in object.values_mut().filter(|child| child.is_null()) {
                    *child = if is_text(values) { "".into() } else { zero(values) };
                }
            }
            if !properties.is_empty() || values.is_some() {
                object.retain(|name, child| {
                    let property = properties.get(name);
                    let omitted = property.is_some_and(|property| {
                        property.presence == Presence::Omitted && !matches!(property.shape, Shape::Any | Shape::Deduced)
                    });
                    !child.is_null() && !(omitted && (is_zero(child) || is_empty_map(property, child)))
                });
            }
            for (name, property) in properties {
                if let Some(zero) = written_zero(property).filter(|_| !object.contains_key(name)) {
                    object.insert(name.clone(), zero);
                }
            }
            for (name, child) in object.iter_mut() {
                if let Some(schema) = properties.get(name).or(values.as_ref()) {
                    canonicalize(schema, child);
                }
            }
            // Lists of resources count in thousandths.
            if values.as_ref().is_some_and(|values| matches!(values.shape, Shape::Scalar(Scalar::Quantity))) {
                for child in object.values_mut() {
                    if let Some(rounded) = child.as_str().and_then(|text| quantity::rounded_to_millis(text).ok()) {
                        *child = rounded.into();
                    }
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                if item.is_null() {
                    *item = zero(items);
                }
                canonicalize(items, item);
            }
        }
        (Shape::Scalar(Scalar::Quantity), _) => {
            let text = match &*value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return,
            };
            if let Ok(canonical) = quantity::canonical(&text) {
                *value = Value::String(canonical);
            }
        }
        _ => {}
    }
}

/// Makes `null` of empty lists and maps that are written even when empty: protobuf, in which built-in kinds are stored, cannot distinguish
/// them from absent ones. The two extension servers store JSON, which can; they do not need it.
pub fn stored(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            for (name, child) in object.iter_mut() {
                let Some(schema) = properties.get(name).or(values.as_ref()) else { continue };
                let empty = child.as_array().is_some_and(Vec::is_empty) || is_empty_map(Some(schema), child);
                if empty && schema.presence == Presence::Written {
                    *child = Value::Null;
                } else {
                    stored(schema, child);
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(list)) => list.iter_mut().for_each(|item| stored(items, item)),
        _ => {}
    }
}

/// Whether a value is the zero value of a Go type other than a struct.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        // Pointers to empty structs stay; for maps see `is_empty_map`.
        Value::Object(_) => false,
    }
}

/// Whether a value is an empty map, other than an empty struct.
fn is_empty_map(schema: Option<&Schema>, value: &Value) -> bool {
    let is_map = schema.is_some_and(
        |schema| matches!(&schema.shape, Shape::Object { properties, values: Some(_), .. } if properties.is_empty()),
    );
    is_map && value.as_object().is_some_and(Map::is_empty)
}

/// The serialised form of an absent field; `None` if it is omitted.
fn written_zero(schema: &Schema) -> Option<Value> {
    match schema.presence {
        Presence::Null => Some(Value::Null),
        Presence::Written => Some(zero(schema)),
        _ => None,
    }
}

fn is_text(schema: &Schema) -> bool {
    matches!(schema.shape, Shape::Scalar(Scalar::String { .. }))
}

/// The zero value of a Go type.
fn zero(schema: &Schema) -> Value {
    match &schema.shape {
        Shape::Object { properties, .. } if !properties.is_empty() => Value::Object(Map::new()),
        Shape::Scalar(Scalar::Boolean) => false.into(),
        Shape::Scalar(Scalar::Integer { .. } | Scalar::Number { .. } | Scalar::IntOrString) => 0.into(),
        Shape::Scalar(Scalar::Quantity) => "0".into(),
        Shape::Scalar(Scalar::String { format: None, .. }) => "".into(),
        _ => Value::Null,
    }
}

/// Drops `null` at fields of a custom resource that are not nullable, as kube-apiserver does before it fills in defaults.
pub fn drop_nulls(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            object.retain(|name, child| {
                let Some(schema) = properties.get(name).or(values.as_ref()) else { return true };
                if child.is_null() && !schema.nullable {
                    return false;
                }
                drop_nulls(schema, child);
                true
            });
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                drop_nulls(items, item);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{Builtins, GroupVersionKind};

    #[test]
    fn zero_values_are_serialised_as_by_go() {
        let cases = [
            (
                ("rbac.authorization.k8s.io", "ClusterRole"),
                json!({"rules": []}),
                json!({"metadata": {}, "rules": null}),
            ),
            (
                ("apps", "Deployment"),
                json!({"spec": {"replicas": 0, "paused": false, "minReadySeconds": 0, "template": {"metadata": {"labels": {}}}}}),
                json!({"metadata": {}, "status": {}, "spec": {"replicas": 0, "selector": null, "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": null}}}}),
            ),
            (
                ("policy", "PodDisruptionBudget"),
                json!({"spec": {"selector": {}}}),
                json!({"metadata": {}, "spec": {"selector": {}},
                    "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}}),
            ),
        ];
        for ((group, kind), mut object, expected) in cases {
            let schema = &Builtins::get().kind(&GroupVersionKind::new(group, "v1", kind)).unwrap().schema;
            canonicalize(schema, &mut object);
            stored(schema, &mut object);
            assert_eq!(object, expected, "{kind}");
        }
    }

    #[test]
    fn quantities_become_canonical_and_nulls_go() {
        let schema = &Builtins::get().kind(&GroupVersionKind::new("", "v1", "Pod")).unwrap().schema;
        let mut pod = json!({
            "metadata": {"name": "a", "creationTimestamp": null},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}, "requests": null}}]},
        });
        canonicalize(schema, &mut pod);
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}}]},
                "status": {},
            })
        );
    }
}
