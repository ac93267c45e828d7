//! Validation of CustomResourceDefinition objects.

use std::collections::HashSet;

use serde_json::Value;

use super::structural;
use crate::{error::FieldError, names, path::FieldPath};

/// Validates a CustomResourceDefinition object beyond its type; `old` is what is stored, on an update.
///
/// Names, scope, versions (unique, exactly one stored, none dropped that objects may be stored in), conversion, subresources, and the
/// structural schema of every version with its rules compiled.
pub fn validate_definition(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::Root;
    let path = root.field("spec");
    let spec = new.get("spec").unwrap_or(&Value::Null);
    naming(new, spec, &path, &mut errors);
    versions(spec, &path, &mut errors);
    conversion(spec, &path, &mut errors);
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let detail = "must be false in order to use defaults in the schema, and in apiextensions.k8s.io/v1";
        errors.push(FieldError::invalid(&path.field("preserveUnknownFields"), true, detail));
    }
    stored_versions(new, spec, &mut errors);
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        immutable(spec, old, &path, &mut errors);
    }
    errors
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn naming(object: &Value, spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let group_path = path.field("group");
    if group.is_empty() {
        errors.push(FieldError::required(&group_path, ""));
    } else {
        errors.extend(
            names::dns1123_subdomain(group).into_iter().map(|detail| FieldError::invalid(&group_path, group, detail)),
        );
        if !group.contains('.') {
            errors.push(FieldError::invalid(&group_path, group, "should be a domain with at least one dot"));
        }
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&path.field("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(&path.field("scope"), other, ["Cluster", "Namespaced"])),
    }
    let names_path = path.field("names");
    let spec_names = spec.get("names").unwrap_or(&Value::Null);
    for (key, lower) in [("plural", true), ("singular", true), ("kind", false), ("listKind", false)] {
        let name = text(spec_names, key);
        let name_path = names_path.field(key);
        if name.is_empty() {
            if matches!(key, "plural" | "kind") {
                errors.push(FieldError::required(&name_path, ""));
            }
            continue;
        }
        let checked = if lower { name.to_owned() } else { name.to_lowercase() };
        errors.extend(
            names::dns1035_label(&checked).into_iter().map(|detail| FieldError::invalid(&name_path, name, detail)),
        );
    }
    for key in ["shortNames", "categories"] {
        let list_path = names_path.field(key);
        for (index, name) in list(spec_names, key).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let details = names::dns1035_label(name);
            errors.extend(details.into_iter().map(|detail| FieldError::invalid(&list_path.index(index), name, detail)));
        }
    }
    if !text(spec_names, "kind").is_empty() && text(spec_names, "kind") == text(spec_names, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&names_path.field("listKind"), text(spec_names, "listKind"), detail));
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let required = format!("{}.{group}", text(spec_names, "plural"));
    if name != required {
        errors.push(FieldError::invalid(&"metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
}

fn versions(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let versions_path = path.field("versions");
    let versions = list(spec, "versions");
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = versions_path.index(index);
        let name = text(version, "name");
        let details = names::dns1035_label(name);
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(&path.field("name"), name, detail)));
        if !seen.insert(name) {
            errors.push(FieldError::invalid(&versions_path, name, "must contain unique version names"));
        }
        let schema_path = path.field("schema");
        match version.pointer("/schema/openAPIV3Schema") {
            Some(schema) => structural::check(schema, &schema_path.field("openAPIV3Schema"), errors),
            None => errors.push(FieldError::required(&schema_path.field("openAPIV3Schema"), "schemas are required")),
        }
        subresources(version, &path, errors);
        columns(version, &path, errors);
    }
    if versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count() != 1 {
        let value = spec.get("versions").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(
            &versions_path,
            short(&value),
            "must have exactly one version marked as storage version",
        ));
    }
}

/// The names of the versions rather than all of them with their schemas.
fn short(versions: &Value) -> Value {
    versions.as_array().into_iter().flatten().filter_map(|version| version.get("name").cloned()).collect()
}

fn subresources(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) else { return };
    let subresources = path.field("subresources");
    let path = subresources.field("scale");
    for (key, parent) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let value = text(scale, key);
        if value.is_empty() {
            errors.push(FieldError::required(&path.field(key), ""));
        } else if !value.starts_with(parent) {
            let detail = format!("should be a json path under {}", parent.trim_end_matches('.'));
            errors.push(FieldError::invalid(&path.field(key), value, detail));
        }
    }
    let selector = text(scale, "labelSelectorPath");
    if !selector.is_empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(&path.field("labelSelectorPath"), selector, detail));
    }
}

fn columns(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let columns_path = path.field("additionalPrinterColumns");
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let path = columns_path.index(index);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        }
        let types = ["boolean", "date", "integer", "number", "string"];
        let found = text(column, "type");
        if found.is_empty() {
            errors.push(FieldError::required(&path.field("type"), format!("must be one of {}", types.join(","))));
        } else if !types.contains(&found) {
            errors.push(FieldError::invalid(&path.field("type"), found, format!("must be one of {}", types.join(","))));
        }
        if text(column, "jsonPath").is_empty() {
            errors.push(FieldError::required(&path.field("jsonPath"), ""));
        }
    }
}

fn conversion(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").filter(|conversion| conversion.is_object()) else { return };
    let path = path.field("conversion");
    match text(conversion, "strategy") {
        "" | "None" => {
            if conversion.get("webhook").is_some_and(|webhook| !webhook.is_null()) {
                let detail = "should not be set when strategy is not set to Webhook";
                errors.push(FieldError::forbidden(&path.field("webhook"), detail));
            }
        }
        "Webhook" => {
            let webhook_path = path.field("webhook");
            if conversion.pointer("/webhook/clientConfig").is_none() {
                errors.push(FieldError::required(
                    &webhook_path.field("clientConfig"),
                    "required when strategy is set to Webhook",
                ));
            }
            let versions =
                conversion.get("webhook").map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
            if versions.is_empty() {
                errors.push(FieldError::required(&webhook_path.field("conversionReviewVersions"), ""));
            }
        }
        other => errors.push(FieldError::not_supported(&path.field("strategy"), other, ["None", "Webhook"])),
    }
}

/// A version in which objects may still be stored must stay.
fn stored_versions(object: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let status = object.get("status").unwrap_or(&Value::Null);
    let known: Vec<&str> = list(spec, "versions").iter().map(|version| text(version, "name")).collect();
    for (index, stored) in list(status, "storedVersions").iter().enumerate() {
        let stored = stored.as_str().unwrap_or_default();
        if !known.contains(&stored) {
            let detail = "missing from spec.versions; must appear in spec.versions because objects may be stored in it"
                .replace("missing", &format!("{stored} is missing"));
            errors.push(FieldError::invalid(&format!("status.storedVersions[{index}]"), stored, detail));
        }
    }
}

fn immutable(new: &Value, old: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let names_path = path.field("names");
    for (pointer, field) in [
        ("/group", path.field("group")),
        ("/scope", path.field("scope")),
        ("/names/kind", names_path.field("kind")),
        ("/names/plural", names_path.field("plural")),
    ] {
        if new.pointer(pointer) != old.pointer(pointer) {
            let value = new.pointer(pointer).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&field, value, "field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        })
    }

    fn errors(object: &Value) -> Vec<String> {
        validate_definition(object, None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn schemas_must_be_structural() {
        let prefix = "spec.versions[0].schema.openAPIV3Schema";
        let cases = [
            (json!({}), ".type: Required value: must not be empty at the root"),
            (json!({"type": "string"}), ".type: Invalid value: \"string\": must be object at the root"),
            (
                json!({"type": "object", "properties": {"a": {}}}),
                ".properties[a].type: Required value: must not be empty for specified object fields",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array"}}}),
                ".properties[a].items: Required value: must be specified",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-int-or-string": true}}}),
                ".properties[a].type: Invalid value: \"string\": must be empty if x-kubernetes-int-or-string is true",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": false}}}),
                ".properties[a].additionalProperties: Forbidden: additionalProperties cannot be set to false",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
                ".properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: \"(\"",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
                ".properties[a].default: Invalid value: \"string\": spec.versions[0].schema.openAPIV3Schema.properties[a].default in body must be of type integer: \"string\"",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "anyOf": [{"type": "string"}]}}}),
                ".properties[a].anyOf[0].type: Forbidden: must be undefined to be structural",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}}),
                ".properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(errors(&definition(&schema)), [format!("{prefix}{expected}")], "{schema}");
        }
        let rule = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a ==", "reason": "Because"}]});
        let found = errors(&definition(&rule));
        assert_eq!(found.len(), 2, "{found:?}");
        let usual = json!({"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "open": {"x-kubernetes-preserve-unknown-fields": true, "type": "object"},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        }});
        assert_eq!(errors(&definition(&usual)), Vec::<String>::new());
    }

    #[test]
    fn names_versions_and_conversion() {
        let mut object = definition(&json!({"type": "object"}));
        object["metadata"]["name"] = json!("bars.example.com");
        object["spec"]["scope"] = json!("Global");
        object["spec"]["versions"] = json!([
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"scale": {"specReplicasPath": ".replicas"}}},
            {"name": "v1"},
        ]);
        object["spec"]["conversion"] = json!({"strategy": "Webhook"});
        object["status"] = json!({"storedVersions": ["v1alpha1"]});
        insta::assert_debug_snapshot!(errors(&object), @r#"
        [
            "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"",
            "metadata.name: Invalid value: \"bars.example.com\": must be spec.names.plural+\".\"+spec.group",
            "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".replicas\": should be a json path under .spec",
            "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
            "spec.versions: Invalid value: \"v1\": must contain unique version names",
            "spec.versions[1].schema.openAPIV3Schema: Required value: schemas are required",
            "spec.versions: Invalid value: [\"v1\",\"v1\"]: must have exactly one version marked as storage version",
            "spec.conversion.webhook.clientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.webhook.conversionReviewVersions: Required value",
            "status.storedVersions[0]: Invalid value: \"v1alpha1\": v1alpha1 is missing from spec.versions; must appear in spec.versions because objects may be stored in it",
        ]
        "#);
    }

    #[test]
    fn what_may_not_change() {
        let old = definition(&json!({"type": "object"}));
        let mut new = old.clone();
        new["spec"]["scope"] = json!("Cluster");
        new["spec"]["names"]["kind"] = json!("Bar");
        let errors = validate_definition(&new, Some(&old));
        assert_eq!(errors.len(), 2);
        assert!(errors.iter().all(|error| error.detail == "field is immutable"));
    }
}
