use http_body_util::BodyExt as _;
use serde_json::Value;

use super::*;
use crate::registry::Registry;

async fn body(response: Response<Body>) -> Value {
    let Ok(collected) = response.into_body().collect().await else { panic!("the body breaks off") };
    serde_json::from_slice(&collected.to_bytes()).unwrap()
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name).unwrap()
}

#[tokio::test]
async fn resources_and_subresources_are_listed_by_name() {
    let snapshot = Registry::default().snapshot();
    let core = body(group_version(&snapshot, "", "v1").unwrap()).await;
    let names: Vec<&str> =
        core["resources"].as_array().unwrap().iter().map(|resource| resource["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(named(&core, "pods")["storageVersionHash"], "xPOwRZ+Yhw8=");
    assert_eq!(named(&core, "events")["storageVersionHash"], "r2yiGXH7wu8=");
    assert_eq!(named(&core, "namespaces/finalize")["verbs"], json!(["update"]));
    assert_eq!(
        named(&core, "serviceaccounts/token"),
        &json!({
            "name": "serviceaccounts/token", "singularName": "", "namespaced": true, "kind": "TokenRequest",
            "group": "authentication.k8s.io", "version": "v1", "verbs": ["create"],
        })
    );
    assert_eq!(named(&core, "pods/eviction")["group"], "policy");
    assert_eq!(named(&core, "services/proxy")["kind"], "ServiceProxyOptions");
    assert_eq!(named(&core, "componentstatuses")["verbs"], json!(["get", "list"]));
    let autoscaling = body(group_version(&snapshot, "autoscaling", "v1").unwrap()).await;
    assert_eq!(named(&autoscaling, "horizontalpodautoscalers")["storageVersionHash"], "qwQve8ut294=");
    let crds = body(group_version(&snapshot, "apiextensions.k8s.io", "v1").unwrap()).await;
    assert_eq!(named(&crds, "customresourcedefinitions")["storageVersionHash"], "jfWCUB31mvA=");
    assert_eq!(group_version(&snapshot, "apps", "v9").unwrap_err().reason, "NotFound");
}

#[tokio::test]
async fn the_aggregated_form_says_the_same() {
    let snapshot = Registry::default().snapshot();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let response = groups(&snapshot, accept);
    let tag = response.headers()[http::header::ETAG].clone();
    assert_eq!(groups(&snapshot, accept).headers()[http::header::ETAG], tag);
    assert_eq!(tag.len(), 130);
    let all = body(response).await;
    for group in all["items"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let (group, version_name) =
                (group["metadata"]["name"].as_str().unwrap(), version["version"].as_str().unwrap());
            let plain = body(group_version(&snapshot, group, version_name).unwrap()).await;
            let mut expected = Vec::new();
            for resource in version["resources"].as_array().unwrap() {
                let plural = resource["resource"].as_str().unwrap();
                expected.push(plural.to_owned());
                let subresources = resource["subresources"].as_array().into_iter().flatten();
                expected
                    .extend(subresources.map(|entry| format!("{plural}/{}", entry["subresource"].as_str().unwrap())));
                assert_eq!(named(&plain, plural)["verbs"], resource["verbs"]);
            }
            let listed: Vec<&str> =
                plain["resources"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
            assert_eq!(listed, expected);
        }
    }
    let beta = groups(&snapshot, &accept.replace("v=v2;", "v=v2beta1;"));
    assert_eq!(body(beta).await["apiVersion"], "apidiscovery.k8s.io/v2beta1");
    assert_eq!(body(groups(&snapshot, "application/json")).await["kind"], "APIGroupList");
}
