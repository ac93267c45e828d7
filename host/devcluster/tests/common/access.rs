//! Clients of other users than the administrator.

use chandler_devcluster::DevCluster;
use kube::Client;
use serde_json::{Value, json};

use super::{config, ok, send};

pub const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// A client with another bearer token, or with none.
pub async fn with_token(cluster: &DevCluster, token: Option<&str>) -> Client {
    let mut config = config(cluster).await;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    Client::try_from(config).unwrap()
}

/// A client that impersonates another user.
pub async fn acting_as(cluster: &DevCluster, user: &str, groups: &[&str]) -> Client {
    let mut config = config(cluster).await;
    config.auth_info.impersonate = Some(user.to_owned());
    config.auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
    Client::try_from(config).unwrap()
}

/// A token for a ServiceAccount of the default namespace, which is created.
pub async fn account(client: &Client, name: &str) -> String {
    ok(client, "POST", ACCOUNTS, "", json!({"metadata": {"name": name}})).await;
    token(client, name, json!({})).await
}

/// A token for a ServiceAccount of the default namespace.
pub async fn token(client: &Client, name: &str, spec: Value) -> String {
    let answer = ok(client, "POST", &format!("{ACCOUNTS}/{name}/token"), "", json!({"spec": spec})).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Sends a request that must be denied. Returns the error message.
pub async fn refused(client: &Client, method: &str, path: &str, content_type: &str, body: Value) -> String {
    let (status, answer) = send(client, method, path, content_type, body).await;
    assert_eq!(status, 403, "{method} {path}: {answer}");
    assert_eq!(answer["reason"], "Forbidden");
    answer["message"].as_str().unwrap().to_owned()
}
