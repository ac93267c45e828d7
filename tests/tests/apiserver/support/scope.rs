//! The isolated scope of a case: a namespace, API groups, clean-up.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{Collection, Http, objects, server::Server};

/// The isolated scope of a case.
pub(crate) struct Scope {
    server: Arc<Server>,
    unique: String,
    namespace: OnceCell<String>,
    /// Paths to delete when the case is over, last first.
    leftovers: Mutex<Vec<String>>,
}

impl Scope {
    pub(super) fn new(server: Arc<Server>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{}-{}", server.unique(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self { server, unique, namespace: OnceCell::new(), leftovers: Mutex::default() }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Adds the label of the run to a cluster-scoped object, so that a later run deletes it if this one is killed.
    pub(crate) fn mark(&self, object: Value) -> Value {
        self.server.mark(object)
    }

    /// Requests as the administrator.
    pub(crate) fn http(&self) -> &Http {
        self.server.http()
    }

    /// A name that no other case uses.
    pub(crate) fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.unique)
    }

    /// Deletes this path when the case is over.
    pub(crate) fn remove_later(&self, path: impl Into<String>) {
        self.leftovers.lock().unwrap().push(path.into());
    }

    /// The namespace of the case.
    pub(crate) async fn namespace(&self) -> &str {
        self.namespace.get_or_init(|| self.another_namespace("conformance")).await
    }

    /// A further namespace.
    pub(crate) async fn another_namespace(&self, prefix: &str) -> String {
        let name = self.name(prefix);
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let body = self.mark(body);
        self.http().post("/api/v1/namespaces", &body).await.ok();
        // Deleting many namespaces during the run would delay the cases about namespaces.
        self.server.remove_at_the_end(format!("/api/v1/namespaces/{name}"));
        name
    }

    /// A collection of a built-in kind in the case's namespace, e.g. `v1`, `configmaps`.
    pub(crate) async fn collection(&self, group_version: &str, plural: &str) -> Collection {
        let namespace = self.namespace().await;
        Collection::namespaced(self.http(), group_version, namespace, plural)
    }

    pub(crate) async fn config_maps(&self) -> Collection {
        self.collection("v1", "configmaps").await
    }

    /// Unlike ConfigMaps, only the case creates any in its namespace.
    pub(crate) async fn secrets(&self) -> Collection {
        self.collection("v1", "secrets").await
    }

    /// Like Deployments, but no controller acts on them.
    pub(crate) async fn pod_templates(&self) -> Collection {
        self.collection("v1", "podtemplates").await
    }

    /// A built-in kind with spec and status that no controller of a bare cluster acts on.
    pub(crate) async fn ingresses(&self) -> Collection {
        self.collection("networking.k8s.io/v1", "ingresses").await
    }

    /// Custom objects of the CRD that most cases share, see [`objects::widgets`].
    pub(crate) async fn widgets(&self) -> Collection {
        self.server.share_widgets().await;
        self.collection(&format!("{}/v1", self.server.shared_group()), "widgets").await
    }

    /// A [`widget`](objects::widget) of the shared CRD.
    pub(crate) fn widget(&self, name: &str, spec: Value) -> Value {
        objects::widget(&self.server.shared_group(), name, spec)
    }

    /// An API group that no other case uses.
    pub(crate) fn group(&self) -> String {
        format!("g-{}.conformance.example.com", self.unique)
    }

    /// Installs a CRD for the duration of the case, and returns it.
    pub(crate) async fn create_crd(&self, crd: &Value) -> Value {
        self.remove_later(format!("{}/{}", objects::CRDS, objects::name(crd)));
        objects::establish(self.http(), &self.mark(crd.clone())).await
    }

    /// Installs a CRD with kind `Widget` in one version `v1` with this schema, in a group of the case. Returns its collection.
    pub(crate) async fn create_widget_crd(&self, schema: Value) -> Collection {
        let crd = objects::crd(&self.group(), schema);
        self.create_crd(&crd).await;
        self.collection(&format!("{}/v1", self.group()), "widgets").await
    }

    /// A `Widget` of [`Scope::create_widget_crd`] with these top-level fields.
    pub(crate) fn own_widget(&self, name: &str, fields: Value) -> Value {
        let mut object =
            json!({"apiVersion": format!("{}/v1", self.group()), "kind": "Widget", "metadata": {"name": name}});
        for (field, value) in fields.as_object().cloned().unwrap_or_default() {
            object[field] = value;
        }
        object
    }

    pub(super) async fn clean_up(&self) {
        let paths: Vec<String> = self.leftovers.lock().unwrap().drain(..).rev().collect();
        for path in paths {
            let _ = self.http().delete(&path).await;
        }
    }
}
