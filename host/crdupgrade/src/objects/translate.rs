//! Translates a structural schema of Kubernetes to a JSON Schema (2020-12).

use std::collections::BTreeSet;

use chandler_core::pointer::escape;
use chandler_expression::re2::{PatternError, Patterns};
use serde_json::{Map, Value, json};

use super::{limit::Excess, pattern};
use crate::finding::cut;

/// The maximum depth of a translated schema; the API server refuses deeper ones.
const DEEPEST: usize = 100;

/// The keywords with the same meaning in both.
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

/// The formats that both interpret alike. Others pass: the API server checks them less strictly, or not at all.
const FORMATS: [&str; 5] = ["date-time", "date", "ipv4", "ipv6", "uuid"];

/// Translates a schema. Unknown fields pass, since the API server prunes them; parts that cannot be translated are noted.
///
/// # Errors
/// If its patterns exceed the budget of the CRD.
pub(super) fn translate(schema: &Value, patterns: &Patterns, notes: &mut BTreeSet<String>) -> Result<Value, Excess> {
    Translation { patterns, notes, path: String::new() }.level(schema, 0)
}

/// The state of a translation.
struct Translation<'a> {
    patterns: &'a Patterns,
    notes: &'a mut BTreeSet<String>,
    /// The JSON pointer of the level, from the root of the schema.
    path: String,
}

impl Translation<'_> {
    fn level(&mut self, schema: &Value, depth: usize) -> Result<Value, Excess> {
        let Value::Object(schema) = schema else { return Ok(Value::Bool(true)) };
        if depth > DEEPEST {
            self.notes.insert("the schema is too deep to be evaluated whole".to_owned());
            return Ok(Value::Bool(true));
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
            match self.patterns.get(pattern) {
                Ok(_) => drop(to.insert(pattern::KEYWORD.to_owned(), json!(pattern))),
                Err(PatternError::Invalid(_)) => {
                    self.notes.insert(format!("the pattern {:?} could not be evaluated", cut(pattern, 100)));
                }
                Err(PatternError::Exhausted(exhausted)) => {
                    return Err(Excess::Patterns { pointer: format!("{}/pattern", self.path), exhausted });
                }
            }
        }
        if schema.get("x-kubernetes-list-type").is_some_and(|kind| kind == "set") {
            to.insert("uniqueItems".to_owned(), json!(true));
        }
        self.children(schema, &mut to, depth)?;
        if flag("x-kubernetes-embedded-resource") {
            let text = json!({"type": "string", "minLength": 1});
            let embedded =
                json!({"required": ["apiVersion", "kind"], "properties": {"apiVersion": text, "kind": text}});
            match to.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(embedded),
                _ => drop(to.insert("allOf".to_owned(), json!([embedded]))),
            }
        }
        Ok(Value::Object(to))
    }

    fn children(
        &mut self,
        schema: &Map<String, Value>,
        to: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Excess> {
        if let Some(Value::Object(fields)) = schema.get("properties") {
            let mut translated = Map::new();
            for (name, field) in fields {
                let step = format!("/properties/{}", escape(name));
                translated.insert(name.clone(), self.below(&step, field, depth)?);
            }
            to.insert("properties".to_owned(), Value::Object(translated));
        }
        for keyword in ["items", "additionalProperties", "not"] {
            if let Some(child @ Value::Object(_)) = schema.get(keyword) {
                to.insert(keyword.to_owned(), self.below(&format!("/{keyword}"), child, depth)?);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword)
                && !branches.is_empty()
            {
                let branches = branches.iter().enumerate();
                let branches =
                    branches.map(|(index, branch)| self.below(&format!("/{keyword}/{index}"), branch, depth));
                to.insert(keyword.to_owned(), Value::Array(branches.collect::<Result<_, _>>()?));
            }
        }
        Ok(())
    }

    /// Translates a level below, and restores the path afterwards.
    fn below(&mut self, step: &str, schema: &Value, depth: usize) -> Result<Value, Excess> {
        let length = self.path.len();
        self.path.push_str(step);
        let translated = self.level(schema, depth + 1);
        self.path.truncate(length);
        translated
    }
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

/// In Kubernetes, a flag beside a bound makes it exclusive.
fn bounds(schema: &Map<String, Value>, to: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let excluded = schema.get(exclusive) == Some(&Value::Bool(true));
        if let Some(value) = schema.get(bound).filter(|value| value.is_number()) {
            to.insert(if excluded { exclusive } else { bound }.to_owned(), value.clone());
        }
    }
}
