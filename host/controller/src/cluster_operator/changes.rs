//! Notes changes that ClusterOperators report.

use tokio::sync::Notify;

use crate::signals::{Signal, Subscriber};

/// Wakes the proxy. Many changes wake it once.
#[derive(Debug, Default)]
pub(crate) struct ClusterOperatorChanges(Notify);

impl ClusterOperatorChanges {
    /// A PlatformOperator, BundleDeployment or Resolution is new, changed or gone.
    fn changed(&self) {
        self.0.notify_one();
    }

    /// Completes after a change.
    pub(super) async fn wait(&self) {
        self.0.notified().await;
    }
}

impl Subscriber for ClusterOperatorChanges {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::DeploymentChanged(_)
            | Signal::DeploymentGone(_)
            | Signal::ResolutionChanged(_)
            | Signal::PlatformOperatorChanged => self.changed(),
            Signal::DeploymentInputChanged(_)
            | Signal::PolicyChanged
            | Signal::CatalogsChanged
            | Signal::ClassGone(_)
            | Signal::ConfigMapChanged(_)
            | Signal::SecretChanged(_) => {}
        }
    }
}
