//! Redacts values that may be secret from comparisons and messages. Pure.
//!
//! For a Secret, wherever it is, only its identity, its type and its metadata are shown; of its annotations only those whose
//! keys are known to hold no copy of the object. The same applies to a Secret inside another object, as an object or as text (a
//! manifest in a ConfigMap, `kubectl.kubernetes.io/last-applied-configuration` of a list). A hidden value is replaced by a
//! constant: a change remains visible, but nothing can be computed back from it, as it could from a digest.

use serde_json::Value;

use crate::pure::ownership::PathElement;

/// The text that replaces values that may be secret.
const HIDDEN: &str = "(hidden)";

/// Members that identify a Secret. Everything else is hidden, but for parts of its metadata.
const SHOWN: &[&str] = &["apiVersion", "kind", "type", "immutable"];

/// Members of the metadata of a Secret that are shown, with all that is in them. Of `managedFields`, for example, nothing is.
const SHOWN_METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// Domains of annotations that describe the object and never contain it. `kubectl.kubernetes.io` is not among them.
const HARMLESS: &[&str] = &[
    "app.kubernetes.io",
    "applyset.kubernetes.io",
    "cert-manager.io",
    "certificates.chandler.dev",
    "chandler.dev",
    "helm.sh",
    "kubernetes.io",
    "meta.helm.sh",
    "reconcile.chandler.dev",
];

/// Annotations that repeat the whole object. They are hidden for every kind, since they add no information.
const COPIES: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "objectset.rio.cattle.io/applied",
    "banzaicloud.com/last-applied",
];

/// Redacts a value; `steps` is the path to it, and the first `secret` of them lead to the Secret that contains it.
pub(crate) fn redacted(value: Value, steps: &[PathElement<'_>], secret: Option<usize>) -> Value {
    match secret {
        Some(depth) => in_secret(value, steps.get(depth..).unwrap_or_default()),
        None => match steps {
            [PathElement::Member("metadata"), PathElement::Member("annotations"), PathElement::Member(key), ..]
                if COPIES.contains(key) =>
            {
                HIDDEN.into()
            }
            [PathElement::Member("metadata"), PathElement::Member("annotations")] => {
                each_member(value, |key, value| if COPIES.contains(&key) { HIDDEN.into() } else { outside(value) })
            }
            [PathElement::Member("metadata")] => {
                in_metadata(value, |key, value| if COPIES.contains(&key) { HIDDEN.into() } else { outside(value) })
            }
            _ => outside(value),
        },
    }
}

/// Whether this is a Secret.
pub(crate) fn is_secret(value: &Value) -> bool {
    let of = |name: &str| value.get(name).and_then(Value::as_str);
    of("kind") == Some("Secret") && of("apiVersion").is_none_or(|version| !version.contains('/'))
}

/// Redacts a value outside of Secrets, which may contain some.
fn outside(value: Value) -> Value {
    match value {
        value if is_secret(&value) => in_secret(value, &[]),
        Value::String(text) if holds_secret(&text) => HIDDEN.into(),
        Value::Array(items) => items.into_iter().map(outside).collect(),
        object @ Value::Object(_) => each_member(object, |_, value| outside(value)),
        value => value,
    }
}

/// Redacts the value at this path inside a Secret.
fn in_secret(value: Value, steps: &[PathElement<'_>]) -> Value {
    match steps {
        [] => each_member(value, |name, value| in_secret(value, &[PathElement::Member(name)])),
        [PathElement::Member("metadata")] => each_member(value, |name, value| match name {
            "annotations" => each_member(value, annotation),
            shown if SHOWN_METADATA.contains(&shown) => value,
            _ => HIDDEN.into(),
        }),
        [PathElement::Member("metadata"), PathElement::Member("annotations")] => each_member(value, annotation),
        [PathElement::Member("metadata"), PathElement::Member("annotations"), PathElement::Member(key), ..] => {
            annotation(key, value)
        }
        [PathElement::Member("metadata"), PathElement::Member(name), ..] if SHOWN_METADATA.contains(name) => value,
        [PathElement::Member(name)] if SHOWN.contains(name) && !value.is_object() => value,
        _ => HIDDEN.into(),
    }
}

fn in_metadata(metadata: Value, annotation: impl Fn(&str, Value) -> Value) -> Value {
    each_member(metadata, |name, value| if name == "annotations" { each_member(value, &annotation) } else { value })
}

/// Redacts an annotation of a Secret.
fn annotation(key: &str, value: Value) -> Value {
    let harmless = key.split_once('/').is_some_and(|(domain, _)| HARMLESS.contains(&domain));
    if harmless && !value.as_str().is_some_and(holds_secret) { value } else { HIDDEN.into() }
}

/// Changes each member of an object; any other value is hidden.
fn each_member(value: Value, change: impl Fn(&str, Value) -> Value) -> Value {
    let Value::Object(members) = value else { return HIDDEN.into() };
    let changed = members.into_iter().map(|(name, value)| {
        let value = change(&name, value);
        (name, value)
    });
    Value::Object(changed.collect())
}

/// Removes the values of a Secret from a message of the API server: server-side apply quotes a value of the wrong type, such as
/// a number without quotes.
pub(crate) fn without_values(message: &str) -> String {
    const QUOTED: &str = "valueUnstructured{Value:";
    if !message.contains("Kind=Secret)") && !message.contains("Kind=Secret;") {
        return message.to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    for line in message.lines() {
        lines.push(match line.find(QUOTED) {
            // The value may contain any text, including brackets.
            Some(at) => format!("{}{HIDDEN}", line.get(..at).unwrap_or_default()),
            None => line.to_owned(),
        });
    }
    lines.join("\n")
}

/// Whether a text contains a Secret as YAML or JSON, escaped or not, as far as a search for `kind: Secret` shows.
fn holds_secret(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !matches!(c, '"' | '\'' | '\\' | ' ' | '\t')).collect();
    plain.match_indices("kind:Secret").any(|(at, found)| {
        let rest = plain.get(at + found.len()..).unwrap_or_default();
        !rest.starts_with(|c: char| c.is_ascii_alphanumeric() && !escaped_line_feed(rest))
    })
}

/// Whether the rest begins with the `n` or `r` of an escaped line feed.
fn escaped_line_feed(rest: &str) -> bool {
    rest.starts_with(['n', 'r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_api_server_quotes_are_hidden() {
        let message = |kind: &str| {
            format!(
                "failed to create typed patch object (ns/x; /v1, Kind={kind}): errors:\n  \
                 .data.password: expected string, got &value.valueUnstructured{{Value:12345}}\n  .x: other"
            )
        };
        insta::assert_snapshot!(without_values(&message("Secret")), @r"
        failed to create typed patch object (ns/x; /v1, Kind=Secret): errors:
          .data.password: expected string, got &value.(hidden)
          .x: other
        ");
        assert_eq!(without_values(&message("ConfigMap")), message("ConfigMap"));
    }

    /// Every member of a Secret and of its metadata, in the API or not, has the value of the Secret: as a whole, and field by field.
    #[test]
    fn what_is_not_listed_is_hidden() {
        use serde_json::{Map, json};

        let metadata = [
            "annotations",
            "clusterName",
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generateName",
            "generation",
            "labels",
            "managedFields",
            "name",
            "namespace",
            "ownerReferences",
            "resourceVersion",
            "selfLink",
            "uid",
            "of-tomorrow",
        ];
        let members = ["apiVersion", "data", "immutable", "kind", "stringData", "type", "status", "of-tomorrow"];
        let shown_below = |name: &str| SHOWN_METADATA.contains(&name);
        for (first, second) in
            members.map(|name| (name, None)).into_iter().chain(metadata.map(|name| ("metadata", Some(name))))
        {
            let value =
                if second == Some("annotations") { json!({"example.com/a": "hunter2"}) } else { json!("hunter2") };
            let mut steps = vec![PathElement::Member(first)];
            steps.extend(second.map(PathElement::Member));
            let is_shown = second.map_or(SHOWN.contains(&first), shown_below);
            let alone = redacted(value.clone(), &steps, Some(0)).to_string();
            assert_eq!(alone.contains("hunter2"), is_shown, "{first} {second:?}");
            let inner = match second {
                Some(name) => json!({name: value}),
                None => value,
            };
            let whole = Value::Object(Map::from_iter([(first.to_owned(), inner)]));
            assert_eq!(redacted(whole, &[], Some(0)).to_string().contains("hunter2"), is_shown, "{first} {second:?}");
        }
    }

    #[test]
    fn secrets_in_text_are_found() {
        for (text, found) in [
            ("kind: Secret\n", true),
            ("  kind:   'Secret'", true),
            (r#"{"kind":"Secret","data":{}}"#, true),
            (r#"{\"kind\": \"Secret\"}"#, true),
            (r"kind: Secret\napiVersion: v1", true),
            ("kind: SecretStore", false),
            ("kind: ConfigMap", false),
            ("a kind Secret", false),
        ] {
            assert_eq!(holds_secret(text), found, "{text}");
        }
    }

    #[test]
    fn copies_of_any_object_in_its_annotations_are_hidden() {
        use serde_json::json;

        let annotations = json!({"kapp.k14s.io/original": "replicas: 1", "example.com/team": "web"});
        let shown = json!({"kapp.k14s.io/original": HIDDEN, "example.com/team": "web"});
        let (metadata, below) = (PathElement::Member("metadata"), PathElement::Member("annotations"));
        assert_eq!(redacted(annotations.clone(), &[metadata, below], None), shown);
        let whole = json!({"annotations": annotations, "labels": {"a": "b"}});
        assert_eq!(redacted(whole, &[metadata], None), json!({"annotations": shown, "labels": {"a": "b"}}));
        for (name, shown) in [("kapp.k14s.io/original", HIDDEN), ("example.com/team", "text")] {
            assert_eq!(redacted("text".into(), &[metadata, below, PathElement::Member(name)], None), shown, "{name}");
        }
    }
}
