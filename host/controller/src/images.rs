//! References, pull secrets and registries: what both reconcilers need to pull something.

use chandler_content::{Credentials, ImageReference, pull_secret_credentials};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::problem::api_message;

/// The type of Secrets that hold registry credentials.
const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";

/// The credentials that a pull secret of the system namespace holds for an image. The error is a message.
pub(crate) async fn credentials(
    client: &Client,
    system_namespace: &str,
    pull_secret: &str,
    image: &ImageReference,
) -> Result<Option<Credentials>, String> {
    let what = format!("pull secret {system_namespace}/{pull_secret}");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), system_namespace);
    let secret = secrets.get(pull_secret).await.map_err(|error| format!("{what}: {}", api_message(&error)))?;
    if secret.type_.as_deref() != Some(DOCKER_CONFIG_JSON) {
        return Err(format!("{what}: is not of type {DOCKER_CONFIG_JSON}"));
    }
    let data = secret.data.unwrap_or_default();
    let config = data.get(".dockerconfigjson").ok_or_else(|| format!("{what}: has no key .dockerconfigjson"))?;
    pull_secret_credentials(&config.0, image).map_err(|error| format!("{what}: {error}"))
}
