//! What one reconcile of a BundleDeployment found: plain data, built from the outputs of the steps, from which the status is
//! derived.

use std::time::Duration;

use chandler_api::{BundleSource, PendingChange, ProvisionerInUse};
use chandler_core::{Digest, ObjectKey, Release};

use crate::problem::Problem;
use crate::{bundle::BundleFacts, drift::DriftFound, revisions::Candidate};

/// What one reconcile found.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The release that should run, as far as the steps got.
    pub selection: Selection,
    /// What the rollout of that release found; empty if the steps did not get that far.
    pub rollout: RolloutFindings,
    /// What was found about the release that runs, if the candidate is another one.
    pub running: Option<Running>,
    /// How long it is until the candidate is tried again; `None` if this reconcile tried it.
    pub retry_in: Option<Duration>,
    /// How far the reconcile got.
    pub outcome: ReconcileOutcome,
}

/// What is known about the release that should run. Each step adds to it by value; a step that fails returns what is known so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Where the content came from; `None` if it was not needed or could not be fetched.
    pub unpacked: Option<Unpacked>,
    /// The provisioner that rendered it, or was about to.
    pub provisioner: Option<ProvisionerInUse>,
    /// The release that should run.
    pub candidate: Option<Candidate>,
    /// The description and the warnings of its bundle.
    pub bundle: Option<BundleFacts>,
    /// The bundle that the spec describes, and the digest of its release, if it is not the one that runs.
    pub described: Option<(BundleFacts, Digest)>,
    /// Why a revision that failed cannot be rolled back.
    pub rollback_problem: Option<Problem>,
    /// The change that waits for approval.
    pub pending: Option<PendingChange>,
}

/// What a rollout found about the objects of one release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutFindings {
    /// The objects that were unhealthy before anything failed; `None` if the rollout did not look.
    pub health: Option<Vec<String>>,
    /// When the certificates of the release are due; `None` if it has no certificates.
    pub renewal: Option<Duration>,
    /// When an object with an ownership conflict is due; `None` if there is no conflict.
    pub contention: Option<Duration>,
    /// When to look for the causes of unhealthy objects again; `None` if the controller does not look for causes.
    pub causes: Option<Duration>,
    /// Unsafe changes that the configuration allows.
    pub warnings: Vec<String>,
    /// CRDs that the release no longer has and that stay while custom resources exist.
    pub kept: Vec<ObjectKey>,
    /// Fields that the release took over from other field managers that also apply them.
    pub conflicts: Vec<String>,
    /// Objects that were deleted and created again, because the release changes an immutable field.
    pub recreated: Vec<String>,
    /// Objects that differ from the release and are not repaired; `None` if the rollout did not look.
    pub drift: Option<DriftFound>,
    /// Repaired objects, as far as an Event should report them.
    pub repaired: Vec<String>,
    /// CRDs that another client deleted, with all their custom resources, and that were created again, as far as an Event should report
    /// them.
    pub recreated_crds: Vec<ObjectKey>,
    /// How long the new health must last until it is reported; until then the conditions do not change. `None` if it is reported at once.
    pub debounce: Option<Duration>,
}

/// What was found about the release that runs, in addition to the problem with the candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// The description of its bundle; `None` if its release is unavailable.
    pub bundle: Option<BundleFacts>,
    /// Its unhealthy objects; the error says why its health is unknown.
    pub health: Result<Vec<String>, String>,
    /// Why it could not be repaired.
    pub not_repaired: Option<String>,
    /// What looking after it found.
    pub findings: RolloutFindings,
}

/// Content that was fetched and verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpacked {
    /// The source with a tag replaced by a digest.
    pub resolved_source: BundleSource,
    /// The digest of the tree.
    pub content_digest: Digest,
    /// Whether it was used because it is signed as required.
    pub is_verified: bool,
}

/// What the status reports about a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseFacts {
    /// The digest over its objects, stages and probes.
    pub digest: Digest,
    /// How many objects it has.
    pub objects: usize,
    /// How many stages it has.
    pub stages: usize,
    /// The version of its bundle, if the bundle has one.
    pub version: Option<String>,
}

impl ReleaseFacts {
    /// The facts about a release.
    pub fn of(release: &Release) -> Self {
        let mut stages: Vec<u32> = release.objects().iter().map(|object| object.stage).collect();
        stages.dedup();
        Self {
            digest: release.digest().clone(),
            objects: release.objects().len(),
            stages: stages.len().max(1),
            version: release.description().version.clone(),
        }
    }
}

/// How far a reconcile got.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileOutcome {
    /// `spec.suspend` is true: no candidate was looked for.
    Suspended,
    /// The release is being fetched and rendered in the background.
    Preparing,
    /// A revision is about to begin.
    Starting,
    /// The candidate waits for approval, and no release runs meanwhile.
    ApprovalRequired,
    /// The finalizers of the BundleDeployment cannot be written.
    FinalizersNotWritten(Problem),
    /// The record of the BundleDeployment cannot be read or written.
    RecordUnavailable(Problem),
    /// Its objects are, or will be, in another cluster, which is not known or does not answer.
    TargetUnavailable(Problem),
    /// It was restored from a backup, and some of its objects were not, or not yet.
    RestoreIncomplete(Problem),
    /// No provisioner can render the content.
    ProvisionerUnavailable(Problem),
    /// The files of the bundle have not been uploaded yet; the text says how they are. No release is known meanwhile.
    UploadPending(String),
    /// The content could not be fetched.
    UnpackFailed(Problem),
    /// The provisioner returned no release, or the spec does not allow one.
    RenderFailed(Problem),
    /// The release needs approval, and its changes could not be previewed. No revision began.
    PreviewFailed(Problem),
    /// The release could not be applied.
    ApplyFailed(Problem),
    /// The release is being rolled out.
    RollingOut(RollingOut),
    /// Every object is applied; the list names the unhealthy ones.
    Applied(Vec<String>),
    /// The objects are being deleted; the list names those that remain.
    Deleting(Vec<String>),
    /// The objects could not be deleted.
    DeletionFailed(Problem),
}

/// A rollout that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingOut {
    /// The stage that is not healthy yet, counted from 1.
    pub stage: usize,
    /// How many stages the release has.
    pub stages: usize,
    /// Whether every object is applied, so that the rollout only waits for health.
    pub all_applied: bool,
    /// The objects that the rollout waits for.
    pub waiting: Vec<String>,
}

impl ReconcileOutcome {
    /// The problem that ended the reconcile, if one did.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::FinalizersNotWritten(problem)
            | Self::RecordUnavailable(problem)
            | Self::RestoreIncomplete(problem)
            | Self::TargetUnavailable(problem)
            | Self::ProvisionerUnavailable(problem)
            | Self::UnpackFailed(problem)
            | Self::RenderFailed(problem)
            | Self::PreviewFailed(problem)
            | Self::ApplyFailed(problem)
            | Self::DeletionFailed(problem) => Some(problem),
            Self::Suspended
            | Self::Preparing
            | Self::Starting
            | Self::ApprovalRequired
            | Self::UploadPending(_)
            | Self::RollingOut(_)
            | Self::Applied(_)
            | Self::Deleting(_) => None,
        }
    }
}

impl Assessment {
    /// For a reconcile that ended before it selected a release.
    pub fn early(outcome: ReconcileOutcome) -> Self {
        Self::of_selection(Selection::default(), outcome)
    }

    /// For a reconcile that ended before it rolled a release out.
    pub fn of_selection(selection: Selection, outcome: ReconcileOutcome) -> Self {
        Self { selection, rollout: RolloutFindings::default(), running: None, retry_in: None, outcome }
    }

    /// Adds what was found about the release that runs.
    pub fn with_running(self, running: Option<Running>) -> Self {
        Self { running, ..self }
    }

    /// The problem that ended the reconcile, if one did.
    pub fn problem(&self) -> Option<&Problem> {
        self.outcome.problem()
    }

    /// The candidate, if the steps got that far.
    pub fn candidate(&self) -> Option<&Candidate> {
        self.selection.candidate.as_ref()
    }

    /// What was found about the release that runs, and about the candidate.
    pub fn findings(&self) -> impl Iterator<Item = &RolloutFindings> {
        self.running.iter().map(|running| &running.findings).chain([&self.rollout])
    }
}
