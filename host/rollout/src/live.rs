//! Reads objects as the API server returns them.

use chandler_core::ObjectKey;
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    holder::Holder,
    owner::{OWNER_KIND, OWNER_NAME, Owner, PART_OF},
};

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// The identity of an object of this kind.
pub(crate) fn key(object: &Value, resource: &ApiResource) -> ObjectKey {
    let namespace = text(object, "/metadata/namespace");
    ObjectKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        name: text(object, "/metadata/name").to_owned(),
        version: resource.version.clone(),
    }
}

/// A string of an object; empty where it has none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn controller(object: &Value) -> Option<&Value> {
    object
        .pointer("/metadata/ownerReferences")?
        .as_array()?
        .iter()
        .find(|reference| reference.get("controller").and_then(Value::as_bool) == Some(true))
}

/// Whether an object names this one as an owner, in whatever way.
pub(crate) fn refers_to(object: &Value, uid: &str) -> bool {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| text(reference, "/uid") == uid)
}

/// The owner references of an object without the one of its controller; none where nobody controls it.
pub(crate) fn references_without_controller(object: &Value) -> Option<Vec<Value>> {
    let controller = controller(object)?;
    let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
    Some(references.iter().filter(|reference| *reference != controller).cloned().collect())
}

/// Whose an object is, if it is not this owner's.
///
/// An object is the owner's when the owner controls it by UID, or when it carries the label of the owner's set and nobody
/// else controls it.
pub(crate) fn foreign_owner(object: &Value, owner: &Owner) -> Option<Holder> {
    let own = str::to_owned;
    if let Some(reference) = controller(object) {
        if text(reference, "/uid") == owner.uid {
            return None;
        }
        let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
        return Some(if (kind, name) == (owner.kind.as_str(), owner.name.as_str()) {
            Holder::Namesake { kind: own(kind), name: own(name) }
        } else {
            Holder::Controller { kind: own(kind), name: own(name) }
        });
    }
    match label(object, PART_OF) {
        Some(set) if set == owner.set_id() => return None,
        Some(set) => {
            return Some(match (label(object, OWNER_KIND), label(object, OWNER_NAME)) {
                (Some(kind), Some(name)) => Holder::Member { kind: own(kind), name: own(name) },
                _ => Holder::ApplySet { id: own(set) },
            });
        }
        None => {}
    }
    if let Some(release) = annotation(object, "meta.helm.sh/release-name") {
        let namespace = annotation(object, "meta.helm.sh/release-namespace").unwrap_or_default();
        return Some(Holder::HelmRelease { namespace: own(namespace), name: own(release) });
    }
    let manager = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .and_then(|entries| entries.iter().find_map(|entry| entry.get("manager")?.as_str()));
    Some(manager.map_or(Holder::Unknown, |name| Holder::Manager { name: own(name) }))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::{CollisionProtection, Deletion};

    pub(crate) fn owner() -> Owner {
        Owner {
            group: "core.rukpak.io".into(),
            version: "v1alpha2".into(),
            kind: "BundleDeployment".into(),
            plural: "bundledeployments".into(),
            name: "a".into(),
            uid: "uid-a".into(),
            install_namespace: "install".into(),
            account: None,
            crd_upgrades: chandler_crd_upgrade::Policy::default(),
            going_back: false,
            collisions: CollisionProtection::Prevent,
            deletion: Deletion::default(),
            ignored: crate::ignored::Ignored::default(),
        }
    }

    #[test]
    fn whose_an_object_is() {
        let owner = owner();
        let reference =
            |kind: &str, name: &str, uid: &str| json!([{"kind": kind, "name": name, "uid": uid, "controller": true}]);
        for (metadata, want) in [
            (json!({"labels": {PART_OF: owner.set_id()}}), None),
            (json!({"ownerReferences": reference("BundleDeployment", "a", "uid-a")}), None),
            (
                json!({"labels": {PART_OF: owner.set_id()}, "ownerReferences": reference("Deployment", "d", "x")}),
                Some("is controlled by Deployment d"),
            ),
            (
                json!({"labels": {PART_OF: owner.set_id()}, "ownerReferences": reference("BundleDeployment", "a", "x")}),
                Some("is controlled by an earlier BundleDeployment a, and goes with it"),
            ),
            (
                json!({"labels": {PART_OF: "other", OWNER_KIND: "BundleDeployment", OWNER_NAME: "b"}}),
                Some("belongs to BundleDeployment b"),
            ),
            (json!({"labels": {PART_OF: "other"}}), Some("belongs to the ApplySet other")),
            (
                json!({"annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}}),
                Some("belongs to the Helm release n/r"),
            ),
            (json!({"managedFields": [{"manager": "kubectl-create"}]}), Some("was made by kubectl-create")),
            (json!({"ownerReferences": "odd", "labels": 1}), Some("was made by somebody else")),
        ] {
            let object = json!({"metadata": metadata});
            assert_eq!(foreign_owner(&object, &owner).map(|holder| holder.to_string()).as_deref(), want, "{object}");
        }
    }
}
