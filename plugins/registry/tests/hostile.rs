//! Bundles and configurations with arbitrary edits: each gives objects that the host accepts, or a finding.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_registry::Registry;
use chandler_sdk::{
    Failure, Provisioner as _, Request,
    testing::{Bundle, run},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    self,
    small::{CRD, Small},
};

/// A bundle with one of full_bundle.
fn full_bundle() -> Vec<(String, Value)> {
    let mut small = Small::new(&["AllNamespaces"])
        .webhook("ValidatingAdmissionWebhook", "v.example.com")
        .webhook("MutatingAdmissionWebhook", "m.example.com")
        .webhook("ConversionWebhook", "c.example.com");
    let spec = &mut small.csv["spec"];
    spec["webhookdefinitions"][2]["conversionCRDs"] = json!(["berths.example.com"]);
    spec["customresourcedefinitions"] = json!({
        "owned": [{"name": "berths.example.com", "kind": "Berth", "version": "v1"}],
        "required": [{"name": "ships.example.com", "kind": "Ship", "version": "v1"}],
    });
    spec["apiservicedefinitions"] = json!({"owned": [
        {"name": "x", "group": "x.example.com", "version": "v1", "kind": "X", "deploymentName": "op.main", "containerPort": 5443},
    ]});
    spec["minKubeVersion"] = json!("1.20.0");
    spec["nativeAPIs"] = json!([{"group": "", "version": "v1", "kind": "Pod"}]);
    small.csv["metadata"]["annotations"]["olm.properties"] = json!("[{\"type\":\"olm.gvk\",\"value\":{}}]");
    let yaml = |text: &str| {
        let documents = chandler_yaml::parse(text.as_bytes(), &chandler_yaml::Limits::default()).unwrap();
        documents[0].root.to_json()
    };
    let mut old = yaml(CRD);
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    old["metadata"]["name"] = json!("ships.example.com");
    old["spec"]["validation"] =
        json!({"openAPIV3Schema": {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}}});
    vec![
        ("manifests/csv.yaml".to_owned(), small.csv),
        ("manifests/crd.yaml".to_owned(), yaml(CRD)),
        ("manifests/old.yaml".to_owned(), old),
        (
            "manifests/binding.yaml".to_owned(),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1beta1",
                "kind": "RoleBinding",
                "metadata": {"name": "b", "namespace": "x"},
                "subjects": [{"kind": "ServiceAccount", "name": "op"}],
            }),
        ),
        (
            "manifests/budget.yaml".to_owned(),
            json!({
                "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": {"selector": {}},
            }),
        ),
        (
            "metadata/annotations.yaml".to_owned(),
            json!({
                "annotations": {"operators.operatorframework.io.bundle.package.v1": "op"},
            }),
        ),
        (
            "metadata/properties.yaml".to_owned(),
            json!({"properties": [{"type": "olm.maxOpenShiftVersion", "value": "4.12"}]}),
        ),
        (
            "metadata/dependencies.yaml".to_owned(),
            json!({"dependencies": [
                {"type": "olm.constraint", "value": {"failureMessage": "x", "all": {"constraints": [{"gvk": {}}]}}},
            ]}),
        ),
    ]
}

fn config() -> Value {
    json!({
        "certificateProvider": "cert-manager",
        "compatibility": "extended",
        "proxy": {"httpProxy": "x"},
        "operatorConditionName": "y",
        "deploymentConfig": {
            "env": [{"name": "A", "value": "b"}],
            "affinity": {"nodeAffinity": {}},
            "volumes": [{"name": "v"}],
            "annotations": {"a": "b"},
            "resources": {"limits": {"cpu": "1"}},
        },
    })
}

/// The pointers to all values in a value.
fn pointers(value: &Value, pointer: &str, all: &mut Vec<String>) {
    all.push(pointer.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            pointers(member, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), all);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, &format!("{pointer}/{index}"), all));
        }
        _ => {}
    }
}

/// Replacement values.
fn arbitrary_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!({})),
        Just(json!([])),
        Just(json!([{}])),
        Just(json!([null])),
        Just(json!({"": ""})),
        Just(json!([[[]]])),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        "[a-zA-Z0-9./%_-]{0,70}".prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        Just(json!("x".repeat(300))),
    ]
}

/// Edits of the bundle and of its configuration: pointer and value.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, prop::sample::Index, Value)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), arbitrary_value()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_edits_give_objects_or_findings(mutations in mutations(), reference in any::<bool>(), known in any::<bool>()) {
        let mut files = full_bundle();
        files.push(("config".to_owned(), config()));
        for (file, place, value) in mutations {
            let index = file.index(files.len());
            let mut all = Vec::new();
            pointers(&files[index].1, "", &mut all);
            *files[index].1.pointer_mut(&all[place.index(all.len())]).unwrap() = value;
        }
        let (_, mut config) = files.pop().unwrap();
        if reference && let Some(config) = config.as_object_mut() {
            config.insert("compatibility".to_owned(), json!("reference"));
        }
        let bundle = Bundle::new(files.into_iter().map(|(path, value)| (path, value.to_string())));
        let request = Request::new().with_name("test").with_namespace("ns");
        let request = request.with_config(config.as_object().cloned().unwrap_or_default());
        let request = if known {
            let kinds = ["v1/Pod", "config.openshift.io/v1/ClusterVersion"];
            request.with_kubernetes_version("v1.36.0").with_api_kinds(kinds)
        } else {
            request
        };
        let _ = Registry::detect(&bundle);
        let _ = Registry::config_schema(&bundle);
        match run::<Registry>(&bundle, &request) {
            Ok(_) => {}
            Err(failure @ Failure::Internal(_)) => prop_assert!(false, "{}", failure),
            Err(failure) => {
                prop_assert!(!failure.diagnostics().is_empty());
                failure.diagnostics().iter().for_each(support::small::assert_explained);
            }
        }
    }
}
