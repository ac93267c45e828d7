use serde_json::{Value, json};

use super::*;

fn rule(text: &str) -> Rule {
    Rule {
        origin: "spec.probes[0]".into(),
        selector: ProbeSelector { group: "a.b".into(), kind: "X".into(), ..ProbeSelector::default() },
        rule: text.into(),
        message: Some("not yet".into()),
        message_expression: None,
    }
}

fn key() -> ObjectKey {
    ObjectKey {
        group: "a.b".into(),
        kind: "X".into(),
        namespace: Some("n".into()),
        name: "x".into(),
        version: "v1".into(),
    }
}

fn compile(rule: Rule) -> Result<Probes, RuleError> {
    Probes::compile(&Compiler::default(), [rule])
}

/// The message of the rule about an object; empty if it is met.
fn message_for(rule: Rule, object: &Value) -> String {
    compile(rule).unwrap().assess(&key(), object, &mut Budget::default()).message
}

#[test]
fn rules_are_about_the_live_object() {
    let object = json!({
        "metadata": {"labels": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicas": 2, "memory": "1Gi"},
        "status": {"ready": 2, "ratio": 0.5, "below": -3, "phase": "Up", "conditions": [{"type": "Up", "status": "True"}, {"type": "B", "status": "False"}]}
    });
    for met in [
        "self.status.ready == self.spec.replicas",
        "self.status.conditions.exists(c, c.type == 'Up' && c.status == 'True')",
        "self.status.conditions.filter(c, c.status == 'True').size() == 1",
        "has(self.status) && !has(self.absent)",
        "self.status.phase.lowerAscii() == 'up'",
        "self.status.ready == 2 && [2].exists(n, n == self.status.ready)",
        "self.status.ratio == 0.5 && self.status.below == -3",
        "self.status.phase in ['Up', 'Running']",
        "quantity(self.spec.memory).isGreaterThan(quantity('512Mi'))",
        "timestamp(self.metadata.creationTimestamp).getFullYear() == 2026",
        "self.metadata.labels.all(k, k.size() > 0)",
        "math.greatest(self.status.ready, 1) == 2",
        "self.status.phase.matches('^U[p]$')",
    ] {
        assert_eq!(message_for(rule(met), &object), "", "{met}");
    }
    for (unmet, want) in [
        ("self.status.ready > 2", "not yet"),
        ("self.status.ready", "not yet: the rule does not return a bool"),
        // A missing field is not an error.
        ("self.status.absent == 1", "not yet: field absent does not exist yet"),
        ("self.status.conditions[7].type == 'Up'", "not yet: an entry of a list does not exist yet"),
        ("self.status.ready + 'a' == 'b'", "not yet: it compares or combines values of incompatible types"),
        ("1 / (self.status.ready - 2) == 1", "not yet: division by zero"),
        ("quantity(self.status.phase).isInteger()", "not yet: function quantity does not accept its arguments"),
    ] {
        assert_eq!(message_for(rule(unmet), &object), want, "{unmet}");
    }
}

#[test]
fn messages_may_be_computed_from_the_object() {
    let object = json!({"status": {"phase": "Slow\nly", "secret": 1}});
    let with = |expression: &str| Rule { message_expression: Some(expression.into()), ..rule("false") };
    assert_eq!(message_for(with("'is in phase ' + self.status.phase"), &object), "is in phase Slow ly");
    for gives_none in ["self.status.absent", "self.status.secret", "''"] {
        assert_eq!(message_for(with(gives_none), &object), "not yet", "{gives_none}");
    }
    let silent = Rule { message: None, ..rule("self.a == 1") };
    assert_eq!(message_for(silent, &object), "does not meet \"self.a == 1\": field a does not exist yet");
    let long = json!({"status": {"phase": "ä".repeat(1000)}});
    assert_eq!(message_for(with("self.status.phase"), &long).chars().count(), 257, "a text is cut");
}

#[test]
fn a_rule_is_about_the_objects_that_it_selects() {
    let object = json!({"metadata": {"labels": {"a": "b", "c": "d"}}});
    let labels = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    for (change, about) in [
        (&(|_: &mut ProbeSelector| ()) as &dyn Fn(&mut ProbeSelector), true),
        (&|selector| selector.name = Some("x".into()), true),
        (&|selector| selector.name = Some("y".into()), false),
        (&|selector| selector.namespace = Some("n".into()), true),
        (&|selector| selector.namespace = Some("other".into()), false),
        (&|selector| selector.kind = "Y".into(), false),
        (&|selector| selector.group = String::new(), false),
        (&|selector| selector.labels = labels("a", "b"), true),
        (&|selector| selector.labels = labels("a", "c"), false),
    ] {
        let mut never = rule("false");
        change(&mut never.selector);
        assert_eq!(message_for(never.clone(), &object) == "not yet", about, "{:?}", never.selector);
    }
}

#[test]
fn the_probes_of_a_release_are_rules() {
    let selector =
        ProbeSelector { group: "a.b".into(), kind: "X".into(), name: Some("x".into()), ..ProbeSelector::default() };
    let probe = Probe { selector, rule: "self.a".into(), message: Some("m".into()), message_expression: None };
    assert_eq!(message_for(Rule::of_release(2, &probe), &json!({"a": false})), "m");
    let broken = Probe { rule: "self.".into(), ..probe };
    assert!(
        compile(Rule::of_release(2, &broken))
            .unwrap_err()
            .to_string()
            .starts_with("probe 2 of the release.rule, line 1,")
    );
}

#[test]
fn errors_have_a_position() {
    let refused = |text: &str| compile(rule(text)).unwrap_err().to_string();
    assert_eq!(
        refused("self.status.phase == 'Up' &&\n  object.x == 1"),
        "spec.probes[0].rule, line 2, column 3: unknown name object; the object is self"
    );
    assert_eq!(
        refused("self.a.replace('', self.b) == ''"),
        "spec.probes[0].rule, line 1, column 8: function replace does not exist or is not allowed here"
    );
    assert!(refused("self.?a == 1").contains("unsupported syntax"), "{}", refused("self.?a == 1"));
    let syntax = refused("self.a ==");
    assert!(syntax.starts_with("spec.probes[0].rule, line 1, column 10: "), "{syntax}");
    let message = Rule { message_expression: Some("self.a +".into()), ..rule("true") };
    let message = compile(message).unwrap_err().to_string();
    assert!(message.starts_with("spec.probes[0].messageExpression, line 1, column "), "{message}");
    for unknown in
        ["lists.range(1000000000).size() == 0", "self.a.join(self.b) == ''", "'%.999999999f'.format([1.0]) == ''"]
    {
        assert!(refused(unknown).contains("is not allowed here"), "{unknown}");
    }
}

#[test]
fn rules_are_bounded() {
    let refused = |text: String| compile(rule(&text)).unwrap_err().message;
    assert_eq!(refused("x".repeat(3000)), "is longer than 2048 bytes");
    assert_eq!(refused("!".repeat(300)), "has more than 256 operators");
    assert_eq!(refused(format!("{}1{}", "(".repeat(30), ")".repeat(30))), "nests deeper than 24 brackets");
    // The deepest that is accepted does not exhaust the stack.
    assert_eq!(message_for(rule(&format!("{}true{}", "(".repeat(24), ")".repeat(24))), &json!({})), "");
    for deep in [
        format!("self{} == 1", ".a".repeat(250)),
        format!("1{} == 1", "+1".repeat(250)),
        format!("{}true", "true?true:".repeat(120)),
    ] {
        assert_eq!(refused(deep), "nests deeper than 40 operators");
    }
    assert_eq!(refused("self.a == !!true".into()), "contains !!, which has no effect");

    let many: Vec<i32> = (0..1000).collect();
    let large = json!({"a": many, "s": "x".repeat(1_000_000)});
    let too_many = "not yet: the rule takes too many steps over an object of this size";
    for hostile in [
        "self.a.all(x, self.a.exists(y, x == y))",
        "self.a.all(x, self.a == self.a)",
        "self.a.map(x, self.a.map(y, self.a)).size() > 0",
        "self.s.split('').all(x, x == 'x')",
        "self.a.all(x, x in self.a && x in self.a)",
        "self.a.map(x, self.s + self.s).size() > 0",
    ] {
        assert_eq!(message_for(rule(hostile), &large), too_many, "{hostile}");
    }
    assert_eq!(message_for(rule("self.a.all(x, x >= 0)"), &large), "");
    // The lists of the rule itself are as long as they are written, independent of the object's lists.
    let nested = "[1, 2].all(x, [1, 2].all(y, [1, 2].all(z, x + y + z > 0)))";
    assert_eq!(message_for(rule(nested), &large), "");
    assert_eq!(message_for(rule("self.s.size() == 1000000"), &large), "");
}

#[test]
fn values_of_rules_are_bounded() {
    // Each level makes the text eight times as long. The object is small.
    let growing = |first: &str, levels: usize| {
        let repeated = (0..levels).fold(first.to_owned(), |value, _| format!("[{value}].map(s,s+s+s+s+s+s+s+s)[0]"));
        rule(&format!("size({repeated}) > 0"))
    };
    let (text, list) = ("'xxxxxxxxxxxxxxxx'", "[1,1,1,1,1,1,1,1]");
    for first in [text, list] {
        assert_eq!(message_for(growing(first, 3), &json!({})), "");
    }
    let too_many = "not yet: the rule takes too many steps over an object of this size";
    assert_eq!(message_for(growing(text, 7), &json!({})), too_many);
    assert_eq!(message_for(growing(list, 6), &json!({})), "not yet: the rule makes values that are too large");
}

#[test]
fn all_rules_of_a_release_share_one_budget() {
    let many: Vec<i32> = (0..5000).collect();
    let large = json!({"a": many});
    let probes = compile(rule("self.a.all(x, x >= 0)")).unwrap();
    let mut budget = Budget::default();
    let spent = (0..1000).find(|_| !probes.assess(&key(), &large, &mut budget).is_healthy());
    assert!(spent.is_some_and(|turns| turns > 10), "{spent:?}");
    let message = probes.assess(&key(), &large, &mut budget).message;
    assert_eq!(message, "not yet: the rules of this release take too many steps in total");
}

#[test]
fn an_expression_is_compiled_once() {
    let compiler = Compiler::default();
    let first = Probes::compile(&compiler, [rule("self.a == 1")]).unwrap();
    let second = Probes::compile(&compiler, [rule("self.a == 1"), rule("self.a == 2")]).unwrap();
    assert!(Arc::ptr_eq(&first.0[0].rule, &second.0[0].rule));
    let third = Probes::compile(&compiler, [rule("self.a == 1")]).unwrap();
    assert!(Arc::ptr_eq(&first.0[0].rule, &third.0[0].rule), "another expression does not replace it");
    for number in 0..2 * REMEMBERED {
        Probes::compile(&compiler, [rule(&format!("self.a == {number}"))]).unwrap();
    }
    assert!(compiler.0.lock().len() <= REMEMBERED);
}
