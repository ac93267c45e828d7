//! Uploads of files to the content service.

use std::sync::Arc;

use chandler_core::Content;
use kube::Client;

use crate::{
    CommandError,
    arguments::installation::InstallationArguments,
    read::{cache, content_service::ContentService, delivery::Delivered, source},
    view::terminal::Terminal,
};

/// Files, and the content service that takes them.
pub struct Upload {
    files: Arc<dyn Content>,
    service: ContentService,
}

impl Upload {
    /// Finds the content service, if that is how the files of a bundle are delivered: before anything is written for them.
    pub async fn of(
        delivered: Option<&Delivered>,
        client: &Client,
        arguments: &InstallationArguments,
    ) -> Result<Option<Self>, CommandError> {
        let Some(files) = delivered.and_then(|delivered| delivered.upload.clone()) else { return Ok(None) };
        let InstallationArguments { connection, system_namespace, content, .. } = arguments;
        let service = ContentService::find(client, connection, system_namespace, content).await?;
        Ok(Some(Self { files, service }))
    }

    /// Uploads the files as the content of a BundleDeployment, and says so.
    pub async fn send(
        &self,
        name: &str,
        arguments: &InstallationArguments,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            CommandError::failed("failed to write the archive to upload").because(error)
        };
        let store = source::store(&cache::directory(arguments.cache_directory.as_deref())?).await?;
        let archive = store.archived(self.files.as_ref(), "").map_err(|error| failed(&error))?;
        let is_new = self.service.put(name, archive).await?;
        let what = if is_new { "uploaded" } else { "were uploaded before:" };
        terminal.line(format!("files {what} {}", self.files.digest()));
        Ok(())
    }
}
