//! What evaluation may cost.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_request_costs_no_more_than_its_budget() {
    let cubic = "range.all(a, range.all(b, range.all(c, a + b + c >= 0)))".replace("range", "object.spec.list");
    let mut object = toy(1);
    object["spec"]["list"] = json!((0..10).collect::<Vec<_>>());
    let asked = Asked { object: Some(object), ..create(1) };
    let validations: Vec<Value> = (0..10).map(|_| json!({"expression": cubic})).collect();
    let set = set(json!({"validations": validations}), json!({}));
    let denied = |budget: u64| asked.ask_within(Budget::new(budget), &set).denial.map(|denial| denial.message);
    assert_eq!(denied(1_000_000), None);
    let message = denied(50_000).unwrap();
    assert!(
        message
            .ends_with("validation failed due to running out of cost budget, no further validation rules will be run")
    );
    let ignored = self::set(json!({"failurePolicy": "Ignore", "validations": [{"expression": cubic}]}), json!({}));
    assert_eq!(asked.ask_within(Budget::new(100), &ignored), Admission::default());
}

#[test]
fn an_object_cannot_make_an_expression_expensive() {
    let mut object = toy(1);
    object["spec"]["list"] = json!((0..1000).collect::<Vec<_>>());
    let asked = Asked { object: Some(object), ..create(1) };
    let expensive = holds("object.spec.list.all(a, object.spec.list.all(b, object.spec.list.all(c, a + b + c >= 0)))");
    assert!(asked.denied(&expensive).ends_with("operation cancelled: actual cost limit exceeded"));
}

#[test]
fn deep_expressions_take_no_stack_of_ours() {
    let deep = format!("{}1 > 0", "1 + ".repeat(400));
    let variables: Vec<Value> = (0..9)
        .map(|index| {
            let before = if index == 0 { "1".to_owned() } else { format!("variables.v{}", index - 1) };
            json!({"name": format!("v{index}"), "expression": format!("{}{before}", "1 + ".repeat(400))})
        })
        .collect();
    let policy =
        json!({"variables": variables, "validations": [{"expression": "variables.v8 > 0"}, {"expression": deep}]});
    assert_eq!(create(1).denied(&set(policy, json!({}))), "");
}

#[test]
fn shallow_expressions_fit_on_a_small_stack() {
    let sum = format!("{}1 > 0 && object.spec.list.all(x, {}x >= 0)", "1 + ".repeat(50), "1 + ".repeat(50));
    let set = holds(&sum);
    let mut object = toy(1);
    object["spec"]["list"] = json!([1, 2]);
    let asked = move || Asked { object: Some(object), ..create(1) }.denied(&set);
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(asked).unwrap();
    assert_eq!(thread.join().unwrap(), "");
}

#[test]
fn parameters_cost_their_size() {
    let policy = |failure: &str| {
        let policy = json!({
            "failurePolicy": failure,
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "true"}],
        });
        set(policy, json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}}))
    };
    let sizes: u64 = cluster().config_maps.iter().take(2).map(crate::policies::limits::size).sum();
    assert!(sizes > 10, "{sizes}");
    assert_eq!(create(1).ask_within(Budget::new(sizes + 20), &policy("Fail")), Admission::default());
    assert!(create(1).ask_within(Budget::new(sizes - 5), &policy("Fail")).denial.is_some());
    assert_eq!(create(1).ask_within(Budget::new(sizes - 5), &policy("Ignore")), Admission::default());
}
