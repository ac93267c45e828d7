//! The differences between two states of an object, field by field, for display. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_core::ObjectKey;
use serde::Serialize;
use serde_json::Value;

use crate::pure::{
    desired::APPLIED,
    difference::normalized,
    ownership::{self, Manager, PathElement},
    secrets,
};

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The path, as in `spec.template.spec.containers[name=manager].image`.
    pub path: String,
    /// The current value, or `None` if the field does not exist. Values of Secrets are hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value, or `None` if the field will not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A field that differs from the desired state, with the field manager that set it. It contains no values, since they may be
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldDrift {
    /// The path, as in `spec.template.spec.containers[name=manager].image`.
    pub path: String,
    /// Whether the field does not exist any more. No field manager is recorded for a removal.
    pub removed: bool,
    /// The field manager that set the value, or `None` if only Chandler is recorded.
    pub manager: Option<Manager>,
}

impl fmt::Display for FieldDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.manager {
            _ if self.removed => write!(f, "{} was removed", self.path),
            Some(manager) => write!(f, "{} was {manager}", self.path),
            None => write!(f, "{} was changed", self.path),
        }
    }
}

/// Members of metadata that the API server sets or that repeat other fields.
const NOISE: &[&str] = &["uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "selfLink"];

/// The members that identify items of lists, the most specific first.
const KEYS: &[&str] = &["name", "type", "key", "ip", "uid"];

/// The fields that differ between two states of an object, in the order of their paths. The status and what the API server sets do not
/// count; values of Secrets, also of Secrets inside the object, are hidden.
pub fn changes(key: &ObjectKey, before: &Value, after: &Value) -> Vec<FieldChange> {
    let (before, after) = (comparable(before), comparable(after));
    let secret = (key.group.is_empty() && key.kind == "Secret").then_some(0);
    differences(secret, &before, &after)
        .into_iter()
        .map(|Difference { path, steps, secret, before, after }| {
            let hidden = |value: Option<Value>| value.map(|value| secrets::redacted(value, &steps, secret));
            FieldChange { path, before: hidden(before), after: hidden(after) }
        })
        .collect()
}

/// The number of fields of an object for which the field manager is determined. Messages and the status list fewer.
const ATTRIBUTED: usize = 500;

/// The fields in which an object differs from its desired state, in the order of their paths, with their field managers.
pub(crate) fn drift(live: &Value, wanted: &Value) -> Vec<FieldDrift> {
    let (before, after) = (comparable(live), comparable(wanted));
    differences(None, &before, &after)
        .into_iter()
        .enumerate()
        .map(|(number, Difference { path, steps, before, .. })| {
            let removed = before.is_none();
            // Finding the manager of an item means checking all items in the manager's record.
            let attributed = !removed && number < ATTRIBUTED;
            FieldDrift { path, removed, manager: attributed.then(|| ownership::manager(live, &steps)).flatten() }
        })
        .collect()
}

fn differences<'a>(secret: Option<usize>, before: &'a Value, after: &'a Value) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    compare(Place { secret, ..Place::default() }, Some(before), Some(after), &mut found);
    found
}

/// A place where two states differ.
struct Difference<'a> {
    path: String,
    /// The path in the state before.
    steps: Vec<PathElement<'a>>,
    /// The number of path elements up to the Secret that contains the place.
    secret: Option<usize>,
    before: Option<Value>,
    after: Option<Value>,
}

/// A place in two states of an object.
#[derive(Clone, Default)]
struct Place<'a> {
    path: String,
    steps: Vec<PathElement<'a>>,
    secret: Option<usize>,
}

impl<'a> Place<'a> {
    fn member(&self, name: &'a str) -> Self {
        Self { path: member(&self.path, name), steps: self.with(PathElement::Member(name)), secret: self.secret }
    }

    /// Marks the place as inside a Secret, if one of its states is a Secret.
    fn seen(mut self, states: [Option<&Value>; 2]) -> Self {
        if self.secret.is_none() && states.into_iter().flatten().any(secrets::is_secret) {
            self.secret = Some(self.steps.len());
        }
        self
    }

    /// An item that is identified by this text, and its previous state.
    fn item(&self, label: &str, index: usize, before: &'a Value) -> Self {
        let steps = self.with(PathElement::Item(index, before));
        Self { path: format!("{}[{label}]", self.path), steps, secret: self.secret }
    }

    fn with(&self, step: PathElement<'a>) -> Vec<PathElement<'a>> {
        self.steps.iter().copied().chain([step]).collect()
    }

    fn differs(self, before: Option<Value>, after: Option<Value>) -> Difference<'a> {
        Difference { path: self.path, steps: self.steps, secret: self.secret, before, after }
    }
}

/// The parts of an object that are compared.
fn comparable(object: &Value) -> Value {
    let mut object = normalized(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in NOISE {
            metadata.remove(*name);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    object
}

fn compare<'a>(place: Place<'a>, before: Option<&'a Value>, after: Option<&'a Value>, found: &mut Vec<Difference<'a>>) {
    let place = place.seen([before, after]);
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                compare(place.member(name), before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            if let Some(key) = key_of(before, after) {
                by_key(&place, key, before, after, found);
            } else if before.len() == after.len() {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    compare(place.item(&index.to_string(), index, before), Some(before), Some(after), found);
                }
            } else {
                found.push(place.differs(Some(before.clone().into()), Some(after.clone().into())));
            }
        }
        (before, after) => found.push(place.differs(before.cloned(), after.cloned())),
    }
}

/// Compares items with the same name. Items that only moved are reported as a change of the order.
fn by_key<'a>(place: &Place<'a>, key: &str, before: &'a [Value], after: &'a [Value], found: &mut Vec<Difference<'a>>) {
    let name = |item: &'a Value| item.get(key).and_then(Value::as_str).unwrap_or_default();
    let names = |items: &'a [Value]| items.iter().map(name).collect::<Vec<&str>>();
    let indexed = |items: &'a [Value]| -> BTreeMap<&str, (usize, &Value)> {
        items.iter().enumerate().map(|(index, item)| (name(item), (index, item))).collect()
    };
    let (old, new) = (names(before), names(after));
    let (old_items, new_items) = (indexed(before), indexed(after));
    let all: BTreeSet<&str> = old.iter().chain(&new).copied().collect();
    for wanted in all {
        let (was, becomes) = (old_items.get(wanted).copied(), new_items.get(wanted).copied());
        if let Some((index, any)) = was.or(becomes) {
            let place = place.item(&format!("{key}={wanted}"), index, any);
            compare(place, was.map(|(_, item)| item), becomes.map(|(_, item)| item), found);
        }
    }
    let kept = |names: &[&'a str], others: &BTreeMap<&str, _>| -> Vec<&'a str> {
        names.iter().copied().filter(|name| others.contains_key(name)).collect()
    };
    if kept(&old, &new_items) != kept(&new, &old_items) {
        let mut place = place.clone();
        place.path.push_str(" (order)");
        found.push(place.differs(Some(Value::from(old)), Some(Value::from(new))));
    }
}

/// The member that identifies the items of both lists, if there is one.
pub(crate) fn key_of(one: &[Value], other: &[Value]) -> Option<&'static str> {
    KEYS.iter().copied().find(|key| tells_apart(key, one) && tells_apart(key, other))
}

/// Whether each item has a unique name.
fn tells_apart(key: &str, items: &[Value]) -> bool {
    let names: BTreeSet<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
    names.len() == items.len()
}

/// The path of a member. A name that could be read as several path elements is quoted.
fn member(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '$');
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", Value::from(name)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(kind: &str) -> ObjectKey {
        ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: Some("n".into()),
            name: "x".into(),
        }
    }

    fn lines(kind: &str, before: &Value, after: &Value) -> String {
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        let line =
            |change: &FieldChange| format!("{}: {} => {}\n", change.path, text(&change.before), text(&change.after));
        changes(&key(kind), before, after).iter().map(line).collect()
    }

    #[test]
    fn paths_have_the_usual_notation() {
        let before = json!({
            "metadata": {"uid": "a", "resourceVersion": "1", "labels": {"app.kubernetes.io/name": "x"},
                         "annotations": {"chandler.dev/applied": "1"}},
            "spec": {"replicas": 1, "ports": [1, 2], "args": ["a"],
                     "containers": [{"name": "a", "image": "i:1"}, {"name": "b"}]},
            "status": {"ready": true},
        });
        let after = json!({
            "metadata": {"uid": "a", "resourceVersion": "2", "labels": {"app.kubernetes.io/name": "y"},
                         "annotations": {"chandler.dev/applied": "2"}},
            "spec": {"replicas": 2, "ports": [1, 3], "args": ["a", "b"],
                     "containers": [{"name": "c"}, {"name": "a", "image": "i:2"}]},
        });
        insta::assert_snapshot!(lines("ConfigMap", &before, &after), @r#"
        metadata.labels["app.kubernetes.io/name"]: "x" => "y"
        spec.args: ["a"] => ["a","b"]
        spec.containers[name=a].image: "i:1" => "i:2"
        spec.containers[name=b]: {"name":"b"} => -
        spec.containers[name=c]: - => {"name":"c"}
        spec.ports[1]: 2 => 3
        spec.replicas: 1 => 2
        "#);
        assert_eq!(lines("ConfigMap", &before, &before), "");
        let order = json!({"a": [{"name": "x"}, {"name": "y"}]});
        let turned = json!({"a": [{"name": "y"}, {"name": "x"}]});
        assert_eq!(lines("ConfigMap", &order, &turned), "a (order): [\"x\",\"y\"] => [\"y\",\"x\"]\n");
    }

    #[test]
    fn names_that_could_be_several_path_elements_are_quoted() {
        for (name, path) in [
            ("a-b", "data.a-b"),
            ("a_b", "data.a_b"),
            ("$a", "data.$a"),
            ("A1", "data.A1"),
            ("a.b", r#"data["a.b"]"#),
            ("a b", r#"data["a b"]"#),
            ("", r#"data[""]"#),
        ] {
            assert_eq!(member("data", name), path);
        }
        assert_eq!((member("", "spec"), member("", "a.b")), ("spec".to_owned(), r#"["a.b"]"#.to_owned()));
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let before = json!({"data": {"a": "b2xk"}, "type": "Opaque"});
        let after = json!({"data": {"a": "bmV3", "b": "bmV3"}, "type": "kubernetes.io/tls"});
        insta::assert_snapshot!(lines("Secret", &before, &after), @r#"
        data.a: "(hidden)" => "(hidden)"
        data.b: - => "(hidden)"
        type: "Opaque" => "kubernetes.io/tls"
        "#);
    }

    /// The value of a Secret, as text and in its stored form.
    const VALUES: [&str; 2] = ["hunter2", "aHVudGVyMg=="];

    fn applied(version: &str) -> String {
        let [text, stored] = VALUES;
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"p": text}, "data": {"q": stored}, "v": version})
            .to_string()
    }

    fn assert_hidden(shown: &str) {
        assert!(VALUES.iter().all(|value| !shown.contains(value)), "{shown}");
    }

    #[test]
    fn copies_of_a_secret_in_its_annotations_are_not_shown() {
        let annotated = |version: &str, description: &str| {
            json!({"metadata": {"labels": {"app": version}, "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": applied(version),
                "objectset.rio.cattle.io/applied": version,
                "example.com/password": format!("hunter2 {version}"),
                "kubernetes.io/description": description,
                "helm.sh/hook": version,
            }}})
        };
        let shown = lines("Secret", &annotated("1", "old"), &annotated("2", "new"));
        insta::assert_snapshot!(shown, @r#"
        metadata.annotations["example.com/password"]: "(hidden)" => "(hidden)"
        metadata.annotations["helm.sh/hook"]: "1" => "2"
        metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]: "(hidden)" => "(hidden)"
        metadata.annotations["kubernetes.io/description"]: "old" => "new"
        metadata.annotations["objectset.rio.cattle.io/applied"]: "(hidden)" => "(hidden)"
        metadata.labels.app: "1" => "2"
        "#);
        // All annotations, or all metadata, are added or removed at once.
        let bare = [json!({"metadata": {"labels": {"app": "1"}}}), json!({})];
        for bare in bare {
            let shown = lines("Secret", &annotated("1", "old"), &bare);
            assert_hidden(&shown);
            assert!(shown.contains("(hidden)") && shown.contains("\"helm.sh/hook\":\"1\""), "{shown}");
            assert_hidden(&lines("Secret", &bare, &annotated("1", "old")));
        }
    }

    #[test]
    fn secrets_inside_other_objects_are_not_shown() {
        let embedding = |value: &str| {
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": value}});
            let yaml = format!("kind: Secret\napiVersion: v1\nstringData:\n  p: {value}\n");
            json!({
                "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": secret.to_string()}},
                "spec": {"resources": [secret.clone()], "list": {"kind": "List", "items": [secret, {"kind": "Pod", "v": value.len()}]}},
                "data": {"secret.yaml": yaml, "plain": value.len().to_string()},
            })
        };
        let shown = lines("ConfigMap", &embedding("hunter2"), &embedding("other"));
        assert_hidden(&shown);
        insta::assert_snapshot!(shown, @r#"
        data.plain: "7" => "5"
        data["secret.yaml"]: "(hidden)" => "(hidden)"
        metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]: "(hidden)" => "(hidden)"
        spec.list.items[0].stringData.p: "(hidden)" => "(hidden)"
        spec.list.items[1].v: 7 => 5
        spec.resources[0].stringData.p: "(hidden)" => "(hidden)"
        "#);
        assert_hidden(&lines("ConfigMap", &embedding("hunter2"), &json!({})));
    }

    #[test]
    fn drift_names_the_field_manager() {
        let live = json!({
            "metadata": {"managedFields": [
                {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {
                    "f:replicas": {}, "f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}, "f:args": {}}}},
                {"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}}},
            ], "labels": {"app": "other"}},
            "spec": {"replicas": 3, "paused": true, "containers": [{"name": "a", "image": "i:2"}], "args": ["x"]},
        });
        let wanted = json!({
            "metadata": {"labels": {"app": "this", "tier": "web"}},
            "spec": {"replicas": 1, "paused": false, "containers": [{"name": "a", "image": "i:1"}], "args": ["x", "y"]},
        });
        let shown: Vec<String> = drift(&live, &wanted).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        metadata.labels.app was applied by argocd
        metadata.labels.tier was removed
        spec.args was set by kubectl-edit
        spec.containers[name=a].image was set by kubectl-edit
        spec.paused was changed
        spec.replicas was set by kubectl-edit
        ");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-b]", inner.clone()), 0..3).prop_map(|items| {
                    items.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
                }),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn changes_are_reported_exactly_where_states_differ(before in any_json(), after in any_json()) {
            let (before, after) = (json!({"spec": before}), json!({"spec": after}));
            let shown = changes(&key("ConfigMap"), &before, &after);
            prop_assert_eq!(shown.is_empty(), before == after);
            prop_assert!(shown.iter().all(|change| change.before != change.after));
        }
    }
}
