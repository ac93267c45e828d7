//! What both reconcilers work with.

use chandler_content::Images;
use chandler_engine::Engine;
use chandler_records::Records;
use chandler_releases::Releases;
use chandler_rollout::Rollout;
use kube::{
    Client,
    runtime::{events::Recorder, reflector::Store},
};

use crate::{
    Options, approvals::Approvals, backoff::Backoff, bundle_deployment::Guarded, classes::Classes, memory::Memory,
    served::Served, slots::Slots, supersession::Generations, surroundings::Lookout, watches::ManagedWatches,
};

/// Handles and shared state.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) images: Images,
    pub(crate) engine: Engine,
    pub(crate) classes: Classes,
    pub(crate) served: Served,
    pub(crate) approvals: Approvals,
    pub(crate) releases: Releases,
    pub(crate) records: Records,
    pub(crate) rollout: Rollout,
    pub(crate) surroundings: Lookout,
    pub(crate) watches: ManagedWatches,
    pub(crate) recorder: Recorder,
    pub(crate) backoff: Backoff,
    pub(crate) memory: Memory,
    pub(crate) generations: Generations,
    pub(crate) slots: Slots,
    /// The BundleDeployments as the watch brought them last.
    pub(crate) deployments: Store<Guarded>,
}
