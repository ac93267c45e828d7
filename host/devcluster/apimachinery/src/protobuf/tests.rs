//! The table against the schemas of Kubernetes, and the decoder against an encoder.

use std::collections::BTreeSet;

use k8s_openapi::api;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    protobuf::{
        Error, Fault, Limits, Table, decode, decode_with,
        encode::{self, Entropy, body, bytes, number},
        table::{FieldType, Form, Message, Presence},
    },
    schema::{Builtins, Schema},
};

fn index(api_version: &str, kind: &str) -> usize {
    Table::get().kind(api_version, kind).unwrap()
}

#[test]
fn every_resource_has_a_message_and_every_field_a_property_in_its_schema() {
    let (mut seen, mut checked) = (BTreeSet::new(), 0);
    for resource in Builtins::get().resources() {
        let kind = &resource.group_version_kind;
        let index = index(&kind.api_version(), &kind.kind);
        assert_eq!(Table::get().message(index).unwrap().name, resource.definition);
        check(index, &mut seen, &mut checked);
    }
    check(index("v1", "DeleteOptions"), &mut seen, &mut checked);
    assert!(seen.len() > 400 && checked > 1_800, "{} messages, {checked} fields", seen.len());
}

/// Checks a message, and those in it, against the definitions of their names.
fn check(index: usize, seen: &mut BTreeSet<usize>, checked: &mut usize) {
    let message = Table::get().message(index).unwrap();
    if message.form != Form::Object || !seen.insert(index) {
        return;
    }
    let schema = Builtins::get().definition(&message.name);
    let schema = schema.unwrap_or_else(|| panic!("{} has no definition", message.name));
    check_fields(message, &schema, seen, checked);
}

fn check_fields(message: &Message, schema: &Schema, seen: &mut BTreeSet<usize>, checked: &mut usize) {
    for field in &message.fields {
        let inner = match field.field_type {
            FieldType::Message(inner) => Some(inner),
            _ => None,
        };
        if let (Presence::Inline, Some(inner)) = (field.presence, inner) {
            check_fields(Table::get().message(inner).unwrap(), schema, seen, checked);
            continue;
        }
        assert!(schema.property(&field.name).is_some(), "{}: {} is not a property", message.name, field.name);
        *checked += 1;
        if let Some(inner) = inner {
            check(inner, seen, checked);
        }
    }
}

#[test]
fn the_quirks_of_kubernetes_are_read() {
    let intstr = |kind, value, text: &str| [number(1, kind), number(2, value), bytes(3, text.as_bytes())].concat();
    // core.v1.Probe: the handler's fields are inlined beside the probe's own.
    let handler = bytes(2, &[bytes(1, b"/"), bytes(2, &intstr(1, 0, "http")), bytes(3, b"")].concat());
    let probe = [bytes(1, &handler), number(2, 0), number(3, 5)].concat();
    let resources = bytes(1, &[bytes(1, b"cpu"), bytes(2, &bytes(1, b"100m"))].concat());
    let port = [bytes(1, b""), number(2, 0), number(3, 80), bytes(4, b"TCP"), bytes(5, b"")].concat();
    let container = [
        bytes(1, b"c"),
        bytes(2, b""),
        bytes(6, &port),
        bytes(8, &resources),
        bytes(10, &probe),
        bytes(14, b""),
        number(16, 0),
    ]
    .concat();
    let metadata = [bytes(1, b"a"), bytes(8, b""), bytes(9, &[number(1, 1), number(2, 5)].concat())].concat();
    let security = [number(2, u64::MAX), bytes(4, &[0, 7])].concat();
    let spec = [bytes(2, &container), number(4, 0), bytes(14, &security)].concat();
    let pod = [bytes(1, &metadata), bytes(2, &spec), bytes(3, b"")].concat();
    assert_eq!(
        decode(&body("v1", "Pod", &pod), "", "").unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "deletionTimestamp": "1970-01-01T00:00:01Z"},
            "spec": {
                "containers": [{
                    "name": "c",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "timeoutSeconds": 5},
                }],
                "terminationGracePeriodSeconds": 0,
                "securityContext": {"runAsUser": -1, "supplementalGroups": [0, 7]},
            },
            "status": {},
        })
    );
}

#[test]
fn duplicate_messages_are_merged_and_unknown_fields_are_skipped() {
    let first = bytes(1, &[bytes(1, b"a"), bytes(3, b"ns")].concat());
    let second = bytes(1, &bytes(1, b"b"));
    let data = |value: &[u8]| bytes(2, &[bytes(1, b"x"), bytes(2, value)].concat());
    let raw = [first, data(b"1"), second, data(b"2"), bytes(99, b"?"), number(98, 7)].concat();
    assert_eq!(
        decode(&body("", "", &raw), "v1", "ConfigMap").unwrap(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "ns"}, "data": {"x": "2"}})
    );
}

#[test]
fn schemas_are_read_in_all_their_forms() {
    let raw = |value: Value| {
        let index = index("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let body = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &encode::message(index, &value));
        decode(&body, "", "").unwrap()
    };
    let schema = json!({
        "$ref": "x", "type": "object", "maximum": 10, "minimum": 0.5, "default": {"a": [1, null]},
        "items": {"type": "string"}, "additionalProperties": false, "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"a": {"items": [{"type": "string"}], "additionalProperties": {"type": "integer"}}},
        "dependencies": {"a": ["b"], "c": {"type": "string"}}, "enum": [1, "two"], "x-kubernetes-list-map-keys": ["k"],
    });
    let version = json!({"name": "v1", "served": false, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "as", "kind": "A"});
    let spec = json!({"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]});
    assert_eq!(raw(json!({"spec": spec}))["spec"], spec);
}

#[test]
fn errors_report_cause_and_path() {
    let pod = |spec: &[u8]| body("v1", "Pod", &bytes(2, &bytes(2, spec)));
    let cases = [
        (Vec::new(), "empty data"),
        (b"{}".to_vec(), "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0".to_vec(), "Object 'Kind' or 'apiVersion' is missing in the envelope of the protobuf message"),
        (body("v1", "Nothing", b""), "no kind \"Nothing\" is registered for version \"v1\""),
        (pod(&bytes(1, b"\xff")), "spec.containers.name: a string is not UTF-8"),
        (pod(&number(1, 1)), "spec.containers.name: proto: wrong wireType = 0 for the field"),
        (pod(&[0x0a, 9]), "spec.containers: unexpected EOF"),
    ];
    for (body, expected) in cases {
        assert_eq!(decode(&body, "", "").unwrap_err().to_string(), expected);
    }
    let times = body("v1", "Pod", &bytes(1, &bytes(8, &number(1, u64::MAX >> 1))));
    assert!(matches!(decode(&times, "", ""), Err(Error::Malformed { fault: Fault::Time(_), .. })));
    let embedded = body("apps/v1", "ControllerRevision", &bytes(2, &bytes(1, b"{")));
    assert!(matches!(decode(&embedded, "", ""), Err(Error::Malformed { fault: Fault::Json(_), .. })));
}

#[test]
fn nesting_and_the_number_of_values_are_limited() {
    let table = Table::get();
    let schemas = table.messages().iter().find(|message| message.name.ends_with(".JSONSchemaProps")).unwrap();
    let number = schemas.fields.iter().find(|field| field.name == "not").unwrap().number;
    let not = |inner: Vec<u8>| bytes(number, &inner);
    let schema = (0..400).fold(Vec::new(), |inner, _| not(inner));
    let definition = bytes(2, &bytes(7, &bytes(4, &bytes(1, &schema))));
    let body_of = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition);
    let deep = decode(&body_of, "", "").unwrap_err();
    assert!(matches!(deep, Error::Malformed { fault: Fault::TooDeep(120), .. }), "{deep}");

    let extension = |raw: &[u8]| body("apps/v1", "ControllerRevision", &bytes(2, &bytes(1, raw)));
    let nested = (0..200).fold(b"{}".to_vec(), |inner, _| extension(&inner));
    assert!(decode(&nested, "", "").unwrap_err().to_string().contains("nested deeper"));

    let containers = bytes(2, &[0x12, 0].repeat(1_000));
    let limits = Limits { values: 500, ..Limits::default() };
    let many = decode_with(&body("v1", "Pod", &containers), "", "", limits).unwrap_err();
    assert!(matches!(many, Error::Malformed { fault: Fault::TooMany(500), .. }), "{many}");
    assert!(decode(&body("v1", "Pod", &containers), "", "").is_ok());
}

/// Every kind, by `apiVersion` and name.
fn kinds() -> Vec<(String, String)> {
    let resources = Builtins::get().resources().iter().map(|resource| &resource.group_version_kind);
    resources.map(|kind| (kind.api_version(), kind.kind.clone())).collect()
}

/// Whether a type of another implementation reads what this one makes.
fn understood<T: serde::de::DeserializeOwned>(object: &Value) {
    if let Err(error) = serde_json::from_value::<T>(object.clone()) {
        panic!("{error}: {object}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn encoded_messages_round_trip(entropy in prop::collection::vec(any::<u8>(), 0..400)) {
        for (api_version, kind) in kinds() {
            let index = index(&api_version, &kind);
            let mut object = Entropy::new(entropy.clone()).message(index);
            let raw = encode::message(index, &object);
            let fields = object.as_object_mut().unwrap();
            fields.insert("apiVersion".to_owned(), api_version.as_str().into());
            fields.insert("kind".to_owned(), kind.as_str().into());
            prop_assert_eq!(decode(&body(&api_version, &kind, &raw), "", "").unwrap(), object);
        }
    }

    #[test]
    fn typed_clients_understand_decoded_objects(entropy in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let object = |api_version: &str, kind: &str| {
            let index = index(api_version, kind);
            let mut object = Entropy::new(entropy.clone()).message(index);
            // Statuses have times that are required; Go writes null for none.
            object.as_object_mut().unwrap().remove("status");
            decode(&body(api_version, kind, &encode::message(index, &object)), "", "").unwrap()
        };
        understood::<api::apps::v1::Deployment>(&object("apps/v1", "Deployment"));
        understood::<api::batch::v1::CronJob>(&object("batch/v1", "CronJob"));
        understood::<api::core::v1::PersistentVolume>(&object("v1", "PersistentVolume"));
        understood::<api::core::v1::Secret>(&object("v1", "Secret"));
        understood::<api::core::v1::Service>(&object("v1", "Service"));
        understood::<api::core::v1::Event>(&object("v1", "Event"));
        understood::<api::networking::v1::Ingress>(&object("networking.k8s.io/v1", "Ingress"));
        understood::<api::rbac::v1::ClusterRole>(&object("rbac.authorization.k8s.io/v1", "ClusterRole"));
        understood::<api::coordination::v1::Lease>(&object("coordination.k8s.io/v1", "Lease"));
    }

    #[test]
    fn nothing_makes_it_panic(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let _ = decode(&noise, "v1", "Pod");
        for (api_version, kind) in kinds() {
            let _ = decode(&body(&api_version, &kind, &noise), "", "");
            let index = index(&api_version, &kind);
            let mut raw = encode::message(index, &Entropy::new(noise.clone()).message(index));
            for (at, byte) in changes.iter().filter(|_| !raw.is_empty()).collect::<Vec<_>>() {
                let at = at.index(raw.len());
                raw[at] = *byte;
            }
            let _ = decode(&body(&api_version, &kind, &raw), "", "");
        }
    }
}
