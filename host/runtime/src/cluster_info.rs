//! The version of the cluster and the kinds that it serves.
//!
//! All reconciles see one copy, which is refreshed at an interval rather than with every CRD that is created. Subscribers are
//! notified only when a refresh found a difference.

use std::{fmt, sync::Arc, time::Duration};

use chandler_client::Availability;
use futures::Stream;
use kube::{Client, Discovery, discovery::verbs};
use tokio::sync::{Mutex, watch};
use tokio_stream::wrappers::WatchStream;

/// The delay before the next refresh where a request failed, unless the interval is shorter. It ends when the API server answers again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The version of a cluster and the kinds that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// For example `v1.36.0`; empty where the API server does not report it.
    pub kubernetes_version: String,
    /// `group/version/Kind`, or `v1/Kind` for the core group, sorted; empty where the API server does not report it.
    pub api_kinds: Vec<String>,
}

/// Caches the cluster info and refreshes it.
pub struct ClusterInfoWatch {
    client: Client,
    availability: Availability,
    current: Mutex<Option<Arc<ClusterInfo>>>,
    /// The last cluster info that differed from the one before.
    changes: watch::Sender<Arc<ClusterInfo>>,
}

impl ClusterInfoWatch {
    /// Makes no request yet.
    pub fn new(client: Client, availability: Availability) -> Self {
        Self { client, availability, current: Mutex::default(), changes: watch::Sender::new(Arc::default()) }
    }

    /// The cached cluster info. The first call makes the requests.
    pub async fn get(&self) -> Arc<ClusterInfo> {
        let mut current = self.current.lock().await;
        if let Some(current) = &*current {
            return Arc::clone(current);
        }
        let (now, _) = self.discover(ClusterInfo::default()).await;
        Arc::clone(current.insert(Arc::new(now)))
    }

    /// Yields the new cluster info after each refresh that found a difference.
    pub fn changes(&self) -> impl Stream<Item = Arc<ClusterInfo>> + Send + use<> {
        WatchStream::from_changes(self.changes.subscribe())
    }

    /// Refreshes at this interval. Never returns.
    pub async fn run(&self, interval: Duration) {
        loop {
            if self.refresh().await {
                tokio::time::sleep(interval).await;
            } else {
                self.availability.pause(interval.min(RETRY_INTERVAL), RETRY_INTERVAL).await;
            }
        }
    }

    /// Refreshes now. Returns whether the API server answered every request.
    async fn refresh(&self) -> bool {
        // The lock is not held during the requests: reconciles use the previous cluster info meanwhile.
        let before = self.current.lock().await.clone();
        let (now, complete) = self.discover(before.as_deref().cloned().unwrap_or_default()).await;
        let change = before.map(|before| Change::between(&before, &now));
        let now = Arc::new(now);
        *self.current.lock().await = Some(Arc::clone(&now));
        if let Some(change) = change.filter(|change| !change.is_empty()) {
            tracing::info!(%change, "the version or the kinds of the cluster changed");
            self.changes.send_replace(now);
        }
        complete
    }

    /// Requests version and kinds. Where a request fails, the previous answer is kept.
    async fn discover(&self, mut info: ClusterInfo) -> (ClusterInfo, bool) {
        let mut complete = true;
        match self.client.apiserver_version().await {
            Ok(version) => info.kubernetes_version = version.git_version,
            Err(error) => {
                tracing::warn!(%error, "failed to read the version of the API server");
                complete = false;
            }
        }
        match Discovery::new(self.client.clone()).run_aggregated().await {
            Ok(discovery) => info.api_kinds = kinds(&discovery),
            Err(error) => {
                tracing::warn!(%error, "failed to discover the kinds of the API server");
                complete = false;
            }
        }
        (info, complete)
    }
}

/// The kinds that the cluster serves and that support `get`, as [`ClusterInfo::api_kinds`] lists them.
pub fn kinds(discovery: &Discovery) -> Vec<String> {
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

/// The difference between two cluster infos.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Change {
    /// The versions before and after, where they differ.
    versions: Option<(String, String)>,
    added: Vec<String>,
    removed: Vec<String>,
}

impl Change {
    fn between(before: &ClusterInfo, now: &ClusterInfo) -> Self {
        let lacks = |kinds: &[String], kind: &String| kinds.binary_search(kind).is_err();
        let only_in = |some: &[String], others: &[String]| {
            some.iter().filter(|kind| lacks(others, kind)).cloned().collect::<Vec<_>>()
        };
        Self {
            versions: (before.kubernetes_version != now.kubernetes_version)
                .then(|| (before.kubernetes_version.clone(), now.kubernetes_version.clone())),
            added: only_in(&now.api_kinds, &before.api_kinds),
            removed: only_in(&before.api_kinds, &now.api_kinds),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Change {
    /// One line. Names the first few of many kinds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 5;
        let mut parts = Vec::new();
        if let Some((before, now)) = &self.versions {
            parts.push(format!("Kubernetes {before} -> {now}"));
        }
        for (change, kinds) in [("serves", &self.added), ("no longer serves", &self.removed)] {
            if !kinds.is_empty() {
                let named = kinds.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = kinds.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                parts.push(format!("{change} {named}{more}"));
            }
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests;
