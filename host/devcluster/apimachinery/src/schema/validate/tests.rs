//! Validation messages, as in kube-apiserver.

use serde_json::json;

use super::*;
use crate::schema::crd::root;

fn spec(properties: &Value) -> Schema {
    root::read(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}))
        .unwrap()
}

fn errors(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<String> {
    let old = old.map(|old| json!({"spec": old}));
    validate(schema, &json!({"spec": new}), old.as_ref()).iter().map(ToString::to_string).collect()
}

#[test]
fn types_bounds_and_enumerations() {
    let schema = root::read(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["must"], "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": true, "multipleOf": 2},
            "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"},
            "e": {"type": "string", "enum": ["b", "a"]},
            "t": {"type": "string", "format": "date-time"},
            "l": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
            "m": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 1},
            "q": {"x-kubernetes-int-or-string": true},
            "z": {"type": "string", "nullable": true},
            "w": {"type": "integer", "format": "int32"},
            "must": {"type": "string"},
        }}}}),
    )
    .unwrap();
    insta::assert_debug_snapshot!(errors(&schema, &json!({
        "n": 7, "s": "b", "e": "c", "t": "today", "l": [1, "x", 3], "m": {"a": 1, "b": true}, "q": 1.5, "z": null, "w": 5_000_000_000_i64,
    }), None), @r#"
    [
        "spec.must: Required value",
        "spec.e: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        "spec.l: Too many: 3: must have at most 2 items",
        "spec.l[1]: Invalid value: \"string\": spec.l[1] in body must be of type integer: \"string\"",
        "spec.m: Too many: 2: must have at most 1 item",
        "spec.m.a: Invalid value: \"integer\": spec.m.a in body must be of type boolean: \"integer\"",
        "spec.n: Invalid value: 7: spec.n in body should be less than 5",
        "spec.n: Invalid value: 7: spec.n in body should be a multiple of 2",
        "spec.q: Invalid value: \"number\": spec.q in body must be of type integer,string: \"number\"",
        "spec.s: Invalid value: \"b\": spec.s in body should be at least 2 chars long",
        "spec.t: Invalid value: \"today\": spec.t in body must be of type date-time: \"today\"",
        "spec.w: Invalid value: 5000000000: spec.w in body must be of type int32: 5000000000",
    ]
    "#);
    insta::assert_debug_snapshot!(errors(&schema, &json!({"n": 0, "s": "aaaa", "must": null, "l": []}), None), @r#"
    [
        "spec.l: Invalid value: []: spec.l in body should have at least 1 items",
        "spec.must: Invalid value: \"null\": spec.must in body must be of type string: \"null\"",
        "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1",
        "spec.s: Too long: may not be more than 3 bytes",
    ]
    "#);
}

#[test]
fn items_of_sets_and_maps_are_unique() {
    let schema = spec(&json!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
            "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}},
    }));
    let value = json!({"set": ["a", "b", "a"], "map": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]});
    insta::assert_debug_snapshot!(errors(&schema, &value, None), @r#"
    [
        "spec.map[2]: Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}",
        "spec.set[2]: Duplicate value: \"a\"",
    ]
    "#);
}

#[test]
fn combinations() {
    let schema = spec(&json!({
        "a": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
              "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        "b": {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}], "not": {"enum": ["bad"]}},
        "c": {"type": "object", "properties": {"d": {"type": "integer"}}, "allOf": [{"properties": {"d": {"minimum": 3}}}]},
    }));
    let none: [&str; 0] = [];
    assert_eq!(errors(&schema, &json!({"a": {"x": ""}, "b": "a", "c": {"d": 3}}), None), none);
    insta::assert_debug_snapshot!(errors(&schema, &json!({"a": {"x": "", "y": ""}, "b": "bad", "c": {"d": 1}}), None), @r#"
    [
        "spec.a: Invalid value: {\"x\":\"\",\"y\":\"\"}: \"spec.a\" must validate one and only one schema (oneOf). Found 2 valid",
        "spec.b: Invalid value: \"bad\": \"spec.b\" must not validate the schema (not)",
        "spec.c.d: Invalid value: 1: spec.c.d in body should be greater than or equal to 3",
    ]
    "#);
}

#[test]
fn rules_with_messages_reasons_and_paths() {
    let schema = root::read(&json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')", "message": "bad name"}],
        "properties": {"spec": {"type": "object", "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer"}, "when": {"type": "string", "format": "date-time"},
            "a-b": {"type": "string"}, "ratio": {"type": "number"}, "names": {"type": "array", "items": {"type": "string"}},
        }, "x-kubernetes-validations": [
            {"rule": "!has(self.min) || self.min <= self.max", "messageExpression": "'min ' + string(self.min) + ' above max'", "fieldPath": ".min"},
            {"rule": "!has(self.names) || self.names.all(n, n.size() < 4)", "reason": "FieldValueForbidden", "message": "names too long"},
            {"rule": "!has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')"},
            {"rule": "!has(self.a__dash__b) || self.a__dash__b == 'x'", "reason": "FieldValueRequired", "message": "x needed"},
            {"rule": "!has(self.ratio) || self.ratio > 0.5"},
        ]}},
    }))
    .unwrap();
    let object = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec});
    let good = json!({"min": 1, "max": 2, "when": "2026-01-01T00:00:00Z", "a-b": "x", "ratio": 1, "names": ["abc"]});
    assert_eq!(validate(&schema, &object("a", good), None), []);
    let bad = json!({"min": 3, "max": 2, "when": "2016-01-01T00:00:00Z", "a-b": "y", "ratio": 0, "names": ["abcd"]});
    let errors = validate(&schema, &object("b", bad), None);
    insta::assert_debug_snapshot!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), @r#"
    [
        "spec.min: Invalid value: \"object\": min 3 above max",
        "spec: Forbidden: names too long",
        "spec: Invalid value: \"object\": failed rule: !has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')",
        "spec: Required value: x needed",
        "spec: Invalid value: \"object\": failed rule: !has(self.ratio) || self.ratio > 0.5",
        "<nil>: Invalid value: \"object\": bad name",
    ]
    "#);
}

#[test]
fn transition_rules_and_ratcheting() {
    let schema = spec(&json!({
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]},
        "size": {"type": "integer", "minimum": 5},
        "note": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "bad note"}]},
        "once": {"type": "string", "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true, "message": "must begin as first"}]},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "must grow"}]}}}},
    }));
    let none: [&str; 0] = [];
    assert_eq!(errors(&schema, &json!({"fixed": "a"}), None), none);
    assert_eq!(
        errors(&schema, &json!({"fixed": "b"}), Some(&json!({"fixed": "a"}))),
        ["spec.fixed: Invalid value: \"b\": immutable"]
    );
    let invalid = json!({"size": 1, "note": "bad"});
    assert_eq!(errors(&schema, &invalid, None).len(), 2);
    assert_eq!(errors(&schema, &json!({"size": 1, "note": "bad", "fixed": "a"}), Some(&invalid)), none);
    assert_eq!(errors(&schema, &json!({"size": 2, "note": "bad"}), Some(&invalid)).len(), 1);
    assert_eq!(
        errors(&schema, &json!({"once": "second"}), None),
        ["spec.once: Invalid value: \"second\": must begin as first"]
    );
    assert_eq!(errors(&schema, &json!({"once": "second"}), Some(&json!({"once": "first"}))), none);
    let old = json!({"items": [{"k": "a", "v": 1}, {"k": "b", "v": 9}]});
    let reordered = json!({"items": [{"k": "b", "v": 8}, {"k": "a", "v": 2}, {"k": "c", "v": 0}]});
    assert_eq!(errors(&schema, &reordered, Some(&old)), ["spec.items[0].v: Invalid value: 8: must grow"]);
}

#[test]
fn costly_and_malformed_rules_fail_closed() {
    let schema = spec(&json!({"l": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [
        {"rule": "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"}]}}));
    let list: Vec<i32> = (0..1000).collect();
    let found = errors(&schema, &json!({"l": list}), None);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("running out of cost budget"), "{found:?}");
    // Each level makes the text eight times as long, whatever the size of the object.
    let mut growing = "'xxxxxxxx'".to_owned();
    for _ in 0..7 {
        growing = format!("[{growing}].map(s,s+s+s+s+s+s+s+s)[0]");
    }
    let schema =
        spec(&json!({"s": {"type": "string", "x-kubernetes-validations": [{"rule": format!("{growing} != ''")}]}}));
    let found = errors(&schema, &json!({"s": "x"}), None);
    assert!(found.iter().any(|error| error.contains("values take more than")), "{found:?}");
    for rule in ["self ==", &"(".repeat(5000), "self.missing", "1", &format!("self == {}1", "1+".repeat(3000))] {
        let schema = spec(&json!({"s": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}));
        assert_eq!(errors(&schema, &json!({"s": "x"}), None).len(), 1);
    }
}
