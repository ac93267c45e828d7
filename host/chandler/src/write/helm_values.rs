//! The values of a release of Helm in a Secret: Helm keeps them in one, too, and `spec.config` is readable by all who may read BundleDeployments.

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, DEFAULT_VALUES_KEY};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use crate::CommandError;

/// The field manager of the Secret.
const FIELD_MANAGER: &str = "chandler-migrate";
/// The BundleDeployments that may use a Secret.
const GRANT: &str = "chandler.dev/bundledeployments";

/// The Secret with the values of a chart, for `spec.valuesFrom` of this BundleDeployment.
pub fn secret(deployment: &str, namespace: &str, values: &Map<String, Value>) -> Secret {
    // JSON is YAML.
    let text = json!({"values": values}).to_string();
    Secret {
        metadata: ObjectMeta {
            name: Some(format!("{deployment}-values")),
            namespace: Some(namespace.to_owned()),
            annotations: Some([(GRANT.to_owned(), deployment.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(DEFAULT_VALUES_KEY.to_owned(), ByteString(text.into_bytes()))])),
        ..Secret::default()
    }
}

/// Creates the Secret. One with the same values may exist, from an attempt that was interrupted.
///
/// # Errors
/// The API server refuses it, or a Secret of the name has other values.
pub async fn create(client: &Client, secret: &Secret) -> Result<(), CommandError> {
    let (api, name) = api(client, secret);
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let Err(error) = api.create(&parameters, secret).await else { return Ok(()) };
    let failed = CommandError::failed(format!("failed to create Secret {name}")).because(&error);
    if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
        let existing = api.get(&secret.name_any()).await;
        if existing.is_ok_and(|existing| existing.data == secret.data) {
            return Ok(());
        }
        return Err(failed
            .hint("it has other values: delete or rename it, or write the values into spec.config: --values-in-spec"));
    }
    Err(failed)
}

/// Makes the BundleDeployment the owner of the Secret, so that it is deleted with it.
///
/// # Errors
/// The API server refuses it.
pub async fn own(client: &Client, deployment: &BundleDeployment, secret: &Secret) -> Result<(), CommandError> {
    let Some(owner) = deployment.owner_ref(&()) else { return Ok(()) };
    let (api, name) = api(client, secret);
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    let patched = api.patch(&secret.name_any(), &parameters, &patch).await;
    patched.map(drop).map_err(|error| CommandError::failed(format!("failed to patch Secret {name}")).because(&error))
}

/// The client for a Secret, and its name for messages.
fn api(client: &Client, secret: &Secret) -> (Api<Secret>, String) {
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    (Api::namespaced(client.clone(), namespace), format!("{namespace}/{}", secret.name_any()))
}
