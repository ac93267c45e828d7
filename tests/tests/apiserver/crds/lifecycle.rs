//! The lifecycle of CRDs and their APIs.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Collection, MERGE, Scope, cases,
    objects::{self, CRDS, has_condition, widgets},
};

cases! {
    "3.17" a_crd_is_established_after_its_names_are_accepted;
    "3.17" nothing_is_served_before_a_crd_is_established;
    "3.17" discovery_and_openapi_follow;
    "3.17" names_that_are_taken_are_not_accepted: differs("a CRD whose names were taken is not looked at again when they are free");
    "3.17" a_new_short_name_that_is_a_name_of_its_own_crd_is_not_accepted;
    "3.17" deleting_a_crd_deletes_its_objects: controllers;
    "3.17" nothing_is_created_while_a_crd_terminates: controllers;
    "3.17" a_recreated_crd_has_no_objects: controllers;
    "3.17" unserved_versions_are_not_found;
    "3.17" cluster_scoped_kinds;
    "3.17" discovery_lists_categories_and_short_names;
    "4" an_object_before_its_crd_is_served_fails;
}

fn crd_path(scope: &Scope) -> String {
    format!("{CRDS}/widgets.{}", scope.group())
}

fn simple(scope: &Scope) -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    objects::crd(&scope.group(), json!({"type": "object", "properties": {"spec": spec}}))
}

async fn own(scope: &Scope) -> Collection {
    scope.collection(&format!("{}/v1", scope.group()), "widgets").await
}

async fn a_crd_is_established_after_its_names_are_accepted(scope: &Scope) {
    let established = scope.create_crd(&simple(scope)).await;
    assert!(has_condition(&established, "NamesAccepted"), "{established}");
    assert_eq!(established["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(
        established["status"]["acceptedNames"],
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"})
    );
    assert_eq!(established["spec"]["conversion"], json!({"strategy": "None"}), "a default");
    let mut bare = simple(scope);
    bare["metadata"]["name"] = format!("gadgets.{}", scope.group()).into();
    bare["spec"]["names"] = json!({"kind": "Gadget", "plural": "gadgets"});
    let established = scope.create_crd(&bare).await;
    let names = &established["spec"]["names"];
    assert_eq!((&names["singular"], &names["listKind"]), (&json!("gadget"), &json!("GadgetList")));
}

async fn nothing_is_served_before_a_crd_is_established(scope: &Scope) {
    let things = own(scope).await;
    assert_eq!(things.list("").await.status, 404);
    assert_eq!(things.create(&scope.own_widget("a", json!({}))).await.status, 404);
    scope.create_crd(&simple(scope)).await;
    things.create(&scope.own_widget("a", json!({}))).await.is(201);
}

async fn an_object_before_its_crd_is_served_fails(scope: &Scope) {
    // Applied at once, as bundles are: the CRD is accepted, its object not yet. How long that takes depends on the server.
    let things = own(scope).await;
    let object = scope.own_widget("a", json!({}));
    assert_eq!(things.apply("a", "one", &object).await.status, 404);
    scope.remove_later(crd_path(scope));
    scope.http().post(CRDS, &scope.mark(simple(scope))).await.is(201);
    objects::until_served(scope.http(), &simple(scope)).await;
    things.apply("a", "one", &object).await.is(201);
}

async fn discovery_and_openapi_follow(scope: &Scope) {
    let group = scope.group();
    scope.create_crd(&simple(scope)).await;
    let http = scope.http();
    let has_group = |answer: &Answer| answer.text.contains(&group);
    http.until("/apis", "naming the group", has_group).await;
    let resources = http.until(&format!("/apis/{group}/v1"), "there", |answer| answer.status == 200).await.ok();
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/status"]);
    let path = format!("/openapi/v3/apis/{group}/v1");
    let document =
        http.until(&path, "there", |answer| answer.status == 200 && answer.text.contains("Widget")).await.ok();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let kind = json!([{"group": group, "version": "v1", "kind": "Widget"}]);
    let schema = schemas.values().find(|schema| schema["x-kubernetes-group-version-kind"] == kind).expect("a schema");
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer");
    http.delete(&crd_path(scope)).await.ok();
    http.until("/apis", "without the group", |answer| !has_group(answer)).await;
    http.until_gone(&format!("/apis/{group}/v1")).await;
}

async fn names_that_are_taken_are_not_accepted(scope: &Scope) {
    scope.create_crd(&simple(scope)).await;
    let mut other = simple(scope);
    let name = format!("gadgets.{}", scope.group());
    other["metadata"]["name"] = name.clone().into();
    other["spec"]["names"] =
        json!({"kind": "Widget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"});
    let path = format!("{CRDS}/{name}");
    scope.remove_later(path.clone());
    scope.http().post(CRDS, &scope.mark(other)).await.is(201);
    let refused = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array()?;
        conditions
            .iter()
            .find(|condition| condition["type"] == "NamesAccepted" && condition["status"] == "False")
            .cloned()
    };
    let answer = scope.http().until(&path, "refused", |answer| refused(&answer.body).is_some()).await;
    let condition = refused(&answer.body).unwrap();
    assert_eq!(condition["reason"], "KindConflict");
    assert!(!has_condition(&answer.body, "Established"));
    assert_eq!(scope.http().get(&format!("/apis/{}/v1/gadgets", scope.group())).await.status, 404);
    // Once the other CRD is deleted, the names are free.
    scope.http().delete(&crd_path(scope)).await.ok();
    scope.http().until(&path, "established", |answer| has_condition(&answer.body, "Established")).await;
}

async fn a_new_short_name_that_is_a_name_of_its_own_crd_is_not_accepted(scope: &Scope) {
    scope.create_crd(&simple(scope)).await;
    let patch = json!({"spec": {"names": {"shortNames": ["widget"]}}});
    scope.http().send(Method::PATCH, &crd_path(scope), MERGE, patch.to_string().into()).await.is(200);
    let refused = |answer: &Answer| {
        let conditions = answer.body["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|it| {
            it["type"] == "NamesAccepted"
                && (&it["status"], &it["reason"]) == (&json!("False"), &json!("ShortNamesConflict"))
                && it["message"] == "\"widget\" is already in use"
        })
    };
    let answer = scope.http().until(&crd_path(scope), "refused", refused).await;
    assert!(has_condition(&answer.body, "Established"), "{}", answer.text);
    assert_eq!(answer.body["status"]["acceptedNames"].get("shortNames"), None);
    own(scope).await.create(&scope.own_widget("a", json!({}))).await.is(201);
}

async fn deleting_a_crd_deletes_its_objects(scope: &Scope) {
    scope.create_crd(&simple(scope)).await;
    let things = own(scope).await;
    let from = objects::version(&things.create(&scope.own_widget("a", json!({}))).await.ok()).to_owned();
    let mut events = things.watch(&format!("resourceVersion={from}")).await;
    scope.http().delete(&crd_path(scope)).await.ok();
    loop {
        let event = events.expect().await;
        if event.kind == "DELETED" {
            assert_eq!(event.summary(), "DELETED a");
            break;
        }
    }
    scope.http().until_gone(&crd_path(scope)).await;
    scope.http().until_gone(&things.path("")).await;
}

async fn nothing_is_created_while_a_crd_terminates(scope: &Scope) {
    scope.create_crd(&simple(scope)).await;
    let things = own(scope).await;
    let mut held = scope.own_widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    things.create(&held).await.ok();
    scope.http().delete(&crd_path(scope)).await.ok();
    let terminating = |answer: &Answer| has_condition(&answer.body, "Terminating");
    let crd = scope.http().until(&crd_path(scope), "terminating", terminating).await.body;
    assert_eq!(crd["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    things.until("held", "marked", |object| object["metadata"]["deletionTimestamp"].is_string()).await;
    let status = things.create(&scope.own_widget("late", json!({}))).await.refused(403, "Forbidden");
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("create not allowed while custom resource definition is terminating")
    );
    things.merge("held", &json!({"metadata": {"finalizers": null}})).await.ok();
    scope.http().until_gone(&crd_path(scope)).await;
}

async fn a_recreated_crd_has_no_objects(scope: &Scope) {
    scope.create_crd(&simple(scope)).await;
    let things = own(scope).await;
    things.create(&scope.own_widget("a", json!({}))).await.ok();
    scope.http().delete(&crd_path(scope)).await.ok();
    scope.http().until_gone(&crd_path(scope)).await;
    scope.http().until_gone(things.path("").trim_end_matches('/')).await;
    scope.create_crd(&simple(scope)).await;
    assert_eq!(things.list("").await.ok()["items"], json!([]));
}

async fn unserved_versions_are_not_found(scope: &Scope) {
    let mut crd = simple(scope);
    let mut off = crd["spec"]["versions"][0].clone();
    off["name"] = "v2".into();
    off["storage"] = false.into();
    off["served"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(off);
    scope.create_crd(&crd).await;
    let off = scope.collection(&format!("{}/v2", scope.group()), "widgets").await;
    assert_eq!(off.list("").await.status, 404);
    let on = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": true}]);
    scope.http().patch(&crd_path(scope), crate::support::JSON_PATCH, &on).await.ok();
    scope.http().until(off.path("").trim_end_matches('/'), "served", |answer| answer.status == 200).await;
}

async fn cluster_scoped_kinds(scope: &Scope) {
    let mut crd = simple(scope);
    crd["spec"]["scope"] = "Cluster".into();
    scope.create_crd(&crd).await;
    let things = Collection::cluster(scope.http(), &format!("{}/v1", scope.group()), "widgets");
    let created = things.create(&scope.own_widget("a", json!({}))).await.is(201);
    assert_eq!(created["metadata"].get("namespace"), None);
    assert_eq!(own(scope).await.get("a").await.status, 404, "there is no such path");
    let scoped = scope.http().patch(&crd_path(scope), MERGE, &json!({"spec": {"scope": "Namespaced"}})).await;
    scoped.invalid("spec.scope");
}

async fn discovery_lists_categories_and_short_names(scope: &Scope) {
    scope.server().share_widgets().await;
    let group = scope.server().shared_group();
    let shared = widgets(&group);
    let resources = scope.http().get(&format!("/apis/{group}/v1")).await.ok();
    let all = resources["resources"].as_array().unwrap();
    let main = all.iter().find(|one| one["name"] == "widgets").unwrap();
    for (listed, requested) in
        [("kind", "kind"), ("singularName", "singular"), ("shortNames", "shortNames"), ("categories", "categories")]
    {
        assert_eq!(main[listed], shared["spec"]["names"][requested], "{listed}");
    }
    assert_eq!(main["namespaced"], true);
    let mut verbs: Vec<&str> = main["verbs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    verbs.sort_unstable();
    assert_eq!(verbs, ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    let scale = all.iter().find(|one| one["name"] == "widgets/scale").unwrap();
    assert_eq!(
        (&scale["group"], &scale["version"], &scale["kind"]),
        (&json!("autoscaling"), &json!("v1"), &json!("Scale"))
    );
}
