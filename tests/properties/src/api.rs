//! Client requests to the embedded API: objects of built-in and custom kinds, applied, patched and validated.
//!
//! An input is a stream of three documents: the stored object, the request body, and a CRD.

use chandler_devcluster_apimachinery::{
    apply::{
        ApplyRequest, FieldSet, apply,
        managed::{self, UpdateRequest},
        patch::{json_patch, merge_patch, strategic_merge_patch},
    },
    protobuf,
    schema::{
        Builtins, CustomResourceDefinition, FieldError, GroupVersionKind, Schema, canonicalize, default, metadata,
        prune, validate, validate_crd,
    },
};
use chandler_yaml::Limits;
use serde_json::Value;

use crate::memory;

const FIXED: usize = 64 << 20;
const PER_BYTE: usize = 4000;
const NOW: &str = "2026-01-02T03:04:05Z";

pub(crate) fn objects(input: &[u8]) {
    // Tables are decoded only once.
    let _ = Builtins::get();
    let Ok(documents) = chandler_yaml::parse(input, &Limits { nodes: 20_000, ..Limits::default() }) else { return };
    let mut values = documents.iter().map(|document| document.root.to_json());
    let (stored, sent) = (values.next().unwrap_or_default(), values.next().unwrap_or_default());
    let crd = values.next().unwrap_or_default();
    memory::bounded(input, FIXED, PER_BYTE, || {
        let text = |field: &str| sent.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = GroupVersionKind::from_api_version(text("apiVersion"), text("kind"));
        if let Some(resource) = Builtins::get().kind(&kind) {
            written(&resource.schema, &kind, &stored, &sent, true);
        }
        assert_errors(&validate_crd(&crd, None));
        assert_errors(&validate_crd(&crd, Some(&stored)));
        if let Ok(custom) = CustomResourceDefinition::parse(&crd) {
            for version in custom.versions.iter().take(3) {
                written(&version.resource.schema, &kind, &stored, &sent, false);
            }
        }
        written(&Schema::deduced(), &kind, &stored, &sent, false);
        let _ = json_patch(&stored, &sent);
        let merged = merge_patch(&stored, &sent);
        assert_eq!(merge_patch(&merged, &Value::Object(serde_json::Map::new())), object_of(merged.clone()));
        if let Ok(fields) = FieldSet::decode(&sent) {
            let again = FieldSet::decode(&fields.encode()).expect("what is written can be read");
            assert_eq!(again, fields, "another set is read of what is written");
            assert!(fields.difference(&fields).is_empty());
            assert_eq!(fields.union(&fields), fields);
            assert_eq!(fields.intersection(&fields), fields);
        }
    });
}

/// An empty merge patch turns any value into an object (RFC 7386).
fn object_of(value: Value) -> Value {
    if value.is_object() { value } else { Value::Object(serde_json::Map::new()) }
}

/// Processes one write as the pipeline does.
fn written(schema: &Schema, kind: &GroupVersionKind, stored: &Value, sent: &Value, builtin: bool) {
    let mut value = sent.clone();
    prune(schema, &mut value);
    let mut again = value.clone();
    assert!(prune(schema, &mut again).is_empty() && again == value, "pruning is not idempotent");
    default(schema, &mut value);
    let mut again = value.clone();
    default(schema, &mut again);
    assert_eq!(again, value, "defaults are filled in again");
    if builtin {
        canonicalize(schema, &mut value);
        let mut again = value.clone();
        canonicalize(schema, &mut again);
        assert_eq!(again, value, "what is canonical is made canonical again");
    }
    assert_errors(&validate(schema, &value, None));
    assert_errors(&validate(schema, &value, Some(stored)));
    assert_errors(&metadata::validate(kind, true, &value, Some(stored)));
    let api_version = kind.api_version();
    let request = ApplyRequest {
        schema,
        live: stored.is_object().then_some(stored),
        applied: sent,
        manager: "fuzzer",
        api_version: &api_version,
        force: true,
        subresource: "",
        now: NOW,
    };
    match apply(request) {
        Ok(outcome) => {
            let request = ApplyRequest { live: Some(&outcome.object), force: false, ..request };
            let again = apply(request).expect("what was applied can be applied again by the same manager");
            assert_eq!(again.object, outcome.object, "applied again, it changes");
            assert!(!again.changed, "an apply is not idempotent");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let request = UpdateRequest {
        schema,
        live: request.live,
        new: &value,
        manager: "fuzzer",
        api_version: &api_version,
        subresource: "",
        reset: &[],
        now: NOW,
    };
    managed::managers(&managed::track_update(request));
    if let Ok(patched) = strategic_merge_patch(schema, stored, sent) {
        assert!(patched.is_object() || !stored.is_object(), "{patched}");
    }
}

fn assert_errors(errors: &[FieldError]) {
    for error in errors.iter().take(20) {
        assert!(!error.to_string().trim().is_empty(), "an error without a message");
    }
}

/// A protobuf body decodes to an object within the limits, or to an error.
pub(crate) fn wire(input: &[u8]) {
    let _ = protobuf::Table::get();
    let envelope = protobuf::Envelope::read(input).is_ok();
    let kinds =
        [("v1", "Pod"), ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("", "")];
    for (api_version, kind) in kinds {
        let limits = protobuf::Limits { depth: 60, values: 20_000 };
        let decode = || protobuf::decode_with(input, api_version, kind, limits);
        match memory::bounded(input, FIXED, PER_BYTE, decode) {
            Ok(value) => {
                assert!(envelope && value.is_object(), "{value}");
                let text = value.to_string();
                assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
