//! The packages, as the caches hold their objects.

use chandler_api::PlatformOperator;
use chandler_resolution::cluster_operators::{Package, Platform};
use chandler_runtime::{Cache, Guarded, cluster_info::CLUSTER_VERSION};
use kube::ResourceExt as _;

use crate::{cluster::Cluster, deployments::Deployments, resolution::ResolutionStates};

/// What the ClusterOperators report about.
pub(super) struct Observed {
    /// Sorted by the name of the PlatformOperator.
    pub(super) packages: Vec<Package>,
    pub(super) platform: Platform,
    /// The Resolution of all PlatformOperators, if it exists.
    pub(super) resolution: Option<String>,
}

pub(super) async fn observe(
    cluster: &Cluster,
    (deployments, resolutions): (&Deployments, &ResolutionStates),
    operators: &Cache<Guarded<PlatformOperator>>,
) -> Observed {
    let deprecations = resolutions.deprecations();
    let package = |guarded: &Guarded<PlatformOperator>| match &guarded.0 {
        Ok(operator) => {
            let active = operator.status.as_ref().and_then(|status| status.active_bundle_deployment.as_ref());
            let deployment = active.and_then(|active| deployments.get(&active.name));
            let deprecated = active.and_then(|active| deprecations.get(&active.name)).map(String::as_str);
            Package::of(operator, deployment.as_ref(), deprecated)
        }
        Err(invalid) => Package::undecodable(&guarded.name_any(), &invalid.error),
    };
    let mut packages: Vec<Package> = operators.state().iter().map(|guarded| package(guarded)).collect();
    packages.sort_by(|one, other| one.operator.cmp(&other.operator));
    // Only packages that were never installed make a difference.
    let is_pending = packages.iter().any(|package| !package.is_installed);
    let is_installing = is_pending && cluster.info.is_openshift_installing().await;
    let info = cluster.info.get().await;
    let platform = Platform {
        is_openshift: info.serves(CLUSTER_VERSION),
        openshift: info.openshift_version.clone(),
        kubernetes: Some(info.kubernetes_version.clone()).filter(|version| !version.is_empty()),
        is_installing,
        deprecated_blocks: cluster.options.cluster_operators.deprecated_blocks_upgrades,
    };
    let resolution = Some(cluster.options.platform_resolution.clone()).filter(|name| resolutions.get(name).is_some());
    Observed { packages, platform, resolution }
}
