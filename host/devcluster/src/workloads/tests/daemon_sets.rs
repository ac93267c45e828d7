use serde_json::json;

use crate::workloads::{
    fields::{count, label, list, text},
    kind::{Key, Kind},
    model::{Model, spec},
    revision::HASH_LABEL,
};

#[test]
fn a_pod_runs_on_every_node_that_fits() {
    let mut model = Model::new();
    let key = model.create(Kind::DaemonSet, spec("agent", "agent:1", &json!({})));
    model.settle();
    let status = model.get(&key)["status"].clone();
    for field in
        ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled"]
    {
        assert_eq!(count(&status, &format!("/{field}")), 1, "{field}");
    }
    let pod = model.all(Kind::Pod)[0].clone();
    assert_eq!(text(&pod, "/spec/nodeName"), "devcluster-node");
    assert_eq!(list(&pod, "/spec/tolerations").len(), 6);
    let revision = model.all(Kind::ControllerRevision)[0];
    assert_eq!(label(&pod, HASH_LABEL), label(revision, HASH_LABEL));

    model.change(&key, &json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "agent:2"}]}}}}));
    model.settle();
    let images: Vec<&str> = model.all(Kind::Pod).into_iter().map(|pod| text(pod, "/spec/containers/0/image")).collect();
    assert_eq!(images, ["agent:2"]);
    assert_eq!(count(model.get(&key), "/status/updatedNumberScheduled"), 1);
    let before = model.writes;
    model.look_at_all();
    model.settle();
    assert_eq!(model.writes, before);
}

#[test]
fn nodes_that_do_not_fit_are_left_alone() {
    let mut model = Model::new();
    let key = model.create(
        Kind::DaemonSet,
        spec("agent", "agent:1", &json!({"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}})),
    );
    model.settle();
    assert!(model.all(Kind::Pod).is_empty());
    assert_eq!(count(model.get(&key), "/status/desiredNumberScheduled"), 0);
    let node = Key::new(Kind::Node, "", "devcluster-node");
    model.change(&node, &json!({"metadata": {"labels": {"disk": "ssd"}}}));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/numberReady"), 1);
    model.change(&node, &json!({"metadata": {"labels": {"disk": null}}}));
    model.settle();
    assert!(model.all(Kind::Pod).is_empty());
}
