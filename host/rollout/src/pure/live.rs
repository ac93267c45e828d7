//! Reads objects as the API server returns them. Pure.

use chandler_core::ObjectKey;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::pure::{
    existing_owner::ExistingOwner,
    holdings::ObjectId,
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

pub(crate) fn has_finalizer(object: &Value, name: &str) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == name))
}

pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// The key of an object of this kind.
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

/// A string of an object; empty if it has none.
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

/// Whether an owner reference of the object names this UID.
pub(crate) fn refers_to(object: &Value, uid: &str) -> bool {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| text(reference, "/uid") == uid)
}

/// The owner references of an object except its controller reference, or `None` if it has no controller.
pub(crate) fn references_without_controller(object: &Value) -> Option<Vec<Value>> {
    let controller = controller(object)?;
    let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
    Some(references.iter().filter(|reference| *reference != controller).cloned().collect())
}

/// The identity of an object.
pub(crate) fn id(object: &Value) -> ObjectId {
    let namespace = text(object, "/metadata/namespace");
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId {
        group: group.to_owned(),
        kind: text(object, "/kind").to_owned(),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        name: text(object, "/metadata/name").to_owned(),
    }
}

/// Whether two states of an object have the same claims: owner references, ApplySet and deletion. These must not change between
/// a decision and a write.
pub(crate) fn same_claims(before: &Value, now: &Value) -> bool {
    let references = |object: &Value| object.pointer("/metadata/ownerReferences").cloned().unwrap_or_else(|| json!([]));
    uid(before) == uid(now)
        && references(before) == references(now)
        && label(before, PART_OF) == label(now, PART_OF)
        && is_terminating(before) == is_terminating(now)
}

/// The existing owner of an object, or `None` if it belongs to this owner.
///
/// An object belongs to the owner if the owner's record lists it by UID, or expects it by name and the object carries the
/// owner's mark, and if no other controller and no other ApplySet claims it. Labels and references of the object itself never
/// make it the owner's, except when the record is lost: then the owner reference counts, which the garbage collector trusts,
/// too.
pub(crate) fn foreign_owner(object: &Value, owner: &Owner) -> Option<ExistingOwner> {
    let own = str::to_owned;
    let ours = || (own(&owner.kind), own(&owner.name));
    let held = is_held(object, owner);
    if let Some(reference) = controller(object) {
        let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
        return if text(reference, "/uid") == owner.uid {
            let inherited = owner.holdings().is_none_or(|holdings| holdings.inherits());
            let (kind, name) = ours();
            (!held && !inherited).then_some(ExistingOwner::Unrecorded { kind, name })
        } else if (kind, name) == (owner.kind.as_str(), owner.name.as_str()) {
            Some(ExistingOwner::StaleOwner { kind: own(kind), name: own(name) })
        } else {
            Some(ExistingOwner::Controller { kind: own(kind), name: own(name) })
        };
    }
    let set = label(object, PART_OF);
    if let Some(other) = set.filter(|set| *set != owner.set_id()) {
        return Some(match (label(object, OWNER_KIND), label(object, OWNER_NAME)) {
            (Some(kind), Some(name)) => ExistingOwner::Member { kind: own(kind), name: own(name) },
            _ => ExistingOwner::ApplySet { id: own(other) },
        });
    }
    if held {
        return None;
    }
    if owner.holdings().is_some_and(|holdings| holdings.is_orphan(&id(object), uid(object))) {
        let (kind, name) = ours();
        return Some(ExistingOwner::LeftBehind { kind, name });
    }
    if set.is_some() {
        let (kind, name) = ours();
        // Without a record the label decides.
        return owner.ledger.is_some().then_some(ExistingOwner::Unrecorded { kind, name });
    }
    Some(creator(object))
}

/// Whether the owner's record lists this object.
fn is_held(object: &Value, owner: &Owner) -> bool {
    owner.holdings().is_some_and(|holdings| holdings.is_own(object))
}

/// The creator of an object that no owner claims.
fn creator(object: &Value) -> ExistingOwner {
    if let Some(release) = annotation(object, "meta.helm.sh/release-name") {
        let namespace = annotation(object, "meta.helm.sh/release-namespace").unwrap_or_default();
        return ExistingOwner::HelmRelease { namespace: namespace.to_owned(), name: release.to_owned() };
    }
    let manager = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .and_then(|entries| entries.iter().find_map(|entry| entry.get("manager")?.as_str()));
    manager.map_or(ExistingOwner::Unknown, |name| ExistingOwner::Manager { name: name.to_owned() })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::{
        desired::SEAL,
        holdings::{Holdings, Intent},
        ledger::InMemory,
        policy::{CollisionProtection, Deletion},
        seal::Seal,
    };

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
            account_grant: None,
            crd_upgrades: chandler_crd_upgrade::Policy::default(),
            approved_upgrades: std::collections::BTreeMap::new(),
            on_immutable: crate::pure::immutable::OnImmutable::default(),
            rollback: false,
            collisions: CollisionProtection::Prevent,
            deletion: Deletion::default(),
            ignored: crate::pure::ignored::Ignored::default(),
            adopts: std::collections::BTreeMap::new(),
            ledger: None,
            parent: None,
            finalizer: None,
            elsewhere: false,
        }
    }

    /// The owner of the tests with a record that holds the ConfigMap `n/x` with UID `u` and expects `n/y`.
    pub(crate) fn recorded_owner() -> Owner {
        let (held, expected) = (config_map("x"), config_map("y"));
        let holdings = Holdings::new("uid-a", Seal::new([1; 32])).intending(&Intent {
            created: [expected].into(),
            adopted: [(held, "u".to_owned())].into(),
            ..Intent::default()
        });
        owner().recorded_in(std::sync::Arc::new(InMemory::with(holdings)))
    }

    fn config_map(name: &str) -> ObjectId {
        ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: Some("n".into()), name: name.into() }
    }

    #[test]
    fn the_record_decides_and_not_the_labels_of_an_object() {
        let owner = recorded_owner();
        let mark = owner.holdings().unwrap().mark(&config_map("y"), 0);
        let reference = |uid: &str| json!([{"kind": "BundleDeployment", "name": "a", "uid": uid, "controller": true}]);
        let labels = json!({PART_OF: owner.set_id(), OWNER_KIND: "BundleDeployment", OWNER_NAME: "a"});
        let unrecorded = "carries the labels of BundleDeployment a, which has no record of creating or adopting it";
        for (name, uid, metadata, want) in [
            ("x", "u", json!({"labels": labels, "ownerReferences": reference("uid-a")}), None),
            ("x", "u", json!({}), None),
            ("x", "other", json!({"labels": labels}), Some(unrecorded)),
            ("z", "u", json!({"labels": labels}), Some(unrecorded)),
            ("z", "u", json!({"labels": labels, "ownerReferences": reference("uid-a")}), Some(unrecorded)),
            ("y", "v", json!({"annotations": {SEAL: mark}, "labels": labels}), None),
            ("y", "v", json!({"annotations": {SEAL: "forged"}, "labels": labels}), Some(unrecorded)),
            ("z", "v", json!({"annotations": {SEAL: mark}}), Some("was not created by Chandler")),
            (
                "x",
                "u",
                json!({"ownerReferences": [{"kind": "Deployment", "name": "d", "uid": "x", "controller": true}]}),
                Some("is controlled by Deployment d"),
            ),
            ("x", "u", json!({"labels": {PART_OF: "other"}}), Some("belongs to the ApplySet other")),
        ] {
            let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            object["metadata"]["namespace"] = json!("n");
            object["metadata"]["name"] = json!(name);
            object["metadata"]["uid"] = json!(uid);
            assert_eq!(
                foreign_owner(&object, &owner).map(|existing_owner| existing_owner.to_string()).as_deref(),
                want,
                "{object}"
            );
        }
    }

    #[test]
    fn metadata_is_read_as_the_api_server_writes_it() {
        let object =
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!((uid(&object), resource_version(&object), is_terminating(&object)), ("u", "7", true));
        assert_eq!((uid(&json!({})), resource_version(&json!({})), is_terminating(&json!({}))), ("", "", false));
    }

    #[test]
    fn an_object_is_identified_by_group_kind_namespace_and_name() {
        let metadata = json!({"namespace": "n", "name": "x"});
        let id = |api_version: &str, metadata: &Value| {
            super::id(&json!({"apiVersion": api_version, "kind": "ConfigMap", "metadata": metadata}))
        };
        assert_eq!(id("v1", &metadata), config_map("x"));
        assert_eq!(id("a.b/v1", &metadata), ObjectId { group: "a.b".into(), ..config_map("x") });
        assert_eq!(id("v1", &json!({"name": "x"})), ObjectId { namespace: None, ..config_map("x") });
    }

    #[test]
    fn references_to_others_than_the_controller_stay() {
        let (theirs, plain) = (json!({"uid": "a", "controller": true}), json!({"uid": "b"}));
        let without =
            |references: &Value| references_without_controller(&json!({"metadata": {"ownerReferences": references}}));
        assert_eq!(without(&json!([plain, theirs])), Some(vec![plain.clone()]));
        assert_eq!(without(&json!([theirs])), Some(vec![]));
        assert_eq!(without(&json!([plain])), None);
        assert_eq!(references_without_controller(&json!({})), None);
    }

    #[test]
    fn claims_are_references_set_and_deletion() {
        let object = |uid: &str, data: &str, set: &str| json!({"metadata": {"uid": uid, "labels": {PART_OF: set}, "resourceVersion": data}, "data": data});
        let before = object("u", "1", "s");
        assert!(same_claims(&before, &object("u", "2", "s")));
        assert!(!same_claims(&before, &object("v", "1", "s")) && !same_claims(&before, &object("u", "1", "t")));
        let mut orphaned = json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "a"}]}});
        let referring = orphaned.clone();
        orphaned["metadata"]["ownerReferences"] = json!([]);
        assert!(!same_claims(&referring, &orphaned));
    }

    #[test]
    fn existing_owners() {
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
                Some("is controlled by a previous BundleDeployment a, and will be garbage collected"),
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
            (json!({"managedFields": [{"manager": "kubectl-create"}]}), Some("was created by kubectl-create")),
            (json!({"ownerReferences": "odd", "labels": 1}), Some("was not created by Chandler")),
        ] {
            let object = json!({"metadata": metadata});
            assert_eq!(
                foreign_owner(&object, &owner).map(|existing_owner| existing_owner.to_string()).as_deref(),
                want,
                "{object}"
            );
        }
    }
}
