//! The support library of the tests: a cluster, plain requests, waiting for conditions.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

pub mod access;

use std::time::Duration;

use chandler_devcluster::{DevCluster, Options};
use futures::{AsyncBufReadExt as _, TryStreamExt as _, io::Lines};
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

/// Far longer than any operation takes; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// A cluster in which only the tests act.
pub async fn quiet() -> DevCluster {
    start(Options { workloads: false, ..Options::default() }).await
}

pub async fn start(options: Options) -> DevCluster {
    DevCluster::start(options).await.unwrap()
}

/// A client that returns 429, 503 and 504 instead of retrying.
pub async fn without_retries(cluster: &DevCluster) -> Client {
    let mut config = config(cluster).await;
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// The configuration of a client from the kubeconfig.
pub async fn config(cluster: &DevCluster) -> kube::Config {
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await.unwrap()
}

/// Sends a request and returns status and body; an empty content type means JSON.
pub async fn send(client: &Client, method: &str, path: &str, content_type: &str, body: Value) -> (u16, Value) {
    let content_type = if content_type.is_empty() { "application/json" } else { content_type };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
    let response = client.send(request.body(kube::client::Body::from(bytes)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

pub async fn get(client: &Client, path: &str) -> (u16, Value) {
    send(client, "GET", path, "", Value::Null).await
}

/// Sends a request that must succeed.
pub async fn ok(client: &Client, method: &str, path: &str, content_type: &str, body: Value) -> Value {
    let (status, value) = send(client, method, path, content_type, body).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {value}");
    value
}

pub fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Polls until the response satisfies the condition.
pub async fn until(client: &Client, path: &str, what: impl Fn(u16, &Value) -> bool) -> Value {
    let mut last = (0, Value::Null);
    let asking = async {
        loop {
            last = get(client, path).await;
            if what(last.0, &last.1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, asking).await;
    assert!(waited.is_ok(), "{path} did not come to it: {} {}", last.0, last.1);
    last.1
}

pub async fn until_gone(client: &Client, path: &str) {
    until(client, path, |status, _| status == 404).await;
}

/// The events of a watch, one JSON document per line.
pub struct Events(Lines<std::pin::Pin<Box<dyn futures::AsyncBufRead + Send>>>);

pub async fn watch(client: &Client, path: &str) -> Events {
    let request = Request::get(path).body(Vec::new()).unwrap();
    let stream: std::pin::Pin<Box<dyn futures::AsyncBufRead + Send>> =
        Box::pin(client.request_stream(request).await.unwrap());
    Events(stream.lines())
}

impl Events {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.0.try_next()).await.expect("an event or the end").unwrap();
        line.map(|line| serde_json::from_str(&line).unwrap())
    }

    /// Type and name of the next events.
    pub async fn summary(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("an event");
            all.push(format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"].as_str().unwrap_or("-")
            ));
        }
        all
    }
}

/// A CRD `<plural>.example.com` whose kind is `Widget`.
pub fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object",
                        "x-kubernetes-validations": [
                            {"rule": "self.size <= 10 || self.color == 'red'", "message": "only red ones are large"},
                        ],
                        "properties": {
                            "size": {"type": "integer", "minimum": 1, "default": 3},
                            "color": {"type": "string",
                                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "color is immutable"}]},
                            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                "items": {"type": "object", "required": ["name"], "properties": {
                                    "name": {"type": "string"}, "port": {"type": "integer"}}}},
                        }},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                }}},
            }],
        },
    })
}

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub async fn establish_widgets(client: &Client) {
    ok(client, "POST", CRDS, "", widgets()).await;
    until(client, "/apis/example.com/v1", |status, _| status == 200).await;
}

pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}
