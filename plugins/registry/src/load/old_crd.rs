//! Converts CustomResourceDefinitions of `apiextensions.k8s.io/v1beta1` to `v1`.
//!
//! Kubernetes 1.22 and newer serve no v1beta1. OLM v1 decodes such a CRD as v1 and so loses its schema, its columns and
//! its subresources, and API servers reject the rest. One published bundle in twenty has some.
//!
//! The CRD is converted as API servers that served both versions did: fields for all versions are copied into each version, and
//! fields that v1 renamed are renamed. In addition, v1 requires structural schemas, so that each value gets a type; and
//! where v1beta1 preserved unknown fields, which was its default, the schema says so at each object, since they would
//! be lost otherwise.

use serde_json::{Map, Value, json};

use crate::json::set;

/// Their apiVersion.
pub(super) const API_VERSION: &str = "apiextensions.k8s.io/v1beta1";

/// The maximum nesting of schemas: the limit for documents is lower.
const DEEPEST: usize = 128;

/// The marker of a schema that preserves unknown fields.
const KEEPS: &str = "x-kubernetes-preserve-unknown-fields";

/// The annotation that states whether a CRD in a protected group is approved.
const APPROVED: &str = "api-approved.kubernetes.io";

/// The marker of a schema that accepts integers and strings.
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// This CRD in v1.
pub(super) fn upgrade(mut crd: Value) -> Value {
    if let Some(object) = crd.as_object_mut() {
        object.insert("apiVersion".to_owned(), json!("apiextensions.k8s.io/v1"));
        object.remove("status");
        let mut protected = false;
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            upgrade_spec(spec);
            protected = spec.get("group").and_then(Value::as_str).is_some_and(is_protected);
        }
        let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
        if protected && annotations.is_none_or(|annotations| annotations.get(APPROVED).is_none()) {
            set(
                &mut crd,
                ["metadata", "annotations", APPROVED],
                "unapproved, written for apiextensions.k8s.io/v1beta1",
            );
        }
    }
    crd
}

/// Groups of the Kubernetes community. CRDs of v1 in them must be annotated as approved or unapproved.
fn is_protected(group: &str) -> bool {
    [".k8s.io", ".kubernetes.io"].iter().any(|suffix| group.ends_with(suffix))
}

fn upgrade_spec(spec: &mut Map<String, Value>) {
    let mut take = |field: &str| spec.remove(field).filter(|value| !value.is_null());
    let for_all = [
        ("schema", take("validation")),
        ("subresources", take("subresources")),
        ("additionalPrinterColumns", take("additionalPrinterColumns")),
    ];
    let version = take("version");
    let keeps = take("preserveUnknownFields") != Some(Value::Bool(false));
    // The default of v1beta1; v1 has none.
    if spec.get("scope").and_then(Value::as_str).is_none_or(str::is_empty) {
        spec.insert("scope".to_owned(), json!("Namespaced"));
    }
    let versions = spec.entry("versions").or_insert(Value::Null);
    if versions.as_array().is_none_or(Vec::is_empty)
        && let Some(name) = version
    {
        *versions = json!([{"name": name, "served": true, "storage": true}]);
    }
    for version in versions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        for (field, value) in &for_all {
            if let Some(value) = value.as_ref().filter(|_| version.get(*field).is_none_or(Value::is_null)) {
                version.insert((*field).to_owned(), value.clone());
            }
        }
        upgrade_version(version, keeps);
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        upgrade_conversion(conversion);
    }
}

fn upgrade_version(version: &mut Map<String, Value>, keeps: bool) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.entry("jsonPath").or_insert(path);
        }
    }
    let schema = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"));
    match schema.filter(|schema| schema.is_object()) {
        Some(schema) => {
            structural(schema, keeps, 0);
            let metadata = schema.get_mut("properties").and_then(|properties| properties.get_mut("metadata"));
            if let Some(metadata) = metadata {
                // The API server knows the schema of metadata, and rejects any other.
                *metadata = json!({"type": "object"});
            }
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("type".to_owned(), json!("object"));
            }
        }
        None => {
            version.insert("schema".to_owned(), json!({"openAPIV3Schema": {"type": "object", KEEPS: true}}));
        }
    }
}

/// The webhook's fields are one level deeper in v1.
fn upgrade_conversion(conversion: &mut Map<String, Value>) {
    let client = conversion.remove("webhookClientConfig").filter(|value| !value.is_null());
    let versions = conversion.remove("conversionReviewVersions").filter(|value| !value.is_null());
    if let Some(client) = client {
        // The default of v1beta1.
        let versions = versions.unwrap_or_else(|| json!(["v1beta1"]));
        conversion.insert("webhook".to_owned(), json!({"clientConfig": client, "conversionReviewVersions": versions}));
    }
}

/// Makes a schema and all schemas below it valid in v1.
fn structural(schema: &mut Value, keeps: bool, depth: usize) {
    let Some(schema) = schema.as_object_mut().filter(|_| depth < DEEPEST) else { return };
    let int_or_string = takes_int_or_string(schema);
    if int_or_string {
        schema.insert(INT_OR_STRING.to_owned(), json!(true));
        schema.remove("type");
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for part in schema.get_mut(junctor).and_then(Value::as_array_mut).into_iter().flatten() {
            value_validation(part, int_or_string, depth);
        }
    }
    if let Some(part) = schema.get_mut("not") {
        value_validation(part, false, depth);
    }
    for child in children(schema) {
        structural(child, keeps, depth + 1);
    }
    let flag = |schema: &Map<String, Value>, name: &str| schema.get(name) == Some(&Value::Bool(true));
    if flag(schema, INT_OR_STRING) {
        return;
    }
    let has_type = schema.get("type").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if !has_type {
        let objects = ["properties", "additionalProperties"].iter().any(|field| schema.contains_key(*field));
        match (objects, schema.contains_key("items")) {
            (true, _) => schema.insert("type".to_owned(), json!("object")),
            (_, true) => schema.insert("type".to_owned(), json!("array")),
            _ => schema.insert(KEEPS.to_owned(), json!(true)),
        };
    }
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if keeps && is_object && !schema.contains_key("additionalProperties") {
        schema.entry(KEEPS).or_insert(json!(true));
    }
}

/// The schemas of values inside a value.
fn children(schema: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut children = Vec::new();
    for (field, value) in schema.iter_mut() {
        match (field.as_str(), value) {
            ("properties", Value::Object(properties)) => children.extend(properties.values_mut()),
            ("items" | "additionalProperties", value @ Value::Object(_)) => children.push(value),
            _ => {}
        }
    }
    children
}

/// `anyOf: [{type: integer}, {type: string}]`, the form of such fields before the marker existed.
fn takes_int_or_string(schema: &Map<String, Value>) -> bool {
    let is = |part: &Value, name: &str| part.as_object().is_some_and(|part| part.len() == 1) && part["type"] == name;
    match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one, other]) => is(one, "integer") && is(other, "string") || is(one, "string") && is(other, "integer"),
        _ => false,
    }
}

/// Conditions on a value do not define its structure in v1.
fn value_validation(part: &mut Value, keep_type: bool, depth: usize) {
    let Some(part) = part.as_object_mut().filter(|_| depth < DEEPEST) else { return };
    let structure = ["description", "default", "nullable", "additionalProperties", "title", KEEPS];
    part.retain(|field, _| !(structure.contains(&field.as_str()) || field == "type" && !keep_type));
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for inner in part.get_mut(junctor).and_then(Value::as_array_mut).into_iter().flatten() {
            value_validation(inner, keep_type, depth + 1);
        }
    }
    if let Some(inner) = part.get_mut("not") {
        value_validation(inner, keep_type, depth + 1);
    }
    for child in children(part) {
        value_validation(child, false, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(schema: Value, keeps: bool) -> Value {
        let mut schema = schema;
        structural(&mut schema, keeps, 0);
        schema
    }

    #[test]
    fn global_fields_are_copied_into_each_version() {
        let old = json!({
            "apiVersion": API_VERSION,
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "berths.example.com"},
            "spec": {
                "group": "example.com",
                "preserveUnknownFields": false,
                "additionalPrinterColumns": [{"name": "Age", "type": "date", "JSONPath": ".x"}],
                "subresources": {"status": {}},
                "validation": {"openAPIV3Schema": {"properties": {"metadata": {"type": "object", "required": ["name"]}}}},
                "version": "v1",
                "versions": [
                    {"name": "v1", "served": true, "storage": true},
                    {"name": "v2", "served": true, "storage": false, "additionalPrinterColumns": []},
                ],
                "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://x"}},
            },
            "status": {},
        });
        insta::assert_json_snapshot!(upgrade(old), @r#"
        {
          "apiVersion": "apiextensions.k8s.io/v1",
          "kind": "CustomResourceDefinition",
          "metadata": {
            "name": "berths.example.com"
          },
          "spec": {
            "conversion": {
              "strategy": "Webhook",
              "webhook": {
                "clientConfig": {
                  "url": "https://x"
                },
                "conversionReviewVersions": [
                  "v1beta1"
                ]
              }
            },
            "group": "example.com",
            "scope": "Namespaced",
            "versions": [
              {
                "additionalPrinterColumns": [
                  {
                    "jsonPath": ".x",
                    "name": "Age",
                    "type": "date"
                  }
                ],
                "name": "v1",
                "schema": {
                  "openAPIV3Schema": {
                    "properties": {
                      "metadata": {
                        "type": "object"
                      }
                    },
                    "type": "object"
                  }
                },
                "served": true,
                "storage": true,
                "subresources": {
                  "status": {}
                }
              },
              {
                "additionalPrinterColumns": [],
                "name": "v2",
                "schema": {
                  "openAPIV3Schema": {
                    "properties": {
                      "metadata": {
                        "type": "object"
                      }
                    },
                    "type": "object"
                  }
                },
                "served": true,
                "storage": false,
                "subresources": {
                  "status": {}
                }
              }
            ]
          }
        }
        "#);
    }

    #[test]
    fn a_single_version_and_no_schema() {
        let old = json!({"spec": {"version": "v1", "conversion": {"strategy": "None"}}});
        insta::assert_json_snapshot!(upgrade(old)["spec"], @r#"
        {
          "conversion": {
            "strategy": "None"
          },
          "scope": "Namespaced",
          "versions": [
            {
              "name": "v1",
              "schema": {
                "openAPIV3Schema": {
                  "type": "object",
                  "x-kubernetes-preserve-unknown-fields": true
                }
              },
              "served": true,
              "storage": true
            }
          ]
        }
        "#);
        for odd in [json!({}), json!([]), json!({"spec": 1}), json!({"spec": {"versions": [1]}})] {
            let _ = upgrade(odd);
        }
    }

    #[test]
    fn protected_groups_are_annotated_as_unapproved() {
        let annotation = |old: Value| upgrade(old)["metadata"]["annotations"][APPROVED].clone();
        assert!(annotation(json!({"spec": {"group": "app.k8s.io"}})).as_str().unwrap().starts_with("unapproved"));
        assert_eq!(annotation(json!({"spec": {"group": "example.com"}})), Value::Null);
        let approved = json!({"metadata": {"annotations": {APPROVED: "https://x"}}, "spec": {"group": "app.k8s.io"}});
        assert_eq!(annotation(approved), "https://x");
    }

    #[test]
    fn schemas_become_structural() {
        let cases = [
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            ),
            (
                json!({"items": {"description": "x"}}),
                json!({"type": "array", "items": {"description": "x", KEEPS: true}}),
            ),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "type": "string"}),
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: true}),
            ),
            (
                json!({"type": "object", "oneOf": [{"required": ["a"], "type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}]}),
                json!({"type": "object", "oneOf": [{"required": ["a"], "properties": {"a": {"minLength": 1}}}]}),
            ),
            (
                json!({"type": "object", "additionalProperties": {}}),
                json!({"type": "object", "additionalProperties": {KEEPS: true}}),
            ),
        ];
        for (old, new) in cases {
            assert_eq!(schema(old.clone(), false), new, "{old}");
        }
    }

    #[test]
    fn unknown_fields_are_preserved_where_v1beta1_preserved_them() {
        let old = json!({"type": "object", "properties": {"free": {"type": "object"}, "text": {"type": "string"}}});
        let new = json!({
            "type": "object",
            KEEPS: true,
            "properties": {"free": {"type": "object", KEEPS: true}, "text": {"type": "string"}},
        });
        assert_eq!(schema(old.clone(), true), new);
        assert_eq!(schema(old.clone(), false), old);
    }
}
