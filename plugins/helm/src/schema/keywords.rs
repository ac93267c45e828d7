//! What the keywords of a schema demand.

use serde_json::{Map, Value as Json};

use crate::functions::compile_pattern;

use super::{Checker, Draft, format};

/// Adds the problems of a value.
pub(super) fn check<'a>(
    checker: &mut Checker<'a>,
    keywords: &'a Map<String, Json>,
    value: &Json,
    place: &str,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let mut at = |problem: String| problems.push(format!("at '{place}': {problem}"));
    if let Some(wanted) = keywords.get("type") {
        let names: Vec<&str> = match wanted {
            Json::String(name) => vec![name],
            Json::Array(names) => names.iter().filter_map(Json::as_str).collect(),
            _ => return checker.refuse("a type of the schema is neither text nor a list"),
        };
        if !names.iter().any(|name| is_type(value, name)) {
            at(format!("got {}, want {}", kind(value), names.join(" or ")));
            // What else is wrong with a value of another type says nothing.
            return;
        }
    }
    if let Some(Json::Array(allowed)) = keywords.get("enum")
        && !allowed.iter().any(|one| equal(one, value))
    {
        at(match allowed.as_slice() {
            [one] => format!("value must be {}", shown(one)),
            many => format!("value must be one of {}", many.iter().map(shown).collect::<Vec<_>>().join(", ")),
        });
    }
    if let Some(constant) = keywords.get("const").filter(|_| checker.draft > Draft::Four)
        && !equal(constant, value)
    {
        at(format!("value must be {}", shown(constant)));
    }
    match value {
        Json::Number(number) => numbers(keywords, number.as_f64().unwrap_or_default(), &mut at),
        Json::String(text) => strings(checker, keywords, text, &mut at),
        Json::Array(items) => lists(checker, keywords, items, place, depth, problems),
        Json::Object(map) => maps(checker, keywords, map, place, depth, problems),
        Json::Null | Json::Bool(_) => {}
    }
    combined(checker, keywords, value, place, depth, problems);
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn is_type(value: &Json, name: &str) -> bool {
    match (name, value) {
        ("integer", Json::Number(number)) => number.as_f64().is_some_and(|value| value.fract() == 0.0),
        (name, value) => kind(value) == name,
    }
}

/// Numbers are equal by their value.
fn equal(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| equal(one, other)))
        }
        (one, other) => one == other,
    }
}

/// A text that equal values share.
pub(super) fn canonical(value: &Json) -> String {
    match value {
        Json::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        Json::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        other => other.to_string(),
    }
}

fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

fn limit(keywords: &Map<String, Json>, name: &str) -> Option<f64> {
    keywords.get(name).and_then(Json::as_f64)
}

fn count(keywords: &Map<String, Json>, name: &str) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    limit(keywords, name).map(|value| value.max(0.0) as usize)
}

fn numbers(keywords: &Map<String, Json>, value: f64, at: &mut impl FnMut(String)) {
    let exclusive = |name: &str| keywords.get(name) == Some(&Json::Bool(true));
    if let Some(least) = limit(keywords, "minimum")
        && (value < least || (value <= least && exclusive("exclusiveMinimum")))
    {
        at(format!("minimum: got {value}, want {least}"));
    }
    if let Some(most) = limit(keywords, "maximum")
        && (value > most || (value >= most && exclusive("exclusiveMaximum")))
    {
        at(format!("maximum: got {value}, want {most}"));
    }
    if let Some(least) = limit(keywords, "exclusiveMinimum").filter(|least| value <= *least) {
        at(format!("exclusiveMinimum: got {value}, want {least}"));
    }
    if let Some(most) = limit(keywords, "exclusiveMaximum").filter(|most| value >= *most) {
        at(format!("exclusiveMaximum: got {value}, want {most}"));
    }
    if let Some(step) = limit(keywords, "multipleOf").filter(|step| *step > 0.0) {
        let quotient = value / step;
        if (quotient - quotient.round()).abs() > 1e-9 * quotient.abs().max(1.0) {
            at(format!("multipleOf: got {value}, want {step}"));
        }
    }
}

fn strings(checker: &mut Checker<'_>, keywords: &Map<String, Json>, text: &str, at: &mut impl FnMut(String)) {
    let length = text.chars().count();
    if let Some(least) = count(keywords, "minLength").filter(|least| length < *least) {
        at(format!("minLength: got {length}, want {least}"));
    }
    if let Some(most) = count(keywords, "maxLength").filter(|most| length > *most) {
        at(format!("maxLength: got {length}, want {most}"));
    }
    if let Some(pattern) = keywords.get("pattern").and_then(Json::as_str) {
        match compile_pattern(pattern) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => at(format!("'{text}' does not match pattern '{pattern}'")),
            Err(error) => {
                checker.refuse(format!("the pattern {pattern:?} of the schema is not a regular expression: {error}"));
            }
        }
    }
    // Later drafts take formats for remarks.
    if checker.draft <= Draft::Seven
        && let Some(format) = keywords.get("format").and_then(Json::as_str)
        && !format::holds(format, text)
    {
        at(format!("'{text}' is not valid {format}"));
    }
}

fn lists<'a>(
    checker: &mut Checker<'a>,
    keywords: &'a Map<String, Json>,
    items: &[Json],
    place: &str,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let mut at = |problem: String| problems.push(format!("at '{place}': {problem}"));
    let length = items.len();
    if let Some(least) = count(keywords, "minItems").filter(|least| length < *least) {
        at(format!("minItems: got {length}, want {least}"));
    }
    if let Some(most) = count(keywords, "maxItems").filter(|most| length > *most) {
        at(format!("maxItems: got {length}, want {most}"));
    }
    if keywords.get("uniqueItems") == Some(&Json::Bool(true)) {
        checker.steps = checker.steps.saturating_add(length.saturating_mul(length) / 2);
        if checker.steps > super::MOST_STEPS {
            return checker.refuse("the schema is too costly: uniqueItems of a long list");
        }
        let twice = items.iter().enumerate().find_map(|(second, item)| {
            items.iter().take(second).position(|other| equal(other, item)).map(|first| (first, second))
        });
        if let Some((first, second)) = twice {
            at(format!("items at {first} and {second} are equal"));
        }
    }
    let prefix = keywords.get("prefixItems").filter(|_| checker.draft == Draft::Twenty);
    let (first, others) = match (prefix, keywords.get("items")) {
        (Some(Json::Array(first)), others) => (first.as_slice(), others),
        (_, Some(Json::Array(first))) => (first.as_slice(), keywords.get("additionalItems")),
        (_, others) => ([].as_slice(), others),
    };
    for (index, item) in items.iter().enumerate() {
        if let Some(schema) = first.get(index).or(others) {
            checker.check(schema, item, &format!("{place}/{index}"), depth + 1, problems);
        }
    }
    if let Some(schema) = keywords.get("contains").filter(|_| checker.draft > Draft::Four) {
        let is_bound = checker.draft >= Draft::Nineteen;
        let bound = |name: &str| count(keywords, name).filter(|_| is_bound);
        let found = items.iter().filter(|item| checker.is_valid(schema, item, place, depth + 1)).count();
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        if found < least || most.is_some_and(|most| found > most) {
            problems.push(format!("at '{place}': {found} items match the contains schema, want {least} or more"));
        }
    }
}

fn maps<'a>(
    checker: &mut Checker<'a>,
    keywords: &'a Map<String, Json>,
    map: &Map<String, Json>,
    place: &str,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let length = map.len();
    let mut at = |problem: String| problems.push(format!("at '{place}': {problem}"));
    if let Some(least) = count(keywords, "minProperties").filter(|least| length < *least) {
        at(format!("minProperties: got {length}, want {least}"));
    }
    if let Some(most) = count(keywords, "maxProperties").filter(|most| length > *most) {
        at(format!("maxProperties: got {length}, want {most}"));
    }
    let missing = |names: &Json| -> Vec<String> {
        let names = names.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Json::as_str);
        names.filter(|name| !map.contains_key(*name)).map(|name| format!("'{name}'")).collect()
    };
    if let Some(names) = keywords.get("required").map(missing).filter(|names| !names.is_empty()) {
        let word = if names.len() == 1 { "property" } else { "properties" };
        at(format!("missing {word} {}", names.join(", ")));
    }
    let patterns: Vec<(&str, &'a Json)> = match keywords.get("patternProperties") {
        Some(Json::Object(patterns)) => patterns.iter().map(|(pattern, schema)| (pattern.as_str(), schema)).collect(),
        _ => Vec::new(),
    };
    let mut compiled = Vec::new();
    for (pattern, schema) in patterns {
        match compile_pattern(pattern) {
            Ok(regex) => compiled.push((regex, schema)),
            Err(error) => {
                return checker
                    .refuse(format!("the pattern {pattern:?} of the schema is not a regular expression: {error}"));
            }
        }
    }
    let properties = keywords.get("properties").and_then(Json::as_object);
    let mut additional = Vec::new();
    for (key, value) in map {
        let inner = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
        let mut known = false;
        if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
            known = true;
            checker.check(schema, value, &inner, depth + 1, problems);
        }
        for (regex, schema) in &compiled {
            if regex.is_match(key) {
                known = true;
                checker.check(schema, value, &inner, depth + 1, problems);
            }
        }
        match keywords.get("additionalProperties") {
            Some(Json::Bool(false)) if !known => additional.push(format!("'{key}'")),
            Some(schema) if !known => checker.check(schema, value, &inner, depth + 1, problems),
            _ => {}
        }
        if let Some(schema) = keywords.get("propertyNames").filter(|_| checker.draft > Draft::Four)
            && !checker.is_valid(schema, &Json::from(key.as_str()), place, depth + 1)
        {
            problems.push(format!("at '{place}': invalid propertyName '{key}'"));
        }
    }
    if !additional.is_empty() {
        problems.push(format!("at '{place}': additional properties {} not allowed", additional.join(", ")));
    }
    let names: &[&str] = match checker.draft {
        Draft::Four | Draft::Six | Draft::Seven => &["dependencies"],
        Draft::Nineteen | Draft::Twenty => &["dependencies", "dependentRequired", "dependentSchemas"],
    };
    for name in names {
        let Some(Json::Object(demands)) = keywords.get(*name) else { continue };
        for (key, demand) in demands.iter().filter(|(key, _)| map.contains_key(*key)) {
            if let Json::Array(_) = demand {
                let names = missing(demand);
                if !names.is_empty() {
                    problems.push(format!("at '{place}': properties {} required, if '{key}' exists", names.join(", ")));
                }
            } else {
                checker.check(demand, &Json::Object(map.clone()), place, depth + 1, problems);
            }
        }
    }
}

fn combined<'a>(
    checker: &mut Checker<'a>,
    keywords: &'a Map<String, Json>,
    value: &Json,
    place: &str,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let schemas = |name: &str| keywords.get(name).and_then(Json::as_array).map(Vec::as_slice);
    for schema in schemas("allOf").unwrap_or_default() {
        checker.check(schema, value, place, depth + 1, problems);
    }
    if let Some(schemas) = schemas("anyOf") {
        let mut reasons = Vec::new();
        let mut any = false;
        for schema in schemas {
            let before = reasons.len();
            checker.check(schema, value, place, depth + 1, &mut reasons);
            if reasons.len() == before {
                any = true;
                break;
            }
        }
        if !any {
            problems.push(format!("at '{place}': anyOf failed"));
            problems.append(&mut reasons);
        }
    }
    if let Some(schemas) = schemas("oneOf") {
        let valid = schemas.iter().filter(|schema| checker.is_valid(schema, value, place, depth + 1)).count();
        match valid {
            1 => {}
            0 => problems.push(format!("at '{place}': oneOf failed, none matched")),
            _ => problems.push(format!("at '{place}': oneOf failed, {valid} matched")),
        }
    }
    if let Some(schema) = keywords.get("not")
        && checker.is_valid(schema, value, place, depth + 1)
    {
        problems.push(format!("at '{place}': not failed"));
    }
    if let Some(schema) = keywords.get("if").filter(|_| checker.draft > Draft::Six) {
        let branch = if checker.is_valid(schema, value, place, depth + 1) { "then" } else { "else" };
        if let Some(schema) = keywords.get(branch) {
            checker.check(schema, value, place, depth + 1, problems);
        }
    }
}
