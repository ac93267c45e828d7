//! A compiled schema.
//!
//! It checks types, required fields, enumerations, bounds, patterns, the common formats, combinations, sets, embedded resources
//! and rules in CEL without transition rules. A part that cannot be checked is noted and passes: the comparison of the CRDs has
//! reported the change.

use std::{collections::BTreeSet, fmt, sync::Arc};

use chandler_core::Budget;
use chandler_expression::{on_large_stack, re2::Patterns};
use jsonschema::ValidationError;
use serde_json::{Map, Value};

use super::{defaults, expression::Rules, limit::Excess, pattern, steps::steps, translate::translate};
use crate::finding::cut;

/// The maximum number of violations of one object that are processed.
pub(super) const VIOLATIONS: usize = 50;
/// The longest text of a violation, in bytes.
pub(super) const MESSAGE: usize = 300;

/// A schema.
pub(super) struct ObjectSchema {
    schema: Value,
    translated: Value,
    validator: Option<jsonschema::Validator>,
    rules: Rules,
    notes: BTreeSet<String>,
}

/// A violation at one place of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// The JSON pointer, or the path for rules in CEL.
    place: String,
    /// The keyword, or the rule.
    kind: String,
    message: String,
}

impl Violation {
    /// Whether both violations have the same place and keyword.
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
        f.debug_struct("ObjectSchema").field("notes", &self.notes).finish_non_exhaustive()
    }
}

impl ObjectSchema {
    /// Compiles a structural schema. Parts that cannot be used are noted.
    ///
    /// # Errors
    /// If its patterns exceed the budget of the CRD.
    pub(super) fn read(schema: &Value, patterns: &Arc<Patterns>, budget: &Budget) -> Result<Self, Excess> {
        on_large_stack(|| Self::read_here(schema, patterns, budget)).unwrap_or_else(|_| {
            Ok(Self {
                schema: Value::Null,
                translated: Value::Null,
                validator: None,
                rules: Rules::default(),
                notes: BTreeSet::from(["the schema could not be evaluated".to_owned()]),
            })
        })
    }

    fn read_here(schema: &Value, patterns: &Arc<Patterns>, budget: &Budget) -> Result<Self, Excess> {
        let mut notes = BTreeSet::new();
        let translated = translate(schema, patterns, &mut notes)?;
        let built = jsonschema::draft202012::options()
            .offline()
            .with_keyword(pattern::KEYWORD, pattern::factory(patterns, budget))
            .should_validate_formats(true)
            .build(&translated);
        let validator = built.map_err(|error| {
            notes.insert(format!("the schema could not be evaluated: {}", cut(&error.to_string(), MESSAGE)));
        });
        let rules = Rules::of(schema, &mut notes);
        Ok(Self { schema: schema.clone(), translated, validator: validator.ok(), rules, notes })
    }

    /// The parts that could not be evaluated.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// The violations of an object, after dropping nulls and setting defaults as the API server does. Values are not quoted,
    /// since they may be secret.
    ///
    /// # Errors
    /// If it takes more steps than the budget has left.
    pub(super) fn check(&mut self, object: &Value, budget: &Budget) -> Result<Vec<Violation>, Excess> {
        let mut object = object.clone();
        drop_nulls(&self.schema, &mut object, 0);
        defaults::check(&self.schema, &object)?;
        let object = kube_cel::apply_defaults(&self.schema, &object);
        // The steps are counted before, because the validator cannot be interrupted.
        steps(&self.translated, &object, budget)?;
        let errors = self.validator.iter().flat_map(|validator| validator.iter_errors(&object));
        let violations: Vec<Violation> = errors.take(VIOLATIONS).map(|error| violation(&error)).collect();
        // Patterns took steps, too, and pass once the budget is used up.
        budget.step()?;
        // As in the API server, rules are evaluated only for objects that are otherwise valid.
        if violations.is_empty() { self.run_rules(&object, budget) } else { Ok(violations) }
    }

    fn run_rules(&mut self, object: &Value, budget: &Budget) -> Result<Vec<Violation>, Excess> {
        if self.rules.is_empty() {
            return Ok(Vec::new());
        }
        let refusals = self.rules.check(object, budget, &mut self.notes)?;
        let violations = refusals.into_iter().map(|refusal| Violation {
            place: format!("/{}", refusal.place.replace('.', "/")),
            kind: refusal.rule,
            message: refusal.message,
        });
        Ok(violations.collect())
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation {
        place: error.instance_path().as_str().to_owned(),
        kind: format!("{} {}", error.kind().keyword(), error.schema_path().as_str()),
        message: cut(&error.masked().to_string(), MESSAGE),
    }
}

/// Drops nulls that are not valid, as the API server does before it sets defaults.
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

/// The number of values in a JSON value, including itself.
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
    fn deeply_nested_rules_do_not_exhaust_the_stack() {
        let brackets = |count: usize| format!("{}self.a{} == 1", "(".repeat(count), ")".repeat(count));
        let terms = |count: usize| vec!["self.a"; count].join(" + ") + " == 1";
        for (rule, is_run) in [(brackets(60), true), (brackets(100), false), (terms(20), true), (terms(400), false)] {
            let schema = json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": rule}],
            });
            let schema = ObjectSchema::read(&schema, &Arc::default(), &Budget::new(1)).unwrap();
            assert_eq!(schema.notes().count() == 0, is_run, "{rule}");
        }
    }
}
