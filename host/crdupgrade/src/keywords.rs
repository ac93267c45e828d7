//! Compares one level of a schema keyword by keyword. Fields, items and values of maps are levels of their own.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    Enforcement, Rule,
    change::Change,
    combinations,
    finding::{
        Effect::{self, Alters, Loosens, Tightens},
        shown,
    },
    validations,
};

/// The keywords that contain further levels.
pub(crate) const CHILDREN: [&str; 3] = ["properties", "items", "additionalProperties"];

/// The changes from one level to the other. The levels below are left out, except those named in `opaque`.
pub(crate) fn compare(old: &Map<String, Value>, new: &Map<String, Value>, opaque: bool) -> Vec<Change> {
    let keywords: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    let mut changes = Vec::new();
    for keyword in keywords {
        if CHILDREN.contains(&keyword) && !opaque {
            continue;
        }
        let (before, after) = (said(old, keyword), said(new, keyword));
        if !same(before, after) {
            changes.extend(changed(keyword, old, new, before, after));
        }
    }
    changes.sort_by(|a, b| (a.rule, &a.message).cmp(&(b.rule, &b.message)));
    changes
}

/// The value of a keyword, or `None` if it equals the default.
pub(crate) fn said<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Value> {
    let value = schema.get(keyword)?;
    let silent = match value {
        Value::Null => true,
        // `additionalProperties: false` differs from its absence, but not on this level.
        Value::Bool(flag) => !flag && keyword != "additionalProperties" && keyword != "default",
        Value::String(text) if keyword == "x-kubernetes-list-type" => text == "atomic",
        Value::String(text) if keyword == "x-kubernetes-map-type" => text == "granular",
        Value::String(text) => text.is_empty() && keyword != "default",
        Value::Array(list) => list.is_empty() && keyword != "default",
        _ => false,
    };
    (!silent).then_some(value)
}

/// Whether two values are equal: `1` and `1.0` are.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// The changes of one keyword.
pub(crate) fn changed(
    keyword: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Vec<Change> {
    let plain = |rule, effect| one(Change::new(rule, effect, arrow(rule.name(), before, after)), before, after);
    let unhandled_change =
        |rule, effect| one(Change::new(rule, effect, unhandled(keyword, before, after)), before, after);
    match keyword {
        "type" => plain_type(new, before, after),
        "required" => required(before, after),
        "enum" => enumeration(before, after),
        "default" => one(default(before, after), before, after),
        "nullable" => {
            let (verb, effect) = if after.is_some() { ("added", Loosens) } else { ("removed", Tightens) };
            let flag = |value: Option<&Value>| value.is_some();
            let message = format!("nullable {verb} : {} -> {}", flag(before), flag(after));
            one(Change::new(Rule::Nullable, effect, message), before, after)
        }
        "pattern" => {
            one(Change::new(Rule::Pattern, addition(before, after), arrow("pattern", before, after)), before, after)
        }
        "maximum" => bound(Rule::Maximum, "maximum", before, after),
        "maxItems" => bound(Rule::MaxItems, "maximum", before, after),
        "maxLength" => bound(Rule::MaxLength, "maximum", before, after),
        "maxProperties" => bound(Rule::MaxProperties, "maximum", before, after),
        "minimum" => bound(Rule::Minimum, "minimum", before, after),
        "minItems" => bound(Rule::MinItems, "minimum", before, after),
        "minLength" => bound(Rule::MinLength, "minimum", before, after),
        "minProperties" => bound(Rule::MinProperties, "minimum", before, after),
        "oneOf" => combinations::one_of(before, after),
        "anyOf" => combinations::any_of(before, after),
        "allOf" => combinations::all_of(before, after),
        "not" => combinations::not(before, after),
        "description" | "title" | "example" | "externalDocs" => plain(Rule::Description, Alters)
            .into_iter()
            .map(|change| Change { message: format!("{keyword} changed"), ..change.by_default(Enforcement::None) })
            .collect(),
        "format" => unhandled_change(Rule::Format, addition(before, after)),
        "x-kubernetes-validations" => validations::compare(before, after),
        "x-kubernetes-preserve-unknown-fields" => {
            unhandled_change(Rule::PreserveUnknownFields, reversed(addition(before, after)))
        }
        "x-kubernetes-int-or-string" => {
            let effect = match old.get("type").and_then(Value::as_str) {
                Some("integer" | "string") if after.is_some() => Loosens,
                _ if after.is_none() => Tightens,
                _ => Alters,
            };
            unhandled_change(Rule::IntOrString, effect)
        }
        "x-kubernetes-embedded-resource" => unhandled_change(Rule::EmbeddedResource, addition(before, after)),
        "x-kubernetes-list-type" | "x-kubernetes-list-map-keys" => {
            unhandled_change(Rule::ListType, addition(before, after))
        }
        "x-kubernetes-map-type" => unhandled_change(Rule::MapType, Alters),
        "multipleOf" => unhandled_change(Rule::MultipleOf, addition(before, after)),
        "exclusiveMaximum" => unhandled_change(Rule::ExclusiveMaximum, addition(before, after)),
        "exclusiveMinimum" => unhandled_change(Rule::ExclusiveMinimum, addition(before, after)),
        "uniqueItems" => unhandled_change(Rule::UniqueItems, addition(before, after)),
        "additionalProperties" => unhandled_change(Rule::AdditionalProperties, Alters),
        _ => unhandled_change(Rule::Unhandled, Alters),
    }
}

fn one(change: Change, before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    vec![change.of(before, after)]
}

/// The effect of adding, removing or changing a condition.
pub(crate) fn addition(before: Option<&Value>, after: Option<&Value>) -> Effect {
    match (before, after) {
        (None, Some(_)) => Tightens,
        (Some(_), None) => Loosens,
        _ => Alters,
    }
}

fn reversed(effect: Effect) -> Effect {
    match effect {
        Tightens => Loosens,
        Loosens => Tightens,
        Alters => Alters,
    }
}

/// `pattern changed : "a" -> "b"`
fn arrow(what: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    let verb = match (before, after) {
        (None, Some(_)) => "added",
        (Some(_), None) => "removed",
        _ => "changed",
    };
    let text = |value: Option<&Value>| value.map_or_else(|| "\"\"".to_owned(), shown);
    format!("{what} {verb} : {} -> {}", text(before), text(after))
}

/// `unhandled changes found (format "a" -> "b")`: the message of crdify for all changes without a rule.
pub(crate) fn unhandled(keyword: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "<empty>".to_owned(), shown);
    format!("unhandled changes found ({keyword} {} -> {})", text(before), text(after))
}

fn plain_type(new: &Map<String, Value>, before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let name = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let either = new.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let effect = match (name(before).as_str(), name(after).as_str()) {
        ("integer", "number") => Loosens,
        ("integer" | "string", "") if either => Loosens,
        ("", _) => Tightens,
        _ => Alters,
    };
    let message = format!("type changed : {:?} -> {:?}", name(before), name(after));
    one(Change::new(Rule::Type, effect, message), before, after)
}

fn texts(value: Option<&Value>) -> BTreeSet<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn required(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let (old, new) = (texts(before), texts(after));
    let added: Vec<&str> = new.difference(&old).copied().collect();
    if added.is_empty() {
        return Vec::new();
    }
    let message = format!("new required fields: [{}]", added.join(" "));
    one(Change::new(Rule::Required, Tightens, message), before, after)
}

fn enumeration(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let values = |value: Option<&Value>| -> Vec<Value> { value.and_then(Value::as_array).cloned().unwrap_or_default() };
    let (old, new) = (values(before), values(after));
    let lacking = |of: &[Value], from: &[Value]| {
        let lacking = of.iter().filter(|value| !from.iter().any(|other| same(Some(value), Some(other))));
        let texts: BTreeSet<String> = lacking.map(shown).collect();
        texts
    };
    let (removed, added) = (lacking(&old, &new), lacking(&new, &old));
    let list = |texts: &BTreeSet<String>| texts.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let change = |effect, message: &str, texts: &BTreeSet<String>| {
        Change::new(Rule::Enum, effect, format!("{message} : [{}]", list(texts))).of(before, after)
    };
    if before.is_none() {
        vec![change(Tightens, "enum constraint added when there was none previously", &added)]
    } else if after.is_none() {
        vec![change(Loosens, "enum constraint removed, with allowed enum values removed", &removed)]
    } else if !removed.is_empty() {
        vec![change(Tightens, "allowed enum values removed", &removed)]
    } else if !added.is_empty() {
        vec![change(Loosens, "allowed enum values added", &added).by_default(Enforcement::None)]
    } else {
        Vec::new()
    }
}

fn default(before: Option<&Value>, after: Option<&Value>) -> Change {
    let message = match (before, after) {
        (None, Some(new)) => format!("default added when there was none previously : {}", shown(new)),
        (Some(old), None) => format!("default value removed : {}", shown(old)),
        (old, new) => {
            let text = |value: Option<&Value>| value.map(shown).unwrap_or_default();
            format!("default value changed : {} -> {}", text(old), text(new))
        }
    };
    Change::new(Rule::Default, Alters, message)
}

/// A bound that was loosened or removed is not a finding.
fn bound(rule: Rule, what: &str, before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let Some(new) = after else { return Vec::new() };
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let message = match before {
        None => format!("{what} constraint added when there was none previously : {new}"),
        Some(old) if what == "maximum" && number(new) < number(old) => format!("maximum decreased : {old} -> {new}"),
        Some(old) if what == "minimum" && number(new) > number(old) => format!("minimum increased : {old} -> {new}"),
        Some(_) => return Vec::new(),
    };
    one(Change::new(rule, Tightens, message), before, after)
}
