//! Newer versions of what is installed.

use std::collections::BTreeMap;

use chandler_api::BundleDeployment;
use chandler_catalog::{
    IndexCatalogs,
    upgrade::{self, Newer},
};
use chandler_resolver::ResolveError;
use kube::ResourceExt as _;

use super::{cluster_catalogs::ClusterCatalogs, package};

/// Newer versions by the name of the BundleDeployment. Only indexes in the cache are read; what cannot be read or decided is left out, and so
/// is a BundleDeployment that a rollback of the user keeps at a revision.
pub async fn at_hand(cluster: &ClusterCatalogs<'_>, deployments: &[BundleDeployment]) -> BTreeMap<String, Newer> {
    let mut newer = BTreeMap::new();
    if !deployments.iter().any(|deployment| package::installed(deployment).is_some()) {
        return newer;
    }
    let catalogs = cluster.all_at_hand().await.unwrap_or_default();
    for deployment in deployments.iter().filter(|deployment| !is_pinned(deployment)) {
        if let Ok(Some(version)) = of(deployment, &catalogs) {
            newer.insert(deployment.name_any(), version);
        }
    }
    newer
}

/// Whether a rollback of the user keeps a revision: an upgrade would end it.
pub fn is_pinned(deployment: &BundleDeployment) -> bool {
    deployment.spec.rollout.as_ref().is_some_and(|rollout| rollout.to_revision.is_some())
}

/// The newest version that the catalogs have of what a BundleDeployment installs; `None` for one whose image they do not list.
pub fn of(deployment: &BundleDeployment, catalogs: &IndexCatalogs) -> Result<Option<Newer>, ResolveError> {
    package::proven(deployment, catalogs).map_or(Ok(None), |installed| upgrade::newest(catalogs, installed))
}
