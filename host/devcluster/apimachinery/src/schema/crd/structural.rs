//! The rules of structural schemas.
//!
//! Source: "Specifying a structural schema" in the Kubernetes documentation of CustomResourceDefinitions, and
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`.

use serde_json::{Map, Value};

use crate::schema::{error::FieldError, model::Pattern, path::FieldPath, validate::validate_at};

/// Deepest nesting that is checked.
const DEEPEST: usize = 200;
/// Keywords that JSON schema has and CRDs may not use.
const FORBIDDEN: &[&str] = &[
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "$ref",
];
/// Structural keywords, which are not allowed inside `allOf`, `anyOf`, `oneOf` and `not`.
const STRUCTURE: &[&str] = &[
    "type",
    "title",
    "description",
    "default",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Reports where a schema is not structural; `path` is the path of `openAPIV3Schema`.
pub(super) fn check(schema: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if let Some(found) = schema.get("type").and_then(Value::as_str).filter(|found| *found != "object") {
        errors.push(FieldError::invalid(&path.field("type"), found, "must be object at the root"));
    } else if schema.get("type").is_none() && !schema.as_object().is_some_and(is_any) {
        errors.push(FieldError::required(&path.field("type"), "must not be empty at the root"));
    }
    node(schema, path, 0, errors);
}

fn node(schema: &Value, path: &FieldPath<'_>, depth: usize, errors: &mut Vec<FieldError>) {
    let Some(object) = schema.as_object() else { return };
    if depth > DEEPEST {
        errors.push(FieldError::forbidden(path, format!("schemas may nest at most {DEEPEST} levels")));
        return;
    }
    forbidden(object, path, errors);
    types(object, path, depth, errors);
    lists(object, path, errors);
    values(object, path, errors);
    combinations(object, path, errors);
    rules(object, path, errors);
    let properties = path.field("properties");
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        node(property, &properties.key(name), depth + 1, errors);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = object.get(name) {
            node(child, &path.field(name), depth + 1, errors);
        }
    }
}

/// Whether a value of no type in particular is meant.
fn is_any(object: &Map<String, Value>) -> bool {
    flag(object, "x-kubernetes-int-or-string") || flag(object, "x-kubernetes-preserve-unknown-fields")
}

fn flag(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name) == Some(&Value::Bool(true))
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn forbidden(object: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for name in FORBIDDEN {
        if object.contains_key(*name) {
            errors.push(FieldError::forbidden(&path.field(name), format!("{name} is not supported")));
        }
    }
    if flag(object, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.field("uniqueItems"), detail));
    }
    let extra = object.get("additionalProperties");
    if extra == Some(&Value::Bool(false)) {
        let detail = "additionalProperties cannot be set to false";
        errors.push(FieldError::forbidden(&path.field("additionalProperties"), detail));
    } else if extra.is_some()
        && object.get("properties").and_then(Value::as_object).is_some_and(|known| !known.is_empty())
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&path.field("additionalProperties"), detail));
    }
    if object.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(&path.field("items"), "items must be a schema object and not an array"));
    }
}

fn types(object: &Map<String, Value>, path: &FieldPath<'_>, depth: usize, errors: &mut Vec<FieldError>) {
    let (found, type_path) = (text(object, "type"), path.field("type"));
    let int_or_string = flag(object, "x-kubernetes-int-or-string");
    let preserve = flag(object, "x-kubernetes-preserve-unknown-fields");
    match found {
        "" if int_or_string || preserve || depth == 0 => {}
        "" => errors.push(FieldError::required(&type_path, "must not be empty for specified object fields")),
        "array" if !object.contains_key("items") => {
            errors.push(FieldError::required(&path.field("items"), "must be specified"));
        }
        "array" | "boolean" | "integer" | "number" | "object" | "string" => {}
        other => {
            let supported = ["array", "boolean", "integer", "number", "object", "string"];
            errors.push(FieldError::not_supported(&type_path, other, supported));
        }
    }
    if int_or_string && !found.is_empty() {
        let detail = "must be empty if x-kubernetes-int-or-string is true";
        errors.push(FieldError::invalid(&type_path, found, detail));
    }
    if flag(object, "x-kubernetes-embedded-resource") {
        if found != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(FieldError::invalid(&type_path, found, detail));
        }
        let known = object.get("properties").and_then(Value::as_object).is_some_and(|known| !known.is_empty());
        if !preserve && !known {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            errors.push(FieldError::required(&path.field("properties"), detail));
        }
    }
    if object.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(&path.field("x-kubernetes-preserve-unknown-fields"), false, detail));
    }
}

fn lists(object: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let type_path = path.field("x-kubernetes-list-type");
    let keys_path = path.field("x-kubernetes-list-map-keys");
    let keys: Vec<&str> = object
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let list_type = text(object, "x-kubernetes-list-type");
    match list_type {
        "" | "atomic" | "set" if !keys.is_empty() => {
            errors.push(FieldError::forbidden(&keys_path, "must be empty if x-kubernetes-list-type is not map"));
        }
        "" | "atomic" | "set" => {}
        "map" if keys.is_empty() => {
            errors.push(FieldError::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
        }
        "map" => {
            let distinct: std::collections::HashSet<&&str> = keys.iter().collect();
            if distinct.len() != keys.len() {
                errors.push(FieldError::invalid(&keys_path, keys.clone(), "must not contain duplicate entries"));
            }
            map_keys(object, &keys, path, errors);
        }
        other => errors.push(FieldError::not_supported(&type_path, other, ["atomic", "map", "set"])),
    }
    if !list_type.is_empty() && text(object, "type") != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        errors.push(FieldError::invalid(&path.field("type"), text(object, "type"), detail));
    }
    let item = object.get("items").and_then(Value::as_object);
    if let Some(item) = item.filter(|item| list_type == "set" && text(item, "type") == "object")
        && text(item, "x-kubernetes-map-type") != "atomic"
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let found = item.get("x-kubernetes-map-type").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.field("items").field("x-kubernetes-map-type"), found, detail));
    }
    if !text(object, "x-kubernetes-map-type").is_empty() && text(object, "type") != "object" {
        let detail = "must be object if x-kubernetes-map-type is specified";
        errors.push(FieldError::invalid(&path.field("type"), text(object, "type"), detail));
    }
    match text(object, "x-kubernetes-map-type") {
        "" | "atomic" | "granular" => {}
        other => {
            errors.push(FieldError::not_supported(&path.field("x-kubernetes-map-type"), other, ["atomic", "granular"]));
        }
    }
}

fn map_keys(object: &Map<String, Value>, keys: &[&str], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let items = object.get("items").and_then(Value::as_object);
    let items_path = path.field("items");
    let properties_path = items_path.field("properties");
    let properties = items.and_then(|items| items.get("properties")).and_then(Value::as_object);
    let required = items.and_then(|items| items.get("required")).and_then(Value::as_array);
    for (index, key) in keys.iter().enumerate() {
        let keys_path = path.field("x-kubernetes-list-map-keys");
        let Some(property) = properties.and_then(|properties| properties.get(*key)) else {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(&keys_path.index(index), *key, detail));
            continue;
        };
        if matches!(property.get("type").and_then(Value::as_str), Some("array" | "object")) {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            let found = property.get("type").cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&properties_path.key(key).field("type"), found, detail));
        }
        let named = required.is_some_and(|required| required.iter().any(|required| required == key));
        if !named && property.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&properties_path.key(key).field("default"), detail));
        }
    }
}

fn values(object: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if let Some(pattern) = object.get("pattern").and_then(Value::as_str)
        && Pattern::new(pattern).compiled().is_none()
    {
        let detail = format!("must be a valid regular expression, but isn't: {pattern:?}");
        errors.push(FieldError::invalid(&path.field("pattern"), pattern, detail));
    }
    if let Some(default) = object.get("default") {
        let Ok(schema) = crate::schema::parse::part(&Value::Object(object.clone())) else { return };
        // Rules are omitted: they would need the rest of the object.
        errors.extend(validate_at(&schema, default, None, &path.field("default")));
    }
}

fn combinations(object: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for name in ["allOf", "anyOf", "oneOf"] {
        let branches_path = path.field(name);
        for (index, branch) in object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            branch_node(object, branch, &branches_path.index(index), 0, errors);
        }
    }
    if let Some(branch) = object.get("not") {
        branch_node(object, branch, &path.field("not"), 0, errors);
    }
}

/// Checks a member of a combination: values only, no structure, and no property that the structure outside does not have.
fn branch_node(
    outside: &Map<String, Value>,
    branch: &Value,
    path: &FieldPath<'_>,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    let Some(object) = branch.as_object() else { return };
    if depth > DEEPEST {
        return;
    }
    let int_or_string = flag(outside, "x-kubernetes-int-or-string");
    for name in STRUCTURE {
        // `anyOf: [{type: integer}, {type: string}]` is how an int-or-string is usually written.
        if object.contains_key(*name) && !(*name == "type" && int_or_string) {
            errors.push(FieldError::forbidden(&path.field(name), "must be undefined to be structural"));
        }
    }
    let known = outside.get("properties").and_then(Value::as_object);
    let properties_path = path.field("properties");
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let child = properties_path.key(name);
        match known.and_then(|known| known.get(name)).and_then(Value::as_object) {
            Some(outside) => branch_node(outside, property, &child, depth + 1, errors),
            None if flag(outside, "x-kubernetes-preserve-unknown-fields") => {}
            None => errors.push(FieldError::required(&child, format!("because it is defined in {child}"))),
        }
    }
    if let (Some(items), Some(outside)) = (object.get("items"), outside.get("items").and_then(Value::as_object)) {
        branch_node(outside, items, &path.field("items"), depth + 1, errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let branches_path = path.field(name);
        for (index, nested) in object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            branch_node(outside, nested, &branches_path.index(index), depth + 1, errors);
        }
    }
}

/// Whether a path such as `.a.b` or `.a['b.c']` leads to a known property.
fn leads_somewhere(object: &Map<String, Value>, path: &str) -> bool {
    let mut rest = path;
    let mut schema = Some(object);
    while !rest.is_empty() {
        let (name, after) = match (rest.strip_prefix("['"), rest.strip_prefix('.')) {
            (Some(quoted), _) => match quoted.split_once("']") {
                Some(split) => split,
                None => return false,
            },
            (None, Some(plain)) => plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len())),
            (None, None) => return false,
        };
        let properties = schema.and_then(|schema| schema.get("properties"));
        let found = properties.and_then(|properties| properties.get(name));
        let values = schema.and_then(|schema| schema.get("additionalProperties"));
        schema = found.or(values).and_then(Value::as_object);
        if schema.is_none() {
            return false;
        }
        rest = after;
    }
    true
}

fn rules(object: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let rules_path = path.field("x-kubernetes-validations");
    let parsed = crate::schema::parse::rules(object);
    for (index, rule) in parsed.iter().enumerate() {
        let path = rules_path.index(index);
        if rule.rule.trim().is_empty() {
            errors.push(FieldError::required(&path.field("rule"), "rule is not specified"));
        } else if let Err(error) = crate::schema::expression::compile(&rule.rule, rule.message_expression.as_deref()) {
            let detail = format!("compilation failed: {error}");
            errors.push(FieldError::invalid(&path.field("rule"), rule.rule.as_str(), detail));
        }
        if rule.optional_old_self && !rule.rule.contains("oldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(&path.field("optionalOldSelf"), true, detail));
        }
        if let Some(field) =
            rule.field_path.as_deref().filter(|field| !field.is_empty() && !leads_somewhere(object, field))
        {
            errors.push(FieldError::invalid(&path.field("fieldPath"), field, "must be a valid path"));
        }
        if rule.message.as_deref().is_some_and(|message| message.contains('\n')) {
            errors.push(FieldError::invalid(
                &path.field("message"),
                rule.message.clone().unwrap_or_default(),
                "message must not contain line breaks",
            ));
        }
        let reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !reasons.contains(reason)) {
            errors.push(FieldError::not_supported(&path.field("reason"), reason, reasons));
        }
    }
}
