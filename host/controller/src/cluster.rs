//! What every reconciler needs: the API server, and the options of the administrator.

use std::sync::Arc;

use chandler_client::Availability;
use chandler_monitoring::Metrics;
use chandler_runtime::{ClusterInfoWatch, Events};
use kube::Client;

use crate::Options;

/// The cluster that the controller works on. Shared by all reconcilers; it holds no state about objects.
pub(crate) struct Cluster {
    /// Sends requests with the permissions of the controller.
    pub(crate) client: Client,
    /// Whether the API server responds.
    pub(crate) availability: Availability,
    /// The options of the administrator.
    pub(crate) options: Options,
    /// Publishes Events.
    pub(crate) events: Events,
    /// The version and the kinds of the cluster.
    pub(crate) info: ClusterInfoWatch,
    /// What is measured.
    pub(crate) metrics: Arc<Metrics>,
}
