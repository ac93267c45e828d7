//! What runs is looked after, whatever is wrong with what comes next: its release is repaired, watched and reported from the
//! record, which neither an empty cache nor a registry that is away can take.

use std::time::Duration;

use chandler_api::{BundleDeployment, Outcome, Revision};

use super::{
    Pass,
    assessment::{Assessment, Reached},
    bundle::{self, BundleFacts},
    choose::again,
    decide::Route,
    drift::DriftFound,
    revisions::{self, Candidate, Cause},
    rolling::{look, roll_out},
};

/// What was found about the release that runs, beside what is wrong with the one that does not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Running {
    /// What its bundle says of itself; none where its release could not be had.
    pub(crate) bundle: Option<BundleFacts>,
    /// What of it is not healthy; the error says why that is not known.
    pub(crate) health: Result<Vec<String>, String>,
    /// Until when what was reported stands, since what was found has not lasted.
    pub(crate) unsteady: Option<Duration>,
    /// What of it is not as released and left so; none where nobody looked.
    pub(crate) drift: Option<DriftFound>,
    /// Why it could not be repaired.
    pub(crate) not_repaired: Option<String>,
}

/// Whether the release that runs is another one than the one that the pass was about, so that nobody has looked after it.
pub(super) fn is_left_alone(found: &Assessment, history: &[Revision]) -> bool {
    let candidate_runs = found.candidate.as_ref().is_some_and(|candidate| !revisions::begins(history, candidate));
    match found.reached {
        Reached::NoProvisioner(_)
        | Reached::NotUnpacked(_)
        | Reached::NotRendered(_)
        | Reached::NotPreviewed(_)
        | Reached::NeedsApproval
        | Reached::Preparing
        | Reached::Suspended => true,
        Reached::NotApplied(_) => !candidate_runs,
        _ => false,
    }
}

/// Whether what runs is looked after before a candidate is tried: one that an earlier reconcile did not bring to the cluster. Its
/// checks compare it with what is there, and what is missing there, a CRD that somebody deleted, say, is no reason to let
/// it pass.
pub(super) fn comes_first(deployment: &BundleDeployment, candidate: Option<&Candidate>) -> bool {
    let Some(status) = &deployment.status else { return false };
    let succeeded = status.history.last().is_some_and(|current| current.outcome == Outcome::Succeeded);
    let begins = candidate.is_some_and(|candidate| revisions::begins(&status.history, candidate));
    succeeded && begins && status.observed_generation == deployment.metadata.generation
}

/// Looks after the current revision: one that is complete is repaired, one that is on its way is only looked at, since the spec
/// wants another one by now. None where nothing was rolled out yet. What was found that has to be said or done later is noted
/// beside what the pass found.
pub(super) async fn look_after(pass: Pass<'_>, found: &mut Assessment) -> Option<Running> {
    let history = pass.deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let current = history.last()?;
    let mut about = Assessment::early(Reached::Beginning);
    let release = match again(pass, current, Cause::Waiting(current.number), &mut about).await {
        Ok(release) => release,
        Err(problem) => {
            let health =
                Err(format!("the release that runs cannot be had, so that it is not looked at: {}", problem.message));
            return Some(Running { bundle: None, health, unsteady: None, drift: None, not_repaired: None });
        }
    };
    let bundle = Some(bundle::facts(&release));
    let repairs = current.outcome == Outcome::Succeeded && found.reached != Reached::Suspended;
    let reached = if repairs {
        roll_out(pass, &mut about, release, Route::Observe).await
    } else {
        look(pass, &about, &release).await.map(Reached::Applied)
    };
    let not_repaired =
        reached.as_ref().err().filter(|problem| !problem.is_hiccup()).map(|problem| problem.message.clone());
    let health = match reached {
        Ok(Reached::Applied(unhealthy)) => Ok(unhealthy),
        Ok(_) => Ok(about.health.take().unwrap_or_default()),
        // What was seen before the repair failed counts, and why it could not be repaired.
        Err(problem) => match about.health.take() {
            Some(mut unhealthy) => {
                unhealthy.push(format!("it cannot be repaired: {}", problem.message));
                Ok(unhealthy)
            }
            None => Err(problem.message),
        },
    };
    (found.renewal, found.contest) = (about.renewal, about.contest);
    found.kept = about.kept;
    found.repaired = about.repaired;
    Some(Running { bundle, health, unsteady: about.unsteady, drift: about.drift, not_repaired })
}
