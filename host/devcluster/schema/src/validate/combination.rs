//! `allOf`, `anyOf`, `oneOf`, `not`.

use serde_json::Value;

use super::{validate, validate_at};
use crate::{
    error::FieldError,
    path::FieldPath,
    schema::{Combinations, Schema},
};

/// Reports the combinations that a value does not satisfy.
pub(super) fn check(combinations: &Combinations, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let holds = |schema: &&Schema| validate(schema, value, None).is_empty();
    let place = path.to_string();
    let mut invalid = |detail: String| errors.push(FieldError::invalid(path, value.clone(), detail));
    if !combinations.any_of.is_empty() && !combinations.any_of.iter().any(|schema| holds(&schema)) {
        invalid(format!("{place:?} must validate at least one schema (anyOf)"));
    }
    if !combinations.one_of.is_empty() {
        let valid = combinations.one_of.iter().filter(holds).count();
        if valid != 1 {
            let found = if valid == 0 { "none".to_owned() } else { valid.to_string() };
            invalid(format!("{place:?} must validate one and only one schema (oneOf). Found {found} valid"));
        }
    }
    if combinations.not.as_ref().is_some_and(|schema| holds(&schema)) {
        invalid(format!("{place:?} must not validate the schema (not)"));
    }
    for schema in &combinations.all_of {
        errors.extend(validate_at(schema, value, None, path));
    }
}
