//! The messages of the status about a rollout.

use chandler_api::Revision;

use super::super::{
    assessment::RollingOut,
    revisions::{Candidate, Cause},
};

/// How many objects a message names before it only counts.
const NAMED: usize = 5;

/// The objects that a rollout waits for.
pub(crate) fn waiting_for(rollout: &RollingOut) -> String {
    let RollingOut { stage, stages, waiting, .. } = rollout;
    format!("stage {stage} of {stages} waits for {}", list(waiting))
}

/// Why the release differs from the spec's.
pub(crate) fn prefix(candidate: Option<&Candidate>) -> String {
    match candidate.map(|candidate| &candidate.cause) {
        None | Some(Cause::Spec | Cause::Waiting(_)) => String::new(),
        Some(Cause::Pinned(number)) => format!("going to revision {number}, which spec.rollout.toRevision names: "),
        Some(Cause::Failed { failed, to, .. }) => {
            format!("rolling back to revision {to}, since revision {failed} failed: ")
        }
    }
}

pub(crate) fn healthy(current: &Revision, candidate: Option<&Candidate>) -> String {
    match candidate.map(|candidate| &candidate.cause) {
        Some(Cause::Pinned(number)) if *number == current.number => {
            format!("BundleDeployment is healthy; spec.rollout.toRevision keeps it at revision {number}")
        }
        Some(Cause::Pinned(number)) => format!(
            "BundleDeployment is healthy; spec.rollout.toRevision has revision {number} run again as revision {}",
            current.number
        ),
        _ => "BundleDeployment is healthy".to_owned(),
    }
}

/// The first few, and how many more.
pub(crate) fn list(items: &[String]) -> String {
    let named = items.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Digest;

    use super::*;

    fn candidate(cause: Cause) -> Candidate {
        Candidate { cause, ..Candidate::of_release(&Digest::of(b"a"), "n") }
    }

    #[test]
    fn a_pinned_revision_that_runs_or_runs_again_is_named() {
        let current = Revision { number: 4, ..Revision::default() };
        let text = |cause| healthy(&current, Some(&candidate(cause)));
        assert_eq!(text(Cause::Spec), "BundleDeployment is healthy");
        assert_eq!(
            text(Cause::Pinned(4)),
            "BundleDeployment is healthy; spec.rollout.toRevision keeps it at revision 4"
        );
        assert_eq!(
            text(Cause::Pinned(2)),
            "BundleDeployment is healthy; spec.rollout.toRevision has revision 2 run again as revision 4"
        );
        assert_eq!(
            prefix(Some(&candidate(Cause::Pinned(2)))),
            "going to revision 2, which spec.rollout.toRevision names: "
        );
        assert_eq!((prefix(Some(&candidate(Cause::Waiting(2)))), prefix(None)), (String::new(), String::new()));
    }
}
