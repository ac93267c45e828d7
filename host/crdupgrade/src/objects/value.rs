//! Values as rules in CEL see them.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value as CelValue,
    objects::{Key, Map},
};
use chandler_core::Budget;
use chandler_expression::json::{escaped, formatted, to_value};
use serde_json::{Map as Fields, Value};

use super::{expression::Rules, limit::Excess, schema::count};

/// The format of a text that is another type in rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Format(Option<&'static str>);

impl Format {
    pub(super) fn of(keywords: &Fields<String, Value>) -> Self {
        if keywords.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            return Self(None);
        }
        let format = keywords.get("format").and_then(Value::as_str);
        Self(["date-time", "duration", "byte"].into_iter().find(|known| Some(*known) == format))
    }
}

/// The value of a place; every value in it is a step.
pub(super) fn convert(rules: &Rules, value: &Value, budget: &Budget) -> Result<CelValue, Excess> {
    budget.take(u64::try_from(count(value)).unwrap_or(u64::MAX))?;
    Ok(converted(rules, value))
}

fn converted(rules: &Rules, value: &Value) -> CelValue {
    match value {
        Value::String(text) => {
            rules.format.0.and_then(|format| formatted(format, text)).unwrap_or_else(|| to_value(value))
        }
        Value::Array(list) => {
            let item = |item| rules.items.as_deref().map_or_else(|| untyped(item), |items| converted(items, item));
            CelValue::List(Arc::new(list.iter().map(item).collect()))
        }
        Value::Object(fields) => {
            let field = |(name, field): (&String, &Value)| {
                let schema = rules.properties.get(name).or(rules.others.as_deref());
                let field = schema.map_or_else(|| untyped(field), |schema| converted(schema, field));
                (Key::from(if rules.is_map { name.clone() } else { escaped(name) }), field)
            };
            let mut map: HashMap<Key, CelValue> = fields.iter().map(field).collect();
            if rules.is_embedded {
                for name in ["apiVersion", "kind"] {
                    map.entry(Key::from(name)).or_insert_with(|| CelValue::from(""));
                }
                map.entry(Key::from("metadata")).or_insert_with(|| CelValue::Map(Map { map: Arc::default() }));
            }
            CelValue::Map(Map { map: Arc::new(map) })
        }
        _ => to_value(value),
    }
}

/// A value without a schema.
fn untyped(value: &Value) -> CelValue {
    converted(&Rules::default(), value)
}
