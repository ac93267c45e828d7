//! Pod templates: comparing them, hashing them, creating Pods from them.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    fields::{controller_reference, map},
    kind::Kind,
};
use crate::metadata;

/// The label that distinguishes the Pods of a Deployment's ReplicaSets.
pub(super) const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Whether two Pod templates are the same, the label of the hash apart (`EqualIgnoreHash`).
pub(super) fn same_template(one: Option<&Value>, other: Option<&Value>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    same(one.get("spec"), other.get("spec")) && same_metadata(one.get("metadata"), other.get("metadata"))
}

fn same_metadata(one: Option<&Value>, other: Option<&Value>) -> bool {
    let without_hash = |metadata: Option<&Value>| {
        let mut metadata = metadata.cloned().unwrap_or_default();
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(POD_TEMPLATE_HASH);
        }
        metadata
    };
    same(Some(&without_hash(one)), Some(&without_hash(other)))
}

/// Whether two values are the same when nothing, `null` and emptiness are one.
fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one.filter(|value| !is_empty(value)), other.filter(|value| !is_empty(value))) {
        (None, None) => true,
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            one.iter().all(|(field, value)| same(Some(value), other.get(field)))
                && other.iter().all(|(field, value)| one.contains_key(field) || is_empty(value))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(Some(one), Some(other)))
        }
        (one, other) => one == other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A hash of a value and of how often it collided, in the letters that names of ReplicaSets use.
pub(super) fn hash(value: &Value, collisions: i64) -> String {
    let mut digest = Sha256::new();
    digest_value(&mut digest, value);
    digest.update(collisions.to_be_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    let number = digest.iter().take(4).fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    safe_encode(&number.to_string())
}

fn digest_value(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().filter(|(_, value)| !is_empty(value)).collect();
            fields.sort_unstable_by_key(|(field, _)| *field);
            digest.update(b"{");
            for (field, value) in fields {
                digest.update(field.as_bytes());
                digest.update(b"=");
                digest_value(digest, value);
            }
            digest.update(b"}");
        }
        Value::Array(list) => {
            digest.update(b"[");
            for value in list {
                digest_value(digest, value);
                digest.update(b",");
            }
            digest.update(b"]");
        }
        scalar => digest.update(scalar.to_string().as_bytes()),
    }
}

/// Maps digits to letters without vowels, so that names hold no words (`k8s.io/apimachinery/pkg/util/rand.SafeEncodeString`).
fn safe_encode(digits: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    digits
        .bytes()
        .filter_map(|byte| ALPHABET.get(usize::from(byte) % ALPHABET.len()))
        .map(|byte| char::from(*byte))
        .collect()
}

/// A Pod of a workload's template; its name is given out by the server.
pub(super) fn pod(kind: Kind, owner: &Value, template: &Value) -> Value {
    let mut metadata = Map::new();
    metadata.insert("namespace".to_owned(), metadata::namespace(owner).into());
    metadata.insert("generateName".to_owned(), format!("{}-", metadata::name(owner)).into());
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([controller_reference(kind, owner)]));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": map(template, "/spec")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
    }

    #[test]
    fn templates_are_compared_without_the_hash_and_without_emptiness() {
        let plain = template("nginx");
        let mut labelled = plain.clone();
        labelled["metadata"]["labels"][POD_TEMPLATE_HASH] = "abc".into();
        labelled["metadata"]["creationTimestamp"] = Value::Null;
        labelled["spec"]["securityContext"] = json!({});
        assert!(same_template(Some(&plain), Some(&labelled)));
        assert!(same_template(Some(&labelled), Some(&plain)));
        assert!(!same_template(Some(&plain), Some(&template("apache"))));
        labelled["spec"]["hostNetwork"] = true.into();
        assert!(!same_template(Some(&plain), Some(&labelled)));
        assert!(!same_template(Some(&labelled), Some(&plain)));
    }

    #[test]
    fn hashes_are_stable_and_spell_no_words() {
        let one = hash(&template("nginx"), 0);
        assert_eq!(one, hash(&template("nginx"), 0));
        assert_ne!(one, hash(&template("nginx"), 1));
        assert_ne!(one, hash(&template("apache"), 0));
        assert!(one.len() <= 10 && one.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)), "{one}");
        let mut with_nothing = template("nginx");
        with_nothing["spec"]["securityContext"] = json!({});
        assert_eq!(one, hash(&with_nothing, 0));
    }
}
