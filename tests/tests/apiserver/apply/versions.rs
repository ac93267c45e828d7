//! Field sets of several versions of one kind.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{self, entry},
};

cases! {
    "3.09" a_manager_can_change_the_version_it_applies_in;
    "3.09" owners_in_other_versions_are_respected;
}

/// Kind `Widget` in `v1` and `v1beta1`, which is not stored.
async fn two_versions(scope: &Scope) -> (Collection, Collection) {
    let spec = json!({"type": "object", "properties": {
        "color": {"type": "string"}, "size": {"type": "integer"},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}}}});
    let mut crd = objects::crd(&scope.group(), json!({"type": "object", "properties": {"spec": spec}}));
    let mut beta = crd["spec"]["versions"][0].clone();
    beta["name"] = "v1beta1".into();
    beta["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(beta);
    scope.create_crd(&crd).await;
    let collection = |version: &str| format!("{}/{version}", scope.group());
    (scope.collection(&collection("v1"), "widgets").await, scope.collection(&collection("v1beta1"), "widgets").await)
}

fn widget(scope: &Scope, version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{}/{version}", scope.group()), "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

async fn a_manager_can_change_the_version_it_applies_in(scope: &Scope) {
    let (new, old) = two_versions(scope).await;
    old.apply("a", "one", &widget(scope, "v1beta1", json!({"color": "red", "size": 1}))).await.is(201);
    let object = new.apply("a", "one", &widget(scope, "v1", json!({"color": "blue"}))).await.is(200);
    assert_eq!(object["spec"], json!({"color": "blue"}), "what it left out in the other version goes");
    let owned = entry(&object, "one", "Apply", "").unwrap();
    assert_eq!(owned["apiVersion"], format!("{}/v1", scope.group()));
    assert_eq!(object["metadata"]["managedFields"].as_array().unwrap().len(), 1);
}

async fn owners_in_other_versions_are_respected(scope: &Scope) {
    let (new, old) = two_versions(scope).await;
    old.apply("a", "one", &widget(scope, "v1beta1", json!({"parts": [{"name": "p", "value": "1"}]}))).await.is(201);
    let wanted = widget(scope, "v1", json!({"parts": [{"name": "p", "value": "2"}]}));
    let status = new.apply("a", "two", &wanted).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], r#".spec.parts[name="p"].value"#);
    let object = new.apply("a?force=true", "two", &wanted).await.is(200);
    assert_eq!(entry(&object, "one", "Apply", "").unwrap()["apiVersion"], format!("{}/v1beta1", scope.group()));
    let object = old.apply("a", "one", &widget(scope, "v1beta1", json!({}))).await.is(200);
    assert_eq!(object["spec"]["parts"], json!([{"name": "p", "value": "2"}]));
}
