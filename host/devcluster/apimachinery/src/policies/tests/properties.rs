//! The shipped policies about any object.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;

/// The policies that are shipped, each bound.
static SHIPPED: LazyLock<PolicySet> = LazyLock::new(shipped);

fn shipped() -> PolicySet {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/admission-policies.yaml");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut set = PolicySet::default();
    for mut object in objects {
        if object["kind"] == "ValidatingAdmissionPolicy" {
            // Every policy is about every request.
            object["spec"]["matchConstraints"] = json!({"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
            object["spec"].as_object_mut().unwrap().remove("paramKind");
            set.put_policy(&object);
        } else {
            set.put_binding(&object);
        }
    }
    set
}

/// Any JSON, with the fields that the shipped policies look at.
fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "chandler.dev/.{0,3}|Manual|.{0,6}".prop_map(Value::from),
    ];
    let field = prop_oneof![
        Just("metadata".to_owned()),
        Just("spec".to_owned()),
        Just("serviceAccount".to_owned()),
        Just("source".to_owned()),
        Just("configMaps".to_owned()),
        Just("configMap".to_owned()),
        Just("name".to_owned()),
        Just("finalizers".to_owned()),
        Just("approval".to_owned()),
        Just("type".to_owned()),
        ".{0,4}",
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let object = proptest::collection::btree_map(field.clone(), inner, 0..6);
        prop_oneof![list, object.prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into())]
    })
}

proptest::proptest! {
    #[test]
    fn no_object_makes_a_policy_panic(object in any_json(), old in proptest::option::of(any_json())) {
        let asked = Asked {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            object: Some(object),
            old,
            ..create(1)
        };
        let admission = asked.ask(&SHIPPED);
        // jane has no permission for anything that the shipped policies are about.
        let told = admission.denial.map(|denial| denial.message);
        proptest::prop_assert!(told.is_none_or(|message| message.starts_with("ValidatingAdmissionPolicy 'chandler-")));
    }
}
