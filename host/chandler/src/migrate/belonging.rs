//! Which objects belong to what another installer runs.
//!
//! A ClusterServiceVersion can claim anything: any user who may write one in a namespace can name CRDs, roles and images of other owners in
//! it. Only evidence that its author cannot write counts: the live object itself, and the bundle of the catalog.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ForeignObject, migration::text};

/// What OLM writes in the annotations of a CRD that it applied for a ClusterServiceVersion.
const INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";
/// The kind that manages installations of OLM v0.
const CSV: &str = "ClusterServiceVersion";

/// Whether a live object belongs to one of these managers: by an owner reference with its UID, from the namespace of the manager; or, for an
/// object that cannot have one, by what OLM writes to it. Only a user who may write the object itself can write either.
pub fn belongs(live: &Value, managers: &[ForeignObject]) -> bool {
    managers.iter().any(|manager| is_owned(live, manager) || is_marked(live, manager))
}

fn is_owned(live: &Value, manager: &ForeignObject) -> bool {
    // References do not cross namespaces.
    let reachable = manager.namespace.is_none() || manager.namespace.as_deref() == text(live, "/metadata/namespace");
    let references = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut references = references.into_iter().flatten();
    let is_it = |reference: &Value| {
        text(reference, "/uid") == Some(&manager.uid)
            && text(reference, "/kind") == Some(&manager.kind)
            && text(reference, "/name") == Some(&manager.name)
    };
    reachable && !manager.uid.is_empty() && references.any(is_it)
}

/// Objects of a ClusterServiceVersion outside of its namespace have no owner reference.
fn is_marked(live: &Value, manager: &ForeignObject) -> bool {
    let Some(namespace) = manager.namespace.as_deref().filter(|_| manager.kind == CSV) else { return false };
    if text(live, "/metadata/namespace") == Some(namespace) {
        return false;
    }
    let label = |key: &str| live.pointer("/metadata/labels")?.get(key)?.as_str();
    let is_labelled = label("olm.owner") == Some(&manager.name)
        && label("olm.owner.namespace") == Some(namespace)
        && label("olm.owner.kind") == Some(CSV);
    let annotations = live.pointer("/metadata/annotations").and_then(Value::as_object);
    let alongside = format!("{namespace}/{}", manager.name);
    let is_alongside = |(key, value): (&String, &Value)| {
        key.starts_with(INSTALLED_ALONGSIDE) && value.as_str() == Some(alongside.as_str())
    };
    let is_crd = text(live, "/kind") == Some("CustomResourceDefinition");
    is_labelled || is_crd && annotations.into_iter().flatten().any(is_alongside)
}

/// The other ClusterServiceVersions, by namespace and name, that a CRD was installed for: one operator in several namespaces shares its CRDs,
/// and each object has one owner here. Whether they still exist is for the caller to find out.
pub fn sharers<'a>(live: &'a Value, managers: &[ForeignObject]) -> Vec<(&'a str, &'a str)> {
    let annotations = live.pointer("/metadata/annotations").and_then(Value::as_object);
    let alongside = annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(INSTALLED_ALONGSIDE));
    let places = alongside.filter_map(|(_, value)| value.as_str()?.split_once('/'));
    // Another name in the same namespace is an earlier version.
    places.filter(|(namespace, _)| managers.iter().all(|it| it.namespace.as_deref() != Some(*namespace))).collect()
}

/// The BundleDeployment that has an object.
pub fn deployment_of(live: &Value) -> Option<String> {
    let references = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut references = references.into_iter().flatten();
    let is_deployment = |reference: &&Value| {
        text(reference, "/kind") == Some("BundleDeployment")
            && text(reference, "/apiVersion").is_some_and(|version| version.starts_with("core.rukpak.io/"))
    };
    references.find(is_deployment).and_then(|reference| text(reference, "/name")).map(str::to_owned)
}

/// Whether an object that would be created grants nothing that OLM has not granted: it is a role or a binding of the bundle, which OLM made
/// under another name. `created` are all objects that would be created, `live` the roles and bindings of the cluster, of which only the
/// managers' count.
pub fn is_granted(object: &Value, created: &[Value], live: &[Value], managers: &[ForeignObject]) -> bool {
    let of_managers: Vec<&Value> = live.iter().filter(|it| belongs(it, managers)).collect();
    match text(object, "/kind") {
        Some("ClusterRole" | "Role") => twin_roles(object, &of_managers).next().is_some(),
        Some("ClusterRoleBinding" | "RoleBinding") => has_twin_binding(object, created, &of_managers),
        _ => false,
    }
}

fn same_place(one: &Value, other: &Value) -> bool {
    text(one, "/kind") == text(other, "/kind") && text(one, "/metadata/namespace") == text(other, "/metadata/namespace")
}

/// The live roles that have all rules of a role.
fn twin_roles<'a>(role: &'a Value, live: &'a [&'a Value]) -> impl Iterator<Item = &'a Value> {
    let aggregates = role.pointer("/aggregationRule").is_some();
    let wanted = rules(role);
    live.iter().copied().filter(move |twin| !aggregates && same_place(role, twin) && wanted.is_subset(&rules(twin)))
}

/// The rules of a role, in one form.
fn rules(role: &Value) -> BTreeSet<String> {
    let all = role.pointer("/rules").and_then(Value::as_array);
    let sorted = |rule: &Value| {
        let lists = ["/apiGroups", "/nonResourceURLs", "/resourceNames", "/resources", "/verbs"];
        let lists = lists.map(|pointer| {
            let mut list: Vec<String> = match rule.pointer(pointer) {
                // The core group is an empty text.
                Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                _ => Vec::new(),
            };
            list.sort();
            list
        });
        format!("{lists:?}")
    };
    all.into_iter().flatten().map(sorted).collect()
}

/// Whether a live binding gives the same accounts a role that has the rules of the role of this binding.
fn has_twin_binding(binding: &Value, created: &[Value], live: &[&Value]) -> bool {
    let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
    let is_role = |role: &&Value| text(role, "/kind") == kind && text(role, "/metadata/name") == name;
    let role = created.iter().find(is_role);
    let twins: Vec<&str> = role
        .into_iter()
        .flat_map(|role| twin_roles(role, live))
        .filter_map(|twin| text(twin, "/metadata/name"))
        .collect();
    let subjects = subjects(binding);
    let is_twin = |other: &Value| {
        same_place(binding, other)
            && text(other, "/roleRef/kind") == kind
            && text(other, "/roleRef/name").is_some_and(|name| twins.contains(&name))
            && !subjects.is_empty()
            && subjects.is_subset(&self::subjects(other))
    };
    live.iter().any(|other| is_twin(other))
}

fn subjects(binding: &Value) -> BTreeSet<Vec<String>> {
    let all = binding.pointer("/subjects").and_then(Value::as_array);
    let subject = |subject: &Value| {
        ["/kind", "/namespace", "/name"].map(|part| text(subject, part).unwrap_or_default().to_owned()).to_vec()
    };
    all.into_iter().flatten().map(subject).collect()
}

/// Whether the list of objects to delete of a migration that has begun is one that this command writes: any author of a BundleDeployment can
/// write the annotation, and what it lists is deleted with the rights of the user who runs the command.
pub fn is_own_list(install_namespace: &str, managers: &[ForeignObject]) -> bool {
    let is_known = |manager: &ForeignObject| {
        let (group, _) = manager.api_version.split_once('/').unwrap_or_default();
        match (group, manager.kind.as_str(), &manager.namespace) {
            ("operators.coreos.com", "Subscription" | CSV, Some(namespace)) => namespace == install_namespace,
            ("olm.operatorframework.io", "ClusterExtension" | "ClusterObjectSet", None) => true,
            _ => false,
        }
    };
    !managers.is_empty() && managers.iter().all(is_known)
}

/// The names of roles and bindings, for a message.
pub fn described(object: &Value) -> String {
    let (kind, name) = (text(object, "/kind").unwrap_or_default(), text(object, "/metadata/name").unwrap_or_default());
    let namespace = text(object, "/metadata/namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let role = text(object, "/roleRef/name").map(|role| {
        let subjects = object.pointer("/subjects").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<&str> = subjects.filter_map(|subject| text(subject, "/name")).collect();
        format!(", which gives {role} to {}", names.join(", "))
    });
    format!("{kind} {namespace}{name}{}", role.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn csv() -> ForeignObject {
        ForeignObject {
            api_version: "operators.coreos.com/v1alpha1".to_owned(),
            kind: CSV.to_owned(),
            namespace: Some("team".to_owned()),
            name: "app.v1".to_owned(),
            uid: "1".to_owned(),
        }
    }

    fn reference(kind: &str, name: &str, uid: &str) -> Value {
        json!([{"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "name": name, "uid": uid}])
    }

    fn labels(name: &str, namespace: &str) -> Value {
        json!({"olm.owner": name, "olm.owner.namespace": namespace, "olm.owner.kind": CSV})
    }

    #[test]
    fn an_object_belongs_by_its_uid_or_by_what_olm_wrote_to_it() {
        let crd = |metadata: Value| json!({"kind": "CustomResourceDefinition", "metadata": metadata});
        let alongside = |text: &str| json!({format!("{INSTALLED_ALONGSIDE}ab12"): text});
        for (live, expected) in [
            (json!({"metadata": {"namespace": "team", "ownerReferences": reference(CSV, "app.v1", "1")}}), true),
            (json!({"metadata": {"namespace": "team", "ownerReferences": reference(CSV, "app.v1", "2")}}), false),
            (json!({"metadata": {"namespace": "team", "ownerReferences": reference(CSV, "other", "1")}}), false),
            (json!({"metadata": {"namespace": "team", "ownerReferences": reference("Pod", "app.v1", "1")}}), false),
            (json!({"metadata": {"namespace": "other", "ownerReferences": reference(CSV, "app.v1", "1")}}), false),
            (json!({"metadata": {"ownerReferences": reference(CSV, "app.v1", "1")}}), false),
            (json!({"metadata": {"labels": labels("app.v1", "team")}}), true),
            (json!({"metadata": {"labels": labels("app.v1", "other")}}), false),
            (json!({"metadata": {"namespace": "team", "labels": labels("app.v1", "team")}}), false),
            (crd(json!({"annotations": alongside("team/app.v1")})), true),
            (crd(json!({"annotations": alongside("vendor/app.v1")})), false),
            (crd(json!({})), false),
            (json!({"kind": "ClusterRole", "metadata": {"annotations": alongside("team/app.v1")}}), false),
        ] {
            assert_eq!(belongs(&live, &[csv()]), expected, "{live}");
        }
        let extension = ForeignObject { namespace: None, kind: "ClusterExtension".to_owned(), ..csv() };
        let owned = json!({"metadata": {"ownerReferences": reference("ClusterExtension", "app.v1", "1")}});
        assert!(belongs(&owned, &[extension]));
        let ours =
            json!([{"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "name": "db", "uid": "3"}]);
        assert_eq!(deployment_of(&json!({"metadata": {"ownerReferences": ours}})).as_deref(), Some("db"));
    }

    #[test]
    fn a_crd_of_an_operator_in_two_namespaces_is_shared() {
        let crd =
            |annotations: Value| json!({"kind": "CustomResourceDefinition", "metadata": {"annotations": annotations}});
        let key = |hash: &str| format!("{INSTALLED_ALONGSIDE}{hash}");
        let own = crd(json!({key("a"): "team/app.v1", key("b"): "team/app.v0", "other": "vendor/app.v1"}));
        assert_eq!(sharers(&own, &[csv()]), []);
        let shared =
            crd(json!({key("a"): "team/app.v1", key("b"): "vendor/app.v1", key("c"): "nonsense", key("d"): 1}));
        assert_eq!(sharers(&shared, &[csv()]), [("vendor", "app.v1")]);
        assert!(belongs(&shared, &[csv()]), "it belongs to both");
    }

    fn role(name: &str, rules: &Value, labels: &Value) -> Value {
        json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules})
    }

    fn binding(role: &str, account: &str, labels: &Value) -> Value {
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": format!("{role}-b"), "labels": labels},
               "roleRef": {"kind": "ClusterRole", "name": role},
               "subjects": [{"kind": "ServiceAccount", "namespace": "team", "name": account}]})
    }

    #[test]
    fn what_is_created_grants_only_what_olm_granted() {
        let read = json!([{"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["list", "get"]}]);
        let sorted = json!([{"apiGroups": ["apps", ""], "resources": ["pods"], "verbs": ["get", "list"]}]);
        let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let none = json!({});
        let own = labels("app.v1", "team");
        let live = [
            role("app.v1-hash", &sorted, &own),
            binding("app.v1-hash", "operator", &own),
            role("admins", &everything, &none),
            binding("admins", "operator", &none),
            binding("admins", "tenant", &labels("app.v1", "team")),
        ];
        let created = [role("app", &read, &none), role("more", &everything, &none), binding("app", "operator", &none)];
        let granted = |object: &Value| is_granted(object, &created, &live, &[csv()]);
        assert!(granted(&created[0]) && granted(&created[2]));
        assert!(!granted(&created[1]), "another owner's role is not evidence");
        assert!(!granted(&binding("app", "tenant", &none)), "another account");
        assert!(
            !granted(&binding("admins", "operator", &none)) && !granted(&binding("cluster-admin", "operator", &none))
        );
        assert!(!granted(&binding("more", "operator", &none)));
        assert!(!granted(
            &json!({"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": read, "aggregationRule": {}})
        ));
        assert!(!granted(&json!({"kind": "ConfigMap", "metadata": {"name": "a"}})));
        assert_eq!(
            described(&binding("cluster-admin", "tenant", &none)),
            "ClusterRoleBinding cluster-admin-b, which gives cluster-admin to tenant"
        );
    }

    #[test]
    fn a_list_of_objects_to_delete_has_objects_of_olm_only() {
        let subscription = ForeignObject { kind: "Subscription".to_owned(), ..csv() };
        assert!(is_own_list("team", &[subscription.clone(), csv()]));
        assert!(!is_own_list("other", std::slice::from_ref(&subscription)), "of another namespace");
        assert!(!is_own_list("team", &[]));
        let namespace =
            ForeignObject { api_version: "v1".to_owned(), kind: "Namespace".to_owned(), namespace: None, ..csv() };
        assert!(!is_own_list("team", &[subscription, namespace]));
    }

    proptest! {
        /// Nothing that lacks the UID and the marks of OLM belongs to a ClusterServiceVersion, whatever it claims.
        #[test]
        fn objects_of_others_never_belong(namespace in "(team|vendor|)", uid in "[2-9]", name in "[a-z.]{1,6}", kind in "(ClusterRole|CustomResourceDefinition|Deployment)") {
            let mut live = json!({"kind": kind, "metadata": {"name": name, "ownerReferences": reference(CSV, "app.v1", &uid),
                                                              "labels": labels("app.v1", "vendor")}});
            if !namespace.is_empty() {
                live["metadata"]["namespace"] = json!(namespace);
            }
            let claims = json!({"owned": [live.clone()]});
            prop_assert!(!belongs(&live, &[csv()]) && !belongs(&claims, &[csv()]));
        }
    }
}
