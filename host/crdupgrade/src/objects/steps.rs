//! The number of steps for checking an object against a schema. It is counted before, because the validator cannot be
//! interrupted.

use chandler_core::{Budget, Stop};
use serde_json::Value;

/// The bytes of a text that are compared in the time of a step.
const BYTES_PER_STEP: usize = 64;

/// Charges the steps for checking a value against a translated schema: one for each keyword that applies to a value, and for
/// each item and each text in proportion to its length.
///
/// # Errors
/// If the budget has fewer steps left; counting ends then.
pub(super) fn steps(schema: &Value, value: &Value, budget: &Budget) -> Result<(), Stop> {
    at(schema, value, 1, budget)
}

/// `times` is the number of visits of the level: a combination first checks whether one of its branches matches, and then why
/// none does.
fn at(schema: &Value, value: &Value, times: u64, budget: &Budget) -> Result<(), Stop> {
    let Value::Object(keywords) = schema else { return budget.take(times) };
    budget.take(times.saturating_mul(wide(keywords.len() + 1)))?;
    for (keyword, of) in keywords {
        match (keyword.as_str(), of, value) {
            ("properties", Value::Object(schemas), Value::Object(fields)) => {
                // The smaller set is looked up in the larger one.
                for (name, field) in fields {
                    budget.take(times)?;
                    if let Some(schema) = schemas.get(name) {
                        at(schema, field, times, budget)?;
                    }
                }
                budget.take(times.saturating_mul(wide(schemas.len())))?;
            }
            ("additionalProperties", schema @ Value::Object(_), Value::Object(fields)) => {
                fields.values().try_for_each(|field| at(schema, field, times, budget))?;
            }
            ("items", schema @ Value::Object(_), Value::Array(items)) => {
                items.iter().try_for_each(|item| at(schema, item, times, budget))?;
            }
            ("not", schema, _) => at(schema, value, times, budget)?,
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches), _) => {
                let times = times.saturating_add(1);
                branches.iter().try_for_each(|branch| at(branch, value, times, budget))?;
            }
            ("enum" | "required", Value::Array(values), _) => {
                budget.take(times.saturating_mul(wide(values.len())).saturating_mul(1 + size(value) / 8))?;
            }
            ("uniqueItems", Value::Bool(true), Value::Array(items)) => {
                budget.take(times.saturating_mul(size(value)).saturating_mul(wide(items.len())))?;
            }
            ("minLength" | "maxLength" | "format", _, Value::String(_)) => {
                budget.take(times.saturating_mul(size(value)))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The number of steps for visiting a whole value.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => wide(1 + text.len() / BYTES_PER_STEP),
        Value::Array(items) => items.iter().map(size).fold(1, u64::saturating_add),
        Value::Object(fields) => fields.values().map(size).fold(1, u64::saturating_add),
        _ => 1,
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(schema: &Value, value: &Value) -> u64 {
        let budget = Budget::new(u64::MAX);
        steps(schema, value, &budget).unwrap();
        budget.taken()
    }

    #[test]
    fn steps_grow_with_the_object_and_its_schema() {
        let leaf = json!({"type": ["string"]});
        let wide = json!({"properties": {"a": leaf, "b": leaf, "c": leaf}});
        let deep = json!({"items": {"anyOf": [{"items": {"anyOf": [leaf, leaf]}}, leaf]}});
        let list = |length: usize| json!(vec![json!(vec!["x"; 10]); length]);
        assert!(taken(&wide, &json!({"a": "x"})) < taken(&wide, &json!({"a": "x", "b": "x"})));
        let (one, ten) = (taken(&deep, &list(10)), taken(&deep, &list(100)));
        assert!((one * 9..one * 11).contains(&ten), "{one} {ten}");
        let unique = json!({"uniqueItems": true});
        assert!(taken(&unique, &json!(vec![1; 1000])) >= 1_000_000);
    }

    #[test]
    fn counting_ends_with_the_budget() {
        let budget = Budget::new(100);
        let stopped = steps(&json!({"items": {"type": ["string"]}}), &json!(vec!["x"; 1_000_000]), &budget);
        assert_eq!(stopped, Err(Stop::Exhausted { limit: 100 }));
        budget.cancel();
        assert_eq!(steps(&json!({}), &json!(1), &budget), Err(Stop::Cancelled));
    }
}
