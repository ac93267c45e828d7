//! What the reconciler of BundleDeployments holds, and what each step may use of it.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_informers::Informers;
use chandler_records::Records;
use chandler_rollout::Rollout;
use chandler_runtime::{Backoff, ClusterInfo, GenerationTracker, OwnWrites, Slot, Slots};

use super::{
    approvals::Approvals,
    handles::{ApproveHandles, CertificateHandles, RolloutHandles, ScheduleHandles, StatusHandles},
    preparer::Preparer,
    steps::{
        finalize::FinalizeHandles,
        prepare::{Preparations, PrepareHandles},
        restored::RestoredHandles,
    },
    subject::Subject,
};
use crate::{
    cluster::Cluster,
    deployments::Deployments,
    memory::Memory,
    provisioner_class::may_use,
    signals::{Signal, Signals, Subscriber},
    targets::Targets,
};

/// Installs BundleDeployments.
pub(crate) struct Installer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) deployments: Deployments,
    pub(crate) preparer: Arc<Preparer>,
    /// Candidates that are being fetched and rendered.
    pub(crate) preparations: Preparations,
    pub(crate) approvals: Approvals,
    pub(crate) records: Arc<Records>,
    pub(crate) rollout: Rollout,
    /// The other clusters that bundles are installed into.
    pub(crate) targets: Targets,
    pub(crate) informers: Arc<Informers>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) generations: GenerationTracker,
    pub(crate) backoff: Backoff,
    pub(crate) slots: Slots,
    /// What the controller wrote to BundleDeployments since the watch delivered them.
    pub(crate) own_writes: OwnWrites<BundleDeployment>,
}

impl Installer {
    /// Tries the candidate of a BundleDeployment at its next reconcile, regardless of the result of the last try: something that it depends
    /// on changed.
    pub(crate) fn try_again(&self, name: &str) {
        self.memory.try_again(name);
        self.preparations.end(name);
    }

    /// Makes the candidates of the BundleDeployments that a change concerns due again, and returns their names.
    pub(super) fn try_concerned(&self, is_concerned: impl Fn(&BundleDeployment) -> bool) -> Vec<String> {
        let all = self.deployments.all();
        let concerned = all.iter().filter_map(|guarded| guarded.0.as_ref().ok()).filter(|it| is_concerned(it));
        let names: Vec<String> = concerned.filter_map(|deployment| deployment.metadata.name.clone()).collect();
        for name in &names {
            self.try_again(name);
        }
        names
    }

    /// Makes the candidates due again whose provisioners requested facts about the cluster that changed.
    pub(super) fn cluster_changed(&self, cluster: &ClusterInfo) {
        self.memory.cluster_changed(cluster);
        // The preparations in progress began with the earlier facts.
        self.preparations.end_all();
    }

    /// Ends all work between reconciles: the controller stops.
    pub(crate) fn end(&self) {
        self.preparations.end_all();
        self.memory.end_watches();
    }

    pub(super) fn prepare<'a>(&'a self, slot: &'a Slot) -> PrepareHandles<'a> {
        let Self { preparer, preparations, .. } = self;
        let Preparer { releases, memory, .. } = preparer.as_ref();
        PrepareHandles { preparer, preparations, releases, in_use: &memory.in_use, slot }
    }

    pub(super) fn certificates<'a>(&'a self, rollout: &'a Rollout) -> CertificateHandles<'a> {
        CertificateHandles { rollout, policy: &self.cluster.options.certificates }
    }

    pub(super) fn approve<'a>(&'a self, subject: &'a Subject) -> ApproveHandles<'a> {
        let Self { approvals, cluster, .. } = self;
        ApproveHandles {
            approvals,
            accounts: &cluster.options.accounts,
            certificates: self.certificates(subject.rollout(self)),
        }
    }

    pub(super) fn roll_out<'a>(&'a self, subject: &'a Subject, slot: &'a Slot) -> RolloutHandles<'a> {
        let Self { cluster, memory, .. } = self;
        let rollout = subject.rollout(self);
        RolloutHandles {
            rollout,
            certificates: self.certificates(rollout),
            accounts: &cluster.options.accounts,
            events: &cluster.events,
            announcements: &memory.announcements,
            conflicts: &memory.conflicts,
            debounce: &memory.debounce,
            sizes: &memory.sizes,
            metrics: &cluster.metrics,
            slot,
        }
    }

    pub(super) fn report(&self) -> StatusHandles<'_> {
        let Self { cluster, own_writes, memory, .. } = self;
        StatusHandles {
            contents: &memory.contents,
            client: &cluster.client,
            own_writes,
            events: &cluster.events,
            announcements: &memory.announcements,
        }
    }

    pub(super) fn schedule(&self) -> ScheduleHandles<'_> {
        let Self { backoff, memory, cluster, .. } = self;
        ScheduleHandles {
            backoff,
            resolutions: &memory.resolutions,
            registries: &memory.registries,
            poll_interval: cluster.options.image_poll_interval,
        }
    }

    pub(super) fn restored<'a>(&'a self, rollout: &'a Rollout) -> RestoredHandles<'a> {
        let Cluster { client, options, .. } = self.cluster.as_ref();
        RestoredHandles {
            client,
            records: &self.records,
            rollout,
            accounts: &options.accounts,
            longest: options.restore_wait,
        }
    }

    pub(super) fn finalize(&self) -> FinalizeHandles<'_> {
        self.finalize_with(&self.rollout)
    }

    pub(super) fn finalize_with<'a>(&'a self, rollout: &'a Rollout) -> FinalizeHandles<'a> {
        let Self { cluster, own_writes, records, memory, preparations, informers, generations, backoff, .. } = self;
        let (client, accounts) = (&cluster.client, &cluster.options.accounts);
        FinalizeHandles {
            client,
            own_writes,
            rollout,
            records,
            accounts,
            memory,
            preparations,
            informers,
            generations,
            backoff,
        }
    }
}

impl Subscriber for Installer {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::DeploymentInputChanged(name) => {
                self.try_again(name);
                self.deployments.wake(name);
            }
            Signal::ClassGone(class) => {
                self.try_concerned(|deployment| may_use(deployment, class))
                    .iter()
                    .for_each(|name| self.deployments.wake(name));
            }
            Signal::DeploymentChanged(_)
            | Signal::DeploymentGone(_)
            | Signal::ResolutionChanged(_)
            | Signal::PlatformOperatorChanged
            | Signal::PolicyChanged
            | Signal::CatalogsChanged
            | Signal::ConfigMapChanged(_)
            | Signal::SecretChanged(_) => {}
        }
    }
}
