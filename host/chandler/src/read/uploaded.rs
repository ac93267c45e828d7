//! The uploaded files of a BundleDeployment, which only the content service of the controller has.
//!
//! They are read as `chandler content` reads them, with the token and the permissions of the user.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_content::Tree;
use chandler_core::Content as _;
use kube::{Client, ResourceExt as _};

use super::{
    cache,
    cluster::ConnectionOptions,
    content_service::{ContentClientOptions, ContentService},
    deployed,
    rendering::{BundleOptions, OpenedBundle},
    source,
};
use crate::CommandError;

/// How a command opens the bundle of a BundleDeployment, also where its files were uploaded.
pub struct BundleAccess<'a> {
    /// The cluster.
    pub connection: ConnectionOptions,
    /// The namespace of the controller.
    pub system_namespace: &'a str,
    /// How the content service is reached.
    pub content: ContentClientOptions,
    /// What names the files on this machine instead, as part of a command.
    pub instead: String,
}

impl BundleAccess<'_> {
    /// Opens the bundle like [`deployed::open`]. Without `files`, uploaded ones are read from the content service.
    ///
    /// # Errors
    /// The bundle cannot be read. Where the content service is the reason, the error says how to name the files instead.
    pub async fn open(
        &self,
        client: &Client,
        options: &BundleOptions,
        deployment: &BundleDeployment,
        files: Option<&str>,
    ) -> Result<OpenedBundle, CommandError> {
        if files.is_some() || deployment.spec.source.upload.is_none() {
            return deployed::open(client, self.system_namespace, options, deployment, files).await;
        }
        let content = Box::pin(self.uploaded(client, options, deployment)).await.map_err(|error| {
            let name = deployment.name_any();
            error.hint(format!(
                "or name the files of {name} on this machine: `{}`; they must be the ones that were uploaded",
                self.instead
            ))
        })?;
        deployed::open_content(client, options, deployment, Arc::new(content)).await
    }

    async fn uploaded(
        &self,
        client: &Client,
        options: &BundleOptions,
        deployment: &BundleDeployment,
    ) -> Result<Tree, CommandError> {
        let name = deployment.name_any();
        let service = ContentService::find(client, &self.connection, self.system_namespace, &self.content).await?;
        let archive = service.get(&name).await?;
        let store = source::store(&cache::directory(options.cache_directory.as_deref())?).await?;
        let tree = store.import_archive(archive.path()).await.map_err(|error| {
            CommandError::failed(format!("failed to unpack the uploaded files of {name}")).because(&error)
        })?;
        check(deployment, &tree.digest().to_string())?;
        Ok(tree)
    }
}

/// Refuses files other than the ones that the spec names: the controller may not have unpacked the newest ones yet.
fn check(deployment: &BundleDeployment, served: &str) -> Result<(), CommandError> {
    let wanted = deployment.spec.source.upload.as_ref().and_then(|upload| upload.digest.as_deref());
    let Some(wanted) = wanted.filter(|wanted| *wanted != served) else { return Ok(()) };
    let name = deployment.name_any();
    Err(CommandError::failed(format!(
        "the content service has the files {served} for {name}, and spec.source.upload names {wanted}"
    ))
    .hint(format!("`chandler status {name}` shows whether the files were uploaded and unpacked")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_with_another_digest_are_refused() {
        let deployment = |upload: serde_json::Value| -> BundleDeployment {
            serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "harbour"},
                "spec": {"installNamespace": "n", "source": {"type": "upload", "upload": upload}},
            }))
            .unwrap()
        };
        assert!(check(&deployment(json!({})), "sha256:a").is_ok());
        assert!(check(&deployment(json!({"digest": "sha256:a"})), "sha256:a").is_ok());
        let refused = check(&deployment(json!({"digest": "sha256:b"})), "sha256:a").unwrap_err();
        insta::assert_snapshot!(refused.to_string(), @r"
        error: the content service has the files sha256:a for harbour, and spec.source.upload names sha256:b
          hint: `chandler status harbour` shows whether the files were uploaded and unpacked
        ");
    }
}
