use serde_json::{Value, json};

use crate::{
    metadata,
    workloads::{
        Behaviour, Subject,
        fields::{count, label, text},
        kind::{Key, Kind},
        model::{Model, spec},
        revision::HASH_LABEL,
    },
};

fn stateful_set(model: &mut Model, replicas: i64, more: Value) -> Key {
    let mut all = json!({"replicas": replicas, "serviceName": "db"});
    metadata::as_map(&mut all).extend(more.as_object().cloned().unwrap_or_default());
    model.create(Kind::StatefulSet, spec("db", "postgres:1", &all))
}

fn names(model: &Model) -> Vec<&str> {
    model.all(Kind::Pod).into_iter().map(metadata::name).collect()
}

fn images(model: &Model) -> Vec<&str> {
    model.all(Kind::Pod).into_iter().map(|pod| text(pod, "/spec/containers/0/image")).collect()
}

fn set_image(model: &mut Model, key: &Key, image: &str) {
    model.change(key, &json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}));
}

#[test]
fn pods_come_up_in_order_with_names_and_claims_of_their_own() {
    let mut model = Model::new();
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    let key = stateful_set(&mut model, 3, json!({"volumeClaimTemplates": claims}));
    let mut order = Vec::new();
    model.settle_checking(|model| {
        let unready = model.all(Kind::Pod).into_iter().filter(|pod| !crate::workloads::pods::is_ready(pod)).count();
        assert!(unready <= 1, "one after the other");
        for name in names(model) {
            if !order.contains(&name.to_owned()) {
                order.push(name.to_owned());
            }
        }
    });
    assert_eq!(order, ["db-0", "db-1", "db-2"]);
    let status = &model.get(&key)["status"];
    for field in ["replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"] {
        assert_eq!(count(status, &format!("/{field}")), 3, "{field}");
    }
    let revision = model.all(Kind::ControllerRevision)[0];
    assert_eq!((status["currentRevision"].as_str(), status["updateRevision"].as_str()), {
        let name = Some(metadata::name(revision));
        (name, name)
    });
    assert_eq!(metadata::name(revision), format!("db-{}", label(revision, "controller.kubernetes.io/hash")));
    let pod = model.get(&Key::new(Kind::Pod, "n", "db-1"));
    assert_eq!(label(pod, HASH_LABEL), metadata::name(revision));
    assert_eq!(label(pod, "apps.kubernetes.io/pod-index"), "1");
    assert_eq!((text(pod, "/spec/hostname"), text(pod, "/spec/subdomain")), ("db-1", "db"));
    assert_eq!(text(pod, "/spec/volumes/0/persistentVolumeClaim/claimName"), "data-db-1");
    let claim = model.get(&Key::new(Kind::PersistentVolumeClaim, "n", "data-db-1"));
    assert_eq!((text(claim, "/status/phase"), label(claim, "app")), ("Bound", "db"));
    let before = model.writes;
    model.look_at_all();
    model.settle();
    assert_eq!(model.writes, before);
}

#[test]
fn an_update_proceeds_from_the_last_pod_to_the_partition() {
    let mut model = Model::new();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let key = stateful_set(&mut model, 4, json!({"updateStrategy": strategy}));
    model.settle();
    set_image(&mut model, &key, "postgres:2");
    model.settle_checking(|model| {
        let ready = model.all(Kind::Pod).into_iter().filter(|pod| crate::workloads::pods::is_ready(pod)).count();
        assert!(ready >= 3, "one at a time");
    });
    assert_eq!(images(&model), ["postgres:1", "postgres:1", "postgres:2", "postgres:2"]);
    let status = model.get(&key)["status"].clone();
    assert_eq!((count(&status, "/updatedReplicas"), count(&status, "/currentReplicas")), (2, 2));
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    // A lost Pod below the partition is created again with the old template.
    model.delete(&Key::new(Kind::Pod, "n", "db-0"));
    model.settle();
    assert_eq!(images(&model)[0], "postgres:1");
    model.change(&key, &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}));
    model.settle();
    assert_eq!(images(&model), ["postgres:2"; 4]);
    let status = &model.get(&key)["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(model.all(Kind::ControllerRevision).len(), 2);
    // Going back is the first revision under a new number.
    set_image(&mut model, &key, "postgres:1");
    model.settle();
    let mut numbers: Vec<i64> =
        model.all(Kind::ControllerRevision).iter().map(|revision| count(revision, "/revision")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn an_unready_pod_blocks_later_ones_except_with_parallel_management() {
    for (policy, expected) in [("OrderedReady", 1), ("Parallel", 3)] {
        let mut model = Model::new();
        model.rules.behave(Subject::kind("StatefulSet"), Behaviour::Stall);
        let key = stateful_set(&mut model, 3, json!({"podManagementPolicy": policy}));
        model.settle();
        assert_eq!(model.all(Kind::Pod).len(), expected, "{policy}");
        assert_eq!(count(model.get(&key), "/status/readyReplicas"), 0);
        model.rules.behave(Subject::kind("StatefulSet"), Behaviour::Healthy);
        model.look_at_all();
        model.settle();
        assert_eq!(count(model.get(&key), "/status/readyReplicas"), 3, "{policy}");
    }
}

#[test]
fn it_shrinks_from_the_end() {
    let mut model = Model::new();
    let key = stateful_set(&mut model, 4, json!({}));
    model.settle();
    model.change(&key, &json!({"spec": {"replicas": 1}}));
    model.settle();
    assert_eq!(names(&model), ["db-0"]);
    assert_eq!(count(model.get(&key), "/status/replicas"), 1);
    let deleted: Vec<&str> = model
        .notes
        .iter()
        .filter(|(_, note)| note.reason == "SuccessfulDelete")
        .map(|(_, note)| note.message.as_str())
        .collect();
    assert_eq!(deleted, ["db-3", "db-2", "db-1"].map(|name| format!("Delete Pod {name} in StatefulSet db successful")));
}

#[test]
fn on_delete_replaces_only_deleted_pods() {
    let mut model = Model::new();
    let key = stateful_set(&mut model, 2, json!({"updateStrategy": {"type": "OnDelete"}}));
    model.settle();
    set_image(&mut model, &key, "postgres:2");
    model.settle();
    assert_eq!(images(&model), ["postgres:1", "postgres:1"]);
    model.delete(&Key::new(Kind::Pod, "n", "db-0"));
    model.settle();
    assert_eq!(images(&model), ["postgres:2", "postgres:1"]);
}
