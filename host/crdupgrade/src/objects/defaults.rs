//! How much the defaults of a schema add to an object, before they are set.
//!
//! A default is copied into each item of a list that lacks the field: a large one and many items multiply.

use chandler_core::{Budget, Stop};
use serde_json::Value;

/// The most that the defaults add to one object. A value counts one, and so do sixteen bytes of text.
const MOST: u64 = 1_000_000;
/// The bytes of text that count as one value.
const TEXT: u64 = 16;
/// The deepest part of an object that is looked at, which is deeper than the API server accepts.
const DEEPEST: usize = 200;

/// Checks that the defaults of a schema add little enough to an object.
///
/// # Errors
/// They add too much.
pub(super) fn check(schema: &Value, object: &Value) -> Result<(), Stop> {
    added(schema, object, &Budget::new(MOST), 0)
}

fn added(schema: &Value, value: &Value, budget: &Budget, depth: usize) -> Result<(), Stop> {
    if depth > DEEPEST {
        return Err(Stop::Exhausted { limit: MOST });
    }
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                match (members.get(name), property.get("default")) {
                    (Some(member), _) => added(property, member, budget, depth + 1)?,
                    (None, Some(default)) => {
                        size(default, budget)?;
                        // A default may lack fields with defaults of their own.
                        added(property, default, budget, depth + 1)?;
                    }
                    (None, None) => {}
                }
            }
            let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) else {
                return Ok(());
            };
            let is_other = |name: &String| properties.is_none_or(|properties| !properties.contains_key(name));
            members
                .iter()
                .filter(|(name, _)| is_other(name))
                .try_for_each(|(_, member)| added(others, member, budget, depth + 1))
        }
        Value::Array(items) => match schema.get("items") {
            Some(of_items) => items.iter().try_for_each(|item| added(of_items, item, budget, depth + 1)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn size(value: &Value, budget: &Budget) -> Result<(), Stop> {
    budget.step()?;
    match value {
        Value::String(text) => budget.take(text.len() as u64 / TEXT),
        Value::Array(items) => items.iter().try_for_each(|item| size(item, budget)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            budget.take(name.len() as u64 / TEXT)?;
            size(member, budget)
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_of_many_items_are_counted_together() {
        let schema =
            |default: Value| json!({"properties": {"list": {"items": {"properties": {"text": {"default": default}}}}}});
        let object = |items: usize| json!({"list": vec![json!({}); items]});
        let long = json!("x".repeat(160_000));
        assert_eq!(check(&schema(long.clone()), &object(50)), Ok(()));
        assert_eq!(check(&schema(long), &object(200)), Err(Stop::Exhausted { limit: MOST }));
        // A field that is set needs no default.
        let set = json!({"list": vec![json!({"text": 1}); 200]});
        assert_eq!(check(&schema(json!("x".repeat(160_000))), &set), Ok(()));
    }

    #[test]
    fn defaults_in_defaults_and_in_other_members_count() {
        let wide = json!({"default": "x".repeat(160_000)});
        let inner = json!({"default": vec![json!({}); 200], "items": {"properties": {"text": wide}}});
        assert!(check(&json!({"properties": {"list": inner}}), &json!({})).is_err());
        let members: serde_json::Map<_, _> = (0..200).map(|n| (n.to_string(), json!({}))).collect();
        let others = json!({"additionalProperties": {"properties": {"text": wide}}});
        assert!(check(&others, &Value::Object(members)).is_err());
    }
}
