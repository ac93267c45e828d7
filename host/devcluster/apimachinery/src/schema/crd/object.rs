//! Validation of CustomResourceDefinition objects.

use std::collections::HashSet;

use serde_json::Value;

use super::common::Common;
use crate::schema::{
    error::FieldError,
    fields::{list, text},
    names,
    path::FieldPath,
    webhook,
};

/// Validates a CustomResourceDefinition object beyond its type; `old` is the stored object of an update.
///
/// Names, scope, versions (unique, exactly one stored, none dropped that objects may be stored in), conversion, subresources, and the
/// structural schema of every version with its rules compiled. Paths are the same as kube-apiserver's: errors in fields that all versions
/// share are reported once, as a part of `spec`.
pub fn validate_crd(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::Root;
    let path = root.field("spec");
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let spec_names = spec.get("names").unwrap_or(&Value::Null);
    let name = new.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if old.is_none() && name != format!("{}.{}", text(spec_names, "plural"), text(spec, "group")) {
        errors.push(FieldError::invalid(&"metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    group_and_scope(spec, &path, &mut errors);
    let common = Common::of(spec);
    versions(spec, common, &path, &mut errors);
    naming(spec_names, &path.field("names"), &mut errors);
    common.check(spec, &path, &mut errors);
    conversion(spec, &path, &mut errors);
    if let Some(old) = old {
        immutable(spec, old, &path, &mut errors);
    }
    stored_versions(new, spec, &mut errors);
    approval(new, spec, old, &mut errors);
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let detail = "must be false in order to use defaults in the schema, and in apiextensions.k8s.io/v1";
        errors.push(FieldError::invalid(&path.field("preserveUnknownFields"), true, detail));
    }
    errors
}

fn group_and_scope(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let group_path = path.field("group");
    let details = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&group_path, ""));
    } else if !details.is_empty() {
        errors.push(FieldError::invalid(&group_path, group, details.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(&group_path, group, "should be a domain with at least one dot"));
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&path.field("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(&path.field("scope"), other, ["Cluster", "Namespaced"])),
    }
}

fn naming(spec_names: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(spec_names, key).is_empty() {
            errors.push(FieldError::required(&path.field(key), ""));
        }
    }
    for key in ["plural", "singular"] {
        let name = text(spec_names, key);
        label(name, name, "", &path.field(key), errors);
    }
    for key in ["kind", "listKind"] {
        let name = text(spec_names, key);
        label(
            name,
            &name.to_lowercase(),
            "may have mixed case, but should otherwise match: ",
            &path.field(key),
            errors,
        );
    }
    list_of_labels(spec_names, "shortNames", path, errors);
    if !text(spec_names, "kind").is_empty() && text(spec_names, "kind") == text(spec_names, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.field("listKind"), text(spec_names, "listKind"), detail));
    }
    list_of_labels(spec_names, "categories", path, errors);
}

fn label(name: &str, checked: &str, introduction: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let details = names::dns1035_label(checked);
    if !name.is_empty() && !details.is_empty() {
        errors.push(FieldError::invalid(path, name, format!("{introduction}{}", details.join(","))));
    }
}

fn list_of_labels(spec_names: &Value, key: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field(key);
    for (index, name) in list(spec_names, key).iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let details = names::dns1035_label(name);
        if !details.is_empty() {
            errors.push(FieldError::invalid(&path.index(index), name, details.join(",")));
        }
    }
}

fn versions(spec: &Value, common: Common, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let versions_path = path.field("versions");
    let versions = list(spec, "versions");
    let mut seen = HashSet::new();
    let mut unique = true;
    if !common.has("schema") || versions.iter().all(|version| version.pointer("/schema/openAPIV3Schema").is_none()) {
        for (index, version) in versions.iter().enumerate() {
            if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
                let path = versions_path.index(index);
                errors.push(FieldError::required(&path.field("schema").field("openAPIV3Schema"), ""));
            }
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let path = versions_path.index(index);
        let name = text(version, "name");
        let details = names::dns1035_label(name);
        if !details.is_empty() {
            errors.push(FieldError::invalid(&path.field("name"), name, details.join(",")));
        }
        unique &= seen.insert(name);
        deprecation(version, &path, errors);
        common.own_parts(version, &path, errors);
    }
    let value = || short(&spec.get("versions").cloned().unwrap_or_default());
    if !unique {
        errors.push(FieldError::invalid(&versions_path, value(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&versions_path, value(), detail));
    }
}

fn deprecation(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const LONGEST: usize = 256;
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.field("deprecationWarning");
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(&path, warning, detail));
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        invalid("can only be set for deprecated versions");
        return;
    }
    if warning.len() > LONGEST {
        invalid("must be <= 256 characters long");
    }
    if warning.is_empty() {
        invalid("must not be an empty string");
    }
    if let Some(index) = warning.char_indices().find(|(_, character)| character.is_control()).map(|(index, _)| index) {
        let what = "must only contain printable UTF-8 characters; non-printable character found at index";
        invalid(&format!("{what} {index}"));
    }
}

/// The names of the versions rather than all of them with their schemas.
fn short(versions: &Value) -> Value {
    versions.as_array().into_iter().flatten().filter_map(|version| version.get("name").cloned()).collect()
}

/// Paths refer to the internal type, in which the webhook has no object of its own.
fn conversion(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").filter(|conversion| conversion.is_object()) else { return };
    let path = path.field("conversion");
    let (client_path, versions_path) = (path.field("webhookClientConfig"), path.field("conversionReviewVersions"));
    let client = conversion.pointer("/webhook/clientConfig").filter(|client| !client.is_null());
    let versions = conversion.get("webhook").map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
    match text(conversion, "strategy") {
        "" => errors.push(FieldError::required(&path.field("strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(&path.field("strategy"), other, ["None", "Webhook"])),
    }
    if text(conversion, "strategy") == "Webhook" {
        match client {
            None => errors.push(FieldError::required(&client_path, "required when strategy is set to Webhook")),
            Some(client) => webhook::client(client, &client_path, errors),
        }
        webhook::review_versions(versions, &versions_path, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(&client_path, detail));
    }
    if !versions.is_empty() {
        errors.push(FieldError::forbidden(&versions_path, detail));
    }
}

/// A version in which objects may still be stored must stay.
fn stored_versions(object: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let status = object.get("status").unwrap_or(&Value::Null);
    let known: HashSet<&str> = list(spec, "versions").iter().map(|version| text(version, "name")).collect();
    for (index, stored) in list(status, "storedVersions").iter().enumerate() {
        let stored = stored.as_str().unwrap_or_default();
        if !known.contains(stored) {
            let detail = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {stored} and removes {stored} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&format!("status.storedVersions[{index}]"), stored, detail));
        }
    }
}

/// Groups of Kubernetes itself are protected.
fn approval(object: &Value, spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    const SEE: &str = "https://github.com/kubernetes/enhancements/pull/1111";
    let group = text(spec, "group");
    let is_protected = |group: &str| {
        ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    let of = |object: &Value| -> String {
        let value = object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(ANNOTATION));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let value = of(object);
    let unchanged = old.is_some_and(|old| of(old) == value);
    if !is_protected(group) || unchanged {
        return;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    if value.is_empty() {
        let detail = format!("protected groups must have approval annotation {ANNOTATION:?}, see {SEE}");
        errors.push(FieldError::required(&path, detail));
    } else if !value.starts_with("unapproved") && !value.contains("://") {
        let detail = format!(
            "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \
             \"unapproved\", see {SEE}"
        );
        errors.push(FieldError::invalid(&path, value, detail));
    }
}

fn immutable(new: &Value, old: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let names_path = path.field("names");
    let conditions = old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let established = conditions
        .into_iter()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let old = old.get("spec").unwrap_or(&Value::Null);
    for (pointer, field, always) in [
        ("/scope", path.field("scope"), false),
        ("/names/kind", names_path.field("kind"), false),
        ("/group", path.field("group"), true),
        ("/names/plural", names_path.field("plural"), true),
    ] {
        if new.pointer(pointer) != old.pointer(pointer) && (always || established) {
            let value = new.pointer(pointer).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&field, value, "field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(schema: &Value) -> Value {
        json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        })
    }

    fn errors(object: &Value) -> Vec<String> {
        validate_crd(object, None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn schemas_must_be_structural() {
        let prefix = "spec.validation.openAPIV3Schema";
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
                ".properties[a].default: Invalid value: \"string\": spec.validation.openAPIV3Schema.properties[a].default in body must be of type integer: \"string\"",
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
            assert_eq!(errors(&crd(&schema)), [format!("{prefix}{expected}")], "{schema}");
        }
        let rule = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a ==", "reason": "Because"}]});
        let found = errors(&crd(&rule));
        assert_eq!(found.len(), 2, "{found:?}");
        let usual = json!({"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "open": {"x-kubernetes-preserve-unknown-fields": true, "type": "object"},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        }});
        let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
        let patterns = json!({"type": "object", "properties": {
            "path": {"type": "string", "pattern": r"^(/[^/\0]+)+/?$"},
            "host": {"type": "string", "pattern": r"^[\w\-.~:\/?#[\]@!$&'()*+,;=]+$"},
        }});
        for accepted in [usual, anything, patterns] {
            assert_eq!(errors(&crd(&accepted)), Vec::<String>::new(), "{accepted}");
        }
    }

    #[test]
    fn names_versions_and_conversion() {
        let mut object = crd(&json!({"type": "object"}));
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
            "metadata.name: Invalid value: \"bars.example.com\": must be spec.names.plural+\".\"+spec.group",
            "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"",
            "spec.versions[1].schema.openAPIV3Schema: Required value",
            "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".replicas\": should be a json path under .spec",
            "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
            "spec.versions: Invalid value: [\"v1\",\"v1\"]: must contain unique version names",
            "spec.versions: Invalid value: [\"v1\",\"v1\"]: must have exactly one version marked as storage version",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value: must specify one of v1, v1beta1",
            "status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions; v1alpha1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1alpha1 and removes v1alpha1 from status.storedVersions",
        ]
        "#);
    }

    #[test]
    fn immutable_fields_cannot_change() {
        let mut old = crd(&json!({"type": "object"}));
        old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        let mut new = old.clone();
        new["spec"]["scope"] = json!("Cluster");
        new["spec"]["names"]["kind"] = json!("Bar");
        let errors = validate_crd(&new, Some(&old));
        assert_eq!(errors.len(), 2);
        assert!(errors.iter().all(|error| error.detail == "field is immutable"));
    }
}
