//! The messages of findings about the configuration. They use the wording of operator-controller's
//! `internal/operator-controller/config`, which its users know.

use std::fmt::Write as _;

use chandler_core::{
    Diagnostic,
    pointer::{escape, unescape},
};
use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::finding;

/// The findings of one validation error.
pub(super) fn findings(error: &ValidationError<'_>) -> Vec<Diagnostic> {
    let pointer = error.instance_path().as_str();
    let field = field(pointer);
    let at = |message: String| vec![finding(pointer.to_owned(), message)];
    let about = |rest: String| at(format!("field {field:?} {rest}"));
    match error.kind() {
        Kind::Required { property } => {
            let name = join(&field, property.as_str().unwrap_or_default());
            at(format!("required field {name:?} is missing"))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unknown = |name: &String| {
                let message = format!("unknown field {:?}", join(&field, name));
                finding(format!("{pointer}/{}", escape(name)), message)
            };
            unexpected.iter().map(unknown).collect()
        }
        // An explicit null for a field of another type counts as a missing field.
        Kind::Type { .. } if error.instance().is_null() && !field.is_empty() => {
            let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            vec![finding(parent.to_owned(), format!("required field {field:?} is missing"))]
        }
        Kind::Type { kind } => {
            let got = type_name(error.instance());
            at(format!("invalid type for field {field:?}: got {got}, want {}", wanted(kind)))
        }
        Kind::Pattern { pattern } => about(format!("must match pattern {}", quote(pattern))),
        Kind::MaxLength { limit } => about(format!("must have maximum length of {limit} (len={})", length(error))),
        Kind::MinLength { limit } => about(format!("must have minimum length of {limit} (len={})", length(error))),
        Kind::Enum { options } => about(format!("must be one of {options}")),
        Kind::Constant { expected_value } => about(format!("must be {expected_value}")),
        Kind::Maximum { limit } => about(format!("must be at most {limit}")),
        Kind::Minimum { limit } => about(format!("must be at least {limit}")),
        Kind::Format { format } => at(format!("invalid format for field {field:?}: want {format}")),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(error, context),
        _ => generic(error),
    }
}

/// The findings if no alternative matches: if the value has the type of exactly one alternative, the findings of that alternative.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> Vec<Diagnostic> {
    let mismatch = |inner: &ValidationError<'static>| match inner.kind() {
        Kind::Type { kind } if inner.instance_path() == error.instance_path() => Some(wanted(kind)),
        _ => None,
    };
    if let Some(names) = missing(error, context) {
        let message = format!("required field {} is missing", names.join(" or "));
        return vec![finding(error.instance_path().as_str().to_owned(), message)];
    }
    let types: Vec<String> = context.iter().flatten().filter_map(mismatch).collect();
    let mut fitting = context.iter().filter(|errors| !errors.iter().any(|inner| mismatch(inner).is_some()));
    match (fitting.next(), fitting.next()) {
        (Some(errors), None) => errors.iter().flat_map(findings).collect(),
        (None, _) if !types.is_empty() => {
            let (pointer, got) = (error.instance_path().as_str(), type_name(error.instance()));
            let message =
                format!("invalid type for field {:?}: got {got}, want {}", field(pointer), types.join(" or "));
            vec![finding(pointer.to_owned(), message)]
        }
        _ => generic(error),
    }
}

/// The fields of which one is required, if each alternative only lacks one field.
fn missing(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> Option<Vec<String>> {
    let here = field(error.instance_path().as_str());
    let lacking = |errors: &Vec<ValidationError<'static>>| match errors.as_slice() {
        [inner] if inner.instance_path() == error.instance_path() => match inner.kind() {
            Kind::Required { property } => Some(format!("{:?}", join(&here, property.as_str()?))),
            _ => None,
        },
        _ => None,
    };
    context.iter().map(lacking).collect::<Option<Vec<_>>>().filter(|names| !names.is_empty())
}

/// The validator's own message.
fn generic(error: &ValidationError<'_>) -> Vec<Diagnostic> {
    let pointer = error.instance_path().as_str();
    let message = match field(pointer).as_str() {
        "" => error.to_string(),
        field => format!("invalid value for field {field:?}: {error}"),
    };
    vec![finding(pointer.to_owned(), message)]
}

/// A JSON pointer in the usual notation for fields, such as `a.b[0]`.
fn field(pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            // Writing to a string cannot fail.
            let _ = write!(name, "[{part}]");
        } else {
            name = join(&name, &unescape(part));
        }
    }
    name
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

/// In quotes but not escaped: a pattern is easier to read as it was written.
fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

fn length(error: &ValidationError<'_>) -> usize {
    error.instance().as_str().map_or(0, |text| text.chars().count())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or "),
    }
}
