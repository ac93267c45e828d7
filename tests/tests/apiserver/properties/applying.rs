//! Applies are idempotent, and a field exists only while a manager declares it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::{collection::vec, prelude::*, sample::subsequence};
use serde_json::{Value, json};

use super::holds;
use crate::support::{Scope, cases, objects::version};

cases! {
    "3.07" an_apply_repeated_changes_nothing;
    "3.07" the_spec_equals_the_declaration_of_a_single_manager;
    "3.07" a_field_exists_while_a_manager_declares_it;
}

/// A field that an apply may declare. Its value follows from its name, so that managers never conflict.
const FIELDS: &[&str] = &[
    "color",
    "steps",
    "limits.a",
    "limits.b",
    "limits.c",
    "tags.x",
    "tags.y",
    "tags.z",
    "parts.p",
    "parts.q",
    "parts.r",
    "nested.a",
    "nested.b",
    "whole",
    "ports.80",
    "ports.443",
];

fn declaration() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(FIELDS, 0..=FIELDS.len())
}

/// The specification with these fields.
fn spec<'a>(fields: impl IntoIterator<Item = &'a str>) -> Value {
    let mut spec = json!({});
    for field in fields {
        match field.split_once('.') {
            None if field == "steps" => spec["steps"] = json!(["one", "two"]),
            None if field == "whole" => spec["whole"] = json!({"a": "1"}),
            None => spec[field] = "red".into(),
            Some((map @ ("limits" | "nested"), key)) => spec[map][key] = "1".into(),
            Some((list, key)) => {
                let item = match list {
                    "tags" => json!(key),
                    "parts" => json!({"name": key, "value": "1", "protocol": "TCP"}),
                    _ => json!({"port": key.parse::<u32>().unwrap(), "protocol": "TCP"}),
                };
                if !spec[list].is_array() {
                    spec[list] = json!([]);
                }
                spec[list].as_array_mut().unwrap().push(item);
            }
        }
    }
    spec
}

/// Normalized: lists are sorted, and the default is always set.
fn normal(mut spec: Value) -> Value {
    spec["size"] = 3.into();
    for list in ["tags", "parts", "ports"] {
        if let Some(items) = spec.get_mut(list).and_then(Value::as_array_mut) {
            items.sort_by_key(Value::to_string);
        }
    }
    spec
}

fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("w{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn an_apply_repeated_changes_nothing(scope: &Scope) {
    let widgets = scope.widgets().await;
    holds(12, vec((0..2_usize, declaration()), 1..4), |applies| {
        let widgets = widgets.clone();
        async move {
            let name = fresh_name();
            for (manager, fields) in applies {
                let object = scope.widget(&name, spec(fields));
                let manager = format!("manager-{manager}");
                let first = widgets.apply(&name, &manager, &object).await.ok();
                let second = widgets.apply(&name, &manager, &object).await.ok();
                assert_eq!(version(&first), version(&second));
                assert_eq!(first, second);
            }
        }
    })
    .await;
}

async fn the_spec_equals_the_declaration_of_a_single_manager(scope: &Scope) {
    let widgets = scope.widgets().await;
    holds(12, vec(declaration().prop_shuffle(), 1..4), |applies| {
        let widgets = widgets.clone();
        async move {
            let name = fresh_name();
            for fields in applies {
                let wanted = spec(fields);
                let object = widgets.apply(&name, "one", &scope.widget(&name, wanted.clone())).await.ok();
                let mut expected = wanted;
                expected["size"] = 3.into();
                assert_eq!(object["spec"], expected, "in the order that was declared");
            }
        }
    })
    .await;
}

async fn a_field_exists_while_a_manager_declares_it(scope: &Scope) {
    let widgets = scope.widgets().await;
    holds(16, vec((0..3_usize, declaration()), 1..7), |applies| {
        let widgets = widgets.clone();
        async move {
            let name = fresh_name();
            let mut declared: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
            for (manager, fields) in applies {
                let object = scope.widget(&name, spec(fields.clone()));
                let object = widgets.apply(&name, &format!("manager-{manager}"), &object).await.ok();
                declared.insert(manager, fields);
                let union: BTreeSet<&str> = declared.values().flatten().copied().collect();
                assert_eq!(normal(object["spec"].clone()), normal(spec(union)));
            }
        }
    })
    .await;
}
