//! To which Resolution a BundleDeployment belongs.

use std::sync::Arc;

use chandler_api::{BundleDeployment, Resolution, names::OWNER_NAME_LABEL};
use chandler_records::Records;
use kube::ResourceExt as _;

use super::{decided::DecidedMembers, membership::Membership, set, states::ResolutionStates};
use crate::{cluster::Cluster, deployments::Deployments};

/// The sets of all Resolutions, and their members.
pub(crate) struct Sets {
    pub(super) cluster: Arc<Cluster>,
    pub(super) deployments: Deployments,
    pub(super) records: Arc<Records>,
    pub(super) resolutions: Arc<ResolutionStates>,
    /// The members as the decisions describe them.
    pub(super) decided: DecidedMembers,
}

impl Sets {
    /// Nothing is read yet.
    pub(crate) fn new(
        cluster: &Arc<Cluster>,
        deployments: &Deployments,
        records: &Arc<Records>,
        resolutions: &Arc<ResolutionStates>,
    ) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            deployments: deployments.clone(),
            records: Arc::clone(records),
            resolutions: Arc::clone(resolutions),
            decided: DecidedMembers::default(),
        }
    }

    /// The Resolution for which the controller wrote a BundleDeployment: its set, or a member of the set.
    pub(crate) async fn resolution_of(&self, deployment: &BundleDeployment) -> Option<String> {
        if let Some(resolution) = self.of_set(deployment) {
            return Some(resolution.name_any());
        }
        let set = self.deployments.get(deployment.labels().get(OWNER_NAME_LABEL)?)?;
        let resolution = self.of_set(&set)?;
        let membership = Membership::read(self, &resolution).await;
        let membership = membership.inspect_err(|error| {
            tracing::debug!(set = %set.name_any(), %error, "the record of a set cannot be read, so that no member is known");
        });
        let is_member = membership.is_ok_and(|membership| membership.has(deployment))
            && self.decided.has(&self.cluster, &resolution, deployment).await;
        is_member.then(|| resolution.name_any())
    }

    /// The Resolution whose set a BundleDeployment is: its bundle is one of the decisions of this very Resolution.
    fn of_set(&self, deployment: &BundleDeployment) -> Option<Resolution> {
        let name = deployment.name_any();
        let resolution = self.resolutions.get(set::resolution_of(&name)?)?;
        set::is_set(deployment, &resolution).then_some(resolution)
    }
}
