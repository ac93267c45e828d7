//! Representations of requests and responses: YAML, protobuf, gzip, entity tags, legacy paths.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::io::Read as _;

use chandler_devcluster_apimachinery::protobuf;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};

use crate::common::{self, CONFIG_MAPS, config_map, get, ok, quiet, send, watch};

/// Sends a request with headers and a body of bytes.
async fn exchange(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (Response<()>, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(kube::client::Body::from(body.to_vec())).unwrap();
    let (parts, body) = client.send(request).await.unwrap().into_parts();
    (Response::from_parts(parts, ()), body.collect().await.unwrap().to_bytes().to_vec())
}

fn message(body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap();
    status["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn yaml_is_read_and_written() {
    let cluster = quiet().await;
    let client = cluster.client();
    let body = b"metadata:\n  name: a\ndata:\n  yes: \"1\"\n";
    let yaml = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    let (response, body) = exchange(&client, "POST", CONFIG_MAPS, &yaml, body).await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
        (201, "application/yaml")
    );
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains("kind: ConfigMap\n") && text.contains("\"yes\": \"1\"\n"), "{text}");
    let (response, body) = exchange(&client, "GET", &format!("{CONFIG_MAPS}/none"), &yaml[1..], b"").await;
    assert_eq!(response.status(), 404);
    assert!(String::from_utf8(body).unwrap().contains("reason: NotFound"));
    let (response, _) = exchange(&client, "GET", &format!("{CONFIG_MAPS}?watch=true"), &yaml[1..], b"").await;
    assert_eq!(response.status(), 406);
}

#[tokio::test]
async fn unsupported_media_types_are_refused_with_the_supported_ones() {
    let cluster = quiet().await;
    let client = cluster.client();
    let cbor = [("content-type", "application/cbor")];
    let (response, body) = exchange(&client, "POST", CONFIG_MAPS, &cbor, b"\xa0").await;
    assert_eq!(response.status(), 415);
    assert_eq!(
        message(&body),
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf"
    );
    let (response, body) = exchange(&client, "GET", CONFIG_MAPS, &[("accept", protobuf::MEDIA_TYPE)], b"").await;
    assert_eq!(response.status(), 406);
    assert!(message(&body).contains("DIFFERENCES.md"), "{}", message(&body));
    ok(&client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", common::widgets()).await;
    common::until(&client, "/apis/example.com/v1/namespaces/default/widgets", |status, _| status == 200).await;
    let content_type = [("content-type", protobuf::MEDIA_TYPE)];
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let (response, body) = exchange(&client, "POST", path, &content_type, b"k8s\0").await;
    assert_eq!(response.status(), 415);
    assert!(message(&body).ends_with("accepted media types include: application/json, application/yaml"));
}

#[tokio::test]
async fn large_responses_are_compressed_and_unmodified_ones_not_sent() {
    let cluster = quiet().await;
    let client = cluster.client();
    ok(&client, "POST", CONFIG_MAPS, "", config_map("large", &json!({"x": "y".repeat(200_000)}))).await;
    let gzip = [("accept-encoding", "gzip")];
    let (response, body) = exchange(&client, "GET", CONFIG_MAPS, &gzip, b"").await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut text).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert!(names.contains(&&json!("large")), "{names:?}");
    let (response, _) = exchange(&client, "GET", "/api/v1/namespaces", &gzip, b"").await;
    assert!(!response.headers().contains_key("content-encoding"));

    let (_, index) = get(&client, "/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let (response, _) = exchange(&client, "GET", &url, &[], b"").await;
    assert_eq!(response.headers()["cache-control"], "public, immutable");
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    let (response, body) = exchange(&client, "GET", &url, &[("if-none-match", &tag)], b"").await;
    assert_eq!((response.status().as_u16(), body.len()), (304, 0));
    let accept = ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let (response, _) = exchange(&client, "GET", "/apis", &[accept], b"").await;
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    let (response, _) = exchange(&client, "GET", "/apis", &[accept, ("if-none-match", &tag)], b"").await;
    assert_eq!(response.status(), 304);
    ok(&client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", common::widgets()).await;
    common::until(&client, "/apis/example.com/v1", |status, _| status == 200).await;
    let (response, _) = exchange(&client, "GET", "/apis", &[accept, ("if-none-match", &tag)], b"").await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn watching_works_under_its_old_path() {
    let cluster = quiet().await;
    let client = cluster.client();
    let list = ok(&client, "GET", CONFIG_MAPS, "", Value::Null).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events =
        watch(&client, &format!("/api/v1/watch/namespaces/default/configmaps?resourceVersion={version}")).await;
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    assert_eq!(send(&client, "GET", "/api/v1/watch/", "", Value::Null).await.0, 404);
}

/// On another server (`KUBECONFIG`), all objects decode from protobuf to the same value as from JSON.
#[tokio::test]
async fn every_object_of_a_server_reads_the_same_in_protobuf_and_json() {
    if std::env::var_os("KUBECONFIG").is_none() {
        println!("skipped: KUBECONFIG names no server to compare with");
        return;
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_default().await.unwrap();
    let (mut compared, mut kinds) = (0, 0);
    for resource in chandler_devcluster_apimachinery::schema::Builtins::get().resources() {
        let kind = &resource.group_version_kind;
        let root = if kind.group.is_empty() { "api" } else { "apis" };
        let path = format!("/{root}/{}/{}?limit=500", kind.api_version(), resource.plural);
        let (status, json) = get(&client, &path).await;
        if status != 200 {
            continue;
        }
        let (response, body) = exchange(&client, "GET", &path, &[("accept", protobuf::MEDIA_TYPE)], b"").await;
        if response.status() != 200 {
            continue;
        }
        let decoded = protobuf::decode(&body, "", "").unwrap();
        let versioned =
            |list: &Value| -> Vec<Value> { list["items"].as_array().into_iter().flatten().cloned().collect() };
        let decoded = versioned(&decoded);
        kinds += usize::from(!decoded.is_empty());
        for expected in versioned(&json) {
            let same = |other: &&Value| {
                ["uid", "resourceVersion", "name"]
                    .iter()
                    .all(|field| other["metadata"][*field] == expected["metadata"][*field])
            };
            // Objects that changed between the two requests are not compared.
            let Some(found) = decoded.iter().find(same) else { continue };
            let mut expected = without_nulls(expected);
            // The kind of a template is added in JSON.
            let templates = expected.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
            for template in templates.into_iter().flatten().filter_map(Value::as_object_mut) {
                template.retain(|field, _| field != "apiVersion" && field != "kind");
            }
            assert_eq!(*found, expected, "{kind}");
            compared += 1;
        }
    }
    println!("{compared} objects of {kinds} kinds compared");
    assert!(compared > 0);
}

/// Removes null fields and empty maps and lists that Go writes for absent values: protobuf has neither.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| (name, without_nulls(field)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
