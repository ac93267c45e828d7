//! Which `required` of the OpenAPI document kube-apiserver really enforces.

use crate::schema::{
    error::{ErrorType, FieldError},
    resources::GroupVersionKind,
};

/// Fields that the document calls required because the Go struct has no `omitempty`, and that may be absent all the same: their zero
/// value is valid.
const LENIENT: &[&str] = &[
    "endpoints",
    "involvedObject",
    "metadata",
    "podSelector",
    "resources",
    "rules",
    "served",
    "storage",
    "template",
    "value",
    "webhooks",
    "weight",
    "preference",
    "allowed",
    "spec",
    "limits",
    "conditions",
    "drivers",
];

/// Kinds whose own rules say all that is required.
const KNOWN: &[&str] = &["CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Whether an error found by type counts for an object of a built-in kind.
///
/// Nothing in `status` is required on a write, nor is anything whose zero value is valid.
pub(super) fn counts(kind: &GroupVersionKind, error: &FieldError) -> bool {
    if error.error_type != ErrorType::Required {
        return true;
    }
    if KNOWN.contains(&kind.kind.as_str()) {
        return false;
    }
    let last = error.field.rsplit('.').next().unwrap_or_default();
    !(error.field.starts_with("status") || LENIENT.contains(&last))
}
