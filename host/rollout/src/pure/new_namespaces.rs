//! Dry runs that would decide nothing, because the release creates the namespace of the object. Pure.
//!
//! The API server authorizes and decodes a create, and then refuses it if its namespace does not exist: before defaults, validation,
//! webhooks, admission policies and quotas, and before it looks for an object of that name (the admission plugin `NamespaceLifecycle`
//! cannot be turned off and is the first one). So in a namespace whose own dry-run create shows that it does not exist, the dry run of
//! another object shows only a missing permission, and a field that its kind does not have. Neither can be found where the permissions
//! were reviewed, or another object of the kind in that namespace is asked about, and every field is one that the kind has in all versions
//! of Kubernetes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pure::desired::Desired;

/// The objects, among those that are asked about, whose dry run decides nothing if their namespace does not exist, by their places in the
/// release. Without a review of the permissions, one object of each kind in each namespace is not among them.
pub(crate) fn undecided(desired: &[Desired], asked: &[usize], is_reviewed: bool) -> BTreeSet<usize> {
    let of_place = |index: &usize| Some((*index, desired.get(*index)?));
    let namespaces: BTreeSet<&str> = asked.iter().filter_map(|index| namespace(desired.get(*index)?)).collect();
    let mut tried = BTreeSet::new();
    asked
        .iter()
        .filter_map(of_place)
        .filter(|(_, desired)| {
            let inside = desired.key.namespace.as_deref().filter(|namespace| namespaces.contains(namespace));
            let Some(inside) = inside else { return false };
            let is_alike = is_reviewed || !tried.insert((inside, &desired.key.group, &desired.key.kind));
            is_alike && has_known_fields(&desired.value)
        })
        .map(|(index, _)| index)
        .collect()
}

/// The name of a Namespace.
pub(crate) fn namespace(desired: &Desired) -> Option<&str> {
    desired.key.is_namespace().then_some(desired.key.name.as_str())
}

/// The form of a value. Each may be null.
enum Form {
    Null,
    Text,
    Bool,
    Number,
    NumberOrText,
    /// A map with texts.
    Texts,
    /// A list of values of this form.
    List(&'static Form),
    /// These members, all of them optional.
    Members(&'static [(&'static str, Form)]),
}

const NAMES: Form = Form::List(&Form::Text);
const METADATA: Form = Form::Members(&[
    ("name", Form::Text),
    ("namespace", Form::Text),
    ("labels", Form::Texts),
    ("annotations", Form::Texts),
    ("finalizers", NAMES),
    // Tools write null.
    ("creationTimestamp", Form::Null),
    (
        "ownerReferences",
        Form::List(&Form::Members(&[
            ("apiVersion", Form::Text),
            ("kind", Form::Text),
            ("name", Form::Text),
            ("uid", Form::Text),
            ("controller", Form::Bool),
            ("blockOwnerDeletion", Form::Bool),
        ])),
    ),
]);
const REFERENCES: Form = Form::List(&Form::Members(&[("name", Form::Text)]));
const PORTS: Form = Form::List(&Form::Members(&[
    ("name", Form::Text),
    ("port", Form::Number),
    ("targetPort", Form::NumberOrText),
    ("protocol", Form::Text),
    ("nodePort", Form::Number),
]));
const RULES: Form = Form::List(&Form::Members(&[
    ("apiGroups", NAMES),
    ("resources", NAMES),
    ("resourceNames", NAMES),
    ("verbs", NAMES),
]));
const SUBJECTS: Form = Form::List(&Form::Members(&[
    ("apiGroup", Form::Text),
    ("kind", Form::Text),
    ("name", Form::Text),
    ("namespace", Form::Text),
]));
const ROLE: Form = Form::Members(&[("apiGroup", Form::Text), ("kind", Form::Text), ("name", Form::Text)]);

/// The members of kinds besides their metadata: those that every supported version of Kubernetes has.
fn members(api_version: &str, kind: &str) -> Option<&'static [(&'static str, Form)]> {
    Some(match (api_version, kind) {
        ("v1", "ConfigMap") => &[("data", Form::Texts), ("binaryData", Form::Texts), ("immutable", Form::Bool)],
        ("v1", "Secret") => {
            &[("data", Form::Texts), ("stringData", Form::Texts), ("type", Form::Text), ("immutable", Form::Bool)]
        }
        ("v1", "ServiceAccount") => {
            &[("secrets", REFERENCES), ("imagePullSecrets", REFERENCES), ("automountServiceAccountToken", Form::Bool)]
        }
        ("v1", "Service") => &[(
            "spec",
            Form::Members(&[
                ("type", Form::Text),
                ("selector", Form::Texts),
                ("ports", PORTS),
                ("clusterIP", Form::Text),
                ("sessionAffinity", Form::Text),
                ("publishNotReadyAddresses", Form::Bool),
            ]),
        )],
        ("rbac.authorization.k8s.io/v1", "Role") => &[("rules", RULES)],
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => &[("roleRef", ROLE), ("subjects", SUBJECTS)],
        _ => return None,
    })
}

/// Whether every field is certainly one of the kind, with a value of its type.
fn has_known_fields(object: &Value) -> bool {
    let Some(object) = object.as_object() else { return false };
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(members) = members(text("apiVersion"), text("kind")) else { return false };
    object.iter().all(|(name, value)| match name.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => has_form(value, &METADATA),
        _ => is_member(name, value, members),
    })
}

fn is_member(name: &str, value: &Value, members: &[(&str, Form)]) -> bool {
    members.iter().find(|(known, _)| *known == name).is_some_and(|(_, form)| has_form(value, form))
}

fn has_form(value: &Value, form: &Form) -> bool {
    match (form, value) {
        (_, Value::Null) | (Form::Text | Form::NumberOrText, Value::String(_)) | (Form::Bool, Value::Bool(_)) => true,
        (Form::Number | Form::NumberOrText, Value::Number(number)) => number.is_i64(),
        (Form::Texts, Value::Object(members)) => members.values().all(Value::is_string),
        (Form::List(form), Value::Array(items)) => items.iter().all(|item| has_form(item, form)),
        (Form::Members(known), Value::Object(members)) => {
            members.iter().all(|(name, value)| is_member(name, value, known))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    const RBAC: &str = "rbac.authorization.k8s.io/v1";

    fn object(api_version: &str, kind: &str, more: &Value) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {
            "name": "x", "namespace": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}, "creationTimestamp": null, "finalizers": ["e/f"],
            "ownerReferences": [{"apiVersion": "a/v1", "kind": "B", "name": "c", "uid": "u", "controller": true,
                "blockOwnerDeletion": true}]}});
        for (name, value) in more.as_object().unwrap() {
            object[name] = value.clone();
        }
        object
    }

    /// Objects whose fields are known.
    fn known() -> Vec<Value> {
        vec![
            object("v1", "ConfigMap", &json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}, "immutable": true})),
            object("v1", "Secret", &json!({"data": {"a": "AA=="}, "type": "Opaque"})),
            object(
                "v1",
                "ServiceAccount",
                &json!({"imagePullSecrets": [{"name": "p"}], "automountServiceAccountToken": false}),
            ),
            object(
                "v1",
                "Service",
                &json!({"spec": {"selector": {"a": "b"}, "clusterIP": "None",
                "ports": [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}, {"port": 81, "targetPort": 8081}]}}),
            ),
            object(RBAC, "Role", &json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})),
            object(
                RBAC,
                "RoleBinding",
                &json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
                "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "n"}]}),
            ),
        ]
    }

    /// Every place in a value where a member can be added.
    fn objects(value: &Value, place: &str) -> Vec<String> {
        match value {
            Value::Object(members) => std::iter::once(place.to_owned())
                .chain(
                    members
                        .iter()
                        .flat_map(|(name, value)| objects(value, &format!("{place}/{}", name.replace('/', "~1")))),
                )
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .flat_map(|(index, value)| objects(value, &format!("{place}/{index}")))
                .collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn objects_with_fields_of_their_kinds_are_known() {
        for object in known() {
            assert!(has_known_fields(&object), "{object}");
        }
        for (api_version, kind) in [("apps/v1", "Deployment"), ("v2", "ConfigMap"), ("", "")] {
            assert!(!has_known_fields(&object(api_version, kind, &json!({}))), "{kind}");
        }
    }

    proptest! {
        #[test]
        fn an_object_with_another_field_or_another_type_is_not_known(
            kind in 0..6usize, place in any::<prop::sample::Index>(), number in any::<bool>(),
        ) {
            let mut object = known().swap_remove(kind);
            let places = objects(&object, "");
            let place = &places[place.index(places.len())];
            // Maps take every name, and only texts.
            let is_map = ["labels", "annotations", "data", "binaryData", "selector"].iter().any(|map| place.ends_with(map));
            let value = if number || is_map { json!(7) } else { json!("text") };
            object.pointer_mut(place).unwrap()["unknown"] = value;
            prop_assert!(!has_known_fields(&object), "{place}: {object}");
        }

        #[test]
        fn an_object_of_each_kind_is_asked_about_unless_permissions_were_reviewed(
            objects in prop::collection::vec((0..6usize, 0..3usize), 0..20), is_reviewed in any::<bool>(),
        ) {
            let namespaces = ["new", "other", "n"];
            let own = ["new", "other"].into_iter().map(|name| {
                desired(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}), false)
            });
            let inside = objects.iter().map(|(kind, namespace)| {
                let mut object = known().swap_remove(*kind);
                object["metadata"]["namespace"] = json!(namespaces[*namespace]);
                desired(&object, true)
            });
            let all: Vec<Desired> = own.chain(inside).collect();
            let asked: Vec<usize> = (0..all.len()).collect();
            let left_out = undecided(&all, &asked, is_reviewed);
            for (index, desired) in all.iter().enumerate() {
                let in_new = desired.key.namespace.as_deref().is_some_and(|namespace| namespace != "n");
                let alike = |other: &Desired| (&other.key.kind, &other.key.namespace) == (&desired.key.kind, &desired.key.namespace);
                let is_first = all.iter().position(alike) == Some(index);
                prop_assert_eq!(left_out.contains(&index), in_new && (is_reviewed || !is_first), "{}", desired.key);
            }
        }
    }

    #[test]
    fn a_namespace_that_is_not_asked_about_may_exist() {
        let all = [
            desired(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}), false),
            desired(&known().swap_remove(0), true),
        ];
        assert_eq!(undecided(&all, &[1], true), BTreeSet::new());
        assert_eq!(undecided(&all, &[0], true), BTreeSet::new());
        assert_eq!(undecided(&all, &[0, 1], true), BTreeSet::from([1]));
    }
}
