//! Validation of a value against its type.

mod format;
mod rule;
mod rule_value;
mod scalar;
mod uniqueness;

pub(crate) use format::is_time;
use rule::Budget;
use serde_json::{Map, Value};

use crate::schema::{
    error::{ErrorType, FieldError},
    model::{Combinations, ListType, Presence, Schema, Shape},
    path::FieldPath,
};

/// The maximum number of errors that are reported for one object.
const MOST_ERRORS: usize = 100;

/// Validates `new` against `schema`; `old` is the stored object of an update.
///
/// Types, required fields, enumerations, formats, bounds, patterns, boolean combinations, uniqueness of list items, and CEL rules
/// with `oldSelf`. On an update, a value that equals the stored one at the same place is not complained about (ratcheting); only
/// rules that compare with `oldSelf` run for it. At most a hundred errors are returned.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate_at(schema, new, old, &FieldPath::Root)
}

/// Validates the part of an object at `path`.
pub(crate) fn validate_at(schema: &Schema, new: &Value, old: Option<&Value>, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new(), budget: Budget::default(), pass: Pass::Values };
    walk.value(schema, new, old, path);
    if has_rules(schema, 0) {
        // Rules may rely on the types of everything that they can see.
        if walk.errors.iter().any(blocks) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                          complete validation";
            walk.errors.push(FieldError::invalid(&"", Value::Null, detail));
        } else {
            walk.pass = Pass::Rules;
            walk.value(schema, new, old, path);
        }
    }
    walk.errors.truncate(MOST_ERRORS);
    walk.errors
}

/// Whether an error keeps rules from being run at all.
fn blocks(error: &FieldError) -> bool {
    use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.error_type, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// Whether there is a rule anywhere in a type of a custom resource; built-in types have none.
fn has_rules(schema: &Schema, depth: usize) -> bool {
    const DEEPEST: usize = 200;
    if schema.is_builtin() || depth > DEEPEST {
        return false;
    }
    let inside = |schema: &Schema| has_rules(schema, depth + 1);
    !schema.rules.is_empty()
        || match &schema.shape {
            Shape::Object { properties, values, .. } => {
                properties.values().any(inside) || values.as_ref().is_some_and(inside)
            }
            Shape::List { items, .. } => inside(items),
            _ => false,
        }
}

/// The state of a validation walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Values,
    Rules,
}

struct Walk {
    errors: Vec<FieldError>,
    budget: Budget,
    pass: Pass,
}

impl Walk {
    fn value(&mut self, schema: &Schema, new: &Value, old: Option<&Value>, path: &FieldPath<'_>) {
        if self.errors.len() >= MOST_ERRORS {
            return;
        }
        let null_is_zero = schema.is_builtin() || schema.presence != Presence::AsIs;
        if new.is_null() && (schema.nullable || null_is_zero || matches!(schema.shape, Shape::Any | Shape::Deduced)) {
            return;
        }
        if self.pass == Pass::Values && old != Some(new) {
            self.own(schema, new, path);
        }
        self.children(schema, new, old, path);
        if self.pass == Pass::Rules && !schema.rules.is_empty() {
            rule::check(schema, new, old, path, &mut self.budget, &mut self.errors);
        }
    }

    /// Validates the value itself, not its children.
    fn own(&mut self, schema: &Schema, value: &Value, path: &FieldPath<'_>) {
        if !self.shape(schema, value, path) {
            return;
        }
        if !schema.enumeration.is_empty() && !schema.enumeration.contains(value) {
            let supported = schema.enumeration.iter().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let supported: Vec<String> = supported.collect();
            self.errors.push(FieldError::not_supported(path, value.clone(), supported.iter().map(String::as_str)));
        }
        if let Some(combinations) = &schema.combinations {
            check_combinations(combinations, value, path, &mut self.errors);
        }
    }

    /// Checks type and bounds; returns whether the type is right.
    fn shape(&mut self, schema: &Schema, value: &Value, path: &FieldPath<'_>) -> bool {
        match (&schema.shape, value) {
            (Shape::Any | Shape::Deduced, _) => true,
            (Shape::Scalar(scalar), value) => scalar::check(scalar, value, path, &mut self.errors),
            (Shape::Object { required, embedded_resource, size, .. }, Value::Object(object)) => {
                for name in required {
                    // A Go struct cannot distinguish the empty string from an absent one.
                    let zero = |value: &Value| schema.is_builtin() && (value.is_null() || value == "");
                    if object.get(name).is_none_or(zero) {
                        self.errors.push(FieldError::required(&path.field(name), ""));
                    }
                }
                if *embedded_resource {
                    self.embedded(object, path);
                }
                self.size(*size, object.len(), "properties", value, path);
                true
            }
            (Shape::List { items: _, list_type, size, unique }, Value::Array(list)) => {
                self.size(*size, list.len(), "items", value, path);
                match list_type {
                    ListType::Map(_) if uniqueness::accepts_duplicates(schema, path) => {}
                    ListType::Map(keys) => uniqueness::map(schema, keys, list, path, &mut self.errors),
                    ListType::Set => uniqueness::set(list, path, &mut self.errors),
                    ListType::Atomic if *unique => uniqueness::set(list, path, &mut self.errors),
                    ListType::Atomic => {}
                }
                true
            }
            (Shape::Object { .. }, value) => self.wrong_type("object", value, path),
            (Shape::List { .. }, value) => self.wrong_type("array", value, path),
        }
    }

    fn wrong_type(&mut self, expected: &str, value: &Value, path: &FieldPath<'_>) -> bool {
        self.errors.push(scalar::wrong_type(expected, value, path));
        false
    }

    fn size(
        &mut self,
        (least, greatest): (Option<u64>, Option<u64>),
        actual: usize,
        of: &str,
        value: &Value,
        path: &FieldPath<'_>,
    ) {
        let actual = actual as u64;
        if let Some(least) = least.filter(|least| actual < *least) {
            let detail = format!("{path} in body should have at least {least} {of}");
            self.errors.push(FieldError::invalid(path, value.clone(), detail));
        }
        if let Some(greatest) = greatest.filter(|greatest| actual > *greatest) {
            self.errors.push(FieldError::too_many(path, actual, greatest));
        }
    }

    fn embedded(&mut self, object: &Map<String, Value>, path: &FieldPath<'_>) {
        for name in ["apiVersion", "kind"] {
            if object.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                self.errors.push(FieldError::required(&path.field(name), ""));
            }
        }
    }

    fn children(&mut self, schema: &Schema, new: &Value, old: Option<&Value>, path: &FieldPath<'_>) {
        match (&schema.shape, new) {
            (Shape::Object { properties, values, .. }, Value::Object(object)) => {
                for (name, child) in object {
                    let Some(schema) = properties.get(name).or(values.as_ref()) else { continue };
                    self.value(schema, child, old.and_then(|old| old.get(name)), &path.field(name));
                }
            }
            (Shape::List { items, list_type, .. }, Value::Array(list)) => {
                let stored = uniqueness::Stored::of(items, list_type, old);
                for (index, item) in list.iter().enumerate() {
                    let old = stored.as_ref().and_then(|stored| stored.correlated(item, index));
                    self.value(items, item, old, &path.index(index));
                }
            }
            _ => {}
        }
    }
}

/// Reports which of `allOf`, `anyOf`, `oneOf` and `not` a value does not satisfy.
fn check_combinations(combinations: &Combinations, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
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

#[cfg(test)]
mod tests;
