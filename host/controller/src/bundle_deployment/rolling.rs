//! A release onto the cluster: applied where it is new, looked after where it is in place.

use std::sync::Arc;

use chandler_api::{BundleDeployment, DriftPolicy};
use chandler_core::Release;
use chandler_records::Book;
use chandler_rollout::{Changes, Drift, DriftOptions, Owner, Progress, RolloutError, RolloutRequest, Rule};
use kube::ResourceExt as _;

use super::{
    Pass,
    assessment::{Assessment, Reached, RollingOut},
    certificates,
    choose::owner_for,
    decide::Route,
    drift::{self, DriftFound},
    gates, service_account,
};
use crate::{context::Context, events, problem::Problem};

/// Looks first where the release is in place already; applies where it is not.
pub(super) async fn roll_out(
    pass: Pass<'_>,
    found: &mut Assessment,
    release: Arc<Release>,
    route: Route,
) -> Result<Reached, Problem> {
    let Pass { deployment, book, context, .. } = pass;
    carry(pass, &release).await;
    let owner = owner_for(pass, found.candidate.as_ref())?;
    let mut completed = certificates::complete(deployment, &owner, Arc::clone(&release), context).await?;
    let rules = gates::rules(deployment);
    let fights = &context.memory.fights;
    let mut drift_options = DriftOptions { drift: drift::policy_now(deployment), ..DriftOptions::default() };
    let mut seen = Vec::new();
    if route == Route::Observe {
        let observed = context
            .rollout
            .observe(&RolloutRequest::new(&owner, &completed.release).rules(&rules).drift(drift_options.drift))
            .await;
        let observed = observed.map_err(|error| Problem::from(&error))?;
        service_account::watch(&owner, &completed.release, context);
        keep(book, &release).await?;
        found.health = Some(observed.unhealthy.iter().map(told).collect());
        found.kept.clone_from(&observed.kept);
        drift_options.complete = true;
        drift_options.cooldown = fights.of(&owner.name, |fights, now| {
            fights.see(&observed.drift, now);
            fights.paused(now)
        });
        note_drift(deployment, found, &observed.drift, context);
        if !drift::is_to_be_repaired(&observed, &drift_options) {
            found.renewal = completed.look_again;
            return Ok(settled(deployment, found, &observed.unhealthy, context));
        }
        let told: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
        tracing::info!(deployment = %owner.name, drift = ?told, "repairing");
        seen = observed.drift;
        // A Secret that was deleted meanwhile must not come back with the key that it had.
        completed = certificates::complete(deployment, &owner, Arc::clone(&release), context).await?;
    }
    found.renewal = completed.look_again;
    if route == Route::Advance {
        drift_options.cooldown = fights.of(&owner.name, |fights, now| {
            fights.see(&[], now);
            fights.paused(now)
        });
    }
    let completed = completed.release.as_ref();
    let (progress, refused) = advance(context, &owner, completed, &rules, &mut drift_options, &seen).await;
    // Also after a failure: what was applied before it has to be seen changing.
    service_account::watch(&owner, completed, context);
    let progress = progress.map_err(|error| Problem::from(&error)).inspect_err(|problem| {
        note_not_repaired(deployment, found, &seen, problem);
    })?;
    // A revision that has nothing to write begins, too.
    book.begin_revision().await.map_err(|error| Problem::from(&error))?;
    keep(book, &release).await?;
    let changes = progress.changes();
    found.warnings.clone_from(&changes.warnings);
    found.kept.clone_from(&changes.kept);
    events::publish_adoption(&context.events, deployment, &changes.adopted).await;
    found.conflicts = changes.conflicts.iter().map(ToString::to_string).collect();
    if route == Route::Advance {
        seen.clone_from(&changes.repaired);
    }
    found.repaired = fights.of(&owner.name, |fights, now| {
        let repaired = drift::repaired(&seen, changes);
        repaired.filter(|drift| fights.repaired(drift, now)).map(ToString::to_string).collect()
    });
    // What was left is what was found before, but for a rollout.
    let left =
        if route == Route::Observe { drift::unrepaired(&seen, &drift_options) } else { changes.unrepaired.clone() };
    note_drift(deployment, found, &left, context);
    // It is about a release that is in place, but for a fight: that may be what keeps it from getting there.
    let in_place = route == Route::Observe || progress.is_complete();
    found.drift = found.drift.take().filter(|drift| in_place || drift.contested);
    if let Some(error) = refused {
        log_changes(&owner, changes);
        seen.retain(|drift| drift_options.skipped.contains(&drift.object));
        let problem = Problem::from(&error);
        note_not_repaired(deployment, found, &seen, &problem);
        return Err(problem);
    }
    Ok(match progress {
        // A repair of what was complete is no rollout: what was put back gets the time that everything else gets.
        Progress::Waiting { installed: true, waiting, changes, .. } if route == Route::Observe => {
            log_changes(&owner, &changes);
            settled(deployment, found, &waiting, context)
        }
        Progress::Waiting { stage, stages, installed, waiting, changes } => {
            log_changes(&owner, &changes);
            if route == Route::Observe {
                // How long it has been so counts from here, for those who report on its health alone.
                settled(deployment, found, &waiting, context);
            }
            let waiting = waiting.iter().map(told).collect();
            Reached::RollingOut(RollingOut { stage, stages, all_applied: installed, waiting })
        }
        Progress::Complete { changes, .. } => {
            log_changes(&owner, &changes);
            match route {
                Route::Observe => settled(deployment, found, &[], context),
                Route::Advance => {
                    context.memory.unsteady.forget(&owner.name);
                    Reached::Applied(Vec::new())
                }
            }
        }
    })
}

/// Waits for room for a release.
async fn carry(pass: Pass<'_>, release: &Release) {
    pass.context.memory.sizes.note(&pass.deployment.name_any(), release.memory());
    pass.slot.carry(release.memory()).await;
}

/// How often objects are set aside in one pass.
const ASIDE: usize = 8;

/// Applies a release. Of one that was complete, an object that cannot be written keeps no other from being repaired: it is set
/// aside, and the first refusal comes with what was done.
async fn advance(
    context: &Context,
    owner: &Owner,
    release: &Release,
    rules: &[Rule],
    drift_options: &mut DriftOptions,
    seen: &[Drift],
) -> (Result<Progress, RolloutError>, Option<RolloutError>) {
    let mut refused = None;
    for _ in 0..ASIDE {
        let error = match context
            .rollout
            .advance(&RolloutRequest::new(owner, release).rules(rules).drift(drift_options.clone()))
            .await
        {
            Err(error) if drift_options.complete => error,
            progress => return (progress, refused),
        };
        let before = drift_options.skipped.len();
        let concerned = seen.iter().map(|drift| &drift.object).filter(|object| error.concerns(object));
        drift_options.skipped.extend(concerned.cloned());
        let first = refused.take().unwrap_or(error);
        if drift_options.skipped.len() == before {
            return (Err(first), None);
        }
        refused = Some(first);
    }
    let last =
        context.rollout.advance(&RolloutRequest::new(owner, release).rules(rules).drift(drift_options.clone())).await;
    (last, refused)
}

/// Notes that these objects are not as released and could not be repaired, unless that is about to be tried again.
fn note_not_repaired(deployment: &BundleDeployment, found: &mut Assessment, drift: &[Drift], problem: &Problem) {
    if !drift.is_empty() && !problem.is_hiccup() && drift::policy(deployment) != DriftPolicy::Ignore {
        found.drift = Some(DriftFound::not_repaired(drift));
    }
}

/// Looks at a release without changing anything; what of it is not healthy.
pub(super) async fn look(pass: Pass<'_>, found: &Assessment, release: &Arc<Release>) -> Result<Vec<String>, Problem> {
    let Pass { deployment, context, .. } = pass;
    carry(pass, release).await;
    let owner = owner_for(pass, found.candidate.as_ref())?;
    let completed = certificates::complete(deployment, &owner, Arc::clone(release), context).await?;
    let rules = gates::rules(deployment);
    let observed = context
        .rollout
        .observe(
            &RolloutRequest::new(&owner, &completed.release).rules(&rules).drift(chandler_rollout::DriftPolicy::Ignore),
        )
        .await;
    let observed = observed.map_err(|error| Problem::from(&error))?;
    service_account::watch(&owner, &completed.release, context);
    Ok(observed.unhealthy.iter().map(told).collect())
}

/// Keeps the bytes of a release where neither an empty cache nor a registry that is away can take them.
async fn keep(book: &Book, release: &Release) -> Result<(), Problem> {
    if book.keeps(release.digest()) {
        return Ok(());
    }
    book.keep_release(release).await.map_err(|error| Problem::from(&error))
}

/// Notes what of a complete release is not as released, as far as the spec wants to know and it is left so.
fn note_drift(
    deployment: &BundleDeployment,
    found: &mut Assessment,
    drift: &[chandler_rollout::Drift],
    context: &Context,
) {
    let (contested, look_again) =
        context.memory.fights.of(&deployment.name_any(), |fights, now| (fights.contested(), fights.look_again(now)));
    found.contest = look_again;
    found.drift = match drift::policy(deployment) {
        DriftPolicy::Repair => Some(DriftFound::contested(&contested)),
        DriftPolicy::Report => Some(DriftFound::reported(drift)),
        DriftPolicy::Ignore => None,
    };
}

/// What follows from the health of a release that was complete before.
fn settled(
    deployment: &BundleDeployment,
    found: &mut Assessment,
    unhealthy: &[chandler_rollout::Unhealthy],
    context: &Context,
) -> Reached {
    let (unsteady, name) = (&context.memory.unsteady, deployment.name_any());
    if gates::reports_a_rollout(deployment) {
        // The controller died before it could say that the rollout was complete, or the object in hand is not the newest: what
        // is reported is out of date, however short what was found has lasted.
        unsteady.forget(&name);
        return Reached::Applied(unhealthy.iter().map(told).collect());
    }
    let decision = gates::weigh(deployment, unhealthy, unsteady.since(&name), unsteady.now());
    unsteady.note(&name, decision.next.differs_since);
    found.unsteady = decision.recheck_after;
    Reached::Applied(unhealthy.iter().map(told).collect())
}

/// Names of objects only: their content may be secret.
fn log_changes(owner: &Owner, changes: &Changes) {
    if !changes.is_empty() {
        tracing::info!(
            deployment = %owner.name,
            created = changes.created.len(),
            adopted = changes.adopted.len(),
            updated = changes.updated.len(),
            recovered = changes.recovered.len(),
            pruned = changes.pruned.len(),
            released = changes.orphaned.len(),
            "applied"
        );
    }
}

/// An object that is not well, in the words of the status.
pub(super) fn told(unhealthy: &chandler_rollout::Unhealthy) -> String {
    format!("{}: {}", unhealthy.object, unhealthy.health)
}
