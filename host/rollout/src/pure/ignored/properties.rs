//! Properties of all rules, tested against the definition: one rule after the other, one pointer after the other.

use chandler_core::pointer::escape;
use proptest::prelude::*;
use serde_json::json;

use super::{
    tests::{any_live, any_object, any_pointers},
    *,
};

fn key() -> ObjectKey {
    ObjectKey {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Widget".into(),
        namespace: Some("ns".into()),
        name: "x".into(),
    }
}

/// A rule for the object, or one in which one selector is for another object.
fn any_rule() -> impl Strategy<Value = (IgnoredFields, bool)> {
    let field = |own: &'static str| prop_oneof![3 => Just((None, true)), 3 => Just((Some(own.to_owned()), true)), 1 => Just((Some("y".to_owned()), false))];
    (field("apps"), field("Widget"), field("ns"), field("x"), any_pointers()).prop_map(
        |((group, one), (kind, two), (namespace, three), (name, four), json_pointers)| {
            (IgnoredFields { group, kind, namespace, name, json_pointers }, one && two && three && four)
        },
    )
}

/// The number of values in a value.
fn values(value: &Value) -> u64 {
    let below: u64 = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(map) => map.values().map(values).sum(),
        _ => 0,
    };
    1 + below
}

fn settled(ignored: &Ignored, desired: &Value, live: &Value, budget: &Budget) -> Result<Value, Stop> {
    let mut desired = desired.clone();
    settle(&mut desired, live, &Records::of(live), &ignored.about(&key()), budget).map(|()| desired)
}

/// The notation of a pointer.
fn written(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Named(name) => format!("/{}", escape(name)),
        Part::Every => "/*".to_owned(),
    };
    parts.iter().map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn all_rules_at_once_equal_one_by_one(
        desired in any_object(), live in any_live(), rules in prop::collection::vec(any_rule(), 0..6)
    ) {
        let desired = json!({"spec": desired});
        let mut one_by_one = desired.clone();
        for (rule, _) in rules.iter().filter(|(_, is_about_it)| *is_about_it) {
            for pointer in &rule.json_pointers {
                model::settle(&mut one_by_one, &live, &live, &mut Vec::new(), &parse(pointer).unwrap());
            }
        }
        let ignored = Ignored::new(rules.into_iter().map(|(rule, _)| rule)).unwrap();
        prop_assert_eq!(settled(&ignored, &desired, &live, &Budget::new(u64::MAX)), Ok(one_by_one));
    }

    #[test]
    fn a_walk_ends_when_the_budget_is_exhausted(
        desired in any_object(), live in any_live(), pointers in any_pointers(), part in 0_u64..=100
    ) {
        let desired = json!({"spec": desired});
        let count = pointers.len() as u64;
        let ignored = Ignored::new([IgnoredFields { json_pointers: pointers, ..IgnoredFields::default() }]).unwrap();
        let all = Budget::new(u64::MAX);
        let want = settled(&ignored, &desired, &live, &all);
        prop_assert!(want.is_ok());
        let needed = all.taken();
        // Each value is visited once for each pointer that leads to it, and once for each of the two records.
        let most = (values(&desired) + values(&live) + 5 * count) * (count + 4);
        prop_assert!(needed <= most, "{} steps, {} are enough", needed, most);
        prop_assert_eq!(settled(&ignored, &desired, &live, &Budget::new(needed)), want);
        if needed > 0 {
            let limit = (needed - 1) * part / 100;
            let stopped = settled(&ignored, &desired, &live, &Budget::new(limit));
            prop_assert_eq!(stopped, Err(Stop::Exhausted { limit }));
        }
    }

    #[test]
    fn pointers_round_trip(text in "(/([a-c]{0,2}|\\*|~[0-2]?|[a~/*]{0,4})){0,5}|\\PC{0,20}") {
        // An accepted pointer leads to the same value as in serde_json.
        if let Ok(parts) = parse(&text) {
            prop_assert_eq!(written(&parts), text.as_str());
            let names = parts.iter().map(|part| if let Part::Named(name) = part { name.as_str() } else { "*" });
            let nested = names.rev().fold(json!("here"), |below, name| json!({name: below}));
            prop_assert_eq!(nested.pointer(&text), Some(&json!("here")));
        }
    }
}
