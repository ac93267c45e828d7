//! Which objects hold the namespace of the controller: pure decisions on what is in it.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;

use super::refusals::{is_same, names};
use crate::{CommandError, read::namespace_objects::NamespaceObject, view::text::one_line};

/// Kinds of the core group that the preview lists by name.
const LISTED: [&str; 4] = ["Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim"];
/// Bindings that OpenShift creates in every namespace.
const OF_OPENSHIFT: [&str; 3] = ["system:deployers", "system:image-builders", "system:image-pullers"];

/// What is in the namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted<'a> {
    /// The UIDs of the objects of Chandler and of bundles, and of everything that they own.
    pub(super) expected: BTreeSet<String>,
    /// The objects of others.
    pub(super) foreign: Vec<&'a ObjectKey>,
}

/// Sorts the objects of a namespace. These UIDs and keys are known to be of Chandler or of bundles.
pub(super) fn sort<'a>(objects: &'a [NamespaceObject], uids: &BTreeSet<String>, keys: &[&ObjectKey]) -> Sorted<'a> {
    let mut expected = uids.clone();
    let is_known = |object: &&NamespaceObject| keys.iter().any(|key| is_same(key, &object.key));
    expected.extend(objects.iter().filter(is_known).map(|object| object.uid.clone()));
    loop {
        let is_service = |object: &NamespaceObject, name: &str| object.key.kind == "Service" && object.key.name == name;
        let has_service = |name: &str| objects.iter().any(|it| is_service(it, name) && expected.contains(&it.uid));
        let is_next = |object: &&NamespaceObject| {
            let is_owned = object.owners.iter().any(|owner| expected.contains(owner));
            // Endpoints have no owner reference.
            let is_of_service = object.key.kind == "Endpoints" && has_service(&object.key.name);
            (is_owned || is_of_service) && !expected.contains(&object.uid)
        };
        let next: Vec<String> = objects.iter().filter(is_next).map(|object| object.uid.clone()).collect();
        if next.is_empty() {
            break;
        }
        expected.extend(next);
    }
    let is_foreign =
        |object: &&NamespaceObject| !object.is_deleting && !is_usual(object) && !expected.contains(&object.uid);
    let foreign = objects.iter().filter(is_foreign).map(|object| &object.key).collect();
    Sorted { expected, foreign }
}

/// What the preview lists, and what every namespace has.
fn is_usual(object: &NamespaceObject) -> bool {
    let ObjectKey { group, kind, name, .. } = &object.key;
    let is_listed = group.is_empty() && LISTED.contains(&kind.as_str());
    let is_of_openshift = kind == "RoleBinding" && OF_OPENSHIFT.contains(&name.as_str());
    is_listed || kind == "Event" || object.is_copy || is_of_openshift
}

/// What holds the namespace, in words; `None` if nothing does.
pub(super) fn held_by(sorted: &Sorted<'_>, namespace: &str) -> Option<String> {
    let objects = names(&sorted.foreign);
    let message = format!("the namespace {namespace}, which is deleted, has objects of other software: {objects}");
    (!sorted.foreign.is_empty()).then(|| one_line(&message))
}

/// Refuses to delete a namespace with objects of other software.
pub(super) fn check(sorted: &Sorted<'_>, namespace: &str) -> Result<(), CommandError> {
    match held_by(sorted, namespace) {
        Some(message) => {
            Err(CommandError::refused(message).hint("`--keep-namespace` keeps the namespace, and everything in it"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::failure::FailureKind;

    fn object(group: &str, kind: &str, name: &str, owners: &[&str]) -> NamespaceObject {
        let key = ObjectKey {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: Some("chandler-system".into()),
            name: name.into(),
        };
        let owners = owners.iter().map(|owner| format!("uid-{owner}")).collect();
        NamespaceObject { key, uid: format!("uid-{kind}-{name}"), owners, is_deleting: false, is_copy: false }
    }

    #[test]
    fn only_objects_of_others_hold_the_namespace() {
        let mut objects = vec![
            object("discovery.k8s.io", "EndpointSlice", "chandler-metrics-x", &["Service-chandler-metrics"]),
            object("", "Pod", "chandler-0", &["ReplicaSet-chandler-x"]),
            object("apps", "ReplicaSet", "chandler-x", &["Deployment-chandler"]),
            object("apps", "Deployment", "chandler", &[]),
            object("", "Service", "chandler-metrics", &[]),
            object("", "Endpoints", "chandler-metrics", &[]),
            object("apps", "StatefulSet", "harbour", &[]),
            object("apps", "ControllerRevision", "harbour-x", &["StatefulSet-harbour"]),
            object("", "Secret", "mine", &[]),
            object("", "Event", "x", &[]),
            object("rbac.authorization.k8s.io", "RoleBinding", "system:deployers", &[]),
            NamespaceObject { is_copy: true, ..object("operators.coreos.com", "ClusterServiceVersion", "mesh", &[]) },
            NamespaceObject { is_deleting: true, ..object("", "Pod", "gone", &[]) },
        ];
        let ours: BTreeSet<String> =
            ["uid-Deployment-chandler", "uid-Service-chandler-metrics"].map(str::to_owned).into();
        let set = object("apps", "StatefulSet", "harbour", &[]).key;
        let sorted = sort(&objects, &ours, &[&set]);
        assert_eq!(sorted.foreign, [&set; 0]);
        check(&sorted, "chandler-system").unwrap();
        let before = sorted.expected;
        objects.extend([object("apps", "Deployment", "shop", &[]), object("", "Pod", "shop-0", &["Deployment-shop"])]);
        let refused = check(&sort(&objects, &before, &[]), "chandler-system").unwrap_err();
        assert_eq!(refused.kind(), FailureKind::Refused);
        let text = refused.explained();
        for words in ["Deployment.apps chandler-system/shop, Pod chandler-system/shop-0", "--keep-namespace"] {
            assert!(format!("{refused:?}{text}").contains(words), "{refused:?}");
        }
        let set_alone = sort(&objects, &ours, &[]);
        assert!(set_alone.foreign.contains(&&set), "a bundle that is unknown");
    }
}
