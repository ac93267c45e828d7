//! Pruning, defaulting and validation of an object in the version of the request.

use chandler_devcluster_schema::{self as schema, FieldError, builtin, canonical};
use serde_json::Value;

use crate::{registry::Resource, request::query::FieldValidation, status::Status};

/// Drops what the type does not know, as `fieldValidation` says; `duplicates` are the fields that stood twice in the body.
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
    let unknown = match &resource.custom {
        Some(custom) if custom.preserve_unknown_fields => Vec::new(),
        _ => schema::prune(resource.schema(), object),
    };
    let mut findings: Vec<String> = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    findings.extend(schema::unknown_field_messages(&unknown));
    match validation {
        FieldValidation::Strict if !findings.is_empty() => {
            let kind = resource.kind();
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                kind.kind,
                kind.version,
                kind.kind,
                findings.join(", ")
            );
            Err(Status::bad_request(message))
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
    }
}

/// Makes of an object what storing it makes.
pub fn stored(resource: &Resource, object: &mut Value) {
    let json = matches!(resource.kind().group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if resource.custom.is_none() && !json {
        canonical::stored(resource.schema(), object);
    }
}

/// What to warn of when an object is written; `old` is what is stored, on an update.
pub fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.custom.is_some() { Vec::new() } else { builtin::warnings(resource.kind(), object, old) }
}

/// Validates an object; `old` is what is stored, on an update.
///
/// # Errors
/// With every rule that is broken.
pub fn validate(resource: &Resource, name: &str, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    let mut errors: Vec<FieldError> = schema::metadata::validate(resource.kind(), resource.namespaced(), object, old);
    if resource.custom.is_some() {
        errors.extend(schema::validate(resource.schema(), object, old));
    } else {
        errors.extend(builtin::validate(resource.kind(), object, old));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(resource.kind(), name, &errors)) }
}
