//! Tables, partial metadata, protobuf.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Http, Scope, cases,
    objects::{config_map, version},
};

cases! {
    "3.24" tables_of_lists;
    "3.24" tables_of_one_object;
    "3.24" tables_of_custom_objects;
    "3.24" tables_in_watches;
    "3.24" rows_include_the_requested_objects;
    "3.24" metadata_alone;
    "3.24" metadata_alone_in_lists_and_watches;
    "2" a_body_in_protobuf;
    "2" a_json_response_if_protobuf_is_only_preferred;
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn tables(scope: &Scope) -> Http {
    scope.http().with("accept", TABLE)
}

fn columns(table: &Value) -> Vec<&str> {
    table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect()
}

async fn tables_of_lists(scope: &Scope) {
    let maps = scope.config_maps().await;
    for name in ["a", "b"] {
        maps.create(&json!({"metadata": {"name": name, "labels": {"case": "yes"}}, "data": {"x": "1", "y": "2"}}))
            .await
            .ok();
    }
    let table = maps.through(&tables(scope)).list("labelSelector=case=yes").await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(columns(&table), ["Name", "Data", "Age"]);
    assert!(!version(&table).is_empty());
    let row = &table["rows"][0];
    assert_eq!((&row["cells"][0], &row["cells"][1]), (&json!("a"), &json!(2)));
    assert!(row["cells"][2].as_str().unwrap().ends_with('s'), "an age: {row}");
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["labels"], json!({"case": "yes"}));
    let page = maps.through(&tables(scope)).list("labelSelector=case=yes&limit=1").await.ok();
    assert_eq!(page["rows"].as_array().unwrap().len(), 1);
    assert!(page["metadata"]["continue"].is_string());
}

async fn tables_of_one_object(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    let table = maps.through(&tables(scope)).get("a").await.ok();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    let absent = maps.through(&tables(scope)).get("none").await;
    absent.refused(404, "NotFound");
}

async fn tables_of_custom_objects(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"color": "red"}))).await.ok();
    widgets.merge("a/status", &json!({"status": {"phase": "Done"}})).await.ok();
    let table = widgets.through(&tables(scope)).list("").await.ok();
    assert_eq!(columns(&table), ["Name", "Size", "Phase", "Color"]);
    let crds = table["columnDefinitions"].as_array().unwrap();
    assert_eq!(
        (&crds[0]["format"], &crds[1]["type"], &crds[3]["priority"]),
        (&json!("name"), &json!("integer"), &json!(1))
    );
    assert_eq!(table["rows"][0]["cells"], json!(["a", 3, "Done", "red"]));
    let bare = scope.create_widget_crd(json!({"type": "object"})).await;
    bare.create(&scope.own_widget("a", json!({}))).await.ok();
    assert_eq!(columns(&bare.through(&tables(scope)).list("").await.ok()), ["Name", "Age"]);
}

async fn tables_in_watches(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let mut events = widgets.through(&tables(scope)).watch("").await;
    let first = events.expect().await;
    assert_eq!((first.kind.as_str(), &first.object["kind"]), ("ADDED", &json!("Table")));
    assert_eq!(first.object["rows"][0]["cells"][0], "a");
    assert_eq!(columns(&first.object).len(), 4);
    widgets.merge("a", &json!({"spec": {"size": 9}})).await.ok();
    let second = events.expect().await;
    assert_eq!((second.kind.as_str(), &second.object["rows"][0]["cells"][1]), ("MODIFIED", &json!(9)));
    assert!(second.object["columnDefinitions"].is_null(), "only the first event has columns: {second:?}");
}

async fn rows_include_the_requested_objects(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&json!({"metadata": {"name": "a", "labels": {"case": "yes"}}, "data": {"x": "1"}})).await.ok();
    let list = |include: &'static str| {
        let maps = maps.through(&tables(scope));
        async move { maps.list(&format!("labelSelector=case=yes&includeObject={include}")).await }
    };
    assert_eq!(list("Object").await.ok()["rows"][0]["object"]["data"], json!({"x": "1"}));
    assert_eq!(list("Metadata").await.ok()["rows"][0]["object"].get("data"), None);
    assert!(list("None").await.ok()["rows"][0]["object"].is_null());
    assert_eq!(list("Everything").await.status, 400);
}

async fn metadata_alone(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let partial = maps.through(&scope.http().with("accept", METADATA)).get("a").await.ok();
    assert_eq!((&partial["kind"], &partial["apiVersion"]), (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1")));
    assert_eq!((&partial["metadata"], partial.get("data")), (&created["metadata"], None));
}

async fn metadata_alone_in_lists_and_watches(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({}))).await.ok();
    let list = widgets.through(&scope.http().with("accept", METADATA_LIST)).list("").await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"], created["metadata"]);
    assert_eq!(list["items"][0].get("spec"), None);
    let mut events = widgets.through(&scope.http().with("accept", METADATA)).watch("").await;
    let event = events.expect().await;
    assert_eq!((&event.object["kind"], event.object.get("spec")), (&json!("PartialObjectMetadata"), None));
    assert_eq!(event.object["metadata"], created["metadata"]);
}

/// A field of a protobuf message: number, wire type 2, bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).expect("a short field")];
    field.extend_from_slice(bytes);
    field
}

async fn a_body_in_protobuf(scope: &Scope) {
    // k8s.io/apimachinery/pkg/runtime/generated.proto: Unknown {typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2}; a ConfigMap is
    // {metadata = 1 {name = 1}, data = 2 (map of text: key = 1, value = 2)}.
    let type_meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let map = [field(1, &field(1, b"a")), field(2, &[field(1, b"x"), field(2, b"one")].concat())].concat();
    let body = [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &map)].concat();
    let maps = scope.config_maps().await;
    let path = maps.path("").trim_end_matches('/').to_owned();
    let http = scope.http().with("accept", "application/json");
    let created = http.send(Method::POST, &path, "application/vnd.kubernetes.protobuf", body).await.is(201);
    assert_eq!((&created["metadata"]["name"], &created["data"]), (&json!("a"), &json!({"x": "one"})));
    let answer = http.send(Method::POST, &path, "application/vnd.kubernetes.protobuf", b"k8s\0\xff\xff".to_vec()).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
}

async fn a_json_response_if_protobuf_is_only_preferred(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let http = scope.http().with("accept", "application/vnd.kubernetes.protobuf,application/json");
    let answer = widgets.through(&http).get("a").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.ok()["kind"], "Widget");
}
