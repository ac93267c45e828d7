//! Schemas that the derive macros cannot express.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An object with any members.
pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Any value at all.
pub(crate) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Labels, by name.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "maxLength": 63},
    })
}

/// `[]metav1.Condition` with the bounds that controller-gen writes, as a map by type: readers see the same list, and a client
/// that applies one condition does not change the others.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One condition of this object.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status of the condition last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "A message for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The generation of the spec that this condition describes.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "The reason, in one CamelCase word that programs may match.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "The type of the condition.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// Whether a flag has its default value, so that it is omitted.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to skip_serializing_if")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Whether a number has its default value, so that it is omitted.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to skip_serializing_if")]
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whether a count is zero, so that it is omitted.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to skip_serializing_if")]
pub(crate) fn is_nought(count: &i64) -> bool {
    *count == 0
}

/// A text of a few lines.
pub(crate) fn short_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 1024})
}

/// A non-negative duration in the syntax of Go, from milliseconds to hours.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 32, "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"})
}

/// A number of bytes as a Kubernetes quantity.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 32, "pattern": "^[0-9]+(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"})
}

/// An enum whose variants have no fields.
pub(crate) trait Enumeration {
    /// The names of the variants in the API, in the order of the schema.
    const NAMES: &[&str];
}

/// The schema of an enum, with its values only. The description of the field explains them.
pub(crate) fn enumeration<E: Enumeration>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": E::NAMES})
}
