//! The version of the cluster and the kinds that it serves.
//!
//! All reconciles see one copy, which is refreshed at an interval rather than with every CRD that is created. Subscribers are
//! notified only when a refresh found a difference.

use std::{fmt, sync::Arc, time::Duration};

use chandler_client::{Availability, kinds};
use futures::Stream;
use kube::{
    Api, Client, Discovery,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio_stream::wrappers::WatchStream;

/// The delay before the next refresh after a failed request, unless the interval is shorter. It ends when the API server answers again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The version of a cluster and the kinds that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// For example `v1.36.0`; empty where the API server does not report it.
    pub kubernetes_version: String,
    /// `group/version/Kind`, or `v1/Kind` for the core group, sorted; empty where the API server does not report it.
    pub api_kinds: Vec<String>,
    /// The version of OpenShift that the cluster has or is being updated to, such as `4.20.3`; `None` if the cluster is not OpenShift
    /// or the controller may not read the version.
    pub openshift_version: Option<String>,
}

/// The kind of the object named `version`, which has the version of OpenShift.
pub const CLUSTER_VERSION: &str = "config.openshift.io/v1/ClusterVersion";

impl ClusterInfo {
    /// Whether the cluster serves a kind, written as [`Self::api_kinds`] has it.
    pub fn serves(&self, kind: &str) -> bool {
        self.api_kinds.iter().any(|served| served == kind)
    }
}

/// Caches the cluster info and refreshes it.
pub struct ClusterInfoWatch {
    client: Client,
    availability: Availability,
    current: Mutex<Option<Arc<ClusterInfo>>>,
    /// The last cluster info that differed from the one before.
    changes: watch::Sender<Arc<ClusterInfo>>,
    /// Whether OpenShift is being installed, according to the last answer.
    is_installing: Mutex<Option<bool>>,
}

impl ClusterInfoWatch {
    /// Makes no request yet.
    pub fn new(client: Client, availability: Availability) -> Self {
        Self {
            client,
            availability,
            current: Mutex::default(),
            changes: watch::Sender::new(Arc::default()),
            is_installing: Mutex::default(),
        }
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

    /// Whether OpenShift is being installed: its ClusterVersion has a history in which no version is complete. Asks the API server until the
    /// installation is complete, which happens once. Where a request fails, the previous answer holds, and `false` without one.
    pub async fn is_openshift_installing(&self) -> bool {
        let mut known = self.is_installing.lock().await;
        if *known == Some(false) || !self.get().await.serves(CLUSTER_VERSION) {
            return false;
        }
        match self.cluster_version().await {
            Ok(version) => *known = Some(version.is_some_and(|version| is_installing(&version.data))),
            Err(error) => tracing::debug!(%error, "failed to read whether OpenShift is being installed"),
        }
        known.unwrap_or_default()
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
        match self.openshift(&info).await {
            Ok(version) => info.openshift_version = version,
            Err(error) => {
                tracing::warn!(%error, "failed to read the version of OpenShift");
                // A refusal lasts, so that the next attempt is not sooner.
                complete &= matches!(&error, kube::Error::Api(status) if status.code == 403);
            }
        }
        (info, complete)
    }

    /// The version of OpenShift. Asks only where the cluster serves it.
    async fn openshift(&self, info: &ClusterInfo) -> Result<Option<String>, kube::Error> {
        if !info.serves(CLUSTER_VERSION) {
            return Ok(None);
        }
        let version = self.cluster_version().await?;
        Ok(version.as_ref().and_then(|version| openshift_version(&version.data)).map(str::to_owned))
    }

    async fn cluster_version(&self) -> Result<Option<DynamicObject>, kube::Error> {
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
        let kind = ApiResource::from_gvk_with_plural(&kind, "clusterversions");
        Api::<DynamicObject>::all_with(self.client.clone(), &kind).get_opt("version").await
    }
}

/// Whether no version of OpenShift was ever completely installed. The cluster-version operator never drops the last complete one from the
/// history.
fn is_installing(cluster_version: &Value) -> bool {
    let history =
        cluster_version.pointer("/status/history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_complete = |entry: &Value| entry.get("state").and_then(Value::as_str) == Some("Completed");
    !history.is_empty() && !history.iter().any(is_complete)
}

/// The version that a ClusterVersion has or is being updated to: bundles must run on both, and the later one limits more.
fn openshift_version(cluster_version: &Value) -> Option<&str> {
    let status = cluster_version.get("status")?;
    let newest = status.get("history").and_then(|history| history.get(0));
    [status.get("desired"), newest]
        .into_iter()
        .flatten()
        .filter_map(|release| release.get("version")?.as_str())
        .find(|version| !version.is_empty())
}

/// The difference between two cluster infos.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Change {
    /// The versions of Kubernetes before and after, if they differ.
    versions: Option<(String, String)>,
    /// The versions of OpenShift before and after, if they differ.
    openshift: Option<(String, String)>,
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
            openshift: (before.openshift_version != now.openshift_version).then(|| {
                let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
                (text(&before.openshift_version), text(&now.openshift_version))
            }),
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
        if let Some((before, now)) = &self.openshift {
            parts.push(format!("OpenShift {before} -> {now}"));
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
