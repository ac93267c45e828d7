//! Prepare: class, source, tree and render, in the background. A spec that names no class has it detected in the tree. A registry that sends a byte now and then, or a provisioner that takes all
//! the time it gets, holds up only the BundleDeployments that wait for it.

use std::sync::Arc;

use chandler_api::{BundleDeployment, ProvisionerInUse, Revision};
use chandler_core::{Digest, Release};
use chandler_releases::Made;
use chandler_runtime::{Jobs, Panicked};
use kube::ResourceExt as _;

use super::{
    super::{
        assessment::{ReleaseFacts, Unpacked},
        decide::{
            config::Config,
            detection::Undecided,
            revisions::{self, Candidate, Cause},
            spec_error::SpecError,
        },
        handles::{DetectHandles, PrepareHandles, RenderHandles, ValuesHandles},
    },
    class::{self, ClassError, ResolvedClass},
    detect,
    render::{self, RenderError, RenderInput},
    rerender::{self, RerenderError, Rerendered},
    unpack::{self, SourceHandles, UnpackError, UnpackedContent},
    values::{self, ReadValuesError},
};
use crate::context::Context;

/// What is being fetched and rendered.
#[derive(Default)]
pub(crate) struct Preparations {
    candidates: Jobs<Result<Prepared, Box<PrepareFailure>>>,
    revisions: Jobs<Result<Rerendered, RerenderError>>,
}

impl Preparations {
    /// Ends the preparations of a BundleDeployment.
    pub(crate) fn end(&self, name: &str) {
        self.candidates.end(name);
        self.revisions.end(name);
    }

    /// Ends all preparations.
    pub(crate) fn end_all(&self) {
        self.candidates.end_all();
        self.revisions.end_all();
    }
}

/// The release that a spec describes. Only this step makes one.
pub(crate) struct Prepared {
    pub(super) release: Arc<Release>,
    pub(super) made: Made,
    pub(super) candidate: Candidate,
    pub(super) unpacked: Unpacked,
}

/// Why the release that a spec describes is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Class(#[from] ClassError),
    #[error(transparent)]
    Detect(#[from] Undecided),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Values(#[from] ReadValuesError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error(transparent)]
    Panicked(#[from] PreparationPanicked),
}

/// A preparation panicked; the log has the panic.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the controller panicked while it prepared the bundle: please report what its log says")]
pub(crate) struct PreparationPanicked;

/// A preparation that failed, and what it found before.
#[derive(Debug)]
pub(crate) struct PrepareFailure {
    pub(crate) unpacked: Option<Unpacked>,
    pub(crate) provisioner: Option<ProvisionerInUse>,
    pub(crate) error: PrepareError,
}

impl From<PrepareError> for Box<PrepareFailure> {
    fn from(error: PrepareError) -> Self {
        Self::new(PrepareFailure { unpacked: None, provisioner: None, error })
    }
}

/// The release that the spec describes; none while it is being prepared.
pub(super) async fn described(
    handles: &PrepareHandles<'_>,
    deployment: &BundleDeployment,
) -> Option<Result<Prepared, Box<PrepareFailure>>> {
    let name = deployment.name_any();
    let (jobs, requested) = (&handles.preparations.candidates, revisions::requested(deployment));
    let work = || describe(deployment.clone(), Arc::clone(handles.context));
    let outcome = jobs.outcome(&name, &requested, work, wake(&name, handles.context));
    let outcome = handles.slot.lend(outcome).await?;
    Some(outcome.unwrap_or_else(|Panicked| Err(PrepareError::from(PreparationPanicked).into())))
}

/// The release of an earlier revision, rendered again; none while it is being prepared.
pub(super) async fn rerendered(
    handles: &PrepareHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Option<Result<Result<Rerendered, RerenderError>, PreparationPanicked>> {
    let work = || {
        let (deployment, revision, context) = (deployment.clone(), revision.clone(), Arc::clone(handles.context));
        async move {
            let (source, render) = (SourceHandles::of(&context), RenderHandles::of(&context));
            let values = ValuesHandles::of(&context);
            rerender::rerender(&context.classes, source, &render, &values, &deployment, &revision).await
        }
    };
    let (name, number) = (deployment.name_any(), revision.number);
    let requested = revisions::requested(deployment);
    let requested = Digest::of([requested.as_str(), &revision.release_digest].join(" ").as_bytes());
    let (jobs, job) = (&handles.preparations.revisions, format!("{name}/{number}"));
    let outcome = handles.slot.lend(jobs.outcome(&job, &requested, work, wake(&name, handles.context))).await?;
    Some(outcome.map_err(|Panicked| PreparationPanicked))
}

/// Triggers a reconcile of a BundleDeployment, later.
fn wake(name: &str, context: &Arc<Context>) -> impl FnOnce() + Send + 'static {
    let (name, context) = (name.to_owned(), Arc::clone(context));
    move || context.wake(&name)
}

/// The release of a BundleDeployment, outside of a reconcile of it.
pub(in super::super) async fn described_now(
    deployment: BundleDeployment,
    context: Arc<Context>,
) -> Result<Arc<Release>, Box<PrepareFailure>> {
    Ok(describe(deployment, context).await?.release)
}

async fn describe(deployment: BundleDeployment, context: Arc<Context>) -> Result<Prepared, Box<PrepareFailure>> {
    let (name, spec) = (deployment.name_any(), &deployment.spec);
    let named = match spec.provisioner_class_name.as_str() {
        "" => None,
        class => Some(class::resolve(&context.classes, class).await.map_err(PrepareError::from)?),
    };
    let UnpackedContent { tree, facts } =
        unpack::unpack(SourceHandles::of(&context), &deployment).await.map_err(PrepareError::from)?;
    let resolved = match named {
        Some(named) => Ok(named),
        None => detect::detect(&DetectHandles::of(&context), &deployment, &tree).await,
    };
    let ResolvedClass { class, in_use } = resolved.map_err(|error| {
        let (unpacked, error) = (Some(facts.clone()), error.into());
        Box::new(PrepareFailure { unpacked, provisioner: None, error })
    })?;
    let failed = |error: PrepareError| {
        let (unpacked, provisioner) = (Some(facts.clone()), Some(in_use.clone()));
        Box::new(PrepareFailure { unpacked, provisioner, error })
    };
    let values = values::read(&ValuesHandles::of(&context), &deployment).await;
    let values = values.map_err(|error| failed(error.into()))?;
    let config = Config::layered(&in_use.class, &class.defaults, &values, spec.config.as_ref());
    let config = config.map_err(|error| failed(error.into()))?;
    let install_namespace = spec.install_namespace.as_str();
    let input = RenderInput { name: &name, install_namespace, class: &class, tree, config: &config };
    let rendered = render::render(&RenderHandles::of(&context), input).await;
    let rendered = rendered.map_err(|error| failed(error.into()))?;
    let candidate = Candidate {
        cause: Cause::Spec,
        source: facts.resolved_source.clone(),
        content_digest: facts.content_digest.to_string(),
        provisioner: in_use,
        install_namespace: install_namespace.to_owned(),
        config: config.recorded(),
        values: values.in_use().to_vec(),
        release: ReleaseFacts::of(&rendered.release),
        approval: None,
    };
    Ok(Prepared { release: rendered.release, made: rendered.made, candidate, unpacked: facts })
}
