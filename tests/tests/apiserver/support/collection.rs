//! The verbs on a collection.

use std::time::Duration;

use serde_json::Value;

use super::{APPLY, Answer, Http, JSON_PATCH, MERGE, STRATEGIC, events::Events, http::PATIENCE};

/// The objects of one kind in one namespace, or in the cluster.
///
/// A name may carry a subresource and a query: `a/status?dryRun=All`.
#[derive(Clone)]
pub(crate) struct Collection {
    http: Http,
    path: String,
}

impl Collection {
    pub(crate) fn namespaced(http: &Http, group_version: &str, namespace: &str, plural: &str) -> Self {
        Self { http: http.clone(), path: format!("{}/namespaces/{namespace}/{plural}", root(group_version)) }
    }

    /// Objects of the cluster, or objects of all namespaces.
    pub(crate) fn cluster(http: &Http, group_version: &str, plural: &str) -> Self {
        Self { http: http.clone(), path: format!("{}/{plural}", root(group_version)) }
    }

    /// This collection with another client: as another user, or with further headers.
    pub(crate) fn through(&self, http: &Http) -> Self {
        Self { http: http.clone(), path: self.path.clone() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    pub(crate) async fn create(&self, body: &Value) -> Answer {
        self.http.post(&self.path, body).await
    }

    pub(crate) async fn create_with(&self, query: &str, body: &Value) -> Answer {
        self.http.post(&format!("{}?{query}", self.path), body).await
    }

    pub(crate) async fn get(&self, name: &str) -> Answer {
        self.http.get(&self.path(name)).await
    }

    pub(crate) async fn list(&self, query: &str) -> Answer {
        self.http.get(&format!("{}?{query}", self.path)).await
    }

    pub(crate) async fn put(&self, name: &str, body: &Value) -> Answer {
        self.http.put(&self.path(name), body).await
    }

    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Answer {
        self.http.patch(&self.path(name), MERGE, patch).await
    }

    pub(crate) async fn json_patch(&self, name: &str, patch: &Value) -> Answer {
        self.http.patch(&self.path(name), JSON_PATCH, patch).await
    }

    pub(crate) async fn strategic(&self, name: &str, patch: &Value) -> Answer {
        self.http.patch(&self.path(name), STRATEGIC, patch).await
    }

    /// Server-side apply.
    pub(crate) async fn apply(&self, name: &str, manager: &str, body: &Value) -> Answer {
        let separator = if name.contains('?') { '&' } else { '?' };
        let path = self.path(&format!("{name}{separator}fieldManager={manager}"));
        self.http.patch(&path, APPLY, body).await
    }

    pub(crate) async fn delete(&self, name: &str) -> Answer {
        self.http.delete(&self.path(name)).await
    }

    pub(crate) async fn delete_with(&self, name: &str, options: &Value) -> Answer {
        self.http.delete_with(&self.path(name), options).await
    }

    pub(crate) async fn delete_all(&self, query: &str) -> Answer {
        self.http.delete(&format!("{}?{query}", self.path)).await
    }

    pub(crate) async fn watch(&self, query: &str) -> Events {
        self.http.watch(&format!("{}?{query}", self.path)).await
    }

    pub(crate) async fn until(&self, name: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.http.until(&self.path(name), what, |answer| condition(&answer.body)).await.body
    }

    /// Waits until a formerly valid object is rejected: the server then uses the new CRD.
    pub(crate) async fn until_refused(&self, object: &Value) {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        let waiting = async {
            while self.create_with("dryRun=All", object).await.status != 422 {
                tick.tick().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{object} was never refused");
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        self.http.until_gone(&self.path(name)).await;
    }
}

fn root(group_version: &str) -> String {
    if group_version.contains('/') { format!("/apis/{group_version}") } else { format!("/api/{group_version}") }
}
