//! The reconciler of BundleDeployments.
//!
//! [`decide`](decide::decide) tells what to do without a client, the steps do it, and [`status::derive`] tells what to say
//! about it. The status is written on every path, and only when it differs.

mod assessment;
mod bundle;
mod certificates;
mod decide;
mod render;
mod source;
mod status;

use std::{sync::Arc, time::Duration};

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ProvisionerInUse, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, TEARDOWN_FINALIZER},
};
use chandler_core::Release;
use chandler_rollout::{Owner, Progress, RolloutError, Teardown};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
    core::DeserializeGuard,
    runtime::controller::Action,
};
use serde_json::json;

use self::{
    assessment::{Assessment, Reached, ReleaseFacts, RollingOut},
    decide::{Intent, Next, Route},
};
use crate::{context::Context, events, problem::Problem, status_patch};

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
    let found = match decide::decide(deployment) {
        Intent::Leave => return Ok(Action::await_change()),
        Intent::Suspend => Assessment::early(Reached::Suspended),
        Intent::TearDown => match tear_down(deployment, &context).await? {
            Some(found) => found,
            None => return Ok(Action::await_change()),
        },
        Intent::LetGo => {
            let_go(deployment, &context).await?;
            return Ok(Action::await_change());
        }
        Intent::Deploy => {
            hold(deployment, &context).await?;
            deploy(deployment, &context).await
        }
    };
    if let Some(problem) = found.problem()
        && problem.is_hiccup()
        && context.backoff.failures(&deployment.name_any()) < HICCUPS
    {
        return Err(ReconcileError::Hiccup(problem.message.clone()));
    }
    let status = report(deployment, &found, &context).await?;
    Ok(next(deployment, &found, &status, &context))
}

/// After an error that left nothing to say: later again.
pub(crate) fn on_error(guarded: Arc<Guarded>, error: &ReconcileError, context: Arc<Context>) -> Action {
    let name = guarded.name_any();
    tracing::warn!(deployment = %name, %error, "reconcile failed");
    Action::requeue(context.backoff.failed(&name))
}

/// `source -> digest -> tree -> provisioner -> release -> rollout`.
async fn deploy(deployment: &BundleDeployment, context: &Context) -> Assessment {
    let mut found = Assessment::early(Reached::Suspended);
    found.reached = match steps(deployment, context, &mut found).await {
        Ok(reached) | Err(reached) => reached,
    };
    found
}

async fn steps(deployment: &BundleDeployment, context: &Context, found: &mut Assessment) -> Result<Reached, Reached> {
    let class_name = &deployment.spec.provisioner_class_name;
    let class = context.classes.get(class_name).await.map_err(Reached::NoProvisioner)?;
    let (tree, unpacked) = source::unpack(deployment, context).await.map_err(Reached::NotUnpacked)?;
    found.unpacked = Some(unpacked);
    let facts = class.provisioner.facts();
    found.provisioner = Some(ProvisionerInUse {
        class: class_name.clone(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        digest: class.provisioner.digest().to_string(),
    });
    let release = render::render(deployment, &class, tree, context).await.map_err(Reached::NotRendered)?;
    found.release = Some(release_facts(&release));
    found.bundle = Some(bundle::facts(&release));
    roll_out(deployment, found, release, context).await.map_err(Reached::NotApplied)
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
    context: &Context,
) -> Result<Reached, Problem> {
    let owner = owner(deployment)?;
    let route = decide::route(deployment, release.digest());
    let completed = certificates::complete(deployment, &owner, release, context).await?;
    found.renewal = completed.look_again;
    let release = completed.release.as_ref();
    if route == Route::Observe {
        let observed = context.rollout.observe(&owner, release).await.map_err(|error| Problem::from(&error))?;
        context.watches.ensure(context.rollout.managed_kinds(release));
        if observed.is_as_released() {
            return Ok(Reached::Applied(observed.unhealthy.iter().map(told).collect()));
        }
        let drift: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
        tracing::info!(deployment = %owner.name, ?drift, "repairing");
    }
    let progress = context.rollout.advance(&owner, release).await;
    // Also after a failure: what was applied before it has to be seen changing.
    context.watches.ensure(context.rollout.managed_kinds(release));
    Ok(match progress.map_err(|error| Problem::from(&error))? {
        Progress::Waiting { stage, stages, installed, waiting, changes } => {
            log_changes(&owner, &changes);
            let waiting = waiting.iter().map(told).collect();
            Reached::RollingOut(RollingOut { stage, stages, all_applied: installed, waiting })
        }
        Progress::Complete { changes, .. } => {
            log_changes(&owner, &changes);
            Reached::Applied(Vec::new())
        }
    })
}

/// Names of objects only: their content may be secret.
fn log_changes(owner: &Owner, changes: &chandler_rollout::Changes) {
    if !changes.is_empty() {
        tracing::info!(
            deployment = %owner.name,
            created = changes.created.len(),
            updated = changes.updated.len(),
            recovered = changes.recovered.len(),
            pruned = changes.pruned.len(),
            "applied"
        );
    }
}

/// An object that is not well, in the words of the status.
fn told(unhealthy: &chandler_rollout::Unhealthy) -> String {
    format!("{}: {}", unhealthy.object, unhealthy.health)
}

fn owner(deployment: &BundleDeployment) -> Result<Owner, Problem> {
    Owner::of(deployment, &deployment.spec.install_namespace)
        .ok_or_else(|| Problem::passing(Reason::InternalError, "the BundleDeployment was never stored"))
}

/// Puts our finalizer on before anything is created.
async fn hold(deployment: &BundleDeployment, context: &Context) -> Result<(), ReconcileError> {
    if deployment.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER) {
        return Ok(());
    }
    let mut finalizers = deployment.finalizers().to_vec();
    finalizers.push(TEARDOWN_FINALIZER.to_owned());
    write_finalizers(deployment, &finalizers, context).await
}

/// Deletes the objects of the release; none once everything is gone and the BundleDeployment may go too.
async fn tear_down(deployment: &BundleDeployment, context: &Context) -> Result<Option<Assessment>, ReconcileError> {
    let waiting = match owner(deployment) {
        Ok(owner) => context.rollout.teardown(&owner).await.map_err(|error| Problem::from(&error)),
        Err(problem) => Err(problem),
    };
    match waiting {
        Ok(Teardown::Waiting { waiting, .. }) => {
            return Ok(Some(Assessment::early(Reached::Deleting(waiting.iter().map(told).collect()))));
        }
        Ok(Teardown::Complete { .. }) => {}
        Err(problem) => return Ok(Some(Assessment::early(Reached::NotDeleted(problem)))),
    }
    let_go(deployment, context).await?;
    Ok(None)
}

/// Forgets a BundleDeployment and takes our finalizers off, so that it may go.
async fn let_go(deployment: &BundleDeployment, context: &Context) -> Result<(), ReconcileError> {
    let name = deployment.name_any();
    context.memory.forget(&name);
    context.backoff.succeeded(&name);
    let ours = [TEARDOWN_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
    let kept = deployment.finalizers().iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    write_finalizers(deployment, &kept.cloned().collect::<Vec<_>>(), context).await
}

/// Writes the finalizers, unless the object changed meanwhile: the list is replaced whole.
async fn write_finalizers(
    deployment: &BundleDeployment,
    finalizers: &[String],
    context: &Context,
) -> Result<(), ReconcileError> {
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": deployment.resource_version()}});
    let written = api.patch(&deployment.name_any(), &PatchParams::apply("chandler"), &Patch::Merge(patch)).await;
    written.map(drop).map_err(|source| ReconcileError::Write { what: "finalizers", source })
}

async fn report(
    deployment: &BundleDeployment,
    found: &Assessment,
    context: &Context,
) -> Result<BundleDeploymentStatus, ReconcileError> {
    let status = status::derive(deployment, found, Timestamp::now());
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let written = status_patch::write(&api, &deployment.name_any(), deployment.status.as_ref(), &status).await;
    if written.map_err(|source| ReconcileError::Write { what: "status", source })? {
        let old = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        events::publish(&context.recorder, deployment, old, &status.conditions).await;
        let old = deployment.status.as_ref().map(|status| status.warnings.as_slice()).unwrap_or_default();
        events::publish_warnings(&context.recorder, deployment, old, &status.warnings).await;
    }
    Ok(status)
}

/// When to look again without being asked.
fn next(
    deployment: &BundleDeployment,
    found: &Assessment,
    status: &BundleDeploymentStatus,
    context: &Context,
) -> Action {
    let name = deployment.name_any();
    let clock = status::clock(deployment, status, Timestamp::now());
    let pause: Option<Duration> = match decide::next(found, clock, &deployment.spec.source) {
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
            Some(context.options.image_poll_interval)
        }
        Next::BackOff => {
            let asked = found.problem().map(|problem| problem.retry_after).unwrap_or_default();
            Some(context.backoff.failed(&name).max(asked))
        }
    };
    pause.into_iter().chain(found.renewal).min().map_or_else(Action::await_change, Action::requeue)
}

impl From<&RolloutError> for Problem {
    fn from(error: &RolloutError) -> Self {
        let reason = Reason::from_name(error.reason()).unwrap_or(Reason::InternalError);
        let lasting = reason == Reason::InvalidOutput;
        Self { terminal: lasting, ..Self::passing(reason, error.to_string()) }
    }
}
