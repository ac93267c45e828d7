//! Tells clients where the content service is, and by which authority to trust it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

/// The key of the ConfigMap with the URL of the service.
pub const URL: &str = "url";
/// The key of the ConfigMap with the authority of its certificate, as PEM. Absent: an authority of the system signed it.
pub const AUTHORITY: &str = "ca.crt";

/// How long after a failure the ConfigMap is written again.
const RETRY: Duration = Duration::from_secs(30);

/// The ConfigMap with the name of the service.
pub(crate) struct Announcement {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Announcement {
    /// Writes the ConfigMap until it is written. Without it, the service works for clients that know its URL.
    pub(crate) async fn publish(&self, authority: Option<&str>) {
        let Self { client, namespace, name, url } = self;
        let mut data = json!({URL: url});
        if let (Some(authority), Some(data)) = (authority, data.as_object_mut()) {
            data.insert(AUTHORITY.to_owned(), authority.into());
        }
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        let api = Api::<ConfigMap>::namespaced(client.clone(), namespace);
        let parameters = PatchParams::apply("chandler").force();
        while let Err(error) = api.patch(name, &parameters, &Patch::Apply(&object)).await {
            tracing::warn!(configmap = %format!("{namespace}/{name}"), %error, "the content service cannot be announced");
            tokio::time::sleep(RETRY).await;
        }
    }
}
