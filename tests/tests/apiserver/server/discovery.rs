//! Discovery, OpenAPI, versions, health.

use serde_json::{Value, json};

use crate::support::{Scope, cases};

cases! {
    "3.20" legacy_discovery;
    "3.20" aggregated_discovery;
    "3.20" legacy_and_aggregated_discovery_agree;
    "3.20" aggregated_discovery_is_not_sent_again_unchanged;
    "3.20" openapi_lists_its_documents;
    "3.20" openapi_documents_contain_what_clients_need;
    "3.20" openapi_documents_are_addressed_by_content;
    "3.20" the_server_reports_its_version;
    "3.20" health;
}

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn legacy_discovery(scope: &Scope) {
    let http = scope.http();
    let versions = http.get("/api").await.ok();
    assert_eq!((&versions["kind"], &versions["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let groups = http.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let all = groups["groups"].as_array().unwrap();
    for (group, version) in [
        ("apps", "v1"),
        ("batch", "v1"),
        ("rbac.authorization.k8s.io", "v1"),
        ("apiextensions.k8s.io", "v1"),
        ("coordination.k8s.io", "v1"),
        ("networking.k8s.io", "v1"),
        ("policy", "v1"),
        ("autoscaling", "v2"),
        ("admissionregistration.k8s.io", "v1"),
        ("storage.k8s.io", "v1"),
        ("events.k8s.io", "v1"),
    ] {
        let found = all.iter().find(|one| one["name"] == group).unwrap_or_else(|| panic!("no group {group}"));
        assert_eq!(
            found["preferredVersion"],
            json!({"groupVersion": format!("{group}/{version}"), "version": version})
        );
    }
    let apps = http.get("/apis/apps").await.ok();
    assert_eq!((&apps["kind"], &apps["name"]), (&json!("APIGroup"), &json!("apps")));
    let core = http.get("/api/v1").await.ok();
    assert_eq!((&core["kind"], &core["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let maps = core["resources"].as_array().unwrap().iter().find(|one| one["name"] == "configmaps").unwrap();
    assert_eq!(
        (&maps["kind"], &maps["singularName"], &maps["namespaced"], &maps["shortNames"]),
        (&json!("ConfigMap"), &json!("configmap"), &json!(true), &json!(["cm"]))
    );
    assert_eq!(
        maps["verbs"],
        json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
    );
}

async fn aggregated_discovery(scope: &Scope) {
    let http = scope.http().with("accept", V2);
    for (path, group) in [("/api", ""), ("/apis", "apps")] {
        let answer = http.get(path).await;
        let content_type = answer.headers["content-type"].to_str().unwrap().to_owned();
        assert!(content_type.contains("as=APIGroupDiscoveryList") && content_type.contains("v=v2"), "{content_type}");
        let list = answer.ok();
        assert_eq!(
            (&list["kind"], &list["apiVersion"]),
            (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
        );
        let found = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["metadata"]["name"].as_str().unwrap_or_default() == group);
        let version = &found.unwrap_or_else(|| panic!("no group {group:?}"))["versions"][0];
        assert_eq!((&version["version"], &version["freshness"]), (&json!("v1"), &json!("Current")));
    }
    let list = http.get("/apis").await.ok();
    let apps = list["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "apps").unwrap();
    let deployments = apps["versions"][0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["resource"] == "deployments")
        .unwrap();
    assert_eq!(deployments["responseKind"]["kind"], "Deployment");
    assert_eq!((&deployments["scope"], &deployments["singularResource"]), (&json!("Namespaced"), &json!("deployment")));
    let subresources: Vec<&str> = deployments["subresources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["subresource"].as_str().unwrap())
        .collect();
    assert_eq!(subresources, ["scale", "status"]);
}

async fn legacy_and_aggregated_discovery_agree(scope: &Scope) {
    let http = scope.http();
    let aggregated = http.with("accept", V2).get("/apis").await.ok();
    let apps = aggregated["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "apps").unwrap();
    let mut names: Vec<String> = Vec::new();
    for resource in apps["versions"][0]["resources"].as_array().unwrap() {
        let name = resource["resource"].as_str().unwrap();
        names.push(name.to_owned());
        for subresource in resource["subresources"].as_array().into_iter().flatten() {
            names.push(format!("{name}/{}", subresource["subresource"].as_str().unwrap()));
        }
    }
    names.sort_unstable();
    let legacy = http.get("/apis/apps/v1").await.ok();
    let mut expected: Vec<String> =
        legacy["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

async fn aggregated_discovery_is_not_sent_again_unchanged(scope: &Scope) {
    let http = scope.http().with("accept", V2);
    let answer = http.get("/api").await;
    let tag = answer.headers["etag"].to_str().unwrap().to_owned();
    let again = http.with("if-none-match", &tag).get("/api").await;
    assert_eq!((again.status, again.text.len()), (304, 0));
}

async fn openapi_lists_its_documents(scope: &Scope) {
    let list = scope.http().get("/openapi/v3").await.ok();
    let paths = list["paths"].as_object().unwrap();
    for path in ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"] {
        let url = paths[path]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("no {path}"));
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
    }
}

async fn openapi_documents_contain_what_clients_need(scope: &Scope) {
    let document = scope.http().get("/openapi/v3/apis/apps/v1").await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    let pod = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(
        (&pod["x-kubernetes-list-type"], &pod["x-kubernetes-list-map-keys"], &pod["x-kubernetes-patch-merge-key"]),
        (&json!("map"), &json!(["name"]), &json!("name"))
    );
    // kubectl reads from the operation whether dry runs are supported.
    let path = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(path["x-kubernetes-group-version-kind"]["kind"], "Deployment");
    let names: Vec<&Value> = path["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    for parameter in ["dryRun", "fieldManager", "fieldValidation", "force"] {
        assert!(names.contains(&&json!(parameter)), "{parameter} in {names:?}");
    }
}

async fn openapi_documents_are_addressed_by_content(scope: &Scope) {
    let list = scope.http().get("/openapi/v3").await.ok();
    let url = list["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let answer = scope.http().get(&url).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.headers.contains_key("etag"), "{:?}", answer.headers);
    assert!(answer.body["components"]["schemas"]["io.k8s.api.batch.v1.Job"].is_object());
}

async fn the_server_reports_its_version(scope: &Scope) {
    let version = scope.http().get("/version").await.ok();
    for field in
        ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"]
    {
        assert!(version[field].is_string(), "{field} in {version}");
    }
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."), "{version}");
}

async fn health(scope: &Scope) {
    for path in ["/readyz", "/livez", "/healthz"] {
        let answer = scope.http().get(path).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok"), "{path}");
    }
    let verbose = scope.http().get("/readyz?verbose").await;
    assert!(verbose.text.contains("[+]ping ok") && verbose.text.ends_with("readyz check passed\n"), "{}", verbose.text);
}
