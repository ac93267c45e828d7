//! What holds for every CRD.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use chandler_crd_upgrade::{
    Policy, Rule, compare,
    rollback::{losses, with_additions},
};
use proptest::{collection, prelude::*};
use serde_json::{Value, json};

fn any_schema() -> impl Strategy<Value = Value> {
    let keyword = prop_oneof![
        Just(("nullable", json!(true))),
        Just(("pattern", json!("^a"))),
        Just(("enum", json!(["a", "b"]))),
        Just(("enum", json!(["a"]))),
        Just(("default", json!("a"))),
        Just(("format", json!("email"))),
        Just(("maxLength", json!(3))),
        Just(("maxLength", json!(4))),
        Just(("x-kubernetes-preserve-unknown-fields", json!(true))),
        Just(("x-kubernetes-validations", json!([{"rule": "self != 'x'"}]))),
        Just(("oneOf", json!([{"required": ["a"]}, {"required": ["b/c"]}]))),
        Just(("required", json!(["a"]))),
    ];
    let leaf =
        (prop_oneof!["string", "integer", "boolean"], collection::vec(keyword, 0..3)).prop_map(|(kind, keywords)| {
            let mut schema = json!({"type": kind});
            for (name, value) in keywords {
                schema[name] = value;
            }
            schema
        });
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            collection::btree_map(
                prop_oneof!["[a-d]", Just("b/c".to_owned()), Just("~".to_owned())],
                inner.clone(),
                0..4
            )
            .prop_map(|fields| json!({"type": "object", "properties": fields})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn crd(schemas: &[Value]) -> Value {
    let versions = schemas.iter().enumerate().map(|(index, schema)| {
        json!({"name": format!("v{}", index + 1), "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": schema}})
    });
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                 "versions": versions.collect::<Vec<_>>()},
        "status": {"storedVersions": ["v1"]},
    })
}

/// A policy that reports every finding.
fn strict() -> Policy {
    let rules: Vec<Value> =
        Rule::ALL.iter().map(|rule| json!({"name": rule, "enforcement": "Strict", "loosening": "Strict"})).collect();
    serde_json::from_value(json!({"rules": rules})).unwrap()
}

proptest! {
    #[test]
    fn a_crd_against_itself_has_no_finding(schemas in collection::vec(any_schema(), 1..4)) {
        let crd = crd(&schemas);
        prop_assert_eq!(compare(&crd, &crd, &strict()).refusals, vec![]);
    }

    #[test]
    fn an_optional_field_that_is_added_is_no_finding(
        fields in collection::btree_map("[a-d]", any_schema(), 0..4),
        added in any_schema(),
    ) {
        let old = crd(&[json!({"type": "object", "properties": fields})]);
        let mut fields = fields;
        fields.insert("added".to_owned(), added);
        let new = crd(&[json!({"type": "object", "properties": fields})]);
        prop_assert_eq!(compare(&old, &new, &strict()).refusals, vec![]);
        // And taken away again it is exactly one.
        let removed = compare(&new, &old, &strict()).refusals;
        prop_assert_eq!(removed.iter().map(|finding| finding.rule).collect::<Vec<_>>(), vec![Rule::ExistingFieldRemoval]);
    }

    #[test]
    fn pointers_resolve(old in collection::vec(any_schema(), 1..3), new in collection::vec(any_schema(), 1..3)) {
        let (old, new) = (crd(&old), crd(&new));
        for finding in compare(&old, &new, &strict()).refusals {
            let resolves = new.pointer(&finding.pointer).or_else(|| old.pointer(&finding.pointer)).is_some();
            prop_assert!(resolves, "{} of {}", finding.pointer, finding);
        }
    }

    #[test]
    fn a_milder_policy_refuses_no_more(old in any_schema(), new in any_schema()) {
        let (old, new) = (crd(&[old]), crd(&[new]));
        let strict = compare(&old, &new, &Policy::default());
        let warn: Policy = serde_json::from_value(json!({"enforcement": "Warn"})).unwrap();
        let warned = compare(&old, &new, &warn);
        prop_assert!(warned.refusals.is_empty());
        prop_assert_eq!(warned.warnings.len(), strict.refusals.len() + strict.warnings.len());
    }

    /// And another rollback changes nothing, or each reconcile would write the CRD.
    #[test]
    fn a_rollback_loses_nothing(newer in any_schema(), older in any_schema()) {
        let (newer, older) = (crd(&[newer]), crd(&[older]));
        let merged = with_additions(&newer, &older);
        prop_assert_eq!(losses(&newer, &older, &merged, &Policy::default()), vec![]);
        prop_assert_eq!(with_additions(&merged, &older), merged);
    }
}
