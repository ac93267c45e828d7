//! Whether a schema is one: what the schemas of JSON Schema's versions demand of the keywords, in each place of a schema, also where no value
//! leads. Helm refuses a chart whose schema is wrong.

use serde_json::{Map, Value as Json};

use crate::functions::compile_pattern;

use super::{Draft, MOST_DEEP};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// What a keyword's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Schema,
    /// A list of schemas, not empty.
    Schemas,
    /// A schema, or a list of them.
    SchemaOrSchemas,
    /// Schemas by names.
    SchemaMap,
    /// Schemas by regular expressions.
    PatternMap,
    /// By names, schemas or lists of names.
    Dependencies,
    /// By names, lists of names.
    NamesMap,
    Text,
    /// A text without a fragment.
    Id,
    Anchor,
    Pattern,
    Bool,
    Number,
    Positive,
    Count,
    Names,
    Type,
    List,
    Enum,
}

fn shape(draft: Draft, keyword: &str) -> Option<Shape> {
    use Draft::{Four, Nineteen, Seven, Six, Twenty};
    Some(match keyword {
        "title" | "description" | "$schema" | "$ref" | "format" => Shape::Text,
        "id" if draft == Four => Shape::Text,
        "$id" if draft >= Nineteen => Shape::Id,
        "$id" if draft >= Six => Shape::Text,
        "$comment" | "contentMediaType" | "contentEncoding" if draft >= Seven => Shape::Text,
        "$anchor" if draft >= Nineteen => Shape::Anchor,
        "$dynamicAnchor" if draft == Twenty => Shape::Anchor,
        "$dynamicRef" if draft == Twenty => Shape::Text,
        "$recursiveRef" if draft >= Nineteen => Shape::Text,
        "$recursiveAnchor" if draft == Nineteen => Shape::Bool,
        "readOnly" | "writeOnly" if draft >= Seven => Shape::Bool,
        "deprecated" if draft >= Nineteen => Shape::Bool,
        "examples" if draft >= Seven => Shape::List,
        "multipleOf" => Shape::Positive,
        "exclusiveMaximum" | "exclusiveMinimum" if draft == Four => Shape::Bool,
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => Shape::Number,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => Shape::Count,
        "maxContains" | "minContains" if draft >= Nineteen => Shape::Count,
        "pattern" => Shape::Pattern,
        "uniqueItems" => Shape::Bool,
        "required" => Shape::Names,
        "enum" => Shape::Enum,
        "type" => Shape::Type,
        "additionalItems" if draft <= Nineteen => Shape::Schema,
        "items" if draft <= Nineteen => Shape::SchemaOrSchemas,
        "items" | "additionalProperties" | "not" => Shape::Schema,
        "contains" | "propertyNames" if draft >= Six => Shape::Schema,
        "if" | "then" | "else" if draft >= Seven => Shape::Schema,
        "unevaluatedItems" | "unevaluatedProperties" | "contentSchema" if draft >= Nineteen => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" => Shape::Schemas,
        "prefixItems" if draft == Twenty => Shape::Schemas,
        "definitions" | "properties" => Shape::SchemaMap,
        "$defs" | "dependentSchemas" if draft >= Nineteen => Shape::SchemaMap,
        "patternProperties" => Shape::PatternMap,
        "dependencies" => Shape::Dependencies,
        "dependentRequired" if draft >= Nineteen => Shape::NamesMap,
        _ => return None,
    })
}

/// The schemas in the value of a keyword, each with its place in it.
pub(super) fn inner<'a>(draft: Draft, keyword: &str, value: &'a Json) -> Vec<(String, &'a Json)> {
    let listed = |(index, schema): (usize, &'a Json)| (format!("/{index}"), schema);
    let named = |(key, schema): (&'a String, &'a Json)| (format!("/{key}"), schema);
    match (shape(draft, keyword), value) {
        (Some(Shape::Schema | Shape::SchemaOrSchemas), Json::Object(_) | Json::Bool(_)) => vec![(String::new(), value)],
        (Some(Shape::Schemas | Shape::SchemaOrSchemas), Json::Array(items)) => {
            items.iter().enumerate().map(listed).collect()
        }
        (Some(Shape::SchemaMap | Shape::PatternMap), Json::Object(map)) => map.iter().map(named).collect(),
        (Some(Shape::Dependencies), Json::Object(map)) => {
            map.iter().filter(|(_, value)| !value.is_array()).map(named).collect()
        }
        _ => Vec::new(),
    }
}

/// Checks a schema, and all schemas in it.
///
/// # Errors
/// The first wrong keyword, with its place.
pub(super) fn check(schema: &Json, draft: Draft) -> Result<(), String> {
    check_at(schema, draft, draft > Draft::Four, "", 0)
}

fn check_at(schema: &Json, draft: Draft, may_be_bool: bool, place: &str, depth: usize) -> Result<(), String> {
    if depth > MOST_DEEP {
        return Err(format!("the schema is nested more than {MOST_DEEP} levels deep"));
    }
    let keywords = match schema {
        Json::Object(keywords) => keywords,
        Json::Bool(_) if may_be_bool => return Ok(()),
        _ => return Err(format!("the schema is not valid: at '{place}': neither an object nor a boolean")),
    };
    if draft == Draft::Four {
        for (exclusive, limit) in [("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")] {
            if keywords.contains_key(exclusive) && !keywords.contains_key(limit) {
                return Err(format!("the schema is not valid: at '{place}': {exclusive} without {limit}"));
            }
        }
    }
    for (keyword, value) in keywords {
        let Some(shape) = shape(draft, keyword) else { continue };
        if let Some(wrong) = wrong(shape, draft, value) {
            return Err(format!("the schema is not valid: at '{place}/{keyword}': {wrong}"));
        }
        // In draft 4 only additionalItems and additionalProperties take one.
        let may_be_bool = draft > Draft::Four || matches!(keyword.as_str(), "additionalItems" | "additionalProperties");
        for (key, schema) in inner(draft, keyword, value) {
            check_at(schema, draft, may_be_bool, &format!("{place}/{keyword}{key}"), depth + 1)?;
        }
    }
    Ok(())
}

fn wrong(shape: Shape, draft: Draft, value: &Json) -> Option<String> {
    let want = |holds: bool, what: &str| (!holds).then(|| format!("{} is not {what}", short(value)));
    match shape {
        // Its own faults are found where it is checked as a schema.
        Shape::Schema => want(value.is_object() || value.is_boolean(), "a schema"),
        Shape::SchemaOrSchemas if !value.is_array() => want(value.is_object() || value.is_boolean(), "a schema"),
        Shape::Schemas | Shape::SchemaOrSchemas => {
            want(value.as_array().is_some_and(|items| !items.is_empty()), "a list of schemas")
        }
        Shape::SchemaMap => want(value.is_object(), "an object"),
        Shape::PatternMap => match value {
            // Drafts 4 and 6 do not say so, but the patterns are compiled.
            Json::Object(map) => map.keys().find_map(|pattern| not_a_pattern(pattern)),
            _ => want(false, "an object"),
        },
        Shape::Dependencies => by_names(value, |value| !value.is_array() || is_names(value, draft)),
        Shape::NamesMap => by_names(value, |value| is_names(value, draft)),
        Shape::Text => want(value.is_string(), "a text"),
        Shape::Id => want(
            value.as_str().is_some_and(|id| id.find('#').is_none_or(|at| at + 1 == id.len())),
            "a URL without a fragment",
        ),
        Shape::Anchor => want(value.as_str().is_some_and(|name| is_anchor(name, draft)), "an anchor"),
        Shape::Pattern => match value {
            Json::String(pattern) => not_a_pattern(pattern),
            _ => want(false, "a text"),
        },
        Shape::Bool => want(value.is_boolean(), "a boolean"),
        Shape::Number => want(value.is_number(), "a number"),
        Shape::Positive => want(value.as_f64().is_some_and(|value| value > 0.0), "a number above 0"),
        Shape::Count => want(value.as_f64().is_some_and(|value| value >= 0.0 && value.fract() == 0.0), "a count"),
        Shape::Names => want(is_names(value, draft), "a list of different texts"),
        Shape::Type => match value {
            Json::Array(types) => {
                want(!types.is_empty() && types.iter().all(is_type) && differ(types), "a list of types")
            }
            one => want(is_type(one), "a type"),
        },
        Shape::List => want(value.is_array(), "a list"),
        Shape::Enum => match value {
            Json::Array(items) if draft <= Draft::Seven => {
                want(!items.is_empty() && differ(items), "a list of different values")
            }
            value => want(value.is_array(), "a list"),
        },
    }
}

fn by_names(value: &Json, holds: impl Fn(&Json) -> bool) -> Option<String> {
    let map: Option<&Map<String, Json>> = value.as_object();
    let wrong = map.is_none_or(|map| !map.values().all(holds));
    wrong.then(|| format!("{} is not an object with lists of different texts", short(value)))
}

/// The begin of a value.
fn short(value: &Json) -> String {
    value.to_string().chars().take(100).collect()
}

fn not_a_pattern(pattern: &str) -> Option<String> {
    compile_pattern(pattern).err().map(|error| format!("{pattern:?} is not a regular expression: {error}"))
}

fn is_anchor(name: &str, draft: Draft) -> bool {
    let (first, further): (&[u8], &[u8]) = if draft == Draft::Nineteen { (b"", b"-.:_") } else { (b"_", b"-._") };
    let is = |byte: u8, others: &[u8], digits: bool| {
        byte.is_ascii_alphabetic() || others.contains(&byte) || (digits && byte.is_ascii_digit())
    };
    name.bytes().enumerate().all(|(at, byte)| if at == 0 { is(byte, first, false) } else { is(byte, further, true) })
        && !name.is_empty()
}

fn is_type(value: &Json) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_names(value: &Json, draft: Draft) -> bool {
    let Json::Array(names) = value else { return false };
    names.iter().all(Json::is_string) && differ(names) && !(draft == Draft::Four && names.is_empty())
}

/// Whether no two values are equal.
fn differ(values: &[Json]) -> bool {
    let mut seen = std::collections::HashSet::new();
    values.iter().all(|value| seen.insert(super::keywords::canonical(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_the_shape_of_their_draft() {
        use Draft::{Four, Nineteen, Seven, Six, Twenty};
        for (schema, valid) in [
            (r##"{"properties":{"a":{"$id":"#/properties/a"}}}"##, [true, true, true, false, false]),
            (r#"{"$id":"https://example.com/a#"}"#, [true; 5]),
            (r#"{"$id":5}"#, [true, false, false, false, false]),
            (r#"{"items":[{"type":"string"}]}"#, [true, true, true, true, false]),
            (r#"{"minimum":1,"exclusiveMinimum":true}"#, [true, false, false, false, false]),
            (r#"{"exclusiveMinimum":1}"#, [false, true, true, true, true]),
            (r#"{"exclusiveMinimum":true}"#, [false; 5]),
            (r#"{"required":true}"#, [false; 5]),
            (r#"{"required":[]}"#, [false, true, true, true, true]),
            (r#"{"required":["a","a"]}"#, [false; 5]),
            (r#"{"definitions":{"d":{"type":"text"}}}"#, [false; 5]),
            (r#"{"type":["string","string"]}"#, [false; 5]),
            (r#"{"enum":[1,1.0]}"#, [false, false, false, true, true]),
            (r#"{"properties":{"a":true}}"#, [false, true, true, true, true]),
            (r#"{"additionalProperties":false}"#, [true; 5]),
            (r#"{"properties":{"additionalProperties":false}}"#, [false, true, true, true, true]),
            (r#"{"properties":{"additionalItems":{"additionalItems":true}}}"#, [true; 5]),
            (r#"{"properties":[]}"#, [false; 5]),
            (r#"{"allOf":[]}"#, [false; 5]),
            (r#"{"properties":{"a":{"pattern":"(?!x)"}}}"#, [false; 5]),
            (r#"{"patternProperties":{"(":{}}}"#, [false; 5]),
            (r#"{"if":5}"#, [true, true, false, false, false]),
            (r#"{"$defs":{"a":5}}"#, [true, true, true, false, false]),
            (r#"{"description":["a"]}"#, [false; 5]),
            (r#"{"minLength":-1}"#, [false; 5]),
            (r#"{"dependencies":{"a":["b"],"c":{}}}"#, [true; 5]),
            (r#"{"$anchor":"1"}"#, [true, true, true, false, false]),
            (r#"{"x-anything":{"type":5},"default":{"type":5}}"#, [true; 5]),
        ] {
            let parsed: Json = serde_json::from_str(schema).unwrap();
            let found = [Four, Six, Seven, Nineteen, Twenty].map(|draft| check(&parsed, draft).is_ok());
            assert_eq!(found, valid, "{schema}");
        }
        let error = check(&serde_json::json!({"properties": {"a": {"items": {"type": "x"}}}}), Twenty).unwrap_err();
        assert_eq!(error, "the schema is not valid: at '/properties/a/items/type': \"x\" is not a type");
    }
}
