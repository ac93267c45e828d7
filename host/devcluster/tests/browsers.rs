//! Requests of web pages are refused, even with valid credentials.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use chandler_devcluster::DevCluster;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::Value;

use crate::common::{config, quiet};

/// Sends a request as the administrator with these headers. Returns the status and its message.
async fn send(cluster: &DevCluster, headers: &[(&str, &str)]) -> (u16, String) {
    let client = Client::try_from(config(cluster).await).unwrap();
    let mut request = Request::get("/api/v1/namespaces");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client.send(request.body(kube::client::Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    (status, body["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn requests_with_a_foreign_host_or_origin_are_refused() {
    let cluster = quiet().await;
    for headers in [
        &[("host", "attacker.example:6443")][..],
        &[("origin", "https://attacker.example")],
        &[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", "null")],
    ] {
        let (status, message) = send(&cluster, headers).await;
        assert_eq!(status, 403, "{headers:?}: {message}");
        assert!(!message.contains("namespaces"), "{message}");
    }
    let (_, message) = send(&cluster, &[("host", "attacker.example:6443")]).await;
    insta::assert_snapshot!(message, @r#""attacker.example:6443" is not a host name of this server: use a loopback address, `localhost` or the address it listens on"#);
    let own = cluster.url().trim_start_matches("https://").to_owned();
    let origin = format!("https://{own}");
    for headers in [&[][..], &[("host", "localhost:6443")], &[("host", &own), ("origin", &origin)]] {
        assert_eq!(send(&cluster, headers).await.0, 200, "{headers:?}");
    }
}
