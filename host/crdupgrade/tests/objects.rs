//! Custom resources in the cluster against new schemas.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use chandler_crd_upgrade::{ObjectCheck, Policy, Report};
use serde_json::{Value, json};

fn crd(versions: &[(&str, Value)]) -> Value {
    let versions = versions.iter().enumerate().map(|(index, (name, spec))| {
        json!({"name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec},
        }}})
    });
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                 "versions": versions.collect::<Vec<_>>()},
    })
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "n"}, "spec": spec})
}

fn policy(policy: Value) -> Policy {
    serde_json::from_value(policy).unwrap()
}

fn check(old: &Value, new: &Value, objects: &[Value]) -> Report {
    let Some(mut check) = ObjectCheck::plan(old, new, &Policy::default()) else { return Report::default() };
    check.page(objects, None).unwrap();
    check.finish()
}

fn fields(fields: &Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn messages(report: &Report) -> String {
    let messages = report.refusals.iter().map(|finding| finding.message.clone());
    messages.chain(report.notes.iter().map(|note| format!("note: {note}"))).collect::<Vec<_>>().join("\n")
}

#[test]
fn keywords_are_those_of_structural_schemas() {
    // The new schema of a field that could hold anything, a value, and whether it is legal.
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    for (schema, value, legal) in [
        (json!({"type": "integer"}), json!(1), true),
        (json!({"type": "integer"}), json!("1"), false),
        (json!({"type": "integer"}), json!(1.0), true),
        (json!({"type": "string", "nullable": true}), json!(null), true),
        (json!({"type": "string", "nullable": true, "enum": ["a"]}), json!(null), true),
        // Nulls that are not legal are dropped before anything is checked.
        (json!({"type": "string"}), json!(null), true),
        (json!({"x-kubernetes-int-or-string": true}), json!(1), true),
        (json!({"x-kubernetes-int-or-string": true}), json!("1"), true),
        (json!({"x-kubernetes-int-or-string": true}), json!(true), false),
        (json!({"type": "string", "enum": ["a", "b"]}), json!("c"), false),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), json!("a1"), false),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), json!("ab"), true),
        (json!({"type": "string", "maxLength": 2}), json!("éé"), true),
        (json!({"type": "string", "maxLength": 2}), json!("ééé"), false),
        (json!({"type": "integer", "maximum": 3}), json!(3), true),
        (json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}), json!(3), false),
        (json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), json!(4), true),
        (json!({"type": "integer", "multipleOf": 2}), json!(3), false),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "a"]),
            false,
        ),
        (json!({"type": "array", "items": {"type": "string"}}), json!(["a", 1]), false),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"a": 1}), false),
        (json!({"type": "object", "properties": {"a": {"type": "string"}}}), json!({"pruned": 1}), true),
        (json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}), json!({}), false),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({}),
            true,
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"a": null}),
            true,
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1, "b": 1}),
            false,
        ),
        (json!({"type": "object", "not": {"required": ["a"]}}), json!({"a": 1}), false),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), json!({"kind": "A"}), false),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            json!({"kind": "A", "apiVersion": "v1"}),
            true,
        ),
        (json!({"type": "string", "format": "date-time"}), json!("yesterday"), false),
        (json!({"type": "string", "format": "date-time"}), json!("2026-01-01T00:00:00Z"), true),
        (json!({"type": "string", "format": "made-up"}), json!("x"), true),
        (json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}), json!(1), false),
        (json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}), json!(2), true),
        (json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf"}]}), json!(2), true),
    ] {
        let object = widget("a", &json!({"f": value}));
        let (old, new) = (crd(&[("v1", fields(&json!({"f": any})))]), crd(&[("v1", fields(&json!({"f": schema})))]));
        let report = check(&old, &new, &[object]);
        assert_eq!(report.is_empty(), legal, "{schema} {value}: {}", messages(&report));
    }
}

#[test]
fn what_was_wrong_before_is_not_held_against_the_new_schema() {
    let old = crd(&[("v1", fields(&json!({"a": {"type": "string", "maxLength": 2}, "b": {"type": "string"}})))]);
    let new = crd(&[(
        "v1",
        fields(&json!({"a": {"type": "string", "maxLength": 2}, "b": {"type": "string", "maxLength": 1}})),
    )]);
    let report = check(
        &old,
        &new,
        &[widget("x", &json!({"a": "long", "b": "a"})), widget("y", &json!({"a": "long", "b": "bb"}))],
    );
    insta::assert_snapshot!(messages(&report), @"existing custom object n/y failed validation for new schema version v1: /spec/b: value is longer than 1 character");
}

#[test]
fn values_are_not_quoted() {
    let old = crd(&[("v1", fields(&json!({"a": {"type": "string"}})))]);
    let new = crd(&[("v1", fields(&json!({"a": {"type": "string", "pattern": "^x", "enum": ["x"]}})))]);
    let text = messages(&check(&old, &new, &[widget("x", &json!({"a": "hunter2"}))]));
    assert!(text.contains("n/x") && !text.contains("hunter2"), "{text}");
}

#[test]
fn versions_that_differ_in_name_only_are_all_checked() {
    let text = fields(&json!({"a": {"type": "string"}}));
    let number = fields(&json!({"a": {"type": "integer"}}));
    let objects = [widget("x", &json!({"a": "b"}))];
    let old = crd(&[("v1", text.clone())]);
    let new = crd(&[("v1", text.clone()), ("v2", number.clone())]);
    assert!(messages(&check(&old, &new, &objects)).contains("new schema version v2"));
    let mut webhook = new.clone();
    webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert!(check(&old, &webhook, &objects).is_empty(), "the webhook makes another object of it");
    let described = crd(&[("v1", fields(&json!({"a": {"type": "string", "description": "x"}})))]);
    assert!(ObjectCheck::plan(&old, &described, &Policy::default()).is_none(), "nothing can be wrong");
    let mut unserved = old.clone();
    unserved["spec"]["versions"][0]["served"] = json!(false);
    assert!(ObjectCheck::plan(&unserved, &new, &Policy::default()).is_none(), "nothing can be listed");
    // The version in which objects are stored is listed, whatever the order.
    let mut stored = crd(&[("v1", text), ("v2", number.clone())]);
    stored["spec"]["versions"][0]["storage"] = json!(false);
    stored["spec"]["versions"][1]["storage"] = json!(true);
    let plan = ObjectCheck::plan(&stored, &crd(&[("v1", number.clone()), ("v2", number)]), &Policy::default()).unwrap();
    assert_eq!((plan.resource().version.as_str(), plan.resource().plural.as_str()), ("v2", "widgets"));
}

#[test]
fn samples_are_bounded_and_say_so() {
    let old = crd(&[("v1", fields(&json!({"a": {"type": "string"}})))]);
    let new = crd(&[("v1", fields(&json!({"a": {"type": "integer"}})))]);
    let objects: Vec<Value> = (0..250).map(|number| widget(&format!("w{number}"), &json!({"a": "x"}))).collect();
    let mut check = ObjectCheck::plan(&old, &new, &policy(json!({"sampleSize": 250}))).unwrap();
    let mut asked = Vec::new();
    let mut rest = objects.as_slice();
    while let Some(limit) = check.next_page() {
        asked.push(limit);
        let (page, after) = rest.split_at(limit as usize);
        check.page(page, Some(11_750 + after.len() as u64)).unwrap();
        rest = after;
    }
    assert_eq!(asked, [200, 50]);
    let report = check.finish();
    assert_eq!(report.refusals.len(), 6);
    insta::assert_snapshot!(report.refusals.last().unwrap(), @r#"validating upgrade for CRD "widgets.example.com": existingCustomResources: 245 more existing custom objects failed validation (checked 250 of about 12000 existing custom resources)"#);
    insta::assert_snapshot!(report.notes.join("\n"), @r#"CRD "widgets.example.com": checked 250 of about 12000 existing custom resources"#);
    assert!(ObjectCheck::plan(&old, &new, &policy(json!({"sampleSize": 0}))).is_none());
}

#[test]
fn unreadable_schemas_are_reported_as_configured() {
    let old = crd(&[("v1", fields(&json!({"a": {"type": "string"}})))]);
    let new = crd(&[("v1", fields(&json!({"a": {"type": "integer"}})))]);
    let unreadable = |policy: &Policy| {
        let mut check = ObjectCheck::plan(&old, &new, policy).unwrap();
        check.unreadable("conversion webhook for example.com/v1, Kind=Widget failed");
        check.finish()
    };
    assert_eq!(unreadable(&Policy::default()).refusals.len(), 1);
    let mild = policy(json!({"rules": [{"name": "existingCustomResources", "enforcement": "Warn"}]}));
    assert_eq!(unreadable(&mild).warnings.len(), 1);
    let mut check = ObjectCheck::plan(&old, &new, &Policy::default()).unwrap();
    check.unchecked("widgets.example.com is forbidden");
    let report = check.finish();
    assert_eq!((report.refusals.len(), report.notes.len()), (0, 1));
}

#[test]
fn hostile_schemas_are_noted_and_pass() {
    let old = crd(&[("v1", fields(&json!({"a": {"x-kubernetes-preserve-unknown-fields": true}})))]);
    let with = |schema: Value| crd(&[("v1", fields(&json!({"a": schema})))]);
    let nested = "self.all(a, self.all(b, self.all(c, a + b + c > 0)))";
    let list = |rule: &str| json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
    let mut deep = json!({"type": "string"});
    for _ in 0..300 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let object = [widget("x", &json!({"a": vec![1; 300]}))];
    let text: Vec<String> = [
        json!({"type": "array", "items": {"type": "string", "pattern": "(a{1000}){1000}"}}),
        json!({"type": "array", "minItems": -1}),
        list("self.all("),
        list("self.undeclared()"),
        list(nested),
        list(&"(".repeat(100)),
        json!({"anyOf": [deep, {"type": "array"}]}),
    ]
    .into_iter()
    .map(|schema| messages(&check(&old, &with(schema), &object)))
    .collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
    existing custom object n/x failed validation for new schema version v1: /spec/a/0: value is not of type "string"; /spec/a/1: value is not of type "string"; /spec/a/2: value is not of type "string"; and 47 more
    note: CRD "widgets.example.com": the pattern "(a{1000}){1000}" could not be evaluated
    note: CRD "widgets.example.com": the schema could not be evaluated: -1 is less than the minimum of 0
    note: CRD "widgets.example.com": the validation rule "self.all(" could not be evaluated
    note: CRD "widgets.example.com": the validation rule "self.undeclared()" could not be evaluated
    note: CRD "widgets.example.com": the validation rule "self.all(a, self.all(b, self.all(c, a + b + c > 0)))" was not run to its end: operation cancelled: actual cost limit exceeded
    note: CRD "widgets.example.com": the validation rule "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((" could not be evaluated
    note: CRD "widgets.example.com": the schema is too deep to be evaluated whole
    "#);
}
