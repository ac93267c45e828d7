//! What shows whom an object belongs to, without the rest of it. Pure.
//!
//! Every user who may create an object can give it the labels of a set. So the objects of a set are many, and as large as an API server
//! accepts, and whether one of them belongs to the owner must be known without reading all of them into memory.

use serde_json::{Map, Value};

/// The longest text that is kept. No name, label or UID is longer.
const LONGEST: usize = 512;
/// The domains of the labels and annotations that are kept.
const DOMAINS: &[&str] = &["applyset.kubernetes.io/", "chandler.dev/", "core.rukpak.io/"];
/// The most labels and annotations that are kept.
const KEPT: usize = 32;

/// The identity of an object, its controller, and the labels and annotations of Chandler, in the shape of the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Claims(Box<[u8]>);

impl Claims {
    /// The claims of an object.
    pub(crate) fn of(object: &Value) -> Self {
        Self(reduced(object).to_string().into_bytes().into())
    }

    /// The bytes in memory.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The object without what shows nothing.
    pub(crate) fn read(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

fn reduced(object: &Value) -> Value {
    let mut metadata = Map::new();
    let Some(all) = object.get("metadata").and_then(Value::as_object) else { return Value::Object(Map::new()) };
    for name in ["name", "namespace", "uid", "resourceVersion", "deletionTimestamp"] {
        metadata.extend(all.get(name).and_then(short).map(|text| (name.to_owned(), text)));
    }
    for name in ["labels", "annotations"] {
        let texts = all.get(name).and_then(Value::as_object).into_iter().flatten();
        let ours = texts.filter(|(name, _)| DOMAINS.iter().any(|domain| name.starts_with(domain)));
        let short = ours.filter_map(|(name, value)| Some((name.clone(), short(value)?)));
        let kept: Map<String, Value> = short.take(KEPT).collect();
        metadata.insert(name.to_owned(), Value::Object(kept));
    }
    let references = all.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let mut controllers = references.filter(|reference| reference.get("controller") == Some(&Value::Bool(true)));
    if let Some(controller) = controllers.next().and_then(Value::as_object) {
        let texts = ["kind", "name", "uid"].into_iter();
        let mut kept: Map<String, Value> =
            texts.filter_map(|name| Some((name.to_owned(), short(controller.get(name)?)?))).collect();
        kept.insert("controller".to_owned(), Value::Bool(true));
        metadata.insert("ownerReferences".to_owned(), Value::Array(vec![Value::Object(kept)]));
    }
    Value::Object(Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]))
}

fn short(value: &Value) -> Option<Value> {
    value.as_str().filter(|text| text.len() <= LONGEST).map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_small_whatever_the_object_holds() {
        let others: Map<String, Value> = (0..20_000).map(|number| (format!("k{number}"), json!("v"))).collect();
        let mut labels = others.clone();
        labels.insert("applyset.kubernetes.io/part-of".to_owned(), json!("set"));
        labels.extend((0..1_000).map(|number| (format!("chandler.dev/{number}"), json!("x".repeat(500)))));
        let reference = |uid: &str, controller: bool| json!({"kind": "K", "name": "a", "uid": uid, "controller": controller, "x": others});
        let object = json!({
            "data": others,
            "metadata": {
                "name": "a", "uid": "u", "labels": labels, "annotations": {"chandler.dev/seal": "s", "other": "o"},
                "ownerReferences": [reference("plain", false), reference("first", true), reference("second", true)],
            },
        });
        let claims = Claims::of(&object);
        assert!(claims.len() < 32 * 1024, "{}", claims.len());
        let read = claims.read();
        assert_eq!(read.get("data"), None);
        assert_eq!(read["metadata"]["labels"]["applyset.kubernetes.io/part-of"], "set");
        assert_eq!(read["metadata"]["annotations"], json!({"chandler.dev/seal": "s"}));
        let controller = json!([{"kind": "K", "name": "a", "uid": "first", "controller": true}]);
        assert_eq!(read["metadata"]["ownerReferences"], controller);
        for odd in [json!(1), json!({"metadata": []}), json!({"metadata": {"labels": 1, "ownerReferences": {}}})] {
            assert!(Claims::of(&odd).len() < 100, "{odd}");
        }
    }
}
