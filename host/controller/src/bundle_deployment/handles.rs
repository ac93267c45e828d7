//! What each step with effects may use, carved out of the context of the controller.
//!
//! No step takes the whole context. A step that needs none of these takes data, and is in [`decide`](super::decide).

use std::{sync::Arc, time::Duration};

use chandler_api::BundleDeployment;
use chandler_certificates::Policy;
use chandler_informers::Informers;
use chandler_permissions::AccountPolicy;
use chandler_records::Records;
use chandler_releases::Releases;
use chandler_rollout::Rollout;
use chandler_runtime::{Backoff, ClusterInfoWatch, Events, GenerationTracker, OwnWrites, Slot};
use chandler_source::Resolutions;
use kube::Client;

use super::{approvals::Approvals, detections::Detections, steps::prepare::Preparations};
use crate::{
    contents::Contents,
    context::Context,
    memory::{Announcements, HealthDebounce, Memory, OwnershipConflicts, Refused, ReleasesInUse, Sizes},
    provisioner_class::Classes,
    registries::Registries,
};

/// What the detection of a class uses.
pub(super) struct DetectHandles<'a> {
    pub(super) classes: &'a Classes,
    pub(super) detections: &'a Detections,
    /// The prefixes of classes that other provisioners have.
    pub(super) foreign: &'a [String],
}

/// What rendering uses: caches, and the facts about the cluster. The provisioner comes with its class.
pub(super) struct RenderHandles<'a> {
    pub(super) releases: &'a Releases,
    pub(super) cluster_info: &'a ClusterInfoWatch,
    pub(super) in_use: &'a ReleasesInUse,
    pub(super) refused: &'a Refused,
}

/// What reading the objects of `spec.valuesFrom` uses.
pub(super) struct ValuesHandles<'a> {
    /// Their watch outlives the reconcile that read them.
    pub(super) context: &'a Arc<Context>,
}

/// What preparing a release in the background uses.
pub(super) struct PrepareHandles<'a> {
    /// A preparation outlives the reconcile that began it, so it needs a context of its own, out of which it carves its handles.
    pub(super) context: &'a Arc<Context>,
    pub(super) preparations: &'a Preparations,
    pub(super) releases: &'a Releases,
    pub(super) in_use: &'a ReleasesInUse,
    pub(super) slot: &'a Slot,
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
    pub(super) slot: &'a Slot,
}

/// What writing a status uses.
#[derive(Clone, Copy)]
pub(super) struct StatusHandles<'a> {
    pub(super) contents: &'a Contents,
    pub(super) client: &'a Client,
    pub(super) own_writes: &'a OwnWrites<BundleDeployment>,
    pub(super) events: &'a Events,
}

/// What scheduling the next reconcile uses.
pub(super) struct ScheduleHandles<'a> {
    pub(super) backoff: &'a Backoff,
    pub(super) resolutions: &'a Resolutions,
    pub(super) registries: &'a Registries,
    pub(super) poll_interval: Duration,
}

/// What opening the record and finalizing a BundleDeployment use.
pub(super) struct FinalizeHandles<'a> {
    pub(super) client: &'a Client,
    pub(super) own_writes: &'a OwnWrites<BundleDeployment>,
    pub(super) rollout: &'a Rollout,
    pub(super) records: &'a Records,
    pub(super) accounts: &'a AccountPolicy,
    pub(super) memory: &'a Memory,
    pub(super) informers: &'a Informers,
    pub(super) generations: &'a GenerationTracker,
    pub(super) backoff: &'a Backoff,
}

impl<'a> DetectHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { classes, memory, options, .. } = context;
        Self { classes, detections: &memory.detections, foreign: &options.foreign_class_prefixes }
    }
}

impl<'a> RenderHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { releases, cluster_info, memory, .. } = context;
        Self { releases, cluster_info, in_use: &memory.in_use, refused: &memory.refused }
    }
}

impl<'a> ValuesHandles<'a> {
    pub(super) fn of(context: &'a Arc<Context>) -> Self {
        Self { context }
    }
}

impl<'a> PrepareHandles<'a> {
    pub(super) fn of(context: &'a Arc<Context>, slot: &'a Slot) -> Self {
        let Context { releases, memory, .. } = context.as_ref();
        Self { context, preparations: &memory.preparing, releases, in_use: &memory.in_use, slot }
    }
}

impl<'a> CertificateHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        Self { rollout: &context.rollout, policy: &context.options.certificates }
    }
}

impl<'a> ApproveHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { approvals, options, .. } = context;
        Self { approvals, accounts: &options.accounts, certificates: CertificateHandles::of(context) }
    }
}

impl<'a> RolloutHandles<'a> {
    pub(super) fn of(context: &'a Context, slot: &'a Slot) -> Self {
        let Context { rollout, options, events, memory, .. } = context;
        Self {
            rollout,
            certificates: CertificateHandles::of(context),
            accounts: &options.accounts,
            events,
            announcements: &memory.announcements,
            conflicts: &memory.conflicts,
            debounce: &memory.debounce,
            sizes: &memory.sizes,
            slot,
        }
    }
}

impl<'a> StatusHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { client, own_writes, events, memory, .. } = context;
        Self { contents: &memory.contents, client, own_writes, events }
    }
}

impl<'a> ScheduleHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { backoff, memory, options, .. } = context;
        Self {
            backoff,
            resolutions: &memory.resolutions,
            registries: &memory.registries,
            poll_interval: options.image_poll_interval,
        }
    }
}

impl<'a> FinalizeHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let Context { client, own_writes, rollout, records, options, memory, informers, generations, backoff, .. } =
            context;
        let accounts = &options.accounts;
        Self { client, own_writes, rollout, records, accounts, memory, informers, generations, backoff }
    }
}
