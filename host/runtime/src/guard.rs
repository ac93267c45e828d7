//! Decodes objects so that one that does not match its Rust type, or that takes too much memory, cannot end the watch of its kind.
//!
//! Users decide what is in free-form fields such as `spec.config`. An API server stores 1.5 MiB of it, and a list of small objects takes a
//! hundred times its bytes once it is decoded.

use std::{borrow::Cow, fmt::Debug};

use chandler_client::Estimate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _, core::error_boundary::InvalidObject};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

/// The memory that one object may take, in bytes, as [`Estimate`] counts it and without its managed fields: 500 KiB or more of ordinary JSON.
pub(crate) const LARGEST: usize = 8 << 20;

/// An object of kind `K`, or its metadata and the error where it could not be decoded, for instance because a newer version of
/// the CRD accepted it, or because it takes too much memory. It has no managed fields.
#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, InvalidObject>, Memory);

/// The memory of an object.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// It takes this many bytes, as [`Estimate`] counts them.
    Taken(usize),
    /// It would take too many.
    Refused,
}

impl<K> Guarded<K> {
    /// A decoded object that the controller has written: it is no larger than the one that it was before.
    pub(crate) fn written(object: K) -> Self {
        Self(Ok(object), Memory::Taken(0))
    }

    /// The memory that the object takes, in bytes, as [`Estimate`] counts it.
    pub(crate) fn memory(&self) -> usize {
        match self.1 {
            Memory::Taken(bytes) => bytes,
            Memory::Refused => 0,
        }
    }

    /// Whether the object was not decoded because it would take too much memory. Nothing may decode it then.
    pub fn is_too_large(&self) -> bool {
        matches!(self.1, Memory::Refused)
    }
}

impl<K: Resource> Guarded<K> {
    /// Drops the object but for its metadata: it would take too much memory.
    pub(crate) fn refuse(&mut self, error: String) {
        let metadata = std::mem::take(self.meta_mut());
        *self = Self(Err(InvalidObject { error, metadata }), Memory::Refused);
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        read(raw.get()).map_err(D::Error::custom)
    }
}

fn read<K: DeserializeOwned>(text: &str) -> Result<Guarded<K>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial {
        #[serde(default)]
        metadata: ObjectMeta,
    }
    let text = without_managers(text);
    let bytes = Estimate::default().next(text.as_bytes());
    let (error, memory) = if bytes > LARGEST {
        let (taken, limit) = (mebibytes(bytes), mebibytes(LARGEST));
        let error = format!(
            "it would take {taken} MiB of memory, and the limit for one object is {limit} MiB: move large values, such as a configuration, into \
             ConfigMaps or Secrets"
        );
        (error, Memory::Refused)
    } else {
        match serde_json::from_str(&text) {
            Ok(object) => return Ok(Guarded(Ok(object), Memory::Taken(bytes))),
            Err(error) => (without_position(&error), Memory::Taken(0)),
        }
    };
    let Partial { metadata } = serde_json::from_str(&text)?;
    Ok(Guarded(Err(InvalidObject { error, metadata }), memory))
}

/// An object without its managed fields: often the larger part of it, and no reconciler reads them.
fn without_managers(text: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        managed_fields: &'a RawValue,
    }
    let Ok(Object { metadata: Metadata { managed_fields } }) = serde_json::from_str(text) else { return text.into() };
    let managers = managed_fields.get();
    let start = managers.as_ptr().addr() - text.as_ptr().addr();
    let (before, after) = (text.get(..start), text.get(start + managers.len()..));
    match (before, after) {
        (Some(before), Some(after)) => format!("{before}[]{after}").into(),
        _ => text.into(),
    }
}

/// The message of an error. Its position is one within an answer of the API server, which nobody sees.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned()
}

pub(crate) fn mebibytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|invalid| &invalid.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|invalid| &mut invalid.metadata, K::meta_mut)
    }
}

/// The decoded object. This is the one place that reports an object that could not be decoded; the caller handles what follows
/// from it.
pub fn decode<K>(guarded: &Guarded<K>) -> Result<&K, &InvalidObject>
where
    K: Resource<DynamicType = ()> + Debug,
{
    guarded.0.as_ref().inspect_err(|invalid| {
        let (kind, name) = (K::kind(&()), guarded.name_any());
        tracing::warn!(%kind, name, error = %invalid.error, "failed to decode the object");
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value) -> Value {
        json!({
            "metadata": {
                "name": "a", "resourceVersion": "7", "labels": {"b": "c"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {"f:labels": {"f:b": {}}}}}],
            },
            "spec": spec,
        })
    }

    /// As the API server lists objects.
    fn listed(objects: &[Value]) -> Vec<Guarded<Pod>> {
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": objects}).to_string();
        serde_json::from_str::<ObjectList<Guarded<Pod>>>(&list).expect("a list").items
    }

    /// Few bytes that take much memory.
    fn dense(count: usize) -> Value {
        json!({"containers": [{"name": "a"}], "more": vec![json!({"": 0}); count]})
    }

    #[test]
    fn an_object_that_cannot_be_decoded_keeps_its_metadata_and_affects_no_other() {
        let objects =
            listed(&[pod(&json!({"containers": "none"})), pod(&json!({"containers": []})), pod(&dense(LARGEST / 640))]);
        let errors: Vec<_> =
            objects.iter().map(|object| object.0.as_ref().err().map(|invalid| invalid.error.as_str())).collect();
        insta::assert_snapshot!(errors.iter().map(|error| error.unwrap_or("decoded")).collect::<Vec<_>>().join("\n"), @r#"
        invalid type: string "none", expected a sequence
        decoded
        it would take 10 MiB of memory, and the limit for one object is 8 MiB: move large values, such as a configuration, into ConfigMaps or Secrets
        "#);
        for object in &objects {
            let meta = object.meta();
            assert_eq!((meta.name.as_deref(), meta.resource_version.as_deref()), (Some("a"), Some("7")));
            assert_eq!(meta.labels.as_ref().map(std::collections::BTreeMap::len), Some(1));
            assert_eq!(meta.managed_fields, Some(Vec::new()), "no managed fields");
        }
        assert_eq!(objects.iter().map(Guarded::is_too_large).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((objects[0].memory(), objects[2].memory()), (0, 0));
        assert!(objects[1].memory() > 0);
    }

    #[test]
    fn a_watch_delivers_the_same() {
        let event = |spec: &Value| format!(r#"{{"type":"ADDED","object":{}}}"#, pod(spec));
        for (spec, expected) in [(json!({"containers": []}), false), (dense(LARGEST / 640), true)] {
            let WatchEvent::Added(object) =
                serde_json::from_str::<WatchEvent<Guarded<Pod>>>(&event(&spec)).expect("an event")
            else {
                panic!("it is an addition");
            };
            assert_eq!((object.is_too_large(), object.0.is_err()), (expected, expected));
        }
    }

    #[test]
    fn deep_nesting_is_an_error_of_one_object() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"items":[{{"metadata":{{"name":"a"}},"spec":{{"more":{deep},"containers":[]}}}}],"metadata":{{}}}}"#
        );
        let list: ObjectList<Guarded<Pod>> = serde_json::from_str(&text).expect("a list");
        assert_eq!(list.items[0].name_any(), "a");
    }

    #[test]
    fn managed_fields_are_cut_out_and_nothing_else() {
        for (text, expected) in [
            (
                r#"{"metadata":{"managedFields":[{"a":1}],"name":"b"},"spec":[{"a":1}]}"#,
                r#"{"metadata":{"managedFields":[],"name":"b"},"spec":[{"a":1}]}"#,
            ),
            (
                r#"{"a":[{"a":1}],"metadata":{"managedFields":[{"a":1}]}}"#,
                r#"{"a":[{"a":1}],"metadata":{"managedFields":[]}}"#,
            ),
            (r#"{"metadata":{"name":"b"}}"#, r#"{"metadata":{"name":"b"}}"#),
            (r#"{"managedFields":[1]}"#, r#"{"managedFields":[1]}"#),
            ("[", "["),
        ] {
            assert_eq!(without_managers(text), expected);
        }
    }
}
