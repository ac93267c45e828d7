//! What provisioners and the resolver may ask about a cluster.

use chandler_core::Target;
use kube::{Client, Discovery};

use crate::CommandError;

/// The version and the kinds of a cluster.
pub struct ClusterFacts {
    /// The version of the API server, such as `v1.36.2`.
    pub kubernetes_version: String,
    /// The kinds that it serves, as GROUP/VERSION/KIND.
    pub api_kinds: Vec<String>,
}

impl ClusterFacts {
    /// Asks the API server.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn of(client: &Client) -> Result<Self, CommandError> {
        Ok(Self { kubernetes_version: kubernetes_version(client).await?, api_kinds: api_kinds(client).await? })
    }

    /// Makes a target of this cluster.
    pub fn describe(&self, target: &mut Target) {
        target.kubernetes_version.clone_from(&self.kubernetes_version);
        target.api_kinds.clone_from(&self.api_kinds);
    }
}

/// The version of the API server.
///
/// # Errors
/// The API server does not answer.
pub async fn kubernetes_version(client: &Client) -> Result<String, CommandError> {
    Ok(client.apiserver_version().await.map_err(failed)?.git_version)
}

/// The kinds that the API server serves, as GROUP/VERSION/KIND.
///
/// # Errors
/// The API server does not answer.
pub async fn api_kinds(client: &Client) -> Result<Vec<String>, CommandError> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(failed)?;
    Ok(chandler_client::kinds(&discovery))
}

fn failed(error: kube::Error) -> CommandError {
    CommandError::failed("failed to discover the APIs of the cluster").because(&error)
}
