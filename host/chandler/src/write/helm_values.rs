//! The values of a release of Helm in a Secret: Helm keeps them in one, too, and `spec.config` is readable by all who may read BundleDeployments.

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, DEFAULT_VALUES_KEY, ValuesKind};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
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
            name: Some(name_for(deployment)),
            namespace: Some(namespace.to_owned()),
            annotations: Some([(GRANT.to_owned(), deployment.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(DEFAULT_VALUES_KEY.to_owned(), ByteString(text.into_bytes()))])),
        ..Secret::default()
    }
}

fn name_for(deployment: &str) -> String {
    format!("{deployment}-values")
}

/// Creates the Secret, and returns it if it did not exist. One with the same values may exist, from an attempt that was interrupted.
///
/// # Errors
/// The API server refuses it, or a Secret of the name has other values.
pub async fn create(client: &Client, secret: &Secret) -> Result<Option<Secret>, CommandError> {
    let (api, name) = api(client, secret);
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let error = match api.create(&parameters, secret).await {
        Ok(created) => return Ok(Some(created)),
        Err(error) => error,
    };
    let failed = CommandError::failed(format!("failed to create Secret {name}")).because(&error);
    if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
        let existing = api.get(&secret.name_any()).await;
        if existing.is_ok_and(|existing| existing.data == secret.data) {
            return Ok(None);
        }
        return Err(failed
            .hint("it has other values: delete or rename it, or write the values into spec.config: --values-in-spec"));
    }
    Err(failed)
}

/// Deletes a Secret from [`create`] that nothing refers to, since what followed failed. The error then also says if it is left.
pub async fn discard(client: &Client, created: Option<&Secret>, error: CommandError) -> CommandError {
    let Some(secret) = created else { return error };
    let (api, name) = api(client, secret);
    let same = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
    match api.delete(&secret.name_any(), &DeleteParams::default().preconditions(same)).await {
        Ok(_) => error,
        Err(kube::Error::Api(status)) if status.is_not_found() => error,
        Err(_) => error.hint(format!("Secret {name} with the values of the release could not be deleted again")),
    }
}

/// Makes a BundleDeployment the owner of its Secret, if an attempt was interrupted before. Only a Secret that is for this BundleDeployment and has
/// no owner is changed.
///
/// # Errors
/// The API server refuses it.
pub async fn own_left(client: &Client, deployment: &BundleDeployment) -> Result<(), CommandError> {
    let name = name_for(&deployment.name_any());
    let is_named = deployment.spec.values_from.iter().any(|it| it.kind == ValuesKind::Secret && it.name == name);
    if !is_named {
        return Ok(());
    }
    let namespace = &deployment.spec.install_namespace;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = secrets.get_opt(&name).await;
    let found = found
        .map_err(|error| CommandError::failed(format!("failed to read Secret {namespace}/{name}")).because(&error))?;
    let is_left = |secret: &Secret| {
        secret.owner_references().is_empty() && secret.annotations().get(GRANT) == Some(&deployment.name_any())
    };
    match found.filter(is_left) {
        Some(secret) => own(client, deployment, &secret).await,
        None => Ok(()),
    }
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
