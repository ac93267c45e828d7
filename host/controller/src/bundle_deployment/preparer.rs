//! What preparing the release of a BundleDeployment uses. A preparation outlives the reconcile that began it.

use std::sync::Arc;

use chandler_records::Records;
use chandler_releases::Releases;

use crate::{
    account_grant::AccountGrants,
    capacities::Capacities,
    cluster::Cluster,
    deployments::Deployments,
    memory::Memory,
    provisioner_class::{Classes, Components},
    signals::Signals,
};

/// Fetches, unpacks and renders bundles.
pub(crate) struct Preparer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) deployments: Deployments,
    /// Which accounts a BundleDeployment may use.
    pub(crate) grants: AccountGrants,
    pub(crate) classes: Arc<Classes>,
    pub(crate) components: Components,
    pub(crate) releases: Releases,
    pub(crate) records: Arc<Records>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) capacities: Capacities,
}
