//! What a provisioner is told about the cluster: its version, and the kinds that it serves.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{Client, Discovery, discovery::verbs};
use tokio::sync::Mutex;

/// How long an answer is used. Renders are cached by it, so it must not change with every CustomResourceDefinition that
/// comes or goes at once.
const FRESH: Duration = Duration::from_mins(10);

/// The cluster, as provisioners see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Such as `v1.36.0`; empty where the API server does not say.
    pub(crate) kubernetes_version: String,
    /// `group/version/Kind`, or `v1/Kind` for the core group, sorted; empty where the API server does not say.
    pub(crate) api_kinds: Vec<String>,
}

/// Asks the API server, now and then.
pub(crate) struct Lookout {
    client: Client,
    last: Mutex<Option<(Instant, Arc<Surroundings>)>>,
}

impl Lookout {
    /// Nothing was asked yet.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, last: Mutex::default() }
    }

    /// The cluster as it was seen last. What cannot be found out stays as it was.
    pub(crate) async fn get(&self) -> Arc<Surroundings> {
        let mut last = self.last.lock().await;
        if let Some((when, seen)) = &*last
            && when.elapsed() < FRESH
        {
            return Arc::clone(seen);
        }
        let mut seen = last.take().map(|(_, seen)| Surroundings::clone(&seen)).unwrap_or_default();
        match self.client.apiserver_version().await {
            Ok(version) => seen.kubernetes_version = version.git_version,
            Err(error) => tracing::warn!(%error, "the API server does not tell its version"),
        }
        match Discovery::new(self.client.clone()).run_aggregated().await {
            Ok(discovery) => seen.api_kinds = kinds(&discovery),
            Err(error) => tracing::warn!(%error, "the API server does not tell its kinds"),
        }
        let seen = Arc::new(seen);
        *last = Some((Instant::now(), Arc::clone(&seen)));
        seen
    }
}

fn kinds(discovery: &Discovery) -> Vec<String> {
    let mut kinds: Vec<String> = discovery
        .groups()
        .flat_map(|group| group.versions().flat_map(|version| group.versioned_resources(version)).collect::<Vec<_>>())
        .filter(|(_, capabilities)| capabilities.supports_operation(verbs::GET))
        .map(|(resource, _)| format!("{}/{}", resource.api_version, resource.kind))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
