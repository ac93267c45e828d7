//! Strategic merge patch: merge keys and directives.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{deployment, pod_template},
};

cases! {
    "3.08" items_merge_by_key;
    "3.08" a_directive_deletes_an_item;
    "3.08" a_directive_replaces_a_list;
    "3.08" a_directive_replaces_a_map;
    "3.08" a_directive_deletes_a_map;
    "3.08" lists_of_scalars_merge_or_are_replaced;
    "3.08" values_are_deleted_from_lists_of_scalars;
    "3.08" the_order_of_elements_is_set;
    "3.08" keys_that_are_not_retained_are_removed;
    "3.08" nulls_remove;
    "3.08" unknown_directives_are_refused;
    "3.08" ports_merge_by_number;
}

async fn template(scope: &Scope, spec: Value) -> Collection {
    let templates = scope.pod_templates().await;
    let mut object = pod_template("a", json!([]));
    object["template"]["spec"] = spec;
    templates.create(&object).await.is(201);
    templates
}

fn two_containers() -> Value {
    json!({"containers": [
        {"name": "main", "image": "a:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "args": ["x", "y"]},
        {"name": "sidecar", "image": "b:1"},
    ], "nodeSelector": {"disk": "ssd", "zone": "a"}})
}

fn containers(object: &Value) -> Vec<&str> {
    object["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

async fn patch(templates: &Collection, spec: Value) -> Value {
    templates.strategic("a", &json!({"template": {"spec": spec}})).await.ok()
}

async fn items_merge_by_key(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object = patch(
        &templates,
        json!({"containers": [
        {"name": "main", "image": "a:2", "env": [{"name": "C", "value": "3"}], "args": ["z"]},
        {"name": "new", "image": "c:1"}]}),
    )
    .await;
    assert_eq!(containers(&object).len(), 3);
    let main =
        &object["template"]["spec"]["containers"].as_array().unwrap().iter().find(|one| one["name"] == "main").unwrap();
    assert_eq!((&main["image"], &main["args"]), (&json!("a:2"), &json!(["z"])));
    assert_eq!(main["env"].as_array().unwrap().len(), 3);
}

async fn a_directive_deletes_an_item(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object = patch(
        &templates,
        json!({"containers": [
        {"name": "sidecar", "$patch": "delete"},
        {"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]}),
    )
    .await;
    assert_eq!(containers(&object), ["main"]);
    assert_eq!(object["template"]["spec"]["containers"][0]["env"], json!([{"name": "B", "value": "2"}]));
}

async fn a_directive_replaces_a_list(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object =
        patch(&templates, json!({"containers": [{"$patch": "replace"}, {"name": "only", "image": "c:1"}]})).await;
    assert_eq!(containers(&object), ["only"]);
}

async fn a_directive_replaces_a_map(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object = patch(&templates, json!({"nodeSelector": {"$patch": "replace", "disk": "hdd"}})).await;
    assert_eq!(object["template"]["spec"]["nodeSelector"], json!({"disk": "hdd"}));
}

async fn a_directive_deletes_a_map(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object = patch(&templates, json!({"nodeSelector": {"$patch": "delete"}})).await;
    assert_eq!(object["template"]["spec"].get("nodeSelector"), None);
}

async fn lists_of_scalars_merge_or_are_replaced(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&json!({"metadata": {"name": "a", "finalizers": ["example.com/a"]}})).await.ok();
    let object = maps.strategic("a", &json!({"metadata": {"finalizers": ["example.com/b"]}})).await.ok();
    let finalizers = object["metadata"]["finalizers"].as_array().unwrap();
    assert!(finalizers.len() == 2 && finalizers.contains(&json!("example.com/a")), "merged: {finalizers:?}");
    maps.strategic("a", &json!({"metadata": {"finalizers": null}})).await.ok();
    let templates = template(scope, two_containers()).await;
    let object = patch(&templates, json!({"containers": [{"name": "main", "args": ["z"]}]})).await;
    assert_eq!(object["template"]["spec"]["containers"][0]["args"], json!(["z"]), "replaced");
}

async fn values_are_deleted_from_lists_of_scalars(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&json!({"metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}})).await.ok();
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}});
    let object = maps.strategic("a", &patch).await.ok();
    assert_eq!(object["metadata"]["finalizers"], json!(["example.com/b"]));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}});
    maps.strategic("a", &patch).await.ok();
}

async fn the_order_of_elements_is_set(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object = patch(
        &templates,
        json!({
        "$setElementOrder/containers": [{"name": "new"}, {"name": "sidecar"}, {"name": "main"}],
        "containers": [{"name": "new", "image": "c:1"}]}),
    )
    .await;
    assert_eq!(containers(&object), ["new", "sidecar", "main"]);
}

async fn keys_that_are_not_retained_are_removed(scope: &Scope) {
    let templates = template(
        scope,
        json!({"containers": [{"name": "main", "image": "a:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}]}),
    )
    .await;
    let object = patch(
        &templates,
        json!({"volumes": [
        {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}),
    )
    .await;
    let volume = &object["template"]["spec"]["volumes"][0];
    assert_eq!((volume.get("emptyDir"), &volume["configMap"]["name"]), (None, &json!("c")));

    let deployments = scope.collection("apps/v1", "deployments").await;
    deployments.create(&deployment("web", 0)).await.ok();
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let object = deployments.strategic("web", &patch).await.ok();
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
}

async fn nulls_remove(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    let object =
        patch(&templates, json!({"nodeSelector": {"zone": null}, "containers": [{"name": "main", "env": null}]})).await;
    assert_eq!(object["template"]["spec"]["nodeSelector"], json!({"disk": "ssd"}));
    let containers = object["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.iter().find(|one| one["name"] == "main").unwrap().get("env"), None);
}

async fn unknown_directives_are_refused(scope: &Scope) {
    let templates = template(scope, two_containers()).await;
    for spec in [json!({"$patch": "explode"}), json!({"containers": [{"image": "no-key"}]})] {
        let answer = templates.strategic("a", &json!({"template": {"spec": spec}})).await;
        assert!((400..=500).contains(&answer.status), "{spec}: {} {}", answer.status, answer.text);
    }
    let wrong_type = templates.strategic("a", &json!({"template": {"spec": {"containers": {"name": "x"}}}})).await;
    assert!((400..=500).contains(&wrong_type.status), "{} {}", wrong_type.status, wrong_type.text);
}

async fn ports_merge_by_number(scope: &Scope) {
    let services = scope.collection("v1", "services").await;
    services
        .create(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"ports": [{"name": "http", "port": 80}]}}))
        .await
        .ok();
    let patch = json!({"spec": {"ports": [{"name": "https", "port": 443}, {"port": 80, "targetPort": 8080}]}});
    let object = services.strategic("a", &patch).await.ok();
    let ports = object["spec"]["ports"].as_array().unwrap();
    let http = ports.iter().find(|port| port["port"] == 80).unwrap();
    assert_eq!((ports.len(), &http["name"], &http["targetPort"]), (2, &json!("http"), &json!(8080)));
}
