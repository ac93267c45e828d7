//! Errors of the API server about values that server-side apply cannot parse. Pure.
//!
//! Clients that do not apply can store such values: items of a list without the member that identifies them (a Secret without a
//! name in a ServiceAccount), or values that a CustomResourceDefinition no longer allows. The API server then answers every
//! apply, from any client, with status 500 and no reason. This is a refusal and not an outage, so waiting does not help. The messages come
//! from `structuredmerge.go` and `skipnonapplied.go` in `k8s.io/apimachinery/pkg/util/managedfields/internal`, and of
//! `sigs.k8s.io/structured-merge-diff/v6/typed`.

use serde_json::{Map, Value};

/// The applied object has the wrong type.
const APPLIED: &str = "failed to create typed patch object (";
/// The stored object has the wrong type. Once it was updated, nothing tracks the owners of its fields.
const STORED: &[&str] = &["failed to create typed live object (", "failed to create manager for existing fields: "];
/// A list has an item without its key.
const WITHOUT_KEYS: &str = "associative list with keys has an element that omits all key fields ";

/// Whether the message of a status 500 means that an object has the wrong type.
pub(crate) fn is_untyped(message: &str) -> bool {
    is_applied(message) || is_stored(message)
}

/// Whether the applied object has the wrong type, so that only another release helps.
pub(crate) fn is_applied(message: &str) -> bool {
    message.starts_with(APPLIED)
}

fn is_stored(message: &str) -> bool {
    STORED.iter().any(|start| message.starts_with(start))
}

/// A value of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Untyped {
    /// The path to it, up to the first list.
    pub(crate) path: Vec<String>,
    /// The members of which each item of this list needs one, if some items have none.
    pub(crate) keys: Vec<String>,
}

/// The values of the stored object that the message names.
pub(crate) fn named(message: &str) -> Vec<Untyped> {
    if !is_stored(message) {
        return Vec::new();
    }
    // The object comes first, in parentheses: `(namespace/name; group/version, Kind=kind)`.
    let Some((_, complaints)) = message.split_once(" to smd typed: ").or_else(|| message.split_once("): ")) else {
        return Vec::new();
    };
    complaints.lines().filter_map(|line| untyped(line.trim_start())).collect()
}

fn untyped(complaint: &str) -> Option<Untyped> {
    let (place, error) = complaint.strip_prefix('.')?.split_once(": ")?;
    // For a value inside a list, the list is named.
    let (path, inside) = place.split_once('[').map_or((place, false), |(path, _)| (path, true));
    let keys = error.split_once(WITHOUT_KEYS).filter(|_| !inside).and_then(|(_, keys)| keys_of(keys));
    Some(Untyped { path: path.split('.').map(str::to_owned).collect(), keys: keys.unwrap_or_default() })
}

/// Go prints a list of strings as `["a" "b"]`.
fn keys_of(text: &str) -> Option<Vec<String>> {
    let (list, _) = text.strip_prefix('[')?.split_once(']')?;
    Some(list.split_whitespace().map(|key| key.trim_matches('"').to_owned()).collect())
}

/// Removes the items that have none of the members of which they need one.
pub(crate) fn remove_items_without_keys(object: &mut Value, untyped: &Untyped) {
    let list = untyped.path.iter().try_fold(object, |value, name| value.get_mut(name));
    if let (Some(Value::Array(items)), false) = (list, untyped.keys.is_empty()) {
        let has_key = |item: &Map<String, Value>| untyped.keys.iter().any(|key| item.contains_key(key));
        items.retain(|item| item.as_object().is_some_and(has_key));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OBJECT: &str = "(n/keeper; /v1, Kind=ServiceAccount)";

    #[test]
    fn errors_about_applied_and_stored_objects_are_distinguished() {
        for (message, untyped, applied) in [
            (format!("failed to create typed patch object {OBJECT}: .a: field not declared in schema"), true, true),
            (format!("failed to create typed live object {OBJECT}: .a: expected map, got &{{7}}"), true, false),
            ("failed to create manager for existing fields: failed to convert new object".to_owned(), true, false),
            ("etcdserver: request timed out".to_owned(), false, false),
            ("failed calling webhook: failed to create typed live object (".to_owned(), false, false),
        ] {
            assert_eq!((is_untyped(&message), is_applied(&message)), (untyped, applied), "{message}");
        }
    }

    #[test]
    fn values_of_the_wrong_type_are_named() {
        let no_key = r#"associative list with keys has an element that omits all key fields ["a" "b"] (and doesn't have default values for any key fields)"#;
        let live = format!("failed to create typed live object {OBJECT}: ");
        let of = |path: &[&str], keys: &[&str]| Untyped {
            path: path.iter().map(|&name| name.to_owned()).collect(),
            keys: keys.iter().map(|&name| name.to_owned()).collect(),
        };
        for (message, want) in [
            (
                format!(
                    "failed to create manager for existing fields: failed to convert new object {OBJECT} to smd typed: .secrets: element 0: {no_key}"
                ),
                vec![of(&["secrets"], &["a", "b"])],
            ),
            (
                format!("{live}errors:\n  .spec.items: element 3: {no_key}\n  .spec.of: expected list, got &{{x}}"),
                vec![of(&["spec", "items"], &["a", "b"]), of(&["spec", "of"], &[])],
            ),
            (format!(r#"{live}.spec.items[a="x: y"].more: element 0: {no_key}"#), vec![of(&["spec", "items"], &[])]),
            (format!("{live}nothing that can be read"), vec![]),
            ("failed to create manager for existing fields: odd".to_owned(), vec![]),
            (format!("failed to create typed patch object {OBJECT}: .a: field not declared in schema"), vec![]),
        ] {
            assert_eq!(named(&message), want, "{message}");
        }
    }

    #[test]
    fn other_items_stay() {
        let mut object = json!({"a": {"secrets": [{"name": "x"}, {}, {"uid": "y"}, 7]}, "b": [{}]});
        for (path, keys) in [(vec!["a", "secrets"], vec!["name"]), (vec!["b"], vec![]), (vec!["no"], vec!["name"])] {
            let texts = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
            remove_items_without_keys(&mut object, &Untyped { path: texts(path), keys: texts(keys) });
        }
        assert_eq!(object, json!({"a": {"secrets": [{"name": "x"}]}, "b": [{}]}));
    }
}
