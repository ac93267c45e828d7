//! ConfigMaps, Secrets, PersistentVolumeClaims.

use serde_json::Value;

use super::immutable;
use crate::schema::{
    error::FieldError,
    fields::{list, text},
    path::FieldPath,
};

/// Most bytes of all values together.
const MOST_DATA: usize = 1024 * 1024;

/// Validates a ConfigMap or Secret.
pub(super) fn data(kind: &str, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = FieldPath::Root;
    let mut size = 0;
    for field in ["data", "binaryData"] {
        let path = root.field(field);
        for (key, value) in new.get(field).and_then(Value::as_object).into_iter().flatten() {
            let valid = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
            if key.is_empty() || key.len() > 253 || !valid || key == "." || key == ".." {
                let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                              'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                errors.push(FieldError::invalid(&path.key(key), key.as_str(), detail));
            }
            if field == "binaryData" && new.get("data").and_then(|data| data.get(key)).is_some() {
                errors.push(FieldError::invalid(
                    &root.field("data").key(key),
                    key.as_str(),
                    "duplicate of key present in binaryData",
                ));
            }
            size += value.as_str().map_or(0, str::len);
        }
    }
    // Values of a Secret are base64, a third longer than what they hold.
    let size = if kind == "Secret" { size / 4 * 3 } else { size };
    if size > MOST_DATA {
        let path = if kind == "Secret" { "data" } else { "" };
        errors.push(FieldError::too_long(&path, MOST_DATA as u64));
    }
    if kind == "Secret" && text(new, "type") == "kubernetes.io/service-account-token" {
        let account = "kubernetes.io/service-account.name";
        let annotations = new.get("metadata").and_then(|metadata| metadata.get("annotations"));
        if annotations.is_none_or(|annotations| text(annotations, account).is_empty()) {
            let metadata = root.field("metadata");
            errors.push(FieldError::required(&metadata.field("annotations").key(account), ""));
        }
    }
    let Some(old) = old else { return };
    if kind == "Secret" {
        immutable::field("type", new, Some(old), &root, errors);
    }
    if old.get("immutable") == Some(&Value::Bool(true)) {
        let detail = "field is immutable when `immutable` is set";
        immutable::fields(&["immutable", "data", "binaryData"], new, Some(old), &root, detail, errors);
    }
}

/// Validates the `spec` of a PersistentVolumeClaim.
pub(super) fn claim(new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if list(new, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.field("accessModes"), "at least 1 access mode is required"));
    }
    let resources = path.field("resources");
    if new.pointer("/resources/requests/storage").is_none() {
        errors.push(FieldError::required(&resources.field("storage"), ""));
    }
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(spec) = spec.as_object_mut() {
            // The volume is bound, the class filled in and the request grown after creation.
            spec.retain(|name, _| !matches!(name.as_str(), "resources" | "volumeAttributesClassName" | "volumeName"));
        }
        spec
    };
    if let Some(old) = old.filter(|old| fixed(old) != fixed(new)) {
        let class_filled_in = old.get("storageClassName").is_none();
        let mut old = fixed(old);
        if let (true, Some(old), Some(class)) = (class_filled_in, old.as_object_mut(), new.get("storageClassName")) {
            old.insert("storageClassName".to_owned(), class.clone());
        }
        if old != fixed(new) {
            let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
            errors.push(FieldError::forbidden(path, detail));
        }
    }
}
