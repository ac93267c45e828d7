//! Checking values against `values.schema.json`: JSON Schema of drafts 4 to 2020-12, without references to other documents.

mod format;
mod keywords;
mod shape;

use std::collections::HashSet;

use chandler_go_template::{Map, Value};
use serde_json::Value as Json;

use crate::{chart::Chart, number};

/// What a check may cost: schemas that are applied to values.
const MOST_STEPS: usize = 2_000_000;

/// References and schemas within schemas, at one place.
const MOST_DEEP: usize = 200;

/// Checks the values of a chart and of its subcharts, each against the schema of its chart.
///
/// # Errors
/// What Helm says: each chart with its list of wrong values.
pub fn check(chart: &Chart, values: &Map) -> Result<(), String> {
    let mut problems = String::new();
    collect(chart, values, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("values don't meet the specifications of the schema(s) in the following chart(s):\n{problems}"))
}

fn collect(chart: &Chart, values: &Map, problems: &mut String) {
    if let Some(schema) = &chart.schema {
        let found = match check_one(schema, values) {
            Ok(found) => found.iter().fold(String::new(), |text, problem| text + "- " + problem + "\n"),
            Err(message) => format!("{message}\n"),
        };
        if !found.is_empty() {
            crate::append(problems, format_args!("{}:\n{found}", chart.name()));
        }
    }
    for subchart in &chart.dependencies {
        if let Some(Value::Map(own)) = values.get(subchart.name()) {
            collect(subchart, &own, problems);
        }
    }
}

/// The problems of values; an error for a schema that cannot be used.
fn check_one(schema: &[u8], values: &Map) -> Result<Vec<String>, String> {
    // As Go reads it: what is not UTF-8 becomes U+FFFD.
    let schema = String::from_utf8_lossy(schema.strip_prefix(b"\xef\xbb\xbf").unwrap_or(schema));
    let schema: Json = serde_json::from_str(&schema).map_err(|error| format!("the schema is not JSON: {error}"))?;
    let draft = Draft::of(&schema)?;
    shape::check(&schema, draft)?;
    let values = json(&Value::Map(values.clone()), 0)?;
    let mut checker = Checker { root: &schema, draft, steps: 0, refusal: None };
    checker.resolve_all();
    let mut problems = Vec::new();
    checker.check(&schema, &values, "", 0, &mut problems);
    match checker.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(problems),
    }
}

/// A value as JSON.
fn json(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > MOST_DEEP {
        return Err(format!("values are nested more than {MOST_DEEP} levels deep"));
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value, _) => Json::from(*value),
        Value::Float(value) => {
            serde_json::from_str(&number::json(*value).ok_or("a number is not finite")?).unwrap_or(Json::Null)
        }
        Value::String(text) => Json::from(text.text().into_owned()),
        Value::List(list) => list.items().iter().map(|item| json(item, depth + 1)).collect::<Result<_, _>>()?,
        Value::Map(map) => Json::Object(
            map.entries()
                .into_iter()
                .map(|(key, value)| Ok((key.to_string(), json(&value, depth + 1)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Object(object) => json(&object.data(), depth + 1)?,
    })
}

/// The versions of JSON Schema that differ here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    /// Draft 4.
    Four,
    /// Draft 6.
    Six,
    /// Draft 7.
    Seven,
    /// 2019-09.
    Nineteen,
    /// 2020-12, and schemas that name none.
    Twenty,
}

impl Draft {
    /// The draft that a schema names. Helm loads a schema of schemas with another name from its URL, which is not done here.
    fn of(schema: &Json) -> Result<Self, String> {
        let Some(named) = schema.get("$schema").and_then(Json::as_str) else { return Ok(Self::Twenty) };
        let url = named.strip_suffix('#').unwrap_or(named);
        let url = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url);
        Ok(match url {
            "json-schema.org/schema" | "json-schema.org/draft/2020-12/schema" => Self::Twenty,
            "json-schema.org/draft/2019-09/schema" => Self::Nineteen,
            "json-schema.org/draft-07/schema" => Self::Seven,
            "json-schema.org/draft-06/schema" => Self::Six,
            "json-schema.org/draft-04/schema" => Self::Four,
            _ => return Err(format!("the schema is of {named:?}, a version of JSON Schema that is not known")),
        })
    }
}

struct Checker<'a> {
    root: &'a Json,
    draft: Draft,
    steps: usize,
    /// Why the schema cannot be used.
    refusal: Option<String>,
}

impl<'a> Checker<'a> {
    /// Refuses the schema; the first reason stays.
    fn refuse(&mut self, reason: impl Into<String>) {
        if self.refusal.is_none() {
            self.refusal = Some(reason.into());
        }
    }

    /// Refuses a schema that refers to something that is not in it, also where no value leads: each schema that could be applied is looked at.
    fn resolve_all(&mut self) {
        let (mut seen, mut known) = (HashSet::new(), HashSet::new());
        let mut open = vec![self.root];
        while let Some(schema) = open.pop() {
            let Json::Object(keywords) = schema else { continue };
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            if let Some(reference) = keywords.get("$ref").and_then(Json::as_str) {
                if known.insert(reference) {
                    match self.find(reference) {
                        Some(target) => open.push(target),
                        None => return self.refuse(format!("the schema refers to {reference:?}, which is not in it")),
                    }
                }
                if self.draft <= Draft::Seven {
                    continue;
                }
            }
            for (keyword, value) in keywords {
                if !matches!(keyword.as_str(), "definitions" | "$defs") {
                    open.extend(shape::inner(self.draft, keyword, value).into_iter().map(|(_, schema)| schema));
                }
            }
        }
    }

    /// Whether a value has no problem.
    fn is_valid(&mut self, schema: &'a Json, value: &Json, place: &str, depth: usize) -> bool {
        let mut problems = Vec::new();
        self.check(schema, value, place, depth, &mut problems);
        problems.is_empty()
    }

    /// Adds the problems of a value at a place, a JSON pointer.
    fn check(&mut self, schema: &'a Json, value: &Json, place: &str, depth: usize, problems: &mut Vec<String>) {
        if self.refusal.is_some() {
            return;
        }
        self.steps += 1;
        if self.steps > MOST_STEPS || depth > MOST_DEEP {
            return self.refuse("the schema is too costly: too many schemas apply, or they refer to each other");
        }
        let keywords = match schema {
            Json::Bool(true) => return,
            Json::Bool(false) => {
                problems.push(format!("at '{place}': false schema"));
                return;
            }
            Json::Object(keywords) => keywords,
            _ => {
                return self
                    .refuse("the schema has a value that is neither an object nor a boolean in place of a schema");
            }
        };
        if let Some(reference) = keywords.get("$ref") {
            let Some(reference) = reference.as_str() else { return self.refuse("a $ref of the schema is not text") };
            match self.find(reference) {
                Some(target) => self.check(target, value, place, depth + 1, problems),
                None => return self.refuse(format!("the schema refers to {reference:?}, which is not in it")),
            }
            // Before 2019-09 nothing else counts beside a reference.
            if self.draft <= Draft::Seven {
                return;
            }
        }
        for keyword in ["$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"] {
            let harmless = keyword.starts_with("unevaluated") && keywords.get(keyword) == Some(&Json::Bool(true));
            if keywords.contains_key(keyword) && self.draft >= Draft::Nineteen && !harmless {
                return self.refuse(format!("the schema uses {keyword}, which is not supported"));
            }
        }
        keywords::check(self, keywords, value, place, depth, problems);
    }

    /// The schema that a reference within the document means.
    fn find(&self, reference: &str) -> Option<&'a Json> {
        let id = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Json::as_str).unwrap_or_default();
        let fragment = match reference.split_once('#') {
            Some(("", fragment)) => fragment,
            Some((document, fragment)) if document == id.trim_end_matches('#') => fragment,
            None if !id.is_empty() && reference == id.trim_end_matches('#') => "",
            _ => return by_id(self.root, reference, 0),
        };
        if fragment.is_empty() {
            return Some(self.root);
        }
        if fragment.starts_with('/') {
            let decoded = percent_decoded(fragment)?;
            return self.root.pointer(&decoded);
        }
        anchor(self.root, fragment, 0)
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [char::from(bytes.next()?), char::from(bytes.next()?)].map(|digit| digit.to_digit(16));
            let [Some(high), Some(low)] = digits else { return None };
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

fn anywhere<'a>(
    schema: &'a Json,
    depth: usize,
    is: &impl Fn(&'a serde_json::Map<String, Json>) -> bool,
) -> Option<&'a Json> {
    if depth > MOST_DEEP {
        return None;
    }
    match schema {
        Json::Object(keywords) if is(keywords) => Some(schema),
        Json::Object(keywords) => keywords.values().find_map(|inner| anywhere(inner, depth + 1, is)),
        Json::Array(items) => items.iter().find_map(|inner| anywhere(inner, depth + 1, is)),
        _ => None,
    }
}

fn anchor<'a>(root: &'a Json, name: &str, depth: usize) -> Option<&'a Json> {
    anywhere(root, depth, &|keywords| {
        let old =
            |key: &str| keywords.get(key).and_then(Json::as_str).and_then(|id| id.strip_prefix('#')) == Some(name);
        keywords.get("$anchor").and_then(Json::as_str) == Some(name) || old("$id") || old("id")
    })
}

fn by_id<'a>(root: &'a Json, id: &str, depth: usize) -> Option<&'a Json> {
    anywhere(root, depth, &|keywords| keywords.get("$id").and_then(Json::as_str) == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(schema: &str, values: &str) -> Result<Vec<String>, String> {
        check_one(schema.as_bytes(), &crate::chart::values::read(values).unwrap())
    }

    #[test]
    fn a_schema_that_is_not_utf_8_is_read_as_by_go() {
        let check = |schema: &[u8]| check_one(schema, &crate::chart::values::read("a: 1").unwrap());
        assert_eq!(check(b"\xef\xbb\xbf{\"description\": \"\xe4\", \"required\": [\"a\"]}"), Ok(Vec::new()));
        assert!(check(b"{\xe4}").unwrap_err().starts_with("the schema is not JSON: "));
    }

    #[test]
    fn wrong_values_are_named_with_their_place() {
        for (schema, values, expected) in [
            (r#"{"properties":{"a":{"type":"string"}}}"#, "a: 1", "at '/a': got number, want string"),
            (
                r#"{"properties":{"a":{"type":["string","null"]}}}"#,
                "a: true",
                "at '/a': got boolean, want string or null",
            ),
            (r#"{"properties":{"a":{"items":{"type":"object"}}}}"#, "a: [x]", "at '/a/0': got string, want object"),
            (r#"{"required":["a"]}"#, "b: 1", "at '': missing property 'a'"),
            (r#"{"additionalProperties":false}"#, "b: 1", "at '': additional properties 'b' not allowed"),
            (r#"{"properties":{"a":{"enum":["x"]}}}"#, "a: z", "at '/a': value must be 'x'"),
            (
                r##"{"properties":{"a":{"$ref":"#/definitions/p"}},"definitions":{"p":{"minimum":1}}}"##,
                "a: 0",
                "at '/a': minimum: got 0, want 1",
            ),
            (
                r#"{"properties":{"a":{"pattern":"^[a-z]+$"}}}"#,
                "a: A",
                "at '/a': 'A' does not match pattern '^[a-z]+$'",
            ),
            (
                r#"{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}"#,
                "a: 1.5",
                "at '/a': oneOf failed, none matched",
            ),
            (
                r#"{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}"#,
                "a: 1",
                "at '': missing property 'b'",
            ),
            (r#"{"properties":{"a":{"not":{}}}}"#, "a: 1", "at '/a': not failed"),
        ] {
            assert_eq!(problems(schema, values).unwrap(), [expected], "{schema}");
        }
        for (schema, values) in [
            (r#"{"properties":{"a":{"type":"integer"}}}"#, "a: 1.0"),
            (r#"{"properties":{"a":{"format":"ipv4"}}}"#, "a: x"),
            (r#"{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}"#, "x1: s"),
            (r#"{"anyOf":[{"required":["a"]},{"required":["b"]}]}"#, "b: 1"),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":false}}}"#,
                "a: 1",
            ),
        ] {
            assert_eq!(problems(schema, values).unwrap(), [] as [&str; 0], "{schema}");
        }
    }

    #[test]
    fn references_that_are_not_applied_may_lead_nowhere() {
        for schema in [
            r##"{"definitions":{"d":{"$ref":"#/none"}}}"##,
            r##"{"x-docs":{"$ref":"#/none"},"default":{"$ref":"#/none"}}"##,
            r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/d","not":{"$ref":"#/none"},"definitions":{"d":{}}}"##,
        ] {
            assert_eq!(problems(schema, "a: x").unwrap(), [] as [&str; 0], "{schema}");
        }
    }

    #[test]
    fn schemas_that_cannot_be_used_are_refused() {
        for schema in [
            r##"{"$ref":"#"}"##,
            r#"{"$ref":"https://example.com/x.json"}"#,
            "{",
            r#"{"properties":{"a":{"pattern":"("}}}"#,
            r#"{"unevaluatedProperties":false}"#,
            r#"{"$schema":"https://example.com/schema"}"#,
            // Where no value leads.
            r##"{"properties":{"b":{"items":{"$ref":"#/definitions/none"}}}}"##,
        ] {
            assert!(problems(schema, "a: x").is_err(), "{schema}");
        }
    }
}
