//! Every rule: what it finds, what it does not find, and its messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use chandler_crd_upgrade::{Enforcement, Policy, Report, Rule, comparable, compare};
use serde_json::{Value, json};

/// A CRD of one version with this schema below `spec`.
fn crd(spec: &Value) -> Value {
    versions(json!([version("v1", spec)]))
}

fn version(name: &str, spec: &Value) -> Value {
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"spec": spec}}}})
}

fn versions(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                 "versions": versions},
        "status": {"storedVersions": ["v1"]},
    })
}

/// One line for each finding, without the name of the CRD, in the order of the report.
fn lines(report: &Report) -> String {
    let all = report.refusals.iter().map(|finding| ("", finding));
    let all = all.chain(report.warnings.iter().map(|finding| ("warning: ", finding)));
    let line = |(prefix, finding): (&str, &chandler_crd_upgrade::Finding)| {
        let text = finding.to_string();
        let text = text.strip_prefix("validating upgrade for CRD \"widgets.example.com\": ").unwrap();
        format!("{prefix}{text} [{} {:?}]", finding.rule, finding.effect)
    };
    all.map(line).collect::<Vec<_>>().join("\n")
}

/// The findings when the schema below `spec` changes.
fn found(old: Value, new: Value) -> String {
    lines(&compare(&crd(&old), &crd(&new), &Policy::default()))
}

/// Like [`found`], with a policy that reports every finding.
fn everything(old: Value, new: Value) -> String {
    let rules: Vec<Value> =
        Rule::ALL.iter().map(|rule| json!({"name": rule, "enforcement": "Strict", "loosening": "Strict"})).collect();
    let policy: Policy = serde_json::from_value(json!({"rules": rules})).unwrap();
    lines(&compare(&crd(&old), &crd(&new), &policy))
}

#[test]
fn each_keyword() {
    let schema = |keyword: &str, value: &Value| {
        let mut schema = json!({"type": "string"});
        if !value.is_null() {
            schema[keyword] = value.clone();
        }
        json!({"type": "object", "properties": {"f": schema}})
    };
    let rule = |text: &str| json!([{"rule": text}]);
    let rows: Vec<(&str, Value, Value)> = vec![
        ("type", json!("string"), json!("integer")),
        ("type", json!("integer"), json!("number")),
        ("required", json!(["a"]), json!(["a", "b", "c"])),
        ("required", json!(["a", "b"]), json!(["b"])),
        ("enum", json!(null), json!(["b", "a"])),
        ("enum", json!(["a", "b"]), json!(["a", "c"])),
        ("enum", json!(["a", "b"]), json!(["b", "a", "c"])),
        ("enum", json!(["a"]), json!(null)),
        ("enum", json!([1]), json!([1.0])),
        ("default", json!(null), json!("x")),
        ("default", json!("x"), json!("y")),
        ("default", json!(""), json!(null)),
        ("nullable", json!(null), json!(true)),
        ("nullable", json!(true), json!(false)),
        ("nullable", json!(false), json!(null)),
        ("pattern", json!(null), json!("^a")),
        ("pattern", json!("^a"), json!("^b")),
        ("pattern", json!("^a"), json!(null)),
        ("maximum", json!(null), json!(5)),
        ("maximum", json!(5), json!(4.5)),
        ("maximum", json!(5), json!(6)),
        ("maximum", json!(5), json!(5.0)),
        ("maxItems", json!(5), json!(4)),
        ("maxLength", json!(5), json!(4)),
        ("maxProperties", json!(5), json!(4)),
        ("minimum", json!(null), json!(0)),
        ("minimum", json!(1), json!(2)),
        ("minimum", json!(2), json!(1)),
        ("minItems", json!(1), json!(2)),
        ("minLength", json!(1), json!(2)),
        ("minProperties", json!(1), json!(2)),
        ("oneOf", json!(null), json!([{"required": ["a"]}])),
        ("oneOf", json!([{"required": ["a"]}]), json!([{"required": ["b"]}])),
        ("oneOf", json!([{"required": ["a"]}]), json!([{"required": ["a"]}, {"required": ["b"]}])),
        ("oneOf", json!([{"required": ["a"]}]), json!(null)),
        (
            "oneOf",
            json!([{"required": ["a"]}, {"required": ["b"]}]),
            json!([{"required": ["b"], "description": "x"}, {"required": ["a"]}]),
        ),
        ("anyOf", json!([{"required": ["a"]}]), json!([{"required": ["a"]}, {"required": ["b"]}])),
        ("anyOf", json!([{"required": ["a"]}, {"required": ["b"]}]), json!([{"required": ["a"]}])),
        ("anyOf", json!([{"properties": {"a": {"title": "x"}}}]), json!([{"properties": {"a": {"title": "y"}}}])),
        ("allOf", json!([{"required": ["a"]}]), json!([{"required": ["a"]}, {"required": ["b"]}])),
        ("not", json!({"required": ["a"]}), json!({"required": ["b"]})),
        ("not", json!({"required": ["a"]}), json!(null)),
        ("description", json!("a"), json!("b")),
        ("title", json!("a"), json!(null)),
        ("format", json!(null), json!("email")),
        ("format", json!("email"), json!(null)),
        ("x-kubernetes-validations", json!(null), rule("self == oldSelf")),
        ("x-kubernetes-validations", rule("self == oldSelf"), json!(null)),
        (
            "x-kubernetes-validations",
            json!([{"rule": "true", "message": "a"}]),
            json!([{"rule": "true", "message": "b"}]),
        ),
        ("x-kubernetes-validations", rule("true"), json!([{"rule": "true", "optionalOldSelf": true}])),
        ("x-kubernetes-preserve-unknown-fields", json!(true), json!(null)),
        ("x-kubernetes-preserve-unknown-fields", json!(null), json!(true)),
        ("x-kubernetes-int-or-string", json!(null), json!(true)),
        ("x-kubernetes-embedded-resource", json!(null), json!(true)),
        ("x-kubernetes-list-type", json!(null), json!("atomic")),
        ("x-kubernetes-list-type", json!("atomic"), json!("set")),
        ("x-kubernetes-map-type", json!(null), json!("granular")),
        ("x-kubernetes-map-type", json!(null), json!("atomic")),
        ("multipleOf", json!(null), json!(2)),
        ("exclusiveMaximum", json!(null), json!(true)),
        ("exclusiveMinimum", json!(true), json!(null)),
        ("uniqueItems", json!(false), json!(true)),
        ("x-new", json!(null), json!(1)),
        ("additionalProperties", json!(null), json!(true)),
        ("additionalProperties", json!(true), json!({})),
        ("additionalProperties", json!(true), json!({"type": "string"})),
        ("additionalProperties", json!({"type": "string"}), json!(null)),
        ("additionalProperties", json!({"type": "string"}), json!({"type": "string", "minLength": 1})),
        ("items", json!(null), json!({"type": "string"})),
        ("items", json!({"type": "string"}), json!(null)),
        ("items", json!([{"type": "string"}]), json!([{"type": "integer"}])),
    ];
    let text: Vec<String> = rows
        .into_iter()
        .map(|(keyword, old, new)| {
            let found = everything(schema(keyword, &old), schema(keyword, &new));
            let found = found.replace("v1: ^.spec.f", "^.f");
            format!("{keyword} {old} {new}\n  {}", if found.is_empty() { "-" } else { &found }.replace('\n', "\n  "))
        })
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
    type "string" "integer"
      ^.f: type: type changed : "string" -> "integer" [type Alters]
    type "integer" "number"
      ^.f: type: type changed : "integer" -> "number" [type Loosens]
    required ["a"] ["a","b","c"]
      ^.f: required: new required fields: [b c] [required Tightens]
    required ["a","b"] ["b"]
      -
    enum null ["b","a"]
      ^.f: enum: enum constraint added when there was none previously : ["a" "b"] [enum Tightens]
    enum ["a","b"] ["a","c"]
      ^.f: enum: allowed enum values removed : ["b"] [enum Tightens]
    enum ["a","b"] ["b","a","c"]
      ^.f: enum: allowed enum values added : ["c"] [enum Loosens]
    enum ["a"] null
      ^.f: enum: enum constraint removed, with allowed enum values removed : ["a"] [enum Loosens]
    enum [1] [1.0]
      -
    default null "x"
      ^.f: default: default added when there was none previously : "x" [default Alters]
    default "x" "y"
      ^.f: default: default value changed : "x" -> "y" [default Alters]
    default "" null
      ^.f: default: default value removed : "" [default Alters]
    nullable null true
      ^.f: nullable: nullable added : false -> true [nullable Loosens]
    nullable true false
      ^.f: nullable: nullable removed : true -> false [nullable Tightens]
    nullable false null
      -
    pattern null "^a"
      ^.f: pattern: pattern added : "" -> "^a" [pattern Tightens]
    pattern "^a" "^b"
      ^.f: pattern: pattern changed : "^a" -> "^b" [pattern Alters]
    pattern "^a" null
      ^.f: pattern: pattern removed : "^a" -> "" [pattern Loosens]
    maximum null 5
      ^.f: maximum: maximum constraint added when there was none previously : 5 [maximum Tightens]
    maximum 5 4.5
      ^.f: maximum: maximum decreased : 5 -> 4.5 [maximum Tightens]
    maximum 5 6
      -
    maximum 5 5.0
      -
    maxItems 5 4
      ^.f: maxItems: maximum decreased : 5 -> 4 [maxItems Tightens]
    maxLength 5 4
      ^.f: maxLength: maximum decreased : 5 -> 4 [maxLength Tightens]
    maxProperties 5 4
      ^.f: maxProperties: maximum decreased : 5 -> 4 [maxProperties Tightens]
    minimum null 0
      ^.f: minimum: minimum constraint added when there was none previously : 0 [minimum Tightens]
    minimum 1 2
      ^.f: minimum: minimum increased : 1 -> 2 [minimum Tightens]
    minimum 2 1
      -
    minItems 1 2
      ^.f: minItems: minimum increased : 1 -> 2 [minItems Tightens]
    minLength 1 2
      ^.f: minLength: minimum increased : 1 -> 2 [minLength Tightens]
    minProperties 1 2
      ^.f: minProperties: minimum increased : 1 -> 2 [minProperties Tightens]
    oneOf null [{"required":["a"]}]
      ^.f: oneOf: oneOf constraint added when there was none previously: [{"required":["a"]}] [oneOf Tightens]
    oneOf [{"required":["a"]}] [{"required":["b"]}]
      ^.f: oneOf: allowed oneOf schemas removed: [{"required":["a"]}] [oneOf Alters]
    oneOf [{"required":["a"]}] [{"required":["a"]},{"required":["b"]}]
      ^.f: oneOf: allowed oneOf schemas added: [{"required":["b"]}] [oneOf Alters]
    oneOf [{"required":["a"]}] null
      ^.f: oneOf: allowed oneOf schemas removed: [{"required":["a"]}] [oneOf Loosens]
    oneOf [{"required":["a"]},{"required":["b"]}] [{"description":"x","required":["b"]},{"required":["a"]}]
      -
    anyOf [{"required":["a"]}] [{"required":["a"]},{"required":["b"]}]
      ^.f: unhandled: unhandled changes found (anyOf added [{"required":["b"]}]) [anyOf Loosens]
    anyOf [{"required":["a"]},{"required":["b"]}] [{"required":["a"]}]
      ^.f: unhandled: unhandled changes found (anyOf removed [{"required":["b"]}]) [anyOf Tightens]
    anyOf [{"properties":{"a":{"title":"x"}}}] [{"properties":{"a":{"title":"y"}}}]
      -
    allOf [{"required":["a"]}] [{"required":["a"]},{"required":["b"]}]
      ^.f: unhandled: unhandled changes found (allOf added [{"required":["b"]}]) [allOf Tightens]
    not {"required":["a"]} {"required":["b"]}
      ^.f: unhandled: unhandled changes found (not removed [{"required":["a"]}], added [{"required":["b"]}]) [not Alters]
    not {"required":["a"]} null
      ^.f: unhandled: unhandled changes found (not removed [{"required":["a"]}]) [not Loosens]
    description "a" "b"
      ^.f: description: description changed [description Alters]
    title "a" null
      ^.f: description: title changed [description Alters]
    format null "email"
      ^.f: unhandled: unhandled changes found (format <empty> -> "email") [format Tightens]
    format "email" null
      ^.f: unhandled: unhandled changes found (format "email" -> <empty>) [format Loosens]
    x-kubernetes-validations null [{"rule":"self == oldSelf"}]
      ^.f: unhandled: unhandled changes found (x-kubernetes-validations <empty> -> "self == oldSelf") [validations Tightens]
    x-kubernetes-validations [{"rule":"self == oldSelf"}] null
      ^.f: unhandled: unhandled changes found (x-kubernetes-validations "self == oldSelf" -> <empty>) [validations Loosens]
    x-kubernetes-validations [{"message":"a","rule":"true"}] [{"message":"b","rule":"true"}]
      ^.f: description: x-kubernetes-validations: only the message of a violation changed [description Alters]
    x-kubernetes-validations [{"rule":"true"}] [{"optionalOldSelf":true,"rule":"true"}]
      ^.f: unhandled: unhandled changes found (x-kubernetes-validations {"rule":"true"} -> {"optionalOldSelf":true,"rule":"true"}) [validations Alters]
    x-kubernetes-preserve-unknown-fields true null
      ^.f: unhandled: unhandled changes found (x-kubernetes-preserve-unknown-fields true -> <empty>) [preserveUnknownFields Tightens]
    x-kubernetes-preserve-unknown-fields null true
      ^.f: unhandled: unhandled changes found (x-kubernetes-preserve-unknown-fields <empty> -> true) [preserveUnknownFields Loosens]
    x-kubernetes-int-or-string null true
      ^.f: unhandled: unhandled changes found (x-kubernetes-int-or-string <empty> -> true) [intOrString Loosens]
    x-kubernetes-embedded-resource null true
      ^.f: unhandled: unhandled changes found (x-kubernetes-embedded-resource <empty> -> true) [embeddedResource Tightens]
    x-kubernetes-list-type null "atomic"
      -
    x-kubernetes-list-type "atomic" "set"
      ^.f: unhandled: unhandled changes found (x-kubernetes-list-type <empty> -> "set") [listType Tightens]
    x-kubernetes-map-type null "granular"
      -
    x-kubernetes-map-type null "atomic"
      ^.f: unhandled: unhandled changes found (x-kubernetes-map-type <empty> -> "atomic") [mapType Alters]
    multipleOf null 2
      ^.f: unhandled: unhandled changes found (multipleOf <empty> -> 2) [multipleOf Tightens]
    exclusiveMaximum null true
      ^.f: unhandled: unhandled changes found (exclusiveMaximum <empty> -> true) [exclusiveMaximum Tightens]
    exclusiveMinimum true null
      ^.f: unhandled: unhandled changes found (exclusiveMinimum true -> <empty>) [exclusiveMinimum Loosens]
    uniqueItems false true
      ^.f: unhandled: unhandled changes found (uniqueItems <empty> -> true) [uniqueItems Tightens]
    x-new null 1
      ^.f: unhandled: unhandled changes found (x-new <empty> -> 1) [unhandled Alters]
    additionalProperties null true
      ^.f: unhandled: unhandled changes found (additionalProperties <empty> -> true) [additionalProperties Loosens]
    additionalProperties true {}
      -
    additionalProperties true {"type":"string"}
      ^.f: unhandled: unhandled changes found (additionalProperties true -> {"type":"string"}) [additionalProperties Tightens]
    additionalProperties {"type":"string"} null
      ^.f: unhandled: unhandled changes found (additionalProperties {"type":"string"} -> <empty>) [additionalProperties Tightens]
    additionalProperties {"type":"string"} {"minLength":1,"type":"string"}
      ^.f.additionalProperties: minLength: minimum constraint added when there was none previously : 1 [minLength Tightens]
    items null {"type":"string"}
      -
    items {"type":"string"} null
      ^.f.items: existingFieldRemoval: removed field : ^.spec.f.items [existingFieldRemoval Tightens]
    items [{"type":"string"}] [{"type":"integer"}]
      ^.f: unhandled: unhandled changes found (items [{"type":"string"}] -> [{"type":"integer"}]) [unhandled Alters]
    "#);
}

#[test]
fn what_the_reference_lets_pass_passes() {
    let object = |fields: Value| json!({"type": "object", "properties": fields});
    let field = |schema: Value| object(json!({"f": schema}));
    for (old, new) in [
        (object(json!({})), field(json!({"type": "string", "pattern": "^a"}))),
        (
            field(json!({"type": "string", "description": "a"})),
            field(json!({"type": "string", "description": "b", "title": "c"})),
        ),
        (field(json!({"type": "string", "enum": ["a"]})), field(json!({"type": "string", "enum": ["a", "b"]}))),
        (
            field(json!({"type": "integer", "minimum": 1, "maximum": 2})),
            field(json!({"type": "integer", "minimum": 0})),
        ),
        (
            json!({"type": "object", "required": ["f"], "properties": {"f": {"type": "string"}}}),
            field(json!({"type": "string"})),
        ),
        // The reference refuses this one, since it compares the values of a map once more as a whole.
        (
            field(json!({"type": "object", "additionalProperties": object(json!({"a": {"type": "string"}}))})),
            field(json!({"type": "object", "additionalProperties":
                object(json!({"a": {"type": "string", "description": "x"}, "b": {"type": "string"}}))})),
        ),
    ] {
        assert_eq!(found(old, new), "");
    }
}

#[test]
fn a_removed_field_is_reported_once_with_what_is_below() {
    let deep = json!({"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b/c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string"}}}}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"gone": {"type": "string"}}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"gone~": {"type": "string"}}}},
    }});
    let shallow = json!({"type": "object", "properties": {
        "m": {"type": "object", "additionalProperties": {"type": "object"}},
        "l": {"type": "array", "items": {"type": "object"}},
    }});
    insta::assert_snapshot!(found(deep.clone(), shallow.clone()), @r#"
    v1: ^.spec.a: existingFieldRemoval: removed field : ^.spec.a, with 2 below it [existingFieldRemoval Tightens]
    v1: ^.spec.l.items.gone~: existingFieldRemoval: removed field : ^.spec.l.items.gone~ [existingFieldRemoval Tightens]
    v1: ^.spec.m.additionalProperties.gone: existingFieldRemoval: removed field : ^.spec.m.additionalProperties.gone [existingFieldRemoval Tightens]
    "#);
    let report = compare(&crd(&deep), &crd(&shallow), &Policy::default());
    for finding in &report.refusals {
        assert!(crd(&deep).pointer(&finding.pointer).is_some(), "{}", finding.pointer);
    }
}

#[test]
fn the_crd_as_a_whole() {
    let mut old =
        versions(json!([version("v1", &json!({"type": "object"})), version("v2", &json!({"type": "object"}))]));
    old["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {}});
    old["spec"]["conversion"] = json!({"strategy": "Webhook"});
    old["spec"]["preserveUnknownFields"] = json!(true);
    old["status"]["storedVersions"] = json!(["v0", "v1", "v2"]);
    let mut new = old.clone();
    new["spec"]["group"] = json!("example.org");
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"] = json!({"kind": "Gadget", "plural": "gadgets"});
    new["spec"]["versions"] =
        json!([version("v1", &json!({"type": "object"})), version("v3", &json!({"type": "object"}))]);
    new["spec"]["conversion"] = json!({"strategy": "None"});
    new["spec"]["preserveUnknownFields"] = json!(null);
    insta::assert_snapshot!(lines(&compare(&old, &new, &Policy::default())), @r#"
    scope: scope changed : "Namespaced" -> "Cluster" [scope Alters]
    group: group changed : "example.com" -> "example.org" [group Alters]
    names: kind changed : "Widget" -> "Gadget" [names Alters]
    names: plural changed : "widgets" -> "gadgets" [names Alters]
    storedVersionRemoval: stored versions removed : [v2] [storedVersionRemoval Tightens]
    warning: servedVersionRemoval: served versions removed : [v2] [servedVersionRemoval Tightens]
    warning: conversion: conversion strategy changed : "Webhook" -> "None" [conversion Alters]
    warning: unhandled: preserveUnknownFields changed : true -> false [preserveUnknownFields Tightens]
    warning: v1: subresources: subresource removed : status [subresources Tightens]
    warning: v1: subresources: subresource removed : scale [subresources Tightens]
    "#);
    assert!(compare(&old, &old, &Policy::default()).is_empty());
}

#[test]
fn versions_that_are_served_side_by_side_must_fit() {
    let text = json!({"type": "object", "properties": {"f": {"type": "string"}}});
    let number = json!({"type": "object", "properties": {"f": {"type": "integer"}}});
    let limited = json!({"type": "object", "properties": {"f": {"type": "integer", "maximum": 5}}});
    let two = |second: &Value| versions(json!([version("v2", second), version("v1", &text)]));
    let old = versions(json!([version("v1", &text)]));
    let all = Policy::default();
    insta::assert_snapshot!(lines(&compare(&old, &two(&number), &all)), @r#"v1 -> v2: ^.spec.f: type: type changed : "string" -> "integer" [type Alters]"#);
    assert_eq!(lines(&compare(&two(&number), &two(&number), &all)), "", "it was there before");
    insta::assert_snapshot!(lines(&compare(&two(&number), &two(&limited), &all)), @r#"
    v2: ^.spec.f: maximum: maximum constraint added when there was none previously : 5 [maximum Tightens]
    v1 -> v2: ^.spec.f: maximum: maximum constraint added when there was none previously : 5 [maximum Tightens]
    "#);
    let mut webhook = two(&number);
    webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(lines(&compare(&old, &webhook, &all)), "");
    let mut hidden = two(&number);
    hidden["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(lines(&compare(&old, &hidden, &all)), "");
}

#[test]
fn what_is_no_crd_is_read_as_far_as_it_can_be() {
    for odd in [
        json!(null),
        json!({}),
        json!({"spec": {"versions": {"a": 1}}}),
        json!({"spec": {"versions": [1, {"schema": []}]}}),
    ] {
        assert!(compare(&odd, &odd, &Policy::default()).is_empty(), "{odd}");
        let _ = compare(&crd(&json!({})), &odd, &Policy::default());
        let _ = compare(&odd, &crd(&json!({})), &Policy::default());
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..300 {
        deep = json!({"type": "object", "properties": {"f": deep}});
    }
    assert_eq!(found(deep.clone(), deep.clone()), "");
    let text = found(json!({"type": "object"}), json!({"type": "object", "properties": {"f": deep}}));
    assert_eq!(text, "", "a new field is not a finding, however deep");
}

#[test]
fn enforcement_decides_what_becomes_of_a_finding() {
    let old = crd(&json!({"type": "object", "properties": {"f": {"type": "string"}}}));
    let new = crd(&json!({"type": "object", "properties": {"f": {"type": "integer"}}}));
    for (policy, refusals, warnings) in [
        (json!({}), 1, 0),
        (json!({"enforcement": "Warn"}), 0, 1),
        (json!({"enforcement": "None"}), 0, 0),
        (json!({"disabled": true}), 0, 0),
        (json!({"rules": [{"name": "type", "enforcement": "Warn"}]}), 0, 1),
        (json!({"crds": [{"name": "widgets.example.com", "rules": [{"name": "type", "enforcement": "None"}]}]}), 0, 0),
    ] {
        let parsed: Policy = serde_json::from_value(policy.clone()).unwrap();
        let report = compare(&old, &new, &parsed);
        assert_eq!((report.refusals.len(), report.warnings.len()), (refusals, warnings), "{policy}");
        assert!(report.warnings.iter().all(|finding| finding.enforcement == Enforcement::Warn));
    }
}

/// Every two versions that are served are compared: ten thousand of them kept all BundleDeployments waiting.
#[test]
fn more_versions_than_anybody_has_are_refused() {
    let many =
        |count: usize| versions((0..count).map(|n| version(&format!("v{n}"), &json!({"type": "string"}))).collect());
    assert_eq!(comparable(&many(1), &many(100)), Ok(()));
    assert!(compare(&many(100), &many(100), &Policy::default()).is_empty());
    for (old, new) in [(many(101), many(1)), (many(1), many(101))] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(comparable(&old, &new).unwrap_err(), @r#"CRD "widgets.example.com" has 101 versions, and an upgrade is checked for 100 at most; remove unused versions, or turn the check off: spec.preflight.crdUpgradeSafety.disabled: true"#);
        }
    }
}
