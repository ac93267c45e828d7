//! Notes that something changed which ClusterOperators report.

use tokio::sync::Notify;

/// Wakes the proxy. Many changes wake it once.
#[derive(Debug, Default)]
pub(crate) struct ClusterOperatorWakes(Notify);

impl ClusterOperatorWakes {
    /// A PlatformOperator, BundleDeployment or Resolution is new, changed or gone.
    pub(crate) fn changed(&self) {
        self.0.notify_one();
    }

    /// Completes after a change.
    pub(super) async fn wait(&self) {
        self.0.notified().await;
    }
}
