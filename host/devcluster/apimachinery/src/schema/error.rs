//! Errors about fields, with the messages of kube-apiserver.

use std::fmt;

use serde_json::Value;

/// The type of an error about a field (`k8s.io/apimachinery/pkg/util/validation/field.ErrorType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorType {
    /// A value that must be there is not.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of an enumeration.
    NotSupported,
    /// The value may not be set, or not be changed.
    Forbidden,
    /// A string is too long or a map too large.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// Two items are equal that must not be.
    Duplicate,
    /// The value is of another type.
    TypeInvalid,
    /// The value names something that is not there.
    NotFound,
    /// The server failed.
    InternalError,
}

impl ErrorType {
    /// The reason in `details.causes[]` of a Status, e.g. `FieldValueInvalid`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::InternalError => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::InternalError => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        matches!(self, Self::Invalid | Self::TypeInvalid | Self::NotSupported | Self::Duplicate | Self::NotFound)
    }
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Path of the field, e.g. `spec.versions[0].name`; `<nil>` for the object itself.
    pub field: String,
    /// The message.
    pub error_type: ErrorType,
    /// The rule.
    pub detail: String,
    /// The value found.
    pub bad_value: Value,
}

impl FieldError {
    fn new(field: &impl ToString, error_type: ErrorType, bad_value: Value, detail: impl Into<String>) -> Self {
        let mut field = field.to_string();
        if field.is_empty() {
            "<nil>".clone_into(&mut field);
        }
        Self { field, error_type, detail: detail.into(), bad_value }
    }

    /// A value is missing.
    pub fn required(field: &impl ToString, detail: impl Into<String>) -> Self {
        Self::new(field, ErrorType::Required, Value::Null, detail)
    }

    /// A value breaks a rule.
    pub fn invalid(field: &impl ToString, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, ErrorType::Invalid, value.into(), detail)
    }

    /// A value is of the wrong type.
    pub fn wrong_type(field: &impl ToString, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, ErrorType::TypeInvalid, value.into(), detail)
    }

    /// A value is none of `supported`.
    pub fn not_supported<'a>(
        field: &impl ToString,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut values: Vec<String> = supported.into_iter().map(|value| format!("{value:?}")).collect();
        values.sort_unstable();
        let detail = if values.is_empty() { String::new() } else { format!("supported values: {}", values.join(", ")) };
        Self::new(field, ErrorType::NotSupported, value.into(), detail)
    }

    /// A value may not be set or changed.
    pub fn forbidden(field: &impl ToString, detail: impl Into<String>) -> Self {
        Self::new(field, ErrorType::Forbidden, Value::Null, detail)
    }

    /// A duplicate value.
    pub fn duplicate(field: &impl ToString, value: impl Into<Value>) -> Self {
        Self::new(field, ErrorType::Duplicate, value.into(), "")
    }

    /// A value names something that is not there.
    pub fn not_found(field: &impl ToString, value: impl Into<Value>) -> Self {
        Self::new(field, ErrorType::NotFound, value.into(), "")
    }

    /// A string has more than `limit` bytes.
    pub fn too_long(field: &impl ToString, limit: u64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(field, ErrorType::TooLong, Value::Null, format!("may not be more than {limit} {unit}"))
    }

    /// A list has more than `limit` items.
    pub fn too_many(field: &impl ToString, actual: u64, limit: u64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::new(field, ErrorType::TooMany, actual.into(), format!("must have at most {limit} {unit}"))
    }

    /// The message without the field, as in `details.causes[].message` of a Status.
    pub fn message(&self) -> String {
        let mut text = self.error_type.text().to_owned();
        if self.error_type == ErrorType::TooMany {
            text = format!("{text}: {}", self.bad_value);
        } else if self.error_type.shows_value() {
            text = format!("{text}: {}", go_value(&self.bad_value));
        }
        if !self.detail.is_empty() {
            text = format!("{text}: {}", self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

impl std::error::Error for FieldError {}

/// Writes a value as kube-apiserver does: scalars plainly, strings quoted, objects and lists as JSON.
fn go_value(value: &Value) -> String {
    const LONGEST: usize = 10_000;
    let mut text = match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    };
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// The message of the 422 Status: `Deployment.apps "web" is invalid: spec.replicas: Invalid value: ...`.
///
/// `group` is empty for the core group. Several errors are in brackets, without duplicates.
pub fn invalid_message(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> String {
    let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut messages: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let message = error.to_string();
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    match messages.as_slice() {
        [] => format!("{kind} {name:?} is invalid"),
        [only] => format!("{kind} {name:?} is invalid: {only}"),
        many => format!("{kind} {name:?} is invalid: [{}]", many.join(", ")),
    }
}
