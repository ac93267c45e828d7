//! Claims and volumes: each claim is bound to a volume that is created for it.

use serde_json::{Value, json};

use super::{
    action::{Action, Decision, Note},
    fields::{list, map, text, time},
    kind::{Key, Kind},
    rules::Step,
    world::World,
};
use crate::metadata;

const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const PROVISIONER: &str = "devcluster.chandler.dev/volumes";
const COMPONENT: &str = "persistentvolume-controller";

pub(super) fn reconcile_claim(world: &World<'_>, claim: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(claim) {
        if !is_used(world, claim) {
            unprotect(Kind::PersistentVolumeClaim, claim, CLAIM_PROTECTION, &mut decision);
        }
        return decision;
    }
    if !world.behaviour(Kind::PersistentVolumeClaim, claim).is_healthy() {
        return decision;
    }
    let waited = world.since(time(claim, "/metadata/creationTimestamp"));
    let wait = world.delay(Step::Bind, Kind::PersistentVolumeClaim, claim).saturating_sub(waited);
    if !wait.is_zero() {
        decision.look_again(wait);
        return decision;
    }
    let named = text(claim, "/spec/volumeName");
    let name = if named.is_empty() { format!("pvc-{}", metadata::uid(claim)) } else { named.to_owned() };
    let Some(volume) = world.cache.find(Kind::PersistentVolume, "", &name) else {
        // The user creates a volume that a claim requests by name.
        if named.is_empty() {
            provision(claim, &name, &mut decision);
        }
        return decision;
    };
    if named.is_empty() {
        let annotations = json!({
            "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.kubernetes.io/storage-provisioner": PROVISIONER,
        });
        let change = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": name}});
        decision.change(Kind::PersistentVolumeClaim, claim, change);
        return decision;
    }
    let status = json!({
        "phase": "Bound",
        "accessModes": volume.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!([])),
        "capacity": map(volume, "/spec/capacity"),
    });
    decision.status(Kind::PersistentVolumeClaim, claim, &status);
    decision
}

fn provision(claim: &Value, name: &str, decision: &mut Decision) {
    let mut spec = json!({
        "capacity": map(claim, "/spec/resources/requests"),
        "accessModes": list(claim, "/spec/accessModes"),
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata::name(claim),
            "namespace": metadata::namespace(claim), "uid": metadata::uid(claim),
        },
        "hostPath": {"path": format!("/nowhere/{name}"), "type": ""},
        "persistentVolumeReclaimPolicy": "Delete",
    });
    for kept in ["storageClassName", "volumeMode"] {
        if let Some(value) = claim.pointer(&format!("/spec/{kept}")).filter(|value| *value != "") {
            metadata::as_map(&mut spec).insert(kept.to_owned(), value.clone());
        }
    }
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": spec,
    });
    let message = format!("Successfully provisioned volume {name}");
    decision.push(Action::Create {
        kind: Kind::PersistentVolume,
        object,
        note: Some(Note::normal(COMPONENT, "ProvisioningSucceeded", message)),
        failure: Some(Note::warning(COMPONENT, "ProvisioningFailed", "failed to provision volume: {error}")),
    });
}

/// Whether a Pod that has not ended mounts a claim.
fn is_used(world: &World<'_>, claim: &Value) -> bool {
    let name = metadata::name(claim);
    world.cache.namespace(Kind::Pod, metadata::namespace(claim)).any(|pod| {
        !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
            && list(pod, "/spec/volumes").iter().any(|volume| text(volume, "/persistentVolumeClaim/claimName") == name)
    })
}

fn unprotect(kind: Kind, object: &Value, finalizer: &str, decision: &mut Decision) {
    let finalizers = metadata::finalizers(object);
    if finalizers.contains(&finalizer) {
        let left: Vec<&str> = finalizers.into_iter().filter(|other| *other != finalizer).collect();
        decision.change(kind, object, json!({"metadata": {"finalizers": left}}));
    }
}

pub(super) fn reconcile_volume(world: &World<'_>, volume: &Value) -> Decision {
    let mut decision = Decision::default();
    let claim_name = text(volume, "/spec/claimRef/name");
    let key = Key::new(Kind::PersistentVolumeClaim, text(volume, "/spec/claimRef/namespace"), claim_name);
    let claim = world.cache.get(&key);
    let uid = text(volume, "/spec/claimRef/uid");
    let claim = claim.filter(|claim| uid.is_empty() || metadata::uid(claim) == uid);
    if metadata::is_deleting(volume) {
        if claim.is_none() {
            unprotect(Kind::PersistentVolume, volume, VOLUME_PROTECTION, &mut decision);
        }
        return decision;
    }
    let is_bound = claim.is_some_and(|claim| {
        let named = text(claim, "/spec/volumeName");
        named.is_empty() || named == metadata::name(volume)
    });
    let phase = match (claim_name.is_empty(), is_bound) {
        (true, _) => "Available",
        (false, true) => "Bound",
        // A reservation for a claim that is yet to come.
        (false, false) if uid.is_empty() => "Available",
        (false, false) if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" => {
            decision.delete(Kind::PersistentVolume, volume, None);
            return decision;
        }
        (false, false) => "Released",
    };
    let mut wanted = volume.get("status").cloned().unwrap_or_default();
    if text(&wanted, "/phase") != phase {
        let fields = metadata::as_map(&mut wanted);
        fields.insert("phase".to_owned(), phase.into());
        fields.insert("lastPhaseTransitionTime".to_owned(), world.timestamp().into());
    }
    decision.status(Kind::PersistentVolume, volume, &wanted);
    decision
}
