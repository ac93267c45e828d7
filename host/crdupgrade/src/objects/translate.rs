//! A structural schema of Kubernetes as a JSON Schema (2020-12).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::schema::PATTERN_BYTES;
use crate::finding::cut;

/// How deep a schema is translated; the API server refuses deeper ones.
const DEEPEST: usize = 100;

/// What means the same in both.
const COMMON: [&str; 9] = [
    "required",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "multipleOf",
    "uniqueItems",
];

/// Formats that both read alike. Others pass: the API server knows them less strictly, or not at all.
const FORMATS: [&str; 5] = ["date-time", "date", "ipv4", "ipv6", "uuid"];

/// Translates a schema. Unknown fields pass, since the API server prunes them; what cannot be translated is noted.
pub(super) fn translate(schema: &Value, notes: &mut BTreeSet<String>) -> Value {
    level(schema, notes, 0)
}

fn level(schema: &Value, notes: &mut BTreeSet<String>, depth: usize) -> Value {
    let Value::Object(schema) = schema else { return Value::Bool(true) };
    if depth > DEEPEST {
        notes.insert("the schema is too deep to be evaluated whole".to_owned());
        return Value::Bool(true);
    }
    let flag = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    let mut to = Map::new();
    types(schema, flag("nullable"), &mut to);
    for keyword in COMMON {
        if let Some(value) = schema.get(keyword).filter(|value| !value.is_null()) {
            to.insert(keyword.to_owned(), value.clone());
        }
    }
    bounds(schema, &mut to);
    if let Some(Value::String(format)) = schema.get("format")
        && FORMATS.contains(&format.as_str())
    {
        to.insert("format".to_owned(), json!(format));
    }
    if let Some(Value::String(pattern)) = schema.get("pattern") {
        // What is compiled here is compiled again by whoever evaluates the schema.
        match chandler_re2::compile(pattern, PATTERN_BYTES) {
            Ok(compiled) => drop(to.insert("pattern".to_owned(), json!(compiled.as_str()))),
            Err(_) => drop(notes.insert(format!("the pattern {:?} could not be evaluated", cut(pattern, 100)))),
        }
    }
    if schema.get("x-kubernetes-list-type").is_some_and(|kind| kind == "set") {
        to.insert("uniqueItems".to_owned(), json!(true));
    }
    children(schema, &mut to, notes, depth);
    if flag("x-kubernetes-embedded-resource") {
        let text = json!({"type": "string", "minLength": 1});
        let embedded = json!({"required": ["apiVersion", "kind"], "properties": {"apiVersion": text, "kind": text}});
        match to.get_mut("allOf") {
            Some(Value::Array(all)) => all.push(embedded),
            _ => drop(to.insert("allOf".to_owned(), json!([embedded]))),
        }
    }
    Value::Object(to)
}

fn types(schema: &Map<String, Value>, nullable: bool, to: &mut Map<String, Value>) {
    let either = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let mut types: Vec<&str> = match schema.get("type").and_then(Value::as_str) {
        _ if either => vec!["integer", "string"],
        Some("") | None => Vec::new(),
        Some(one) => vec![one],
    };
    if !types.is_empty() {
        types.extend(nullable.then_some("null"));
        to.insert("type".to_owned(), json!(types));
    }
    if let Some(Value::Array(values)) = schema.get("enum").filter(|values| **values != json!([])) {
        let mut values = values.clone();
        if nullable && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        to.insert("enum".to_owned(), Value::Array(values));
    }
}

/// Whether a bound itself is allowed is a flag beside it in Kubernetes.
fn bounds(schema: &Map<String, Value>, to: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let excluded = schema.get(exclusive) == Some(&Value::Bool(true));
        if let Some(value) = schema.get(bound).filter(|value| value.is_number()) {
            to.insert(if excluded { exclusive } else { bound }.to_owned(), value.clone());
        }
    }
}

fn children(schema: &Map<String, Value>, to: &mut Map<String, Value>, notes: &mut BTreeSet<String>, depth: usize) {
    if let Some(Value::Object(fields)) = schema.get("properties") {
        let fields: Map<String, Value> =
            fields.iter().map(|(name, field)| (name.clone(), level(field, notes, depth + 1))).collect();
        to.insert("properties".to_owned(), Value::Object(fields));
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(child @ Value::Object(_)) = schema.get(keyword) {
            to.insert(keyword.to_owned(), level(child, notes, depth + 1));
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword)
            && !branches.is_empty()
        {
            let branches: Vec<Value> = branches.iter().map(|branch| level(branch, notes, depth + 1)).collect();
            to.insert(keyword.to_owned(), Value::Array(branches));
        }
    }
}
