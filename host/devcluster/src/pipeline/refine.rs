//! Pruning, defaulting and validation of an object in the version of the request.

use chandler_devcluster_apimachinery::schema::{self, FieldError, builtin, canonical};
use serde_json::Value;

use super::strategy;
use crate::{registry::Resource, request::query::FieldValidation, status::Status};

/// Checks that an object can be read at all.
///
/// # Errors
/// When a value is of the wrong type; custom resources are validated instead.
pub fn decodable(resource: &Resource, object: &Value) -> Result<(), String> {
    let error = if resource.custom.is_none() { builtin::decode_error(resource.kind(), object) } else { None };
    error.map_or(Ok(()), Err)
}

/// Checks that what server-side apply merged can be read.
///
/// # Errors
/// When a value is of the wrong type; such a failure has no reason.
pub fn convertible(resource: &Resource, object: &Value) -> Result<(), Status> {
    let kind = resource.kind();
    let version = if kind.group.is_empty() { format!("/{}", kind.version) } else { kind.api_version() };
    decodable(resource, object).map_err(|why| {
        let (namespace, name) = (crate::metadata::namespace(object), crate::metadata::name(object));
        let kind = &kind.kind;
        Status {
            code: http::StatusCode::INTERNAL_SERVER_ERROR,
            reason: "",
            message: format!(
                "failed to convert new object ({namespace}/{name}; {version}, Kind={kind}) to proper version: unable to convert \
                 unstructured object to {version}, Kind={kind}: {why}"
            ),
            details: Value::Null,
                warnings: Vec::new(),
        }
    })
}

/// The failure of an object whose metadata is none.
pub fn wrong_metadata(resource: &Resource, metadata: &Value) -> Status {
    let kind = &resource.kind().kind;
    let object = serde_json::json!({"metadata": metadata});
    let why = decodable(resource, &object).err().unwrap_or_else(|| "metadata must be an object".to_owned());
    Status::bad_request(format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", resource.kind().version))
}

/// The unknown and duplicate fields of an object, with the messages of `fieldValidation`.
pub fn findings(resource: &Resource, object: &Value, duplicates: &[String]) -> Vec<String> {
    drop_unknown(resource, &mut object.clone(), duplicates)
}

fn drop_unknown(resource: &Resource, object: &mut Value, duplicates: &[String]) -> Vec<String> {
    let unknown = match &resource.custom {
        Some(custom) if custom.preserve_unknown_fields => Vec::new(),
        _ => schema::prune(resource.schema(), object),
    };
    let mut findings: Vec<String> = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    findings.extend(schema::unknown_field_messages(&unknown));
    findings
}

/// Drops unknown fields as `fieldValidation` says; `duplicates` are the duplicate fields of the body.
///
/// # Errors
/// With `Strict`, when there is anything to drop.
pub fn prune(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[String],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let unreadable = |why: String| {
        let kind = resource.kind();
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    };
    decodable(resource, object).map_err(unreadable)?;
    let findings = drop_unknown(resource, object, duplicates);
    match validation {
        FieldValidation::Strict if !findings.is_empty() => {
            Err(unreadable(format!("strict decoding error: {}", findings.join(", "))))
        }
        FieldValidation::Warn => {
            warnings.extend(findings);
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}

/// Fills in defaults and brings values into the spelling that is stored.
pub fn default(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() {
        canonical::drop_nulls(resource.schema(), object);
        schema::default(resource.schema(), object);
    } else {
        schema::canonicalize(resource.schema(), object);
        schema::default(resource.schema(), object);
        builtin::default(resource.kind(), object);
        if resource.is_core("secrets") {
            strategy::merge_string_data(object);
        }
    }
}

/// Makes of an object what storing it makes.
pub fn stored(resource: &Resource, object: &mut Value) {
    let json = matches!(resource.kind().group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if resource.custom.is_none() && !json {
        canonical::stored(resource.schema(), object);
    }
}

/// The warnings about a write; `old` is the stored object of an update.
pub fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.custom.is_some() { Vec::new() } else { builtin::warnings(resource.kind(), object, old) }
}

/// Validates an object; `old` is the stored object of an update.
///
/// # Errors
/// With every rule that is broken.
pub fn validate(resource: &Resource, name: &str, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    let mut errors: Vec<FieldError> = schema::metadata::validate(resource.kind(), resource.namespaced(), object, old);
    if resource.custom.is_some() {
        errors.extend(schema::validate(resource.schema(), object, old));
    } else {
        errors.extend(builtin::validate(resource.kind(), object, old));
        if resource.is_policy() {
            errors.extend(chandler_devcluster_apimachinery::policies::validate_policy(object, old));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(resource.kind(), name, &errors)) }
}
