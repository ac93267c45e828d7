use serde_json::json;

use crate::{
    metadata,
    workloads::{
        Behaviour, Subject,
        fields::text,
        kind::{Key, Kind},
        model::Model,
    },
};

fn claim(model: &mut Model, name: &str) -> Key {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let finalizers = json!(["kubernetes.io/pvc-protection"]);
    model.create(
        Kind::PersistentVolumeClaim,
        json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": spec}),
    )
}

fn volumes(model: &Model) -> Vec<&serde_json::Value> {
    model.cache.namespace(Kind::PersistentVolume, "").map(AsRef::as_ref).collect()
}

#[test]
fn a_claim_gets_a_volume_that_is_deleted_with_it() {
    let mut model = Model::new();
    let key = claim(&mut model, "data");
    model.settle();
    let found = model.get(&key);
    let name = format!("pvc-{}", metadata::uid(found));
    assert_eq!(text(found, "/spec/volumeName"), name);
    assert_eq!(
        found["status"],
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}})
    );
    let volume = volumes(&model)[0];
    assert_eq!((metadata::name(volume), text(volume, "/status/phase")), (name.as_str(), "Bound"));
    assert_eq!(text(volume, "/spec/claimRef/name"), "data");

    let mounted = json!({"containers": [{"name": "c", "image": "nginx"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    let pod = model.create(Kind::Pod, json!({"metadata": {"name": "user"}, "spec": mounted}));
    model.delete(&key);
    model.settle();
    assert!(metadata::is_deleting(model.get(&key)), "it is in use");
    model.delete(&pod);
    model.settle();
    assert_eq!(metadata::finalizers(model.get(&key)).len(), 0);
    model.delete(&key);
    model.settle();
    assert!(volumes(&model).is_empty());
}

#[test]
fn a_stalled_claim_stays_pending() {
    let mut model = Model::new();
    model.rules.behave(Subject::object("PersistentVolumeClaim", "n", "data"), Behaviour::Stall);
    let key = claim(&mut model, "data");
    model.settle();
    assert_eq!(text(model.get(&key), "/status/phase"), "");
    assert!(volumes(&model).is_empty());
}

#[test]
fn a_volume_that_was_made_by_hand_can_be_asked_for_by_name() {
    let mut model = Model::new();
    let spec = json!({"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": "/x"}});
    let volume = model.create(Kind::PersistentVolume, json!({"metadata": {"name": "mine"}, "spec": spec}));
    model.settle();
    assert_eq!(text(model.get(&volume), "/status/phase"), "Available");
    let spec = json!({"volumeName": "mine", "accessModes": ["ReadWriteMany"]});
    let key = model.create(Kind::PersistentVolumeClaim, json!({"metadata": {"name": "data"}, "spec": spec}));
    model.settle();
    assert_eq!(text(model.get(&key), "/status/capacity/storage"), "2Gi");
}
