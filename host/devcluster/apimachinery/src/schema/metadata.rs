//! Validation of `ObjectMeta`.

use serde_json::{Map, Value};

use crate::schema::{error::FieldError, names, path::FieldPath, registry::Builtins, resources::GroupVersionKind};

/// Largest total of annotation keys and values, in bytes.
const ANNOTATIONS_SIZE: usize = 256 * 1024;

/// Validates `metadata` of an object: name (by the rule of its kind), namespace, labels, annotations, finalizers, owners.
///
/// `old` is the stored object of an update: immutable fields must then be equal. A generated name must already be set.
pub fn validate(kind: &GroupVersionKind, namespaced: bool, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let root = FieldPath::Root;
    let path = root.field("metadata");
    let mut errors = Vec::new();
    let Some(metadata) = new.get("metadata").and_then(Value::as_object) else {
        return vec![FieldError::required(&path.field("name"), "name or generateName is required")];
    };
    name(kind, metadata, &path, &mut errors);
    namespace(namespaced, metadata, &path, &mut errors);
    labels(metadata, &path, &mut errors);
    annotations(metadata, &path, &mut errors);
    owners(metadata, &path, &mut errors);
    finalizers(kind, metadata, &path, &mut errors);
    if let Some(old) = old.and_then(|old| old.get("metadata")).and_then(Value::as_object) {
        immutable(metadata, old, &path, &mut errors);
    }
    errors
}

/// Why a text is not a valid object name of this kind.
///
/// Most kinds take DNS-1123 subdomains; some are parts of host names and take labels; RBAC takes whatever fits into a URL.
pub fn name_errors(kind: &GroupVersionKind, name: &str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => names::dns1123_label(name),
        ("", "Service") => names::dns1035_label(name),
        ("rbac.authorization.k8s.io" | "certificates.k8s.io", _)
        | ("apiregistration.k8s.io", "APIService")
        | ("networking.k8s.io", "IPAddress") => names::path_segment(name),
        _ => names::dns1123_subdomain(name),
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn name(kind: &GroupVersionKind, metadata: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let generate_name = text(metadata, "generateName");
    if !generate_name.is_empty() {
        // The server appends random characters, so that a trailing separator is fine.
        let probe = format!("{}a", generate_name.trim_end_matches(['-', '.']));
        let path = path.field("generateName");
        errors.extend(
            name_errors(kind, &probe).into_iter().map(|detail| FieldError::invalid(&path, generate_name, detail)),
        );
    }
    let name = text(metadata, "name");
    let path = path.field("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path, "name or generateName is required"));
    } else {
        errors.extend(name_errors(kind, name).into_iter().map(|detail| FieldError::invalid(&path, name, detail)));
    }
}

fn namespace(namespaced: bool, metadata: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let namespace = text(metadata, "namespace");
    let path = path.field("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&path, "")),
        (true, false) => {
            let details = names::dns1123_label(namespace);
            errors.extend(details.into_iter().map(|detail| FieldError::invalid(&path, namespace, detail)));
        }
        (false, false) => errors.push(FieldError::forbidden(&path, "not allowed on this type")),
        (false, true) => {}
    }
}

fn labels(metadata: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("labels");
    errors.extend(label_errors(metadata.get("labels"), &path));
}

/// The errors of a map of labels, such as `metadata.labels` or `matchLabels`.
pub(crate) fn label_errors(labels: Option<&Value>, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let details = names::qualified_name(key);
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(path, key.as_str(), detail)));
        let value = value.as_str().unwrap_or_default();
        let details = names::label_value(value);
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(path, value, detail)));
    }
    errors
}

fn annotations(metadata: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("annotations");
    let mut size = 0;
    for (key, value) in metadata.get("annotations").and_then(Value::as_object).into_iter().flatten() {
        // Unlike in labels, the part before the slash may be in upper case.
        let details = names::qualified_name(&key.to_lowercase());
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(&path, key.as_str(), detail)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE {
        errors.push(FieldError::too_long(&path, ANNOTATIONS_SIZE as u64));
    }
}

fn owners(metadata: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("ownerReferences");
    let mut controller: Option<String> = None;
    let references = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    for reference in references {
        let Some(reference) = reference.as_object() else { continue };
        let api_version = text(reference, "apiVersion");
        if api_version.is_empty() {
            errors.push(FieldError::invalid(&path.field("apiVersion"), api_version, "version must not be empty"));
        }
        for (key, label) in [("kind", "must not be empty"), ("name", "must not be empty"), ("uid", "must not be empty")]
        {
            if text(reference, key).is_empty() {
                errors.push(FieldError::invalid(&path.field(key), "", label));
            }
        }
        if (api_version, text(reference, "kind")) == ("v1", "Event") {
            let detail = "is disallowed from being an owner";
            errors.push(FieldError::invalid(
                &path,
                Value::Object(reference.clone()),
                format!("/v1, Kind=Event {detail}"),
            ));
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                Some(first) => errors.push(FieldError::invalid(
                    &path,
                    metadata.get("ownerReferences").cloned().unwrap_or_default(),
                    format!("Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"),
                )),
                None => controller = Some(name),
            }
        }
    }
}

fn finalizers(
    kind: &GroupVersionKind,
    metadata: &Map<String, Value>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    const WITHOUT_DOMAIN: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
    let path = path.field("finalizers");
    // Custom resources and the kinds of the two extension servers take finalizers without a domain too.
    let extension = matches!(kind.group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io");
    let needs_domain = !extension && Builtins::get().kind(kind).is_some();
    let mut present = Vec::new();
    for finalizer in metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        let details = names::qualified_name(finalizer);
        if needs_domain && details.is_empty() && !finalizer.contains('/') && !WITHOUT_DOMAIN.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path, finalizer, detail));
        }
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(&path, finalizer, detail)));
        present.push(finalizer);
    }
    if present.contains(&"orphan") && present.contains(&"foregroundDeletion") {
        let value = metadata.get("finalizers").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path, value, "finalizer orphan and foregroundDeletion cannot be both set"));
    }
}

fn immutable(new: &Map<String, Value>, old: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for key in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (new.get(key), old.get(key));
        let absent = |value: Option<&Value>| value.is_none_or(|value| value.is_null() || value == "");
        if new != old && !(absent(new) && absent(old)) {
            errors.push(FieldError::invalid(&path.field(key), new.cloned().unwrap_or_default(), "field is immutable"));
        }
    }
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let of = |metadata: &Map<String, Value>| -> Vec<Value> {
            metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let before = of(old);
        let added: Vec<Value> = of(new).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                &path.field("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers {}",
                    Value::Array(added)
                ),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals at every call")]
    fn errors(group: &str, kind: &str, namespaced: bool, metadata: Value, old: Option<Value>) -> Vec<String> {
        let kind = GroupVersionKind::new(group, "v1", kind);
        let old = old.map(|metadata| json!({"metadata": metadata}));
        let errors = validate(&kind, namespaced, &json!({"metadata": metadata}), old.as_ref());
        errors.iter().map(|error| error.to_string().chars().take(110).collect()).collect()
    }

    #[test]
    fn invalid_metadata_is_reported() {
        let none: [&str; 0] = [];
        assert_eq!(errors("", "ConfigMap", true, json!({"name": "a.b", "namespace": "n"}), None), none);
        assert_eq!(errors("rbac.authorization.k8s.io", "ClusterRole", false, json!({"name": "system:x"}), None), none);
        insta::assert_debug_snapshot!(
            errors("", "Service", true, json!({"name": "1a", "labels": {"a b": "c d"}, "annotations": {"Example.com/A": "x"}}), None),
            @r#"
        [
            "metadata.name: Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-'",
            "metadata.namespace: Required value",
            "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and",
            "metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric charac",
        ]
        "#);
        insta::assert_debug_snapshot!(
            errors("", "Namespace", false, json!({"generateName": "A-", "namespace": "x", "finalizers": ["x", "kubernetes"]}), None),
            @r#"
        [
            "metadata.generateName: Invalid value: \"A-\": a lowercase RFC 1123 label must consist of lower case alphanumeric",
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Forbidden: not allowed on this type",
            "metadata.finalizers: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified",
        ]
        "#);
    }

    #[test]
    fn immutable_fields_cannot_change() {
        let old = json!({"name": "a", "uid": "1", "deletionTimestamp": "t", "finalizers": ["e.com/a"]});
        let new = json!({"name": "a", "uid": "2", "deletionTimestamp": "t", "finalizers": ["e.com/a", "e.com/b"]});
        insta::assert_debug_snapshot!(errors("", "Node", false, new, Some(old)), @r#"
        [
            "metadata.uid: Invalid value: \"2\": field is immutable",
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new final",
        ]
        "#);
    }

    #[test]
    fn only_one_owner_controls() {
        let owner =
            |name: &str| json!({"apiVersion": "apps/v1", "kind": "A", "name": name, "uid": "1", "controller": true});
        let metadata = json!({"name": "a", "ownerReferences": [owner("x"), owner("y"), {}]});
        assert_eq!(errors("", "Node", false, metadata, None).len(), 5);
    }
}
