//! Looks after the release that runs, regardless of problems with the candidate: it is repaired, watched and reported from the record,
//! which depends on neither the cache nor the registry.

use chandler_api::Outcome;
use chandler_decisions::{
    assessment::{RolloutFindings, Running},
    bundle,
    problem::Problem,
    revisions::Cause,
};

use super::{
    super::{handles::RolloutHandles, subject::Subject},
    prepare::PrepareHandles,
    restore,
    rollout::{self, RolledOut, RolloutState},
};

/// Looks after the current revision: a complete one is repaired unless the BundleDeployment is suspended. One that is being rolled out is
/// only observed, since the spec already wants another one. `None` if no revision has begun.
pub(in super::super) async fn look_after(
    prepare: &PrepareHandles<'_>,
    handles: RolloutHandles<'_>,
    subject: &Subject,
) -> Option<Running> {
    let current = subject.history().last()?;
    let restored = match restore::restore(prepare, subject, current, Cause::Waiting(current.number)).await {
        Ok(restored) => restored,
        Err(error) => {
            let cause = format!("the release that runs is unavailable, so that its health is unknown: {error}");
            let findings = RolloutFindings::default();
            return Some(Running { bundle: None, health: Err(cause), not_repaired: None, findings });
        }
    };
    let bundle = Some(bundle::facts(&restored.release));
    let repairs = current.outcome == Outcome::Succeeded && !subject.deployment.spec.suspend;
    let RolledOut { findings, result } = if repairs {
        Box::pin(rollout::repair(handles, subject, &restored)).await
    } else {
        Box::pin(rollout::look(handles, subject, &restored)).await
    };
    let problem = result.as_ref().err().map(Problem::from);
    let not_repaired =
        problem.as_ref().filter(|problem| !problem.is_api_unavailable()).map(|problem| problem.message.clone());
    let seen = findings.health.clone();
    let health = match (result, problem) {
        (Ok(RolloutState::Applied(unhealthy)), _) => Ok(unhealthy),
        (Ok(RolloutState::RollingOut(_)), _) => Ok(seen.unwrap_or_default()),
        // The health that was seen before the repair failed counts.
        (Err(error), problem) => {
            let message = problem.map_or_else(|| error.to_string(), |problem| problem.message);
            match seen {
                Some(mut unhealthy) => {
                    unhealthy.push(format!("it cannot be repaired: {message}"));
                    Ok(unhealthy)
                }
                None => Err(message),
            }
        }
    };
    Some(Running { bundle, health, not_repaired, findings })
}
