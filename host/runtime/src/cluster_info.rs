//! What a provisioner is told about the cluster: its version, and the kinds that it serves.
//!
//! All BundleDeployments are rendered for the same picture of the cluster, which is taken anew at an interval. Where it is
//! another one they are all reconciled. A release is made again where the provisioner asked for what is another answer now,
//! and a bundle that was refused is tried again on the same condition: what was refused because the cluster was too old is
//! installed once it is not, and a CustomResourceDefinition that no provisioner asked about has nothing rendered.

use std::{fmt, sync::Arc, time::Duration};

use futures::Stream;
use kube::{Client, Discovery, discovery::verbs};
use tokio::sync::{Mutex, watch};
use tokio_stream::wrappers::WatchStream;

/// How soon a cluster that did not answer is asked again, where the interval is not shorter.
const AGAIN: Duration = Duration::from_secs(30);

/// The cluster, as provisioners see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterInfo {
    /// Such as `v1.36.0`; empty where the API server does not say.
    pub(crate) kubernetes_version: String,
    /// `group/version/Kind`, or `v1/Kind` for the core group, sorted; empty where the API server does not say.
    pub(crate) api_kinds: Vec<String>,
}

/// Keeps the picture of the cluster.
pub(crate) struct ClusterInfoWatch {
    client: Client,
    seen: Mutex<Option<Arc<ClusterInfo>>>,
    /// The last picture that differed from the one before.
    changes: watch::Sender<Arc<ClusterInfo>>,
}

impl ClusterInfoWatch {
    /// Nothing was asked yet.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, seen: Mutex::default(), changes: watch::Sender::new(Arc::default()) }
    }

    /// The cluster as it was seen last.
    pub(crate) async fn get(&self) -> Arc<ClusterInfo> {
        let mut seen = self.seen.lock().await;
        if let Some(seen) = &*seen {
            return Arc::clone(seen);
        }
        let (now, _) = self.ask(ClusterInfo::default()).await;
        Arc::clone(seen.insert(Arc::new(now)))
    }

    /// The new picture each time that the cluster was found changed.
    pub(crate) fn changes(&self) -> impl Stream<Item = Arc<ClusterInfo>> + Send + use<> {
        WatchStream::from_changes(self.changes.subscribe())
    }

    /// Looks at the cluster at this interval. Never ends.
    pub(crate) async fn run(&self, interval: Duration) {
        loop {
            let answered = self.look().await;
            tokio::time::sleep(if answered { interval } else { interval.min(AGAIN) }).await;
        }
    }

    /// Looks at the cluster now; whether it answered every question.
    async fn look(&self) -> bool {
        // Nobody waits for this: while it is asked, the last picture serves.
        let before = self.seen.lock().await.clone();
        let (now, answered) = self.ask(before.as_deref().cloned().unwrap_or_default()).await;
        let change = before.map(|before| Change::between(&before, &now));
        let now = Arc::new(now);
        *self.seen.lock().await = Some(Arc::clone(&now));
        if let Some(change) = change.filter(|change| !change.is_empty()) {
            tracing::info!(%change, "the cluster has changed; every BundleDeployment is reconciled");
            self.changes.send_replace(now);
        }
        answered
    }

    /// Asks the cluster. What cannot be found out stays as it was.
    async fn ask(&self, mut seen: ClusterInfo) -> (ClusterInfo, bool) {
        let mut answered = true;
        match self.client.apiserver_version().await {
            Ok(version) => seen.kubernetes_version = version.git_version,
            Err(error) => {
                tracing::warn!(%error, "the API server does not tell its version");
                answered = false;
            }
        }
        match Discovery::new(self.client.clone()).run_aggregated().await {
            Ok(discovery) => seen.api_kinds = kinds(&discovery),
            Err(error) => {
                tracing::warn!(%error, "the API server does not tell its kinds");
                answered = false;
            }
        }
        (seen, answered)
    }
}

/// What the cluster serves that can be read, in the form in which provisioners are told: `group/version/Kind`, sorted.
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

/// In what two pictures of a cluster differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Change {
    /// The versions before and after, where they differ.
    versions: Option<(String, String)>,
    /// Kinds that were not served before.
    come: Vec<String>,
    /// Kinds that are no longer served.
    gone: Vec<String>,
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
            come: only_in(&now.api_kinds, &before.api_kinds),
            gone: only_in(&before.api_kinds, &now.api_kinds),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Change {
    /// One line; of many kinds the first few.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 5;
        let mut parts = Vec::new();
        if let Some((before, now)) = &self.versions {
            parts.push(format!("Kubernetes {before} -> {now}"));
        }
        for (what, kinds) in [("serves", &self.come), ("no longer serves", &self.gone)] {
            if !kinds.is_empty() {
                let named = kinds.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = kinds.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                parts.push(format!("{what} {named}{more}"));
            }
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests;
