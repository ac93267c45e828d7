//! Objects of a release that are probably new: a dry-run create shows whether they exist, so they are not read first. Pure.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;
use serde_json::Value;

use crate::pure::{
    crd::is_crd,
    desired::Desired,
    holdings::{Holdings, ObjectId},
    owner::Owner,
};

/// Which objects of the release are neither in the owner's record nor to be adopted by name, in order. An object whose kind is
/// not served, or is defined by the release, cannot be dry-run and is not among them.
pub(crate) fn unrecorded(owner: &Owner, desired: &[Desired]) -> Vec<bool> {
    // Without a complete record, objects of the owner are recognized when they are read.
    let Some(holdings) = owner.holdings().filter(|holdings| !holdings.inherits()) else {
        return vec![false; desired.len()];
    };
    let defined = defined_kinds(desired);
    let new = |desired: &Desired| {
        let id = ObjectId::of(&desired.key);
        desired.served
            && !defined.contains(&(desired.key.group.as_str(), desired.key.kind.as_str()))
            && !holdings.mentions(&id)
            && !owner.adopts.contains_key(&id)
    };
    desired.iter().map(new).collect()
}

/// Which objects of the release are among these, in order, and can be dry-run.
pub(crate) fn missing(desired: &[Desired], missing: &BTreeSet<ObjectKey>) -> Vec<bool> {
    if missing.is_empty() {
        return vec![false; desired.len()];
    }
    let defined = defined_kinds(desired);
    let is_missing = |desired: &Desired| {
        let kind = (desired.key.group.as_str(), desired.key.kind.as_str());
        desired.served && !defined.contains(&kind) && missing.contains(&desired.key)
    };
    desired.iter().map(is_missing).collect()
}

/// Whether the record has objects that the release does not contain.
pub(crate) fn has_others(holdings: &Holdings, desired: &[Desired]) -> bool {
    let ids: BTreeSet<ObjectId> = desired.iter().map(|desired| ObjectId::of(&desired.key)).collect();
    holdings.known().any(|id| !ids.contains(id))
}

/// The groups and kinds that CRDs of the release define.
fn defined_kinds(desired: &[Desired]) -> BTreeSet<(&str, &str)> {
    let crds = desired.iter().filter(|desired| is_crd(&desired.key));
    let kinds = crds.filter_map(|crd| {
        let text = |pointer: &str| crd.value.pointer(pointer).and_then(Value::as_str);
        Some((text("/spec/group")?, text("/spec/names/kind")?))
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::pure::{
        desired::tests::desired,
        holdings::{Intent, Settlement},
        ledger::InMemory,
        live::tests::owner,
        seal::Seal,
    };

    fn config_map(name: &str) -> Desired {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
        desired(&value, true)
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::of(&config_map(name).key)
    }

    fn recorded(holdings: Holdings) -> Owner {
        owner().recorded_in(Arc::new(InMemory::with(holdings)))
    }

    #[test]
    fn only_objects_that_no_record_mentions_are_new() {
        let names = ["new", "expected", "held", "orphaned", "adopted"];
        let all = names.map(config_map);
        let holdings = Holdings::new("uid-a", Seal::new([1; 32]))
            .intending(&Intent {
                created: [id("expected")].into(),
                adopted: [(id("held"), "1".to_owned()), (id("orphaned"), "2".to_owned())].into(),
                ..Intent::default()
            })
            .settled(&Settlement { orphaned: [id("orphaned")].into(), ..Settlement::default() });
        assert!(!has_others(&holdings, &all) && has_others(&holdings, &all[..1]));
        let owner = recorded(holdings.clone()).adopting([(id("adopted"), "3".to_owned())].into());
        assert_eq!(unrecorded(&owner, &all), [true, false, false, false, false]);
        // The objects of an owner whose record was lost are recognized by their references.
        assert_eq!(unrecorded(&recorded(holdings.inheriting()), &all), [false; 5]);
        assert_eq!(unrecorded(&Owner { ledger: None, ..owner }, &all), [false; 5]);
    }

    #[test]
    fn objects_that_cannot_be_dry_run_are_read() {
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "oxen.a.b"}, "spec": {"group": "a.b", "names": {"kind": "Ox", "plural": "oxen"}}});
        let ox = json!({"apiVersion": "a.b/v1", "kind": "Ox", "metadata": {"name": "x", "namespace": "n"}});
        let owner = recorded(Holdings::new("uid-a", Seal::new([1; 32])));
        let objects = [desired(&crd, false), desired(&ox, true), Desired { served: false, ..config_map("x") }];
        assert_eq!(unrecorded(&owner, &objects), [true, false, false]);
        assert_eq!(unrecorded(&owner, &objects[1..2]), [true], "the kind of an earlier release");
        let all: BTreeSet<ObjectKey> = objects.iter().map(|object| object.key.clone()).collect();
        assert_eq!(missing(&objects, &all), [true, false, false]);
        assert_eq!(missing(&objects, &BTreeSet::new()), [false; 3]);
    }
}
