//! Compares `oneOf`, `anyOf`, `allOf` and `not` as sets: neither the order nor the documentation of their schemas counts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Rule,
    change::Change,
    finding::{
        Effect::{self, Alters, Loosens, Tightens},
        cut,
    },
    keywords::addition,
};

/// The longest text of schemas in a message, in bytes.
const SHOWN: usize = 400;

/// Documentation, which does not affect validation.
const DOCUMENTATION: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Exactly one must hold. Another alternative may replace the only one that held.
pub(crate) fn one_of(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let (old, new) = (set(before), set(after));
    let removed: Vec<&String> = old.difference(&new).collect();
    let added: Vec<&String> = new.difference(&old).collect();
    let change = |effect, message: &str, schemas: &[&String]| {
        vec![Change::new(Rule::OneOf, effect, format!("{message}: {}", list(schemas))).of(before, after)]
    };
    match (old.is_empty(), removed.is_empty(), added.is_empty()) {
        (true, _, false) => change(Tightens, "oneOf constraint added when there was none previously", &added),
        (false, false, _) if new.is_empty() => change(Loosens, "allowed oneOf schemas removed", &removed),
        (_, false, _) => change(Alters, "allowed oneOf schemas removed", &removed),
        (_, true, false) => change(Alters, "allowed oneOf schemas added", &added),
        (_, true, true) => Vec::new(),
    }
}

/// At least one must hold.
pub(crate) fn any_of(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    compare(Rule::AnyOf, before, after, |removed, added| match (removed, added) {
        (false, true) => Loosens,
        (true, false) => Tightens,
        _ => Alters,
    })
}

/// All must hold.
pub(crate) fn all_of(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    compare(Rule::AllOf, before, after, |removed, added| match (removed, added) {
        (false, true) => Tightens,
        (true, false) => Loosens,
        _ => Alters,
    })
}

/// It must not hold.
pub(crate) fn not(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    compare(Rule::Not, before, after, |_, _| Alters)
}

fn compare(
    rule: Rule,
    before: Option<&Value>,
    after: Option<&Value>,
    effect: impl Fn(bool, bool) -> Effect,
) -> Vec<Change> {
    let (old, new) = (set(before), set(after));
    let removed: Vec<&String> = old.difference(&new).collect();
    let added: Vec<&String> = new.difference(&old).collect();
    let effect = match addition(before, after) {
        Alters if removed.is_empty() && added.is_empty() => return Vec::new(),
        Alters => effect(!removed.is_empty(), !added.is_empty()),
        whole => whole,
    };
    let mut parts = Vec::new();
    for (verb, schemas) in [("removed", removed), ("added", added)] {
        if !schemas.is_empty() {
            parts.push(format!("{verb} {}", list(&schemas)));
        }
    }
    let message = format!("unhandled changes found ({rule} {})", parts.join(", "));
    vec![Change::new(rule, effect, message).of(before, after)]
}

/// The schemas as text, without documentation. A single schema is a set of one.
fn set(schemas: Option<&Value>) -> BTreeSet<String> {
    let schemas = match schemas {
        Some(Value::Array(schemas)) => schemas.as_slice(),
        Some(schema) => std::slice::from_ref(schema),
        None => &[],
    };
    schemas.iter().map(|schema| undocumented(schema).to_string()).collect()
}

/// A schema without documentation. Names of fields are kept, whatever they are.
pub(crate) fn undocumented(schema: &Value) -> Value {
    let each = |value: &Value| match value {
        Value::Array(schemas) => schemas.iter().map(undocumented).collect(),
        other => undocumented(other),
    };
    let Value::Object(keywords) = schema else { return schema.clone() };
    let kept = keywords.iter().filter(|(keyword, _)| !DOCUMENTATION.contains(&keyword.as_str()));
    let clean = kept.map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), undocumented(field))).collect()
            }
            ("items" | "additionalProperties" | "not" | "oneOf" | "anyOf" | "allOf", value) => each(value),
            (_, value) => value.clone(),
        };
        (keyword.clone(), value)
    });
    Value::Object(clean.collect())
}

fn list(schemas: &[&String]) -> String {
    let texts: Vec<&str> = schemas.iter().map(|schema| schema.as_str()).collect();
    cut(&format!("[{}]", texts.join(" ")), SHOWN)
}
