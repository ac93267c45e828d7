//! Failures report reason, code and causes.

use http::Method;
use serde_json::json;

use crate::support::{
    Scope, cases,
    http::JSON,
    objects::{config_map, ingress},
};

cases! {
    "3.06" a_not_found_failure_names_the_object;
    "3.06" an_already_exists_failure_names_the_object;
    "3.06" a_namespace_must_exist;
    "3.06" each_broken_rule_is_a_cause;
    "3.06" built_in_objects_are_validated;
    "3.06" a_pod_template_has_a_container;
    "3.06" an_http_rule_has_a_path;
    "3.06" immutable_fields_of_built_in_kinds;
    "3.06" bodies_must_be_objects;
    "3.06" unsupported_verbs_are_not_allowed;
    "3.06" unsupported_media_types_are_refused;
    "3.06" large_bodies_are_refused;
    "3.06" unknown_paths_and_kinds_are_not_found;
}

async fn a_not_found_failure_names_the_object(scope: &Scope) {
    let maps = scope.config_maps().await;
    let status = maps.get("nope").await.refused(404, "NotFound");
    assert_eq!(status["message"], r#"configmaps "nope" not found"#);
    assert_eq!(status["details"], json!({"name": "nope", "kind": "configmaps"}));
    maps.merge("nope", &json!({})).await.refused(404, "NotFound");
    maps.delete("nope").await.refused(404, "NotFound");

    let status = scope.widgets().await.get("nope").await.refused(404, "NotFound");
    let group = scope.server().shared_group();
    assert_eq!(status["message"], format!(r#"widgets.{group} "nope" not found"#));
    assert_eq!(status["details"], json!({"name": "nope", "group": group, "kind": "widgets"}));
    let absent = scope.widget("nope", json!({}));
    scope.widgets().await.put("nope", &absent).await;
    scope.widgets().await.get("nope").await.refused(404, "NotFound");
}

async fn an_already_exists_failure_names_the_object(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let status = widgets.create(&scope.widget("a", json!({}))).await.refused(409, "AlreadyExists");
    let group = scope.server().shared_group();
    assert_eq!(status["message"], format!(r#"widgets.{group} "a" already exists"#));
    assert_eq!(status["details"], json!({"name": "a", "group": group, "kind": "widgets"}));
}

async fn a_namespace_must_exist(scope: &Scope) {
    let absent = scope.name("absent");
    let path = format!("/api/v1/namespaces/{absent}/configmaps");
    let status = scope.http().post(&path, &config_map("a", json!({}))).await.refused(404, "NotFound");
    assert_eq!(status["message"], format!(r#"namespaces "{absent}" not found"#));
    assert_eq!(status["details"], json!({"name": absent, "kind": "namespaces"}));
    assert_eq!(scope.http().get(&path).await.is(200)["items"], json!([]), "an empty list is not a failure");
}

async fn each_broken_rule_is_a_cause(scope: &Scope) {
    let widgets = scope.widgets().await;
    let object = scope.widget("a", json!({"size": 0, "color": 7, "parts": [{"value": "x"}]}));
    let answer = widgets.create(&object).await;
    let cause = answer.clone().invalid("spec.size");
    assert_eq!(cause["reason"], "FieldValueInvalid");
    let cause = answer.clone().invalid("spec.color");
    assert_eq!(cause["reason"], "FieldValueTypeInvalid");
    let cause = answer.clone().invalid("spec.parts[0].name");
    assert_eq!((&cause["reason"], &cause["message"]), (&json!("FieldValueRequired"), &json!("Required value")));
    let status = answer.refused(422, "Invalid");
    let group = scope.server().shared_group();
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with(&format!(r#"Widget.{group} "a" is invalid: ["#)), "{message}");
    assert_eq!((&status["details"]["name"], &status["details"]["kind"]), (&json!("a"), &json!("Widget")));
    assert_eq!(status["details"]["group"], group);
}

async fn built_in_objects_are_validated(scope: &Scope) {
    let mut empty = ingress("a");
    empty["spec"] = json!({});
    scope.ingresses().await.create(&empty).await.invalid("spec");
    let services = scope.collection("v1", "services").await;
    let service = |ports: serde_json::Value| {
        json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a"}, "spec": {"ports": ports}})
    };
    services.create(&service(json!([{"port": 70000}]))).await.invalid("spec.ports[0].port");
    services.create(&service(json!([{"port": 80}, {"port": 81}]))).await.invalid("spec.ports[0].name");
    let deployments = scope.collection("apps/v1", "deployments").await;
    let mut object = crate::support::objects::deployment("web", 1);
    object["spec"]["template"]["spec"]["containers"] = json!([]);
    deployments.create(&object).await.invalid("spec.template.spec.containers");
    let mut object = crate::support::objects::deployment("web", 1);
    object["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    deployments.create(&object).await.invalid("spec.template.metadata.labels");
    let mut object = crate::support::objects::deployment("web", 1);
    object["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes".into();
    let cause = deployments.create(&object).await.invalid("spec.template.spec.containers[0].imagePullPolicy");
    assert_eq!(cause["reason"], "FieldValueNotSupported");
    scope.config_maps().await.create(&config_map("a", json!({"bad key!": "x"}))).await.invalid("data[bad key!]");
}

async fn immutable_fields_of_built_in_kinds(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({"x": "1"}));
    object["immutable"] = true.into();
    maps.create(&object).await.ok();
    maps.merge("a", &json!({"data": {"x": "2"}})).await.invalid("data");
    maps.merge("a", &json!({"immutable": null})).await.invalid("immutable");
    maps.merge("a", &json!({"metadata": {"labels": {"x": "y"}}})).await.is(200);
    let secrets = scope.secrets().await;
    secrets.create(&json!({"metadata": {"name": "a"}, "type": "Opaque"})).await.ok();
    secrets.merge("a", &json!({"type": "example.com/other"})).await.invalid("type");
    let deployments = scope.collection("apps/v1", "deployments").await;
    deployments.create(&crate::support::objects::deployment("web", 0)).await.ok();
    let patch = json!({"spec": {"selector": {"matchLabels": {"tier": "x"}},
        "template": {"metadata": {"labels": {"tier": "x"}}}}});
    deployments.merge("web", &patch).await.invalid("spec.selector");
}

async fn bodies_must_be_objects(scope: &Scope) {
    let maps = scope.config_maps().await;
    let path = maps.path("").trim_end_matches('/').to_owned();
    for body in ["{", "[]", "7", ""] {
        let answer = scope.http().send(Method::POST, &path, JSON, body.into()).await;
        assert_eq!(answer.status, 400, "{body:?}: {}", answer.text);
    }
    for (body, patch) in [("{", JSON), ("[]", "application/merge-patch+json"), ("{}", "application/json-patch+json")] {
        let answer = scope.http().send(Method::PATCH, &maps.path("a"), patch, body.into()).await;
        assert!((400..500).contains(&answer.status), "{body:?}: {} {}", answer.status, answer.text);
    }
    let wrong_type = json!({"metadata": {"name": "a"}, "data": {"x": 1}});
    maps.create(&wrong_type).await.refused(400, "BadRequest");
}

async fn unsupported_verbs_are_not_allowed(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    let collection = maps.path("").trim_end_matches('/').to_owned();
    assert_eq!(scope.http().put(&collection, &config_map("a", json!({}))).await.status, 405);
    assert_eq!(scope.http().post(&maps.path("a"), &config_map("a", json!({}))).await.status, 405);
}

async fn unsupported_media_types_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    let collection = maps.path("").trim_end_matches('/').to_owned();
    let send = |method: Method, path: String, content_type: &'static str| async move {
        scope.http().send(method, &path, content_type, b"{}".to_vec()).await
    };
    send(Method::POST, collection.clone(), "text/plain").await.refused(415, "UnsupportedMediaType");
    send(Method::PATCH, maps.path("a"), JSON).await.refused(415, "UnsupportedMediaType");
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    widgets.strategic("a", &json!({})).await.refused(415, "UnsupportedMediaType");
    let html = scope.http().with("accept", "text/html");
    html.get(&collection).await.refused(406, "NotAcceptable");
    let yaml = scope.http().with("accept", "application/yaml").get(&maps.path("a")).await;
    assert_eq!(yaml.status, 200);
    assert!(yaml.text.contains("kind: ConfigMap\n"), "{}", yaml.text);
    let any = scope.http().with("accept", "text/html, */*;q=0.1").get(&maps.path("a")).await;
    assert_eq!(any.is(200)["kind"], "ConfigMap");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  x: '1'\n";
    let created = scope.http().send(Method::POST, &collection, "application/yaml", yaml.into()).await.is(201);
    assert_eq!(created["data"]["x"], "1");
}

async fn large_bodies_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let large = config_map("a", json!({"x": "y".repeat(4 << 20)}));
    let path = maps.path("").trim_end_matches('/').to_owned();
    scope.http().post_too_much(&path, &large).await.refused(413, "RequestEntityTooLarge");
    let status = maps.create(&config_map("a", json!({"x": "y".repeat((1 << 20) + 1)}))).await.refused(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["message"], "Too long: may not be more than 1048576 bytes");
}

async fn unknown_paths_and_kinds_are_not_found(scope: &Scope) {
    let namespace = scope.namespace().await;
    for path in [
        "/nowhere".to_owned(),
        "/apis/nowhere.example.com/v1".to_owned(),
        format!("/api/v1/namespaces/{namespace}/things"),
        format!("/apis/apps/v9/namespaces/{namespace}/deployments"),
    ] {
        assert_eq!(scope.http().get(&path).await.status, 404, "{path}");
    }
}

async fn a_pod_template_has_a_container(scope: &Scope) {
    let templates = scope.pod_templates().await;
    for template in [json!(null), json!({}), json!({"spec": {"containers": []}}), json!({"spec": {"hostname": "a"}})] {
        let object =
            json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}, "template": template});
        let cause = templates.create(&object).await.invalid("template.spec.containers");
        assert_eq!(cause["message"], "Required value", "{template}");
        assert_eq!(templates.get("a").await.status, 404);
    }
}

async fn an_http_rule_has_a_path(scope: &Scope) {
    let ingresses = scope.ingresses().await;
    for http in [json!({}), json!({"paths": []})] {
        let mut object = ingress("a");
        object["spec"] = json!({"rules": [{"host": "a.example.com", "http": http}]});
        let cause = ingresses.create(&object).await.invalid("spec.rules[0].http.paths");
        assert_eq!(cause["message"], "Required value", "{http}");
    }
}
