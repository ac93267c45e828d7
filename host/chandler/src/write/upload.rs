//! Uploads of files to the content service.

use std::{path::PathBuf, sync::Arc};

use chandler_core::Content;
use kube::Client;

use crate::{
    CommandError,
    read::{
        cache,
        cluster::ConnectionOptions,
        content_service::{ContentClientOptions, ContentService},
        delivery::Delivered,
        source,
    },
    view::terminal::Terminal,
};

/// How files are uploaded.
#[derive(Clone, Debug, Default)]
pub struct UploadOptions {
    /// The cluster.
    pub connection: ConnectionOptions,
    /// The namespace of the controller.
    pub system_namespace: String,
    /// How the content service is reached.
    pub content: ContentClientOptions,
    /// The directory of the cache; `None` for the default one.
    pub cache_directory: Option<PathBuf>,
}

/// Files, and the content service that takes them.
pub struct Upload {
    files: Arc<dyn Content>,
    service: ContentService,
    cache_directory: Option<PathBuf>,
}

impl Upload {
    /// Finds the content service, if that is how the files of a bundle are delivered: before anything is written for them.
    pub async fn of(
        delivered: Option<&Delivered>,
        client: &Client,
        options: &UploadOptions,
    ) -> Result<Option<Self>, CommandError> {
        let Some(files) = delivered.and_then(|delivered| delivered.upload.clone()) else { return Ok(None) };
        let UploadOptions { connection, system_namespace, content, cache_directory } = options;
        let service = ContentService::find(client, connection, system_namespace, content).await?;
        Ok(Some(Self { files, service, cache_directory: cache_directory.clone() }))
    }

    /// Uploads the files as the content of a BundleDeployment, and says so.
    pub async fn send(&self, name: &str, terminal: &Terminal) -> Result<(), CommandError> {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            CommandError::failed("failed to write the archive to upload").because(error)
        };
        let store = source::store(&cache::directory(self.cache_directory.as_deref())?).await?;
        let archive = store.archived(self.files.as_ref(), "").map_err(|error| failed(&error))?;
        let is_new = self.service.put(name, archive.into_file()).await?;
        let what = if is_new { "uploaded" } else { "were uploaded before:" };
        terminal.line(format!("files {what} {}", self.files.digest()));
        Ok(())
    }
}
