//! The handles and the shared state of the controller.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_client::Availability;
use chandler_content::Images;
use chandler_engine::Engine;
use chandler_informers::Informers;
use chandler_records::Records;
use chandler_releases::Releases;
use chandler_rollout::Rollout;
use chandler_runtime::{Backoff, Cache, ClusterInfoWatch, Events, GenerationTracker, OwnWrites, Slots, Triggers};
use chandler_source::Sources;
use kube::{Client, runtime::reflector::ObjectRef};

use crate::{
    Options,
    bundle_deployment::{Approvals, Guarded},
    capacities::Capacities,
    catalog::CatalogStates,
    cluster_operator::ClusterOperatorWakes,
    decision_maps::DecisionWakes,
    memory::Memory,
    platform_operator::PlatformWakes,
    platform_policy::Policies,
    provisioner_class::Classes,
    resolution::ResolutionWakes,
};

/// Handles and shared state. A step of a reconcile takes the ones that it uses (`bundle_deployment::handles`), not all of them.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) availability: Availability,
    pub(crate) options: Options,
    pub(crate) images: Images,
    pub(crate) sources: Sources,
    /// The same for catalogs, which are larger than bundles.
    pub(crate) catalog_sources: Sources,
    pub(crate) engine: Engine,
    pub(crate) classes: Classes,
    pub(crate) catalogs: CatalogStates,
    pub(crate) resolutions: ResolutionWakes,
    /// The sets that ConfigMaps of other resolvers decide.
    pub(crate) decisions: DecisionWakes,
    pub(crate) platform: PlatformWakes,
    /// The limits for PlatformOperators.
    pub(crate) policies: Policies,
    pub(crate) cluster_operators: ClusterOperatorWakes,
    pub(crate) approvals: Approvals,
    pub(crate) releases: Releases,
    pub(crate) records: Records,
    pub(crate) rollout: Rollout,
    pub(crate) cluster_info: ClusterInfoWatch,
    pub(crate) informers: Arc<Informers>,
    /// Triggers reconciles of BundleDeployments.
    pub(crate) triggers: Triggers<BundleDeployment>,
    pub(crate) events: Events,
    pub(crate) backoff: Backoff,
    pub(crate) memory: Memory,
    pub(crate) generations: GenerationTracker,
    pub(crate) slots: Slots,
    pub(crate) capacities: Capacities,
    /// The BundleDeployments as the watch brought them last.
    pub(crate) deployments: Cache<Guarded>,
    /// What the controller wrote to them since.
    pub(crate) own_writes: OwnWrites<BundleDeployment>,
}

impl Context {
    /// The BundleDeployment of this name as the watch brought it last; none if it cannot be decoded.
    pub(crate) fn deployment(&self, name: &str) -> Option<BundleDeployment> {
        self.deployments.get(&ObjectRef::new(name))?.0.as_ref().ok().cloned()
    }

    /// The BundleDeployments that a change concerns. Their candidates are tried again, since the change may help.
    pub(crate) fn helped(&self, concerned: impl Fn(&BundleDeployment) -> bool) -> Vec<ObjectRef<Guarded>> {
        let all = self.deployments.state();
        let concerned = all.iter().filter(|guarded| guarded.0.as_ref().is_ok_and(&concerned));
        let concerned: Vec<_> = concerned.map(|guarded| ObjectRef::from_obj(guarded.as_ref())).collect();
        for user in &concerned {
            self.memory.try_again(&user.name);
        }
        concerned
    }

    /// The catalogs that can be read are others than before, or one of them became stale.
    pub(crate) fn catalogs_changed(&self) {
        self.resolutions.all();
        self.platform.all();
    }

    /// Triggers a reconcile of a BundleDeployment. A trigger without a receiver means that the controller is stopping.
    pub(crate) fn wake(&self, name: &str) {
        let _ = self.triggers.send(ObjectRef::new(name));
    }
}
