use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::typed::tables::{
    crd::CUSTOM_RESOURCE_DEFINITION,
    csv::{CLUSTER_SERVICE_VERSION, STRATEGY_DEPLOYMENT_SPEC},
    meta::OBJECT_META,
    pod::{CONTAINER, SUBSCRIPTION_CONFIG},
};

fn node(value: &Value) -> Node {
    let documents = chandler_yaml::parse(value.to_string().as_bytes(), &chandler_yaml::Limits::default()).unwrap();
    documents.into_iter().next().unwrap().root
}

fn convert_value(node: &Node, record: &'static Record) -> Result<Value, Vec<Mismatch>> {
    let conversion = convert(node, record, Spelling::Exact)?;
    Ok(serde_json::from_slice(&conversion.json).expect("the writer writes JSON"))
}

fn converted(value: &Value, record: &'static Record) -> Value {
    convert_value(&node(value), record).unwrap()
}

#[test]
fn missing_structs_appear_and_empty_fields_go() {
    let got = converted(&json!({"name": "d"}), &STRATEGY_DEPLOYMENT_SPEC);
    let want = json!({"name": "d", "spec": {"strategy": {}, "template": {"metadata": {}, "spec": {}}}});
    assert_eq!(got, want);
    let got = converted(
        &json!({"name": "c", "image": "", "args": [], "tty": false, "livenessProbe": {}, "env": null}),
        &CONTAINER,
    );
    assert_eq!(got, json!({"name": "c", "resources": {}, "livenessProbe": {}}));
}

#[test]
fn pointers_keep_zeros() {
    let got = converted(
        &json!({"name": "c", "securityContext": {"privileged": false, "runAsUser": 0}, "restartPolicy": ""}),
        &CONTAINER,
    );
    let want = json!({"privileged": false, "runAsUser": 0});
    assert_eq!((&got["securityContext"], &got["restartPolicy"]), (&want, &json!("")));
}

#[test]
fn quantities_are_canonical_and_divisors_are_added() {
    let resource = json!({"resource": "limits.cpu"});
    let got = converted(
        &json!({
            "name": "c",
            "resources": {"limits": {"cpu": 1.5, "memory": "1024Mi", "ephemeral-storage": null}},
            "env": [{"name": "E", "valueFrom": {"resourceFieldRef": resource}}],
        }),
        &CONTAINER,
    );
    assert_eq!(got["resources"]["limits"], json!({"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "0"}));
    assert_eq!(got["env"][0]["valueFrom"]["resourceFieldRef"], json!({"resource": "limits.cpu", "divisor": "0"}));
}

#[test]
fn schemas_keep_what_json_schema_needs() {
    let schema = json!({
        "additionalProperties": false,
        "items": {"type": "string", "x-unknown": 1},
        "dependencies": {"a": ["b"], "c": {"type": "string"}},
        "default": {"anything": [null, 1.5]},
        "enum": ["a", null, 1],
        "maximum": 10,
        "multipleOf": 0.5,
        "maxLength": 0,
        "nullable": false,
    });
    let crd = json!({
        "metadata": {"name": "x"},
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]},
    });
    let got = converted(&crd, &CUSTOM_RESOURCE_DEFINITION);
    assert_eq!(
        got["spec"]["versions"][0],
        json!({
            "name": "v1",
            "served": false,
            "storage": false,
            "schema": {"openAPIV3Schema": {
                "additionalProperties": false,
                "items": {"type": "string"},
                "dependencies": {"a": ["b"], "c": {"type": "string"}},
                "default": {"anything": [null, 1.5]},
                "enum": ["a", null, 1],
                "maximum": 10,
                "multipleOf": 0.5,
                "maxLength": 0,
            }},
        })
    );
}

#[test]
fn wrong_types_are_reported_with_their_pointer() {
    let cases = [
        (json!({"labels": {"a": true}}), "unrecognized type: string: got boolean, want string at \"/labels/a\""),
        (json!({"labels": {"a/b": 1}}), "cannot convert int64 to string: got integer, want string at \"/labels/a~1b\""),
        (json!({"finalizers": "x"}), "cannot restore slice from string: got string, want array at \"/finalizers\""),
        (
            json!({"ownerReferences": [[]]}),
            "cannot restore struct from: slice: got array, want object at \"/ownerReferences/0\"",
        ),
        (json!({"generation": 1.5}), "cannot convert float64 to int64: got number, want integer at \"/generation\""),
        (json!([]), "cannot restore struct from: slice: got array, want object at \"\""),
    ];
    for (value, want) in cases {
        let mismatches = convert(&node(&value), &OBJECT_META, Spelling::Exact).unwrap_err();
        assert_eq!((mismatches.len(), mismatches[0].to_string().as_str()), (1, want));
    }
    let too_large = json!({"name": "c", "ports": [{"containerPort": 3_000_000_000_u32}]});
    assert_eq!(convert(&node(&too_large), &CONTAINER, Spelling::Exact).unwrap_err()[0].want, "integer of 32 bits");
}

#[test]
fn wrong_types_are_reported_up_to_a_limit() {
    let value = json!({"name": 1, "env": [{"name": "A"}, {"name": true}], "ports": {}, "tty": "yes"});
    let pointers: Vec<String> = convert(&node(&value), &CONTAINER, Spelling::Exact)
        .unwrap_err()
        .into_iter()
        .map(|mismatch| mismatch.pointer)
        .collect();
    assert_eq!(pointers, ["/env/1/name", "/name", "/ports", "/tty"]);
    let many = json!({"name": "c", "args": (0..100).collect::<Vec<_>>()});
    assert_eq!(convert(&node(&many), &CONTAINER, Spelling::Exact).unwrap_err().len(), MOST_MISMATCHES);
}

#[test]
fn dropped_fields_are_limited_and_suggest_a_name() {
    let mut fields: serde_json::Map<String, Value> = (0..50).map(|i| (format!("f{i:02}"), json!(i))).collect();
    fields.insert("Name".to_owned(), json!("c"));
    let conversion = convert(&node(&Value::Object(fields)), &CONTAINER, Spelling::Exact).unwrap();
    assert_eq!(conversion.dropped.len(), MOST_DROPPED);
    assert_eq!(conversion.dropped[0].suggested, Some("name"));
}

#[test]
fn names_with_wrong_case_are_accepted_if_unambiguous() {
    let value = json!({"NAME": "c", "Image": "x", "image": "y", "ARGS": null, "TTY": true, "tTy": true});
    let conversion = convert(&node(&value), &CONTAINER, Spelling::AnyCase).unwrap();
    assert_eq!(conversion.value(), json!({"name": "c", "image": "y", "tty": true, "resources": {}}));
    let names = |list: &[Dropped]| list.iter().map(|field| field.pointer.clone()).collect::<Vec<_>>();
    assert_eq!(names(&conversion.misspelt), ["/NAME", "/TTY"]);
    assert_eq!(names(&conversion.dropped), ["/ARGS", "/Image", "/tTy"]);
}

/// Documents that often have the keys of the types.
fn document() -> impl Strategy<Value = Value> {
    let key = "metadata|spec|name|versions|schema|openAPIV3Schema|properties|items|additionalProperties|enum|type|\
               maximum|install|deployments|template|containers|resources|limits|cpu|env|affinity|volumes|x";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.]{0,4}(Mi|m)?".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_second_round_trip_changes_nothing(value in document()) {
        for record in [&CUSTOM_RESOURCE_DEFINITION, &CLUSTER_SERVICE_VERSION, &SUBSCRIPTION_CONFIG] {
            if let Ok(once) = convert_value(&node(&json!({"metadata": {}, "spec": value})), record) {
                prop_assert_eq!(converted(&once, record), once);
            }
        }
    }
}
