//! Validation rules in CEL.

use serde_json::{Value, json};

use crate::support::{Collection, JSON_PATCH, Scope, cases, objects::CRDS};

cases! {
    "3.18" a_failed_rule_reports_its_message;
    "3.18" a_message_can_be_computed;
    "3.18" a_rule_names_field_and_reason;
    "3.18" a_failed_rule_without_a_message_reports_the_rule;
    "3.18" transition_rules_compare_with_the_old_object;
    "3.18" immutable_fields;
    "3.18" optional_old_self_holds_on_creation;
    "3.18" rules_on_items_and_values: differs("a rule on the values of a map names the key after a dot");
    "3.18" rules_on_the_root_see_names;
    "3.18" rules_support_presence_arithmetic_and_membership;
    "3.18" libraries_of_rules;
    "3.18" optional_fields_in_rules;
    "3.18" rules_run_after_defaulting;
    "3.18" a_newly_added_rule_allows_changes_to_other_fields;
    "3.18" an_error_in_a_rule_refuses;
    "3.18" transition_rules_hold_for_every_verb;
}

async fn with_rules(scope: &Scope, mut spec: Value, rules: Value) -> Collection {
    spec["x-kubernetes-validations"] = rules;
    scope.create_widget_crd(json!({"type": "object", "properties": {"spec": spec}})).await
}

fn sizes() -> Value {
    json!({"type": "object", "properties": {
        "min": {"type": "integer"}, "max": {"type": "integer"}, "color": {"type": "string", "maxLength": 20},
        "mode": {"type": "string", "default": "fast"}}})
}

fn own(scope: &Scope, spec: Value) -> Value {
    scope.own_widget("a", json!({"spec": spec}))
}

async fn a_failed_rule_reports_its_message(scope: &Scope) {
    let things =
        with_rules(scope, sizes(), json!([{"rule": "self.min <= self.max", "message": "min is above max"}])).await;
    let cause = things.create(&own(scope, json!({"min": 2, "max": 1}))).await.invalid("spec");
    assert_eq!(cause["reason"], "FieldValueInvalid");
    assert!(cause["message"].as_str().unwrap().ends_with(": min is above max"), "{cause}");
    things.create(&own(scope, json!({"min": 1, "max": 2}))).await.is(201);
    things.merge("a", &json!({"spec": {"max": 0}})).await.invalid("spec");
}

async fn a_message_can_be_computed(scope: &Scope) {
    let rules = json!([{"rule": "self.min < 5", "message": "unused",
        "messageExpression": "self.min > 10 ? 'far too much' : 'a bit too much'"}]);
    let things = with_rules(scope, sizes(), rules).await;
    for (min, expected) in [(20, ": far too much"), (7, ": a bit too much")] {
        let cause = things.create(&own(scope, json!({"min": min}))).await.invalid("spec");
        assert!(cause["message"].as_str().unwrap().ends_with(expected), "{cause}");
    }
}

async fn a_rule_names_field_and_reason(scope: &Scope) {
    let rules = json!([
        {"rule": "!has(self.min) || self.min > 0", "fieldPath": ".min", "reason": "FieldValueForbidden", "message": "must be positive"},
        {"rule": "has(self.max)", "fieldPath": ".max", "reason": "FieldValueRequired", "message": "say how much"},
    ]);
    let things = with_rules(scope, sizes(), rules).await;
    let answer = things.create(&own(scope, json!({"min": 0}))).await;
    let cause = answer.clone().invalid("spec.min");
    assert_eq!(
        (&cause["reason"], &cause["message"]),
        (&json!("FieldValueForbidden"), &json!("Forbidden: must be positive"))
    );
    let cause = answer.invalid("spec.max");
    assert_eq!(
        (&cause["reason"], &cause["message"]),
        (&json!("FieldValueRequired"), &json!("Required value: say how much"))
    );
}

async fn a_failed_rule_without_a_message_reports_the_rule(scope: &Scope) {
    let things = with_rules(scope, sizes(), json!([{"rule": "self.min < 5"}])).await;
    let cause = things.create(&own(scope, json!({"min": 9}))).await.invalid("spec");
    assert!(cause["message"].as_str().unwrap().ends_with(": failed rule: self.min < 5"), "{cause}");
}

async fn transition_rules_compare_with_the_old_object(scope: &Scope) {
    let things =
        with_rules(scope, sizes(), json!([{"rule": "self.min >= oldSelf.min", "message": "min only grows"}])).await;
    things.create(&own(scope, json!({"min": 5}))).await.is(201);
    things.merge("a", &json!({"spec": {"min": 6}})).await.is(200);
    let cause = things.merge("a", &json!({"spec": {"min": 5}})).await.invalid("spec");
    assert!(cause["message"].as_str().unwrap().ends_with(": min only grows"), "{cause}");
}

async fn immutable_fields(scope: &Scope) {
    let mut spec = sizes();
    spec["properties"]["color"]["x-kubernetes-validations"] =
        json!([{"rule": "self == oldSelf", "message": "is immutable"}]);
    let things = scope.create_widget_crd(json!({"type": "object", "properties": {"spec": spec}})).await;
    things.create(&own(scope, json!({"color": "red"}))).await.is(201);
    let cause = things.merge("a", &json!({"spec": {"color": "blue"}})).await.invalid("spec.color");
    assert_eq!(cause["message"], "Invalid value: \"blue\": is immutable");
    things.merge("a", &json!({"spec": {"min": 1}})).await.is(200);
    things.merge("a", &json!({"spec": {"color": null}})).await.is(200);
    things.merge("a", &json!({"spec": {"color": "blue"}})).await.is(200);
}

async fn optional_old_self_holds_on_creation(scope: &Scope) {
    let rules =
        json!([{"rule": "oldSelf.hasValue() || self.min == 1", "optionalOldSelf": true, "message": "begin with one"}]);
    let things = with_rules(scope, sizes(), rules).await;
    things.create(&own(scope, json!({"min": 2}))).await.invalid("spec");
    things.create(&own(scope, json!({"min": 1}))).await.is(201);
    things.merge("a", &json!({"spec": {"min": 2}})).await.is(200);
}

async fn rules_on_items_and_values(scope: &Scope) {
    let positive = json!([{"rule": "self > 0", "message": "must be positive"}]);
    let spec = json!({"type": "object", "properties": {
        "list": {"type": "array", "maxItems": 10, "items": {"type": "integer", "x-kubernetes-validations": positive}},
        "map": {"type": "object", "maxProperties": 10,
            "additionalProperties": {"type": "integer", "x-kubernetes-validations": positive}}}});
    let things = scope.create_widget_crd(json!({"type": "object", "properties": {"spec": spec}})).await;
    things.create(&own(scope, json!({"list": [1, 0]}))).await.invalid("spec.list[1]");
    let status = things.create(&own(scope, json!({"map": {"a": 1, "b": 0}}))).await.refused(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.map[b]");
    things.create(&own(scope, json!({"list": [1], "map": {"a": 1}}))).await.is(201);
}

async fn rules_on_the_root_see_names(scope: &Scope) {
    let schema = json!({"type": "object", "properties": {"spec": sizes()},
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')", "message": "names begin with a"}]});
    let things = scope.create_widget_crd(schema).await;
    let status = things.create(&scope.own_widget("b", json!({}))).await.refused(422, "Invalid");
    assert!(status["message"].as_str().unwrap().contains("names begin with a"), "{status}");
    things.create(&scope.own_widget("a", json!({}))).await.is(201);
}

async fn rules_support_presence_arithmetic_and_membership(scope: &Scope) {
    let rules = json!([
        {"rule": "has(self.color) ? self.color.size() > 1 : true", "message": "presence"},
        {"rule": "!(has(self.min) && has(self.max)) || self.min + 1 <= self.max * 2", "message": "arithmetic"},
        {"rule": "!has(self.color) || self.color in ['red', 'blue', 'green']", "message": "membership"},
    ]);
    let things = with_rules(scope, sizes(), rules).await;
    for (spec, expected) in [
        (json!({"color": "r"}), "presence"),
        (json!({"min": 9, "max": 1}), "arithmetic"),
        (json!({"color": "pink"}), "membership"),
    ] {
        let status = things.create(&own(scope, spec)).await.refused(422, "Invalid");
        assert!(status["message"].as_str().unwrap().contains(expected), "{status}");
    }
    things.create(&own(scope, json!({"color": "red", "min": 1, "max": 2}))).await.is(201);
}

async fn libraries_of_rules(scope: &Scope) {
    for (name, rule) in [
        ("regex", "self.text.matches('^[a-z.0-9/:-]+$') && self.text.find('[0-9]+') == '8080'"),
        ("strings", "self.text.lowerAscii() == self.text && self.text.split(':').size() == 3"),
        ("lists", "self.list.isSorted() && self.list.sum() == 6 && self.list.max() == 3 && self.list.indexOf(2) == 1"),
        (
            "urls",
            "isURL(self.text) && url(self.text).getPort() == '8080' && url(self.text).getHostname() == 'example.com'",
        ),
        ("quantities", "isQuantity(self.amount) && quantity(self.amount).isGreaterThan(quantity('1Gi'))"),
        (
            "addresses",
            "isIP(self.address) && ip(self.address).family() == 4 && cidr('192.0.2.0/24').containsIP(self.address)",
        ),
        ("times", "self.time > timestamp('2026-01-01T00:00:00Z') && duration('1h') < duration('90m')"),
        (
            "macros",
            "self.list.exists_one(x, x == 2) && self.list.map(x, x * 2).all(x, x < 10) && self.list.filter(x, x > 1).size() == 2",
        ),
    ] {
        let spec = json!({"type": "object", "properties": {
            "text": {"type": "string", "maxLength": 64}, "none": {"type": "string"}, "amount": {"type": "string", "maxLength": 20},
            "address": {"type": "string", "maxLength": 20}, "time": {"type": "string", "format": "date-time"},
            "list": {"type": "array", "maxItems": 10, "items": {"type": "integer"}}},
            "x-kubernetes-validations": [{"rule": rule, "message": name}]});
        let group = format!("{name}.{}", scope.group());
        let crd = crate::support::objects::crd(&group, json!({"type": "object", "properties": {"spec": spec}}));
        scope.create_crd(&crd).await;
        let things = scope.collection(&format!("{group}/v1"), "widgets").await;
        let object = |text: &str| {
            json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "a"}, "spec": {
            "text": text, "list": [1, 2, 3], "amount": "2Gi", "address": "192.0.2.7", "time": "2026-06-01T00:00:00Z"}})
        };
        let answer = things.create(&object("http://example.com:8080")).await;
        assert_eq!(answer.status, 201, "{name}: {}", answer.text);
    }
}

async fn optional_fields_in_rules(scope: &Scope) {
    let rules = json!([{"rule": "self.?color.orValue('red') == 'red' && !self.?min.hasValue()"}]);
    let things = with_rules(scope, sizes(), rules).await;
    things.create(&own(scope, json!({}))).await.is(201);
    things.merge("a", &json!({"spec": {"color": "blue"}})).await.invalid("spec");
}

async fn rules_run_after_defaulting(scope: &Scope) {
    let things = with_rules(scope, sizes(), json!([{"rule": "self.mode == 'fast'"}])).await;
    things.create(&own(scope, json!({}))).await.is(201);
    things.merge("a", &json!({"spec": {"mode": "slow"}})).await.invalid("spec");
}

async fn a_newly_added_rule_allows_changes_to_other_fields(scope: &Scope) {
    // A rule that was added later and that the stored object violates, in a field that is not changed.
    let part = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let spec = json!({"type": "object", "properties": {"part": part, "other": {"type": "string"}}});
    let things = scope.create_widget_crd(json!({"type": "object", "properties": {"spec": spec}})).await;
    things.create(&own(scope, json!({"part": {"x": -1}, "other": "a"}))).await.is(201);
    let crd = format!("{CRDS}/widgets.{}", scope.group());
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/part/x-kubernetes-validations";
    let rule = json!([{"op": "add", "path": path, "value": [{"rule": "self.x > 0", "message": "positive"}]}]);
    scope.http().patch(&crd, JSON_PATCH, &rule).await.ok();
    let probe = scope.own_widget("probe", json!({"spec": {"part": {"x": -1}}}));
    things.until_refused(&probe).await;
    things.merge("a", &json!({"spec": {"other": "b"}})).await.is(200);
    things.merge("a", &json!({"spec": {"part": {"x": -2}}})).await.invalid("spec.part");
}

async fn an_error_in_a_rule_refuses(scope: &Scope) {
    let things = with_rules(scope, sizes(), json!([{"rule": "10 / self.min > 1"}])).await;
    let status = things.create(&own(scope, json!({"min": 0}))).await.refused(422, "Invalid");
    assert!(status["message"].as_str().unwrap().to_lowercase().contains("division by zero"), "{status}");
    let status = things.create(&own(scope, json!({}))).await.refused(422, "Invalid");
    assert!(status["message"].as_str().unwrap().to_lowercase().contains("no such key: min"), "{status}");
}

async fn transition_rules_hold_for_every_verb(scope: &Scope) {
    let things = with_rules(scope, sizes(), json!([{"rule": "self.min == oldSelf.min", "message": "fixed"}])).await;
    let mut object = things.apply("a", "one", &own(scope, json!({"min": 1}))).await.is(201);
    things.apply("a", "one", &own(scope, json!({"min": 2}))).await.invalid("spec");
    things.json_patch("a", &json!([{"op": "replace", "path": "/spec/min", "value": 2}])).await.invalid("spec");
    object["spec"]["min"] = 2.into();
    things.put("a", &object).await.invalid("spec");
}
