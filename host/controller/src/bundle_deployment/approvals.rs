//! The ChangeApprovals in the cluster, from a watch.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{BundleDeployment, ChangeApproval, approved_upgrades};
use chandler_client::Availability;
use chandler_runtime::{Cache, Triggers, reflect_related};
use futures::future::BoxFuture;
use kube::{Api, Client};

/// The approvals that the watch has delivered. A change whose approval is not among them stays pending until it is.
#[derive(Clone)]
pub(crate) struct Approvals(Cache<ChangeApproval>);

impl Approvals {
    /// No approvals yet. The future watches them, and triggers the BundleDeployments that they name.
    pub(crate) fn new(
        client: Client,
        availability: Availability,
        triggers: Triggers<BundleDeployment>,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (store, watch) = reflect_related(Api::all(client), availability, triggers, deployment_of);
        (Self(store), watch)
    }

    /// The approval of this change of exactly this BundleDeployment, if there is one.
    pub(crate) fn of(&self, deployment: &BundleDeployment, change: &str) -> Option<ChangeApproval> {
        self.0.find(|approval| approval.approves(deployment, change)).map(|found| (*found).clone())
    }

    /// The users who approved unsafe upgrades of CRDs of exactly this BundleDeployment, by the digest of the findings.
    pub(crate) fn upgrades(&self, deployment: &BundleDeployment) -> BTreeMap<String, String> {
        approved_upgrades(self.0.state().iter().map(Arc::as_ref), deployment)
    }
}

/// The name of the BundleDeployment that an approval is for.
fn deployment_of(approval: &ChangeApproval) -> &str {
    &approval.spec.bundle_deployment
}
