//! What one pass over a BundleDeployment found: plain data, from which the status is derived.

use std::time::Duration;

use chandler_api::{BundleSource, PendingChange, ProvisionerInUse};
use chandler_core::{Digest, ObjectKey};

use super::{bundle::BundleFacts, drift::DriftFound, revisions::Candidate, running::Running};
use crate::problem::Problem;

/// What one pass found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assessment {
    /// Where the content came from; none where it was not looked for or could not be had.
    pub(crate) unpacked: Option<Unpacked>,
    /// What rendered it; none where the pass did not come so far.
    pub(crate) provisioner: Option<ProvisionerInUse>,
    /// The release that is to run; none where the pass did not come so far.
    pub(crate) candidate: Option<Candidate>,
    /// What the bundle of that release says of itself; none where the pass did not come so far.
    pub(crate) bundle: Option<BundleFacts>,
    /// The bundle that the spec describes, and the digest of its release, where it is not the one that runs.
    pub(crate) described: Option<(BundleFacts, Digest)>,
    /// What was found about the release that runs, where the pass is about another one.
    pub(crate) running: Option<Running>,
    /// What of the release is not healthy, as far as it was seen before anything failed; none where nobody looked.
    pub(crate) health: Option<Vec<String>>,
    /// How long it is until the candidate is tried again; none where it was tried.
    pub(crate) stalled: Option<Duration>,
    /// Why a revision that failed cannot be rolled back.
    pub(crate) no_way_back: Option<Problem>,
    /// The change that waits for approval.
    pub(crate) pending: Option<PendingChange>,
    /// When the certificates of the release want to be looked at; none where it has none.
    pub(crate) renewal: Option<Duration>,
    /// When objects that others change again and again want to be looked at; none where there are none.
    pub(crate) contest: Option<Duration>,
    /// What was found unsafe about the release before it was rolled out, and did not stop it.
    pub(crate) warnings: Vec<String>,
    /// CRDs that the release no longer has and that stay while custom resources exist.
    pub(crate) kept: Vec<ObjectKey>,
    /// Which fields the release took over from others who apply them, too.
    pub(crate) conflicts: Vec<String>,
    /// What is not as released and left so; none where nobody looked.
    pub(crate) drift: Option<DriftFound>,
    /// What was put right that somebody had changed, as far as it is news.
    pub(crate) repaired: Vec<String>,
    /// How long the health that was found still has to last until it is reported; until then the conditions stay as they
    /// are. None where it is reported at once.
    pub(crate) unsteady: Option<std::time::Duration>,
    /// How far the pass came.
    pub(crate) reached: Reached,
}

/// Content that was fetched and verified.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unpacked {
    /// The source with a tag replaced by a digest.
    pub(crate) resolved_source: BundleSource,
    /// The digest of the tree.
    pub(crate) content_digest: Digest,
}

/// What the status says of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReleaseFacts {
    /// The digest over its objects, stages and probes.
    pub(crate) digest: Digest,
    /// How many objects it has.
    pub(crate) objects: usize,
    /// How many stages it has.
    pub(crate) stages: usize,
    /// The version of its bundle, where it says so.
    pub(crate) version: Option<String>,
}

/// How far a pass came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reached {
    /// Nowhere, because `spec.suspend` is true.
    Suspended,
    /// The release is being fetched and rendered, and takes its time.
    Preparing,
    /// A release that was not rolled out before is about to be.
    Beginning,
    /// What is to run waits for approval, and nothing runs meanwhile.
    NeedsApproval,
    /// A newer spec was seen while this one was rolled out.
    Superseded,
    /// The finalizers of the BundleDeployment cannot be written.
    FinalizersNotWritten(Problem),
    /// The record of the BundleDeployment cannot be read or written.
    Unrecorded(Problem),
    /// There is nobody to render the content.
    NoProvisioner(Problem),
    /// The content could not be had.
    NotUnpacked(Problem),
    /// The provisioner gave no release.
    NotRendered(Problem),
    /// The release needs approval, and what it would change could not be found out. Nothing was begun.
    NotPreviewed(Problem),
    /// The release could not be applied.
    NotApplied(Problem),
    /// The release is being rolled out.
    RollingOut(RollingOut),
    /// The release is in place; the list says what is not well.
    Applied(Vec<String>),
    /// The objects are being deleted; the list says what is still there.
    Deleting(Vec<String>),
    /// The objects could not be deleted.
    NotDeleted(Problem),
}

/// A rollout that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RollingOut {
    /// The stage that is not healthy yet, counted from 1.
    pub(crate) stage: usize,
    /// How many stages the release has.
    pub(crate) stages: usize,
    /// Whether every object is applied, so that only health is waited for.
    pub(crate) all_applied: bool,
    /// What is waited for.
    pub(crate) waiting: Vec<String>,
}

impl Assessment {
    /// A pass that ended before it had anything.
    pub(crate) fn early(reached: Reached) -> Self {
        Self {
            unpacked: None,
            provisioner: None,
            candidate: None,
            bundle: None,
            described: None,
            running: None,
            health: None,
            stalled: None,
            no_way_back: None,
            pending: None,
            renewal: None,
            contest: None,
            warnings: Vec::new(),
            kept: Vec::new(),
            conflicts: Vec::new(),
            drift: None,
            repaired: Vec::new(),
            unsteady: None,
            reached,
        }
    }

    /// Why the pass ended early, if it did.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        match &self.reached {
            Reached::FinalizersNotWritten(problem)
            | Reached::Unrecorded(problem)
            | Reached::NoProvisioner(problem)
            | Reached::NotUnpacked(problem)
            | Reached::NotRendered(problem)
            | Reached::NotPreviewed(problem)
            | Reached::NotApplied(problem)
            | Reached::NotDeleted(problem) => Some(problem),
            _ => None,
        }
    }
}
