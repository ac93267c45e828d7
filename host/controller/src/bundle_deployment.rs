//! The reconciler of BundleDeployments.
//!
//! [`decide`](decide::decide) tells what to do without a client, the steps do it, and [`status::derive`] tells what to say
//! about it. The status is written on every path, and only when it differs.

mod assessment;
mod decide;
mod render;
mod source;
mod status;

use std::{sync::Arc, time::Duration};

use chandler_api::{
    BundleDeployment, ProvisionerInUse, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, TEARDOWN_FINALIZER},
};
use chandler_core::Release;
use chandler_rollout::{Owner, Progress, Teardown};
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

/// What is remembered of BundleDeployments between reconciles. Losing it costs time and nothing else.
#[derive(Default)]
pub(crate) struct Memory {
    resolutions: source::Resolutions,
    releases: render::Releases,
}

/// One reconcile could not even say what happened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    #[error("failed to write {what}: {source}")]
    Write { what: &'static str, source: kube::Error },
}

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
        Intent::Deploy => {
            hold(deployment, &context).await?;
            deploy(deployment, &context).await
        }
    };
    report(deployment, &found, &context).await?;
    Ok(next(deployment, &found, &context))
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
    roll_out(deployment, &release, context).await.map_err(Reached::NotApplied)
}

fn release_facts(release: &Release) -> ReleaseFacts {
    let mut stages: Vec<u32> = release.objects().iter().map(|object| object.stage).collect();
    stages.dedup();
    ReleaseFacts { digest: release.digest().clone(), objects: release.objects().len(), stages: stages.len().max(1) }
}

/// Looks first where the release is in place already; applies where it is not.
async fn roll_out(deployment: &BundleDeployment, release: &Release, context: &Context) -> Result<Reached, Problem> {
    let owner = owner(deployment);
    if decide::route(deployment, release.digest()) == Route::Observe {
        let observed = context.rollout.observe(&owner, release).await.map_err(|error| Problem::from(&error))?;
        context
            .watches
            .ensure(context.rollout.managed_kinds(&owner, release).await.map_err(|error| Problem::from(&error))?);
        if observed.drifted.is_empty() {
            return Ok(Reached::Applied(observed.unhealthy.iter().map(ToString::to_string).collect()));
        }
        tracing::info!(deployment = %owner.name, drifted = observed.drifted.len(), "repairing");
    }
    let progress = context.rollout.advance(&owner, release).await;
    // Also after a failure: what was applied before it has to be seen changing.
    if let Ok(kinds) = context.rollout.managed_kinds(&owner, release).await {
        context.watches.ensure(kinds);
    }
    Ok(match progress.map_err(|error| Problem::from(&error))? {
        Progress::Waiting { stage, stages, waiting, all_applied, .. } => Reached::RollingOut(RollingOut {
            stage,
            stages,
            all_applied,
            waiting: waiting.iter().map(ToString::to_string).collect(),
        }),
        Progress::Complete { .. } => Reached::Applied(Vec::new()),
    })
}

fn owner(deployment: &BundleDeployment) -> Owner {
    Owner {
        name: deployment.name_any(),
        uid: deployment.uid().unwrap_or_default(),
        install_namespace: deployment.spec.install_namespace.clone(),
        ..Owner::bundle_deployment()
    }
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
    match context.rollout.teardown(&owner(deployment)).await {
        Ok(Teardown::Waiting { remaining }) => {
            let remaining = remaining.iter().map(ToString::to_string).collect();
            return Ok(Some(Assessment::early(Reached::Deleting(remaining))));
        }
        Ok(Teardown::Done) => {}
        Err(error) => return Ok(Some(Assessment::early(Reached::NotDeleted(Problem::from(&error))))),
    }
    let name = deployment.name_any();
    context.memory.resolutions.forget(&name);
    context.memory.releases.forget(&name);
    context.backoff.succeeded(&name);
    let ours = [TEARDOWN_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
    let kept = deployment.finalizers().iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    write_finalizers(deployment, &kept.cloned().collect::<Vec<_>>(), context).await?;
    Ok(None)
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

async fn report(deployment: &BundleDeployment, found: &Assessment, context: &Context) -> Result<(), ReconcileError> {
    let status = status::derive(deployment, found, Timestamp::now());
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let written = status_patch::write(&api, &deployment.name_any(), deployment.status.as_ref(), &status).await;
    if written.map_err(|source| ReconcileError::Write { what: "status", source })? {
        let old = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        events::publish(&context.recorder, deployment, old, &status.conditions).await;
    }
    Ok(())
}

/// When to look again without being asked.
fn next(deployment: &BundleDeployment, found: &Assessment, context: &Context) -> Action {
    let name = deployment.name_any();
    let until_deadline = status::until_deadline(deployment, Timestamp::now());
    match decide::next(found, until_deadline, &deployment.spec.source) {
        Next::Change => {
            context.backoff.succeeded(&name);
            Action::await_change()
        }
        Next::After(pause) => {
            context.backoff.succeeded(&name);
            Action::requeue(pause)
        }
        Next::Poll => {
            context.backoff.succeeded(&name);
            Action::requeue(context.options.image_poll_interval)
        }
        Next::BackOff => Action::requeue(context.backoff.failed(&name)),
    }
}

impl From<&chandler_rollout::RolloutError> for Problem {
    fn from(error: &chandler_rollout::RolloutError) -> Self {
        let reason = Reason::from_name(error.reason()).unwrap_or(Reason::InternalError);
        Self::passing(reason, error.to_string())
    }
}

/// How long a rollout may go without anything being seen before it is looked at anyway.
pub(crate) const ROLLOUT_CHECK: Duration = Duration::from_secs(30);
