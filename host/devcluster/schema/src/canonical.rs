//! The one spelling that kube-apiserver stores of values that have several.

use serde_json::Value;

use crate::{
    quantity,
    schema::{Scalar, Schema, Shape},
};

/// Rewrites the values of built-in types that have a canonical spelling, and drops what Go's `omitempty` drops.
///
/// Quantities become canonical (`1024Mi` to `1Gi`), and `null` fields vanish, since a Go struct cannot tell them from absent
/// ones. Invalid quantities stay, for validation to report. For custom resources call only [`drop_nulls`].
pub fn canonicalize(schema: &Schema, value: &mut Value) {
    match (&schema.shape, &mut *value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            if !properties.is_empty() || values.is_some() {
                object.retain(|_, child| !child.is_null());
            }
            for (name, child) in object.iter_mut() {
                if let Some(schema) = properties.get(name).or(values.as_ref()) {
                    canonicalize(schema, child);
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
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

/// Drops `null` at places of a custom resource that are not nullable; kube-apiserver does so before it fills in defaults.
pub fn drop_nulls(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            object.retain(|name, child| {
                let Some(schema) = properties.get(name).or(values.as_ref()) else { return true };
                if child.is_null() && !schema.nullable && schema.default.is_some() {
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
    use crate::{Builtins, GroupVersionKind};

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
            })
        );
    }
}
