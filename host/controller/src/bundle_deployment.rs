//! The reconciler of BundleDeployments.
//!
//! [`decide`](decide::decide) tells what to do without a client, the steps do it, and [`status::derive`] tells what to say
//! about it. The status is written on every path, and only when it differs.

mod approval;
mod assessment;
mod bundle;
mod certificates;
mod decide;
mod departure;
pub(crate) mod drift;
mod gates;
mod owner;
mod render;
mod rerender;
mod revisions;
mod service_account;
mod source;
mod status;
mod upgrade_warnings;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chandler_api::{
    ApprovedChange, BundleDeployment, BundleDeploymentStatus, DriftPolicy, Outcome, ProvisionerInUse, Reason, Revision,
};
use chandler_core::{Digest, Release};
use chandler_rollout::{Changes, Owner, Preview, Progress, Restraint, RolloutError};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt as _, core::DeserializeGuard, runtime::controller::Action};

pub use self::owner::owner_of;
pub(crate) use self::source::image_access;
use self::{
    assessment::{Assessment, Reached, ReleaseFacts, RollingOut, Unpacked},
    decide::{Intent, Next, Route},
    drift::DriftFound,
    owner::owner,
    render::Rendered,
    rerender::Remade,
    revisions::{Candidate, Cause},
};
use crate::{classes::Class, context::Context, events, problem::Problem, status_patch};

/// A BundleDeployment that one odd object cannot stop the watch of.
pub(crate) type Guarded = DeserializeGuard<BundleDeployment>;

/// One reconcile ended with nothing to say in the status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The status or the finalizers could not be written.
    #[error("failed to write {what}: {source}")]
    Write { what: &'static str, source: kube::Error },
    /// The API server was away or somebody else was faster. The status says so only when it happens again and again, so
    /// that a hiccup does not look like an outage.
    #[error("{0}")]
    Hiccup(String),
}

impl ReconcileError {
    /// Whether an object was written that had changed since it was read.
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write { source: kube::Error::Api(status), .. } if status.is_conflict())
    }
}

/// After how many failures in a row a hiccup is told in the status.
const HICCUPS: u32 = 3;

/// One reconcile.
pub(crate) async fn reconcile(guarded: Arc<Guarded>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let deployment = match &guarded.0 {
        Ok(deployment) => deployment,
        Err(error) => {
            tracing::warn!(deployment = %guarded.name_any(), error = %error.error, "not a legal BundleDeployment");
            return Ok(Action::await_change());
        }
    };
    let mut deployment = deployment.clone();
    let found = match decide::decide(&deployment) {
        Intent::Leave => return Ok(Action::await_change()),
        Intent::Suspend => Assessment::early(Reached::Suspended),
        Intent::TearDown if context.generations.is_orphaning(&deployment) => {
            departure::let_go(&deployment, &context).await?;
            return Ok(Action::await_change());
        }
        Intent::TearDown => match departure::tear_down(&deployment, &context).await? {
            Some(found) => found,
            None => return Ok(Action::await_change()),
        },
        Intent::LetGo => {
            departure::let_go(&deployment, &context).await?;
            return Ok(Action::await_change());
        }
        Intent::Deploy => {
            let asked = [
                deployment.metadata.generation.unwrap_or_default().to_string(),
                revisions::request(&deployment).unwrap_or_default().to_owned(),
            ];
            let pause = context.memory.fights.breathe(&deployment.name_any(), Digest::of(asked.join(" ").as_bytes()));
            if !pause.is_zero() {
                return Ok(Action::requeue(pause));
            }
            departure::hold(&deployment, &context).await?;
            Box::pin(deploy(&mut deployment, &context)).await?
        }
    };
    if found.reached == Reached::Superseded {
        return Ok(Action::requeue(Duration::ZERO));
    }
    if let Some(problem) = found.problem()
        && problem.is_hiccup()
        && context.backoff.failures(&deployment.name_any()) < HICCUPS
    {
        return Err(ReconcileError::Hiccup(problem.message.clone()));
    }
    report(&mut deployment, &found, &context).await?;
    Ok(next(&deployment, &found, &context))
}

/// After an error that left nothing to say: later again.
pub(crate) fn on_error(guarded: Arc<Guarded>, error: &ReconcileError, context: Arc<Context>) -> Action {
    let name = guarded.name_any();
    if error.is_conflict() {
        // The object in hand was not the newest; the watch brings that one.
        tracing::debug!(deployment = %name, %error, "somebody else was faster");
    } else {
        tracing::warn!(deployment = %name, %error, "reconcile failed");
    }
    Action::requeue(context.backoff.failed(&name))
}

/// `source -> digest -> tree -> provisioner -> release -> rollout`.
async fn deploy(deployment: &mut BundleDeployment, context: &Context) -> Result<Assessment, ReconcileError> {
    let mut found = Assessment::early(Reached::Beginning);
    if let Err(problem) = drift::ignored(deployment) {
        // Before anything is tried with it: no revision has failed for that.
        found.reached = Reached::NotRendered(problem);
        return Ok(found);
    }
    let release = match choose(deployment, context, &mut found).await {
        Ok(release) => release,
        Err(reached) => {
            found.reached = reached;
            return Ok(found);
        }
    };
    found.bundle = Some(bundle::facts(&release));
    let release = match approved(deployment, context, &mut found, release).await {
        Ok(release) => release,
        Err(reached) => {
            found.reached = reached;
            return Ok(found);
        }
    };
    let route = decide::route(deployment, release.digest());
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    if route == Route::Advance
        && found
            .candidate
            .as_ref()
            .is_some_and(|candidate| candidate.approval.is_some() || revisions::begins(history, candidate))
    {
        // Before the first write, so that whoever sees the cluster change can see why.
        report(deployment, &found, context).await?;
    }
    let rolled_out = tokio::select! {
        rolled_out = roll_out(deployment, &mut found, release, route, context) => rolled_out.map_err(Reached::NotApplied),
        () = context.generations.newer_than(deployment) => Err(Reached::Superseded),
    };
    found.reached = rolled_out.unwrap_or_else(|reached| reached);
    Ok(found)
}

/// The release that is to run: that of a revision that the spec names, or the one that the spec describes, or, where that one
/// failed, the last one that succeeded.
async fn choose(
    deployment: &BundleDeployment,
    context: &Context,
    found: &mut Assessment,
) -> Result<Arc<Release>, Reached> {
    if let Some(pinned) = revisions::pinned(deployment) {
        let revision = pinned.map_err(Reached::NotRendered)?;
        let release = again(deployment, revision, Cause::Pinned(revision.number), context, found).await;
        found.unpacked = revision
            .content_digest
            .parse()
            .ok()
            .map(|content_digest| Unpacked { resolved_source: revision.source.clone(), content_digest });
        return release.map_err(Reached::NotRendered);
    }
    let rendered = described(deployment, context, found).await?;
    let release = rendered.release;
    let namespace = &deployment.spec.install_namespace;
    let Some((failed, good)) = revisions::way_back(deployment, release.digest().as_str(), namespace) else {
        context.memory.in_use.keep_only(&deployment.name_any(), &rendered.key);
        return Ok(release);
    };
    let cause = Cause::Failed {
        failed: failed.number,
        message: failed.message.clone().unwrap_or_default(),
        to: good.rollback_to.unwrap_or(good.number),
    };
    match again(deployment, good, cause, context, found).await {
        Ok(release) => Ok(release),
        // What failed goes on being tried: that is better than nothing.
        Err(problem) => {
            found.no_way_back = Some(problem);
            Ok(release)
        }
    }
}

/// The release that may run: the one that was chosen or, while that waits for approval, the one that runs. What cannot be
/// previewed cannot be approved.
async fn approved(
    deployment: &BundleDeployment,
    context: &Context,
    found: &mut Assessment,
    release: Arc<Release>,
) -> Result<Arc<Release>, Reached> {
    let Some(candidate) = found.candidate.clone().filter(|candidate| approval::is_needed(deployment, candidate)) else {
        return Ok(release);
    };
    let previewed =
        preview(deployment, &candidate, Arc::clone(&release), context).await.map_err(Reached::NotPreviewed)?;
    let change = approval::digest(deployment, &candidate, &previewed);
    if let Some(given) = context.approvals.of(deployment, &change) {
        found.candidate = Some(Candidate {
            approval: Some(ApprovedChange { change, approved_by: given.spec.approved_by }),
            ..candidate
        });
        return Ok(release);
    }
    found.pending = Some(approval::pending(&candidate, change, &previewed));
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let Some(current) = history.last().filter(|current| current.outcome == Outcome::Succeeded) else {
        return Err(Reached::NeedsApproval);
    };
    again(deployment, current, Cause::Waiting(current.number), context, found).await.map_err(|problem| {
        tracing::debug!(deployment = %deployment.name_any(), problem = %problem.message, "left alone until approval");
        Reached::NeedsApproval
    })
}

/// What the candidate would change.
async fn preview(
    deployment: &BundleDeployment,
    candidate: &Candidate,
    release: Arc<Release>,
    context: &Context,
) -> Result<Preview, Problem> {
    let owner = owner_for(deployment, Some(candidate))?;
    let completed = certificates::complete(deployment, &owner, release, context).await?;
    let rules = gates::rules(deployment);
    let drift = drift::policy_now(deployment);
    let previewed = context.rollout.preview_with(&owner, &completed.release, &rules, drift).await;
    previewed.map_err(|error| Problem::from(&error))
}

/// The owner of what a candidate installs, or of what the spec describes.
fn owner_for(deployment: &BundleDeployment, candidate: Option<&Candidate>) -> Result<Owner, Problem> {
    let namespace = candidate.map_or(&deployment.spec.install_namespace, |candidate| &candidate.install_namespace);
    let back = candidate.is_some_and(|candidate| revisions::goes_back(deployment, candidate));
    Ok(owner(deployment, namespace)?.going_back(back).ignoring(drift::ignored(deployment)?))
}

/// The release that the spec describes.
async fn described(
    deployment: &BundleDeployment,
    context: &Context,
    found: &mut Assessment,
) -> Result<Rendered, Reached> {
    let class_name = &deployment.spec.provisioner_class_name;
    let class = context.classes.get(class_name).await.map_err(Reached::NoProvisioner)?;
    let (tree, unpacked) = source::unpack(deployment, context).await.map_err(Reached::NotUnpacked)?;
    found.unpacked = Some(unpacked.clone());
    let provisioner = in_use(class_name, &class);
    found.provisioner = Some(provisioner.clone());
    let config = render::laid_over(&class.defaults, deployment.spec.config.as_ref());
    let namespace = &deployment.spec.install_namespace;
    let rendered = render::render(deployment, &class, tree, config.clone(), namespace, context).await;
    let rendered = rendered.map_err(Reached::NotRendered)?;
    found.candidate = Some(Candidate {
        cause: Cause::Spec,
        source: unpacked.resolved_source,
        content_digest: unpacked.content_digest.to_string(),
        provisioner,
        install_namespace: namespace.clone(),
        config,
        release: release_facts(&rendered.release),
        approval: None,
    });
    Ok(rendered)
}

/// The release of an earlier revision.
async fn again(
    deployment: &BundleDeployment,
    revision: &Revision,
    cause: Cause,
    context: &Context,
    found: &mut Assessment,
) -> Result<Arc<Release>, Problem> {
    let Remade { rendered, provisioner, config } = rerender::rerender(deployment, revision, context).await?;
    found.provisioner = Some(provisioner.clone());
    found.candidate = Some(Candidate {
        cause,
        source: revision.source.clone(),
        content_digest: revision.content_digest.clone(),
        provisioner,
        install_namespace: revision.install_namespace.clone(),
        config,
        release: release_facts(&rendered.release),
        approval: None,
    });
    Ok(rendered.release)
}

fn in_use(class_name: &str, class: &Class) -> ProvisionerInUse {
    let facts = class.provisioner.facts();
    ProvisionerInUse {
        class: class_name.to_owned(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        digest: class.provisioner.digest().to_string(),
    }
}

fn release_facts(release: &Release) -> ReleaseFacts {
    let mut stages: Vec<u32> = release.objects().iter().map(|object| object.stage).collect();
    stages.dedup();
    ReleaseFacts { digest: release.digest().clone(), objects: release.objects().len(), stages: stages.len().max(1) }
}

/// Looks first where the release is in place already; applies where it is not.
async fn roll_out(
    deployment: &BundleDeployment,
    found: &mut Assessment,
    release: Arc<Release>,
    route: Route,
    context: &Context,
) -> Result<Reached, Problem> {
    let owner = owner_for(deployment, found.candidate.as_ref())?;
    let mut completed = certificates::complete(deployment, &owner, Arc::clone(&release), context).await?;
    let rules = gates::rules(deployment);
    let fights = &context.memory.fights;
    let mut restraint = Restraint { drift: drift::policy_now(deployment), complete: false, contested: BTreeSet::new() };
    let mut seen = Vec::new();
    if route == Route::Observe {
        let observed = context.rollout.observe_with(&owner, &completed.release, &rules, restraint.drift).await;
        let observed = observed.map_err(|error| Problem::from(&error))?;
        service_account::watch(&owner, &completed.release, context);
        found.kept.clone_from(&observed.kept);
        restraint.complete = true;
        restraint.contested = fights.of(&owner.name, |fights, now| {
            fights.see(&observed.drift, now);
            fights.paused(now)
        });
        note_drift(deployment, found, &observed.drift, context);
        if !drift::is_to_be_repaired(&observed, &restraint) {
            found.renewal = completed.look_again;
            return Ok(settled(deployment, found, &observed.unhealthy, context));
        }
        let told: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
        tracing::info!(deployment = %owner.name, drift = ?told, "repairing");
        seen = observed.drift;
        // A Secret that was deleted meanwhile must not come back with the key that it had.
        completed = certificates::complete(deployment, &owner, release, context).await?;
    }
    found.renewal = completed.look_again;
    if route == Route::Advance {
        restraint.contested = fights.of(&owner.name, |fights, now| {
            fights.see(&[], now);
            fights.paused(now)
        });
    }
    let release = completed.release.as_ref();
    let progress = context.rollout.advance_with(&owner, release, &rules, &restraint).await;
    // Also after a failure: what was applied before it has to be seen changing.
    service_account::watch(&owner, release, context);
    let progress = progress.map_err(|error| Problem::from(&error))?;
    let changes = progress.changes();
    found.warnings.clone_from(&changes.warnings);
    found.kept.clone_from(&changes.kept);
    events::publish_adoption(&context.recorder, deployment, &changes.adopted).await;
    found.conflicts = changes.conflicts.iter().map(ToString::to_string).collect();
    if route == Route::Advance {
        seen.clone_from(&changes.repaired);
    }
    found.repaired = fights.of(&owner.name, |fights, now| {
        let repaired = drift::repaired(&seen, changes);
        repaired.filter(|drift| fights.repaired(drift, now)).map(ToString::to_string).collect()
    });
    // What was left is what was found before, but for a rollout.
    let left = if route == Route::Observe { drift::unrepaired(&seen, &restraint) } else { changes.left.clone() };
    note_drift(deployment, found, &left, context);
    // It is about a release that is in place, but for a fight: that may be what keeps it from getting there.
    let in_place = route == Route::Observe || progress.is_complete();
    found.drift = found.drift.take().filter(|drift| in_place || drift.contested);
    Ok(match progress {
        // A repair of what was complete is no rollout: what was put back gets the time that everything else gets.
        Progress::Waiting { installed: true, waiting, changes, .. } if route == Route::Observe => {
            log_changes(&owner, &changes);
            settled(deployment, found, &waiting, context)
        }
        Progress::Waiting { stage, stages, installed, waiting, changes } => {
            log_changes(&owner, &changes);
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
    let decision = gates::weigh(deployment, unhealthy, unsteady.since(&name), unsteady.now());
    unsteady.note(&name, decision.next.differs_since);
    found.unsteady = decision.look_again;
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
            released = changes.released.len(),
            "applied"
        );
    }
}

/// An object that is not well, in the words of the status.
fn told(unhealthy: &chandler_rollout::Unhealthy) -> String {
    format!("{}: {}", unhealthy.object, unhealthy.health)
}

/// Writes what a pass found, so that the object in hand is as the one that is stored.
async fn report(
    deployment: &mut BundleDeployment,
    found: &Assessment,
    context: &Context,
) -> Result<(), ReconcileError> {
    let status = status::derive(deployment, found, Timestamp::now());
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let written = status_patch::write(&api, &deployment.name_any(), deployment.status.as_ref(), &status).await;
    if written.map_err(|source| ReconcileError::Write { what: "status", source })? {
        let old = deployment.status.clone().unwrap_or_default();
        events::publish(&context.recorder, deployment, &old.conditions, &status.conditions).await;
        let recorder = &context.recorder;
        events::publish_approval(recorder, deployment, &old.history, &status.history).await;
        events::publish_warnings(recorder, deployment, "RenderedWithWarnings", &old.warnings, &status.warnings).await;
        let of = |status: &BundleDeploymentStatus| status.release.clone().unwrap_or_default().warnings;
        events::publish_warnings(recorder, deployment, "UpgradedWithWarnings", &of(&old), &of(&status)).await;
    }
    events::publish_done(&context.recorder, deployment, "DriftRepaired", "Repair", &found.repaired).await;
    deployment.status = Some(status);
    Ok(())
}

/// When to look again without being asked.
fn next(deployment: &BundleDeployment, found: &Assessment, context: &Context) -> Action {
    let name = deployment.name_any();
    let status = deployment.status.clone().unwrap_or_default();
    let clock = status::clock(deployment, &status, Timestamp::now());
    let pause = match decide::next(found, clock, &deployment.spec.source) {
        // Only the next pass knows that the revision failed.
        _ if has_just_failed(deployment, found) => Some(Duration::ZERO),
        Next::Change => {
            context.backoff.succeeded(&name);
            None
        }
        Next::After(pause) => {
            context.backoff.succeeded(&name);
            Some(pause)
        }
        Next::Poll => {
            context.backoff.succeeded(&name);
            // What was resolved is asked for again without a look at anything else.
            let image = deployment.spec.source.image.as_ref();
            let polled = image.is_some_and(|image| context.memory.resolutions.knows(&name, image));
            (!polled).then_some(context.options.image_poll_interval)
        }
        Next::BackOff => {
            let asked = found.problem().map(|problem| problem.retry_after).unwrap_or_default();
            let pause = context.backoff.failed(&name).max(asked);
            Some(clock.left.map_or(pause, |left| pause.min(left + Duration::from_secs(1))))
        }
    };
    let definitions = (!found.kept.is_empty()).then_some(decide::DEFINITIONS_CHECK);
    let refused = found.pending.as_ref().is_some_and(|pending| !pending.refusals.is_empty());
    let refused = refused.then_some(decide::REFUSAL_CHECK);
    let again = [found.renewal, found.contest, definitions, refused].into_iter().flatten();
    pause.into_iter().chain(again).min().map_or_else(Action::await_change, Action::requeue)
}

/// Whether this pass saw what the spec describes fail, so that another release is to run.
fn has_just_failed(deployment: &BundleDeployment, found: &Assessment) -> bool {
    found.no_way_back.is_none()
        && found.candidate.as_ref().is_some_and(|candidate| {
            candidate.cause == Cause::Spec
                && revisions::way_back(deployment, candidate.release.digest.as_str(), &candidate.install_namespace)
                    .is_some()
        })
}

impl From<&RolloutError> for Problem {
    fn from(error: &RolloutError) -> Self {
        let reason = Reason::from_name(error.reason()).unwrap_or(Reason::InternalError);
        let lasting = matches!(reason, Reason::InvalidOutput | Reason::InvalidConfiguration);
        let missing_permissions = match error {
            RolloutError::PermissionsMissing(found) => service_account::missing(found),
            _ => Vec::new(),
        };
        Self { terminal: lasting, missing_permissions, ..Self::passing(reason, error.to_string()) }
    }
}
