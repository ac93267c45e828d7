//! What each step with effects may use, taken from the `Installer` and the `Preparer`.
//!
//! No step takes the whole installer. A step that needs none of these takes data, and is in [`chandler_decisions`].

use std::time::Duration;

use chandler_api::BundleDeployment;
use chandler_certificates::Policy;
use chandler_monitoring::Metrics;
use chandler_permissions::AccountPolicy;
use chandler_releases::Releases;
use chandler_rollout::Rollout;
use chandler_runtime::{Backoff, ClusterInfoWatch, Events, OwnWrites, Slot};
use chandler_source::Resolutions;
use kube::Client;

use super::{approvals::Approvals, detections::Detections, preparer::Preparer};
use crate::{
    contents::Contents,
    deployments::Deployments,
    memory::{Announcements, HealthDebounce, Memory, OwnershipConflicts, Refused, ReleasesInUse, Sizes},
    provisioner_class::{Calls, Classes},
    registries::Registries,
    targets::TargetInfo,
};

/// What the detection of a class uses.
pub(super) struct DetectHandles<'a> {
    pub(super) classes: &'a Classes,
    pub(super) detections: &'a Detections,
    pub(super) calls: &'a Calls,
    /// The prefixes of classes that other provisioners have.
    pub(super) foreign: &'a [String],
    pub(super) accounts: &'a AccountPolicy,
}

/// What rendering uses: caches, and the facts about the cluster. The provisioner comes with its class.
pub(super) struct RenderHandles<'a> {
    pub(super) releases: &'a Releases,
    pub(super) cluster_info: &'a ClusterInfoWatch,
    /// The facts about the other clusters that bundles are installed into.
    pub(super) target_info: &'a TargetInfo,
    pub(super) in_use: &'a ReleasesInUse,
    pub(super) refused: &'a Refused,
    pub(super) metrics: &'a Metrics,
    pub(super) calls: &'a Calls,
    /// Triggers the BundleDeployments that wait for a component.
    pub(super) memory: &'a Memory,
    pub(super) deployments: &'a Deployments,
    pub(super) accounts: &'a AccountPolicy,
}

/// What completing a release with certificates and generated Secrets uses.
#[derive(Clone, Copy)]
pub(super) struct CertificateHandles<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) policy: &'a Policy,
}

/// What the approval of a change uses.
pub(super) struct ApproveHandles<'a> {
    pub(super) approvals: &'a Approvals,
    pub(super) accounts: &'a AccountPolicy,
    pub(super) certificates: CertificateHandles<'a>,
}

/// What a rollout uses.
#[derive(Clone, Copy)]
pub(super) struct RolloutHandles<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) certificates: CertificateHandles<'a>,
    pub(super) accounts: &'a AccountPolicy,
    pub(super) events: &'a Events,
    pub(super) announcements: &'a Announcements,
    pub(super) conflicts: &'a OwnershipConflicts,
    pub(super) debounce: &'a HealthDebounce,
    pub(super) sizes: &'a Sizes,
    pub(super) metrics: &'a Metrics,
    pub(super) slot: &'a Slot,
}

/// What writing a status uses.
#[derive(Clone, Copy)]
pub(super) struct StatusHandles<'a> {
    pub(super) contents: &'a Contents,
    pub(super) client: &'a Client,
    pub(super) own_writes: &'a OwnWrites<BundleDeployment>,
    pub(super) events: &'a Events,
    pub(super) announcements: &'a Announcements,
}

/// What scheduling the next reconcile uses.
pub(super) struct ScheduleHandles<'a> {
    pub(super) backoff: &'a Backoff,
    pub(super) resolutions: &'a Resolutions,
    pub(super) registries: &'a Registries,
    pub(super) poll_interval: Duration,
}

impl<'a> DetectHandles<'a> {
    pub(super) fn of(preparer: &'a Preparer) -> Self {
        let Preparer { classes, memory, cluster, .. } = preparer;
        let options = &cluster.options;
        let (foreign, accounts) = (options.foreign_class_prefixes.as_slice(), &options.accounts);
        Self { classes, detections: &memory.detections, calls: &memory.calls, foreign, accounts }
    }
}

impl<'a> RenderHandles<'a> {
    pub(super) fn of(preparer: &'a Preparer) -> Self {
        let Preparer { releases, cluster, memory, deployments, .. } = preparer;
        Self {
            releases,
            cluster_info: &cluster.info,
            target_info: &memory.target_info,
            in_use: &memory.in_use,
            refused: &memory.refused,
            metrics: &cluster.metrics,
            calls: &memory.calls,
            memory,
            deployments,
            accounts: &cluster.options.accounts,
        }
    }
}
