//! One schema, ready to check objects.
//!
//! Checked are types, required fields, enumerations, bounds, patterns, the common formats, combinations, sets, embedded
//! resources and rules in CEL that do not look at a former value. What cannot be checked here is noted and passes: the
//! comparison of the definitions has told of the change.

use std::{collections::BTreeSet, fmt};

use chandler_expression::on_large_stack;
use jsonschema::{PatternOptions, ValidationError};
use kube_cel::{CompiledSchema, ErrorKind};
use serde_json::{Map, Value};

use super::{expression::Rules, translate::translate};
use crate::finding::cut;

/// The most parts of a schema times values of an object: every value may be held against every part.
const WORK: usize = 50_000_000;
/// The memory that one compiled pattern may take, in bytes.
pub(super) const PATTERN_BYTES: usize = 1 << 20;
/// The most violations of one object that are looked at.
const VIOLATIONS: usize = 50;
/// The longest text of a violation, in bytes.
const MESSAGE: usize = 300;

/// A schema.
pub(super) struct ObjectSchema {
    schema: Value,
    parts: usize,
    validator: Option<jsonschema::Validator>,
    rules: Rules,
    compiled: CompiledSchema,
    cel: kube_cel::Validator,
    notes: BTreeSet<String>,
}

/// A place of an object that is not legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// The JSON pointer, or for rules in CEL the path.
    place: String,
    /// The keyword, or the rule.
    kind: String,
    message: String,
}

impl Violation {
    /// Whether both are about the same place, and the same is wrong there.
    pub(super) fn same_place(&self, other: &Self) -> bool {
        self.place == other.place && self.kind == other.kind
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "the object" } else { &self.place };
        write!(f, "{place}: {}", self.message)
    }
}

impl fmt::Debug for ObjectSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectSchema").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl ObjectSchema {
    /// Reads a structural schema. What cannot be used of it is noted.
    pub(super) fn read(schema: &Value) -> Self {
        on_large_stack(|| Self::read_here(schema)).unwrap_or_else(|_| Self {
            schema: Value::Null,
            parts: 0,
            validator: None,
            rules: Rules::default(),
            compiled: kube_cel::compile_schema(&Value::Null),
            cel: kube_cel::Validator::new(),
            notes: BTreeSet::from(["the schema could not be evaluated".to_owned()]),
        })
    }

    fn read_here(schema: &Value) -> Self {
        let mut notes = BTreeSet::new();
        let translated = translate(schema, &mut notes);
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let built = jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .build(&translated);
        let validator = built.map_err(|error| {
            notes.insert(format!("the schema could not be evaluated: {}", cut(&error.to_string(), MESSAGE)));
        });
        let (schema, rules) = Rules::of(schema, &mut notes);
        Self {
            parts: count(&translated),
            validator: validator.ok(),
            compiled: kube_cel::compile_schema(&schema),
            cel: kube_cel::Validator::new(),
            schema,
            rules,
            notes,
        }
    }

    /// What could not be evaluated.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// What is wrong with an object, once the API server has dropped nulls and filled in defaults. Values are not quoted:
    /// they may be secret.
    pub(super) fn check(&mut self, object: &Value) -> Vec<Violation> {
        let mut object = object.clone();
        drop_nulls(&self.schema, &mut object, 0);
        let object = kube_cel::apply_defaults(&self.schema, &object);
        let size = count(&object);
        if self.parts.saturating_mul(size) > WORK {
            self.notes.insert("objects that are too large for the schema were not checked".to_owned());
            return Vec::new();
        }
        let errors = self.validator.iter().flat_map(|validator| validator.iter_errors(&object));
        let violations: Vec<Violation> = errors.take(VIOLATIONS).map(|error| violation(&error)).collect();
        // As in the API server, rules may rely on everything else being as it should be.
        if violations.is_empty() { self.run_rules(&object, size) } else { violations }
    }

    fn run_rules(&mut self, object: &Value, size: usize) -> Vec<Violation> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        if !self.rules.affordable(size) {
            self.notes.insert("validation rules were not run on objects that are too large for them".to_owned());
            return Vec::new();
        }
        let Err(errors) = self.cel.validate_compiled(&self.compiled, object, None) else { return Vec::new() };
        let mut violations = Vec::new();
        for error in errors.into_vec() {
            if error.kind == ErrorKind::ValidationFailure {
                let place = format!("/{}", error.field_path.replace('.', "/"));
                violations.push(Violation { place, kind: error.rule, message: cut(&error.message, MESSAGE) });
            } else {
                let rule = cut(&error.rule, MESSAGE);
                self.notes.insert(format!("the validation rule {rule:?} could not be evaluated"));
            }
        }
        violations
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation {
        place: error.instance_path().as_str().to_owned(),
        kind: format!("{} {}", error.kind().keyword(), error.schema_path().as_str()),
        message: cut(&error.masked().to_string(), MESSAGE),
    }
}

/// Drops nulls that are not legal: the API server does, before it fills in defaults.
fn drop_nulls(schema: &Value, value: &mut Value, depth: usize) {
    const DEEPEST: usize = 100;
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(object) => {
            let none = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
            let of = |name: &str| properties.get(name).or(others);
            object.retain(|name, value| !value.is_null() || of(name).is_none_or(is_nullable));
            for (name, value) in object {
                if let Some(schema) = of(name) {
                    drop_nulls(schema, value, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    drop_nulls(schema, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

fn is_nullable(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

/// How many values a JSON value holds, itself included.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(fields) => fields.values().map(count).sum::<usize>() + 1,
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_that_nest_deep_take_no_stack_of_ours() {
        let brackets = |count: usize| format!("{}self.a{} == 1", "(".repeat(count), ")".repeat(count));
        let terms = |count: usize| vec!["self.a"; count].join(" + ") + " == 1";
        for (rule, is_run) in [(brackets(60), true), (brackets(100), false), (terms(20), true), (terms(400), false)] {
            let schema = json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": rule}],
            });
            let schema = ObjectSchema::read(&schema);
            assert_eq!(schema.notes().count() == 0, is_run, "{rule}");
        }
    }
}
