//! The CRD that an earlier release gets back when a newer one added something to it.
//!
//! Objects may use what a newer release added: a field, a version, a value of an enumeration. Its restrictions must not stay, since the
//! earlier release and its clients write objects that the earlier CRD accepted. So the result accepts what either CRD accepts, merged keyword
//! by keyword. Where this is not possible, it is as in the cluster.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    Policy, Rule,
    compare::compare,
    crd::{Crd, Version},
    finding::{Effect, Finding, Report},
    keywords::{CHILDREN, changed, said, same},
    walk::DEEPEST,
};

/// Levels with different values of these are not merged: each restricts the other keywords, or what is below.
const STRUCTURE: [&str; 6] = [
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];
/// The API server estimates the cost of rules from these.
const SIZES: [&str; 3] = ["maxItems", "maxLength", "maxProperties"];
const RULES: &str = "x-kubernetes-validations";

/// The losses of a rollback from `live` to `new` that the policy does not allow. A restriction that ends is not a loss, nor is a difference
/// between two versions that the earlier release served side by side.
pub fn losses(live: &Value, older: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    let older = Crd::read(older);
    let served = |name: &str| older.version(name).is_some_and(|version| version.served);
    let mut refusals = compare(live, new, policy).refusals;
    refusals.retain(|finding| {
        finding.effect != Effect::Loosens
            && !pair(finding).is_some_and(|(first, second)| served(first) && served(second))
    });
    refusals
}

/// The report on a rollback without findings that are not losses (see [`losses`]). Objects that are invalid in a version that is served
/// again are only warnings.
pub fn without_restored(live: &Value, mut report: Report) -> Report {
    let live = Crd::read(live);
    report.refusals.retain(|finding| finding.effect != Effect::Loosens && pair(finding).is_none());
    let is_served_again = |finding: &Finding| {
        let version = finding.version.as_deref().and_then(|version| live.version(version));
        finding.rule == Rule::ExistingCustomResources && !version.is_some_and(|version| version.served)
    };
    let (again, refusals) = std::mem::take(&mut report.refusals).into_iter().partition(is_served_again);
    report.refusals = refusals;
    report.warnings.extend::<Vec<Finding>>(again);
    report
}

/// The two versions that a finding compares.
fn pair(finding: &Finding) -> Option<(&str, &str)> {
    finding.version.as_deref()?.split_once(" -> ")
}

/// The earlier CRD, whose versions also accept what the ones in the cluster accept.
pub fn with_additions(live: &Value, older: &Value) -> Value {
    let versions = versions(&Crd::read(live), &Crd::read(older));
    let mut merged = older.clone();
    if let Some(spec) = merged.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("versions".to_owned(), versions);
    }
    merged
}

fn versions(live: &Crd<'_>, older: &Crd<'_>) -> Value {
    let in_cluster = live.versions.iter().map(|version| match older.version(version.name) {
        Some(before) => merged(version, &before),
        None => version.value.clone(),
    });
    let dropped = older.versions.iter().filter(|version| live.version(version.name).is_none());
    in_cluster.chain(dropped.map(|version| with(version.value, "storage", json!(false)))).collect()
}

fn merged(live: &Version<'_>, older: &Version<'_>) -> Value {
    let merged = with(older.value, "served", json!(live.served || older.served));
    let merged = with(&merged, "storage", json!(live.storage));
    match (live.schema, older.schema) {
        (Some(live), Some(older)) => with(&merged, "schema", json!({"openAPIV3Schema": schema(live, older)})),
        _ => merged,
    }
}

/// An object with another value of a field.
fn with(object: &Value, field: &str, value: Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    object
}

/// A schema that accepts what either accepts. Rules that the earlier one lacks may be too expensive for its sizes.
fn schema(live: &Map<String, Value>, older: &Map<String, Value>) -> Map<String, Value> {
    let merged = level(live, older, &Merge { depth: 0, sizes: true });
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    expressions(older, 0, &mut before);
    expressions(&merged, 0, &mut after);
    if after.is_subset(&before) { merged } else { level(live, older, &Merge { depth: 0, sizes: false }) }
}

/// How two levels are merged.
struct Merge {
    depth: usize,
    /// Whether larger sizes of the earlier schema are restored.
    sizes: bool,
}

fn level(live: &Map<String, Value>, older: &Map<String, Value>, merge: &Merge) -> Map<String, Value> {
    let mut merged = live.clone();
    let differs = |keyword: &&str| !same(said(live, keyword), said(older, keyword));
    let map = |schema: &Map<String, Value>| schema.get("additionalProperties").is_some_and(Value::is_object);
    if merge.depth >= DEEPEST || STRUCTURE.iter().any(differs) || map(live) != map(older) {
        return merged;
    }
    let keywords: BTreeSet<&str> = live.keys().chain(older.keys()).map(String::as_str).collect();
    for keyword in keywords.into_iter().filter(|keyword| !CHILDREN.contains(keyword)).filter(differs) {
        match accepted(keyword, live, older, merge) {
            Some(value) => merged.insert(keyword.to_owned(), value),
            None => merged.remove(keyword),
        };
    }
    let below = Merge { depth: merge.depth + 1, ..*merge };
    for keyword in ["items", "additionalProperties"] {
        if let (Some(Value::Object(live)), Some(Value::Object(older))) = (live.get(keyword), older.get(keyword)) {
            merged.insert(keyword.to_owned(), Value::Object(level(live, older, &below)));
        }
    }
    if let Some(fields) = fields(live, older, &below) {
        merged.insert("properties".to_owned(), fields);
    }
    merged
}

/// The fields of either level.
fn fields(live: &Map<String, Value>, older: &Map<String, Value>, merge: &Merge) -> Option<Value> {
    let older = older.get("properties")?.as_object()?;
    let mut merged = match live.get("properties") {
        Some(live) => live.as_object()?.clone(),
        None => Map::new(),
    };
    for (name, older) in older {
        let field = match (merged.get(name), older) {
            (Some(Value::Object(live)), Value::Object(older)) => Value::Object(level(live, older, merge)),
            (Some(live), _) => live.clone(),
            (None, older) => older.clone(),
        };
        merged.insert(name.clone(), field);
    }
    Some(Value::Object(merged))
}

/// The value of a keyword with which both what the live and what the earlier schema accept is accepted, or the live one.
fn accepted(keyword: &str, live: &Map<String, Value>, older: &Map<String, Value>, merge: &Merge) -> Option<Value> {
    let (now, before) = (said(live, keyword), said(older, keyword));
    match (keyword, now, before) {
        ("required", ..) => in_both(now, before, ToString::to_string),
        (RULES, ..) => in_both(now, before, |rule| rule.get("rule").map(ToString::to_string).unwrap_or_default()),
        ("enum", Some(Value::Array(now)), Some(Value::Array(before))) => {
            let known: BTreeSet<String> = now.iter().map(ToString::to_string).collect();
            let dropped = before.iter().filter(|value| !known.contains(&value.to_string()));
            Some(now.iter().chain(dropped).cloned().collect())
        }
        (keyword, ..) if !merge.sizes && SIZES.contains(&keyword) => now.cloned(),
        _ => {
            let changes = changed(keyword, live, older, now, before);
            let loses =
                changes.iter().any(|change| change.effect != Effect::Loosens && change.rule != Rule::Description);
            if loses { now.cloned() } else { before.cloned() }
        }
    }
}

/// The entries of the first list that the second one has, too.
fn in_both(live: Option<&Value>, older: Option<&Value>, name: impl Fn(&Value) -> String) -> Option<Value> {
    let older: BTreeSet<String> = older?.as_array()?.iter().map(&name).collect();
    let both: Vec<Value> = live?.as_array()?.iter().filter(|entry| older.contains(&name(entry))).cloned().collect();
    (!both.is_empty()).then_some(Value::Array(both))
}

/// The expressions of all rules.
fn expressions<'a>(schema: &'a Map<String, Value>, depth: usize, found: &mut BTreeSet<&'a str>) {
    if depth > DEEPEST {
        return;
    }
    let rules = schema.get(RULES).and_then(Value::as_array).into_iter().flatten();
    found.extend(rules.filter_map(|rule| rule.get("rule")?.as_str()));
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let below = ["items", "additionalProperties"].iter().filter_map(|keyword| schema.get(*keyword));
    for below in fields.chain(below).filter_map(Value::as_object) {
        expressions(below, depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(versions: &[(&str, bool, Value)]) -> Value {
        let version = |(name, storage, schema): &(&str, bool, Value)| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
        json!({
            "metadata": {"name": "oxen.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Ox", "plural": "oxen"},
                     "versions": versions.iter().map(version).collect::<Vec<_>>()},
        })
    }

    fn one(schema: &Value) -> Value {
        crd(&[("v1", true, schema.clone())])
    }

    fn object(fields: Value) -> Value {
        json!({"type": "object", "properties": fields})
    }

    /// What a CRD becomes, and that neither what the live one accepts is lost, nor a further rollback changes anything.
    fn restored(live: &Value, older: &Value) -> Value {
        let merged = with_additions(live, older);
        let policy = Policy::default();
        assert_eq!(losses(live, older, &merged, &policy), []);
        assert_eq!(with_additions(&merged, older), merged);
        merged
    }

    #[test]
    fn what_either_schema_accepts_is_accepted() {
        let rule = |rule: &str| json!({"rule": rule, "message": "no"});
        let text = || json!({"type": "string"});
        let rows: &[(&str, Value, Value, Value)] = &[
            ("a field is added", object(json!({"a": text()})), object(json!({})), object(json!({"a": text()}))),
            ("a field is dropped", object(json!({})), object(json!({"a": text()})), object(json!({"a": text()}))),
            (
                "an added field is required",
                json!({"type": "object", "properties": {"a": text(), "b": text()}, "required": ["a", "b"]}),
                json!({"type": "object", "properties": {"a": text()}, "required": ["a"]}),
                json!({"type": "object", "properties": {"a": text(), "b": text()}, "required": ["a"]}),
            ),
            (
                "a field is restricted",
                json!({"type": "string", "pattern": "^a$", "maxLength": 9, "minLength": 1, "format": "date"}),
                text(),
                text(),
            ),
            (
                "a restriction ends",
                text(),
                json!({"type": "string", "pattern": "^a$", "maxLength": 9, "enum": ["x"], "nullable": false}),
                text(),
            ),
            (
                "a value is renamed",
                json!({"type": "string", "enum": ["new", "same"]}),
                json!({"type": "string", "enum": ["old", "same"]}),
                json!({"type": "string", "enum": ["new", "same", "old"]}),
            ),
            (
                "a rule changes",
                json!({"type": "object", "x-kubernetes-validations": [rule("x || y"), rule("z")]}),
                json!({"type": "object", "x-kubernetes-validations": [rule("x"), rule("z")]}),
                json!({"type": "object", "x-kubernetes-validations": [rule("z")]}),
            ),
            (
                "below lists and maps",
                json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a$"}}}),
                json!({"type": "array", "items": {"type": "object", "additionalProperties": text()}}),
                json!({"type": "array", "items": {"type": "object", "additionalProperties": text()}}),
            ),
            (
                "a default stays",
                json!({"type": "string", "default": "a", "pattern": "^a$"}),
                text(),
                json!({"type": "string", "default": "a"}),
            ),
            ("documentation", json!({"type": "string", "description": "new"}), text(), text()),
            (
                "a type changes: nothing of this level is as before",
                json!({"type": "array", "items": {"type": "string", "maxLength": 3}}),
                json!({"type": "object", "properties": {"a": text()}}),
                json!({"type": "array", "items": {"type": "string", "maxLength": 3}}),
            ),
            (
                "keys of a list must be required",
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                       "items": {"type": "object", "properties": {"a": text()}, "required": ["a"]}}),
                json!({"type": "array", "items": {"type": "object", "properties": {"a": text()}}}),
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                       "items": {"type": "object", "properties": {"a": text()}, "required": ["a"]}}),
            ),
            (
                "a level has fields or values",
                json!({"type": "object", "additionalProperties": text()}),
                object(json!({"a": text()})),
                json!({"type": "object", "additionalProperties": text()}),
            ),
            (
                "sizes bound the cost of a new rule",
                json!({"type": "array", "maxItems": 4, "minItems": 1, "items": object(json!({
                    "a": {"type": "string", "x-kubernetes-validations": [rule("self != ''")]}}))}),
                json!({"type": "array", "items": object(json!({}))}),
                json!({"type": "array", "maxItems": 4, "items": object(json!({
                    "a": {"type": "string", "x-kubernetes-validations": [rule("self != ''")]}}))}),
            ),
        ];
        for (what, live, older, expected) in rows {
            let (live, older) = (one(&object(json!({"f": live}))), one(&object(json!({"f": older}))));
            let restored = restored(&live, &older);
            let field = restored.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/f");
            assert_eq!(field, Some(expected), "{what}");
        }
    }

    #[test]
    fn a_version_that_either_crd_serves_is_served() {
        let schema = object(json!({"a": {"type": "string"}}));
        let unserved = |mut crd: Value| {
            crd["spec"]["versions"][0]["served"] = json!(false);
            crd
        };
        let both = crd(&[("v1beta1", false, schema.clone()), ("v1", true, schema.clone())]);
        let with_status = |mut crd: Value| {
            crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            crd
        };
        let (old, new) = (crd(&[("v1beta1", true, schema.clone())]), crd(&[("v1", true, schema.clone())]));
        let reversed = crd(&[("v1", true, schema.clone()), ("v1beta1", false, schema.clone())]);
        for (what, live, older, expected) in [
            ("the version was served", unserved(both.clone()), both.clone(), both.clone()),
            ("the version is dropped", new.clone(), both.clone(), reversed.clone()),
            ("one replaces the other", new, old.clone(), reversed),
            ("a version is added", both.clone(), old, both),
            (
                "the subresources are the earlier ones",
                one(&schema),
                with_status(one(&schema)),
                with_status(one(&schema)),
            ),
        ] {
            assert_eq!(restored(&live, &older), expected, "{what}");
        }
    }

    #[test]
    fn the_end_of_a_restriction_is_not_a_loss() {
        let (policy, text) = (Policy::default(), json!({"type": "string"}));
        let strict = one(&object(json!({"a": {"type": "string", "pattern": "^a$", "maxLength": 9}})));
        let (loose, more) = (one(&object(json!({"a": text}))), one(&object(json!({"a": text, "b": text}))));
        assert_eq!(losses(&strict, &loose, &loose, &policy), []);
        assert_eq!(losses(&more, &loose, &loose, &policy).len(), 1);
        assert_eq!(losses(&more, &loose, &loose, &Policy { disabled: true, ..policy.clone() }), []);
        // Versions that differ, and that the earlier release served side by side.
        let (few, many) = (object(json!({"a": text})), object(json!({"a": text, "b": text})));
        let both = crd(&[("v1beta1", false, many), ("v1", true, few.clone())]);
        let only = crd(&[("v1", true, few)]);
        assert_eq!(losses(&only, &both, &both, &policy), []);
        assert_eq!(losses(&only, &only, &both, &policy).len(), 1);
    }

    #[test]
    fn what_was_judged_does_not_stop_a_rollback() {
        let (text, policy) = (json!({"type": "string"}), Policy::default());
        let strict = one(&object(json!({"a": {"type": "string", "pattern": "^a$"}, "b": text})));
        let both = crd(&[("v1beta1", false, object(json!({"b": text}))), ("v1", true, object(json!({"a": text})))]);
        let mut report = compare(&strict, &both, &policy);
        let lost = report.refusals.iter().find(|finding| finding.rule == Rule::ExistingFieldRemoval).unwrap().clone();
        for version in ["v1beta1", "v1"] {
            let version = Some(version.to_owned());
            report.refusals.push(Finding { rule: Rule::ExistingCustomResources, version, ..lost.clone() });
        }
        let rules = |findings: &[Finding]| -> Vec<String> {
            let one = |finding: &Finding| format!("{} {}", finding.version.as_deref().unwrap(), finding.rule);
            findings.iter().map(one).collect()
        };
        let removed = ["v1 pattern", "v1 existingFieldRemoval", "v1beta1 -> v1 existingFieldRemoval"];
        let objects = ["v1beta1 existingCustomResources", "v1 existingCustomResources"];
        assert_eq!(rules(&report.refusals), [&removed[..], &objects[..]].concat());
        let report = without_restored(&strict, report);
        assert_eq!(rules(&report.refusals), [removed[1], objects[1]]);
        assert_eq!(rules(&report.warnings), [objects[0]]);
    }

    #[test]
    fn malformed_crds_are_merged_as_far_as_possible() {
        let schemas = [
            json!(1),
            json!({"properties": 1, "required": {}, "enum": 1}),
            json!({"properties": {"a": 1}, "items": []}),
        ];
        for live in &schemas {
            for older in &schemas {
                with_additions(&one(live), &one(older));
                with_additions(&json!({"spec": {"versions": [1, {"name": "v1", "schema": live}]}}), &one(older));
                with_additions(&json!({}), live);
            }
        }
    }
}
