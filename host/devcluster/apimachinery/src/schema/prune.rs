//! Removes fields that are not in the type.

use serde_json::Value;

use crate::schema::{
    model::{Schema, Shape},
    path::FieldPath,
};

/// Most unknown fields reported for one object; all are dropped.
const MOST_REPORTED: usize = 100;

/// Drops every field of `value` that `schema` does not know and returns the paths of what was dropped.
///
/// A property below `x-kubernetes-preserve-unknown-fields` survives, but the properties that are specified there are pruned in
/// turn. At most a hundred paths are returned.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune_at(schema, value, &FieldPath::Root, &mut dropped);
    dropped
}

/// The messages of `fieldValidation=Strict` and `Warn`: `unknown field "spec.foo"`.
pub fn unknown_field_messages(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field {path:?}")).collect()
}

fn prune_at(schema: &Schema, value: &mut Value, path: &FieldPath<'_>, dropped: &mut Vec<String>) {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, preserve_unknown, .. }, Value::Object(object)) => {
            object.retain(|name, child| {
                let path = path.field(name);
                let known = match (properties.get(name), values) {
                    (Some(property), _) => property,
                    (None, Some(values)) => values,
                    (None, None) => {
                        if !preserve_unknown && dropped.len() < MOST_REPORTED {
                            dropped.push(path.to_string());
                        }
                        return *preserve_unknown;
                    }
                };
                prune_at(known, child, &path, dropped);
                true
            });
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for (index, item) in list.iter_mut().enumerate() {
                prune_at(items, item, &path.index(index), dropped);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{Builtins, GroupVersionKind, crd::root};

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = root::read(&json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "known": {"type": "string"},
                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                             "properties": {"closed": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                }},
            },
        }))
        .unwrap();
        let mut value = json!({
            "apiVersion": "example.com/v1", "kind": "Foo",
            "metadata": {"name": "a", "labels": {"x": "y"}, "colour": "red"},
            "spec": {
                "known": "1", "unknown": 2,
                "open": {"free": {"x": 1}, "closed": {"a": "1", "b": 2}},
                "map": {"k": {"a": "1", "b": 2}},
                "list": [{"a": "1"}, {"b": 1}],
            },
        });
        let dropped = prune(&schema, &mut value);
        assert_eq!(
            dropped,
            ["metadata.colour", "spec.list[1].b", "spec.map.k.b", "spec.open.closed.b", "spec.unknown"]
        );
        assert_eq!(value["spec"]["open"], json!({"free": {"x": 1}, "closed": {"a": "1"}}));
        assert_eq!(value["metadata"], json!({"name": "a", "labels": {"x": "y"}}));
        assert_eq!(unknown_field_messages(&dropped)[4], "unknown field \"spec.unknown\"");
    }

    #[test]
    fn recursive_built_in_types_keep_free_form_parts() {
        let kind = GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let schema = &Builtins::get().kind(&kind).unwrap().schema;
        let mut value = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"a": {"type": "object", "default": {"any": ["thing"]}, "oops": 1}}}}}]}});
        assert_eq!(prune(schema, &mut value), ["spec.versions[0].schema.openAPIV3Schema.properties.a.oops"]);
        assert_eq!(
            value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]["default"],
            json!({"any": ["thing"]})
        );
    }
}
