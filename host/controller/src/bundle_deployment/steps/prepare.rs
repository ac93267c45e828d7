//! Prepare: class, source, tree and render, in the background. If the spec does not name a class, it is detected in the tree. A registry
//! that sends one byte now and then, or a provisioner that uses all the time that it may use, delays only the BundleDeployments that wait
//! for it.

use std::sync::Arc;

use chandler_api::{BundleDeployment, BundleWarning, ProvisionerInUse, Reason, Revision, UpdatePolicy};
use chandler_content::Tree;
use chandler_core::{Digest, Release};
use chandler_decisions::{
    account::requester,
    assessment::{ReleaseFacts, Unpacked},
    config::Config,
    detection::Undecided,
    problem::Problem,
    revisions::{self, Candidate, Cause},
    spec_error::SpecError,
    updates::{self, Turn},
};
use chandler_releases::{Made, Releases as ReleaseCache};
use chandler_runtime::{Capacity, Jobs, NotFree, Panicked, Share, Slot};
use chandler_values::Values;
use kube::ResourceExt as _;
use tracing::{Instrument as _, Span};

use super::{
    super::{
        handles::{DetectHandles, RenderHandles},
        preparer::Preparer,
    },
    account::{self, AccountError},
    class::{self, ClassError, ResolvedClass},
    detect::{self, DetectedClass},
    render::{self, RenderError, RenderInput, Rendered},
    rerender::{self, RerenderError, Rerendered},
    restore,
    unpack::{self, SourceHandles, UnpackError, UnpackedContent},
    values::{self, ReadValuesError},
};
use crate::{
    memory::ReleasesInUse,
    provisioner_class::{self, Class},
};

/// What is being fetched and rendered.
#[derive(Default)]
pub(crate) struct Preparations {
    candidates: Jobs<Result<Prepared, Box<PrepareFailure>>>,
    revisions: Jobs<(Result<Rerendered, RerenderError>, Option<Share>)>,
}

/// What preparing a release in the background uses.
pub(in super::super) struct PrepareHandles<'a> {
    /// Shared, since a preparation outlives the reconcile that began it.
    pub(in super::super) preparer: &'a Arc<Preparer>,
    pub(in super::super) preparations: &'a Preparations,
    pub(in super::super) releases: &'a ReleaseCache,
    pub(in super::super) in_use: &'a ReleasesInUse,
    pub(in super::super) slot: &'a Slot,
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
    /// The key of the release in the cache; `None` if it came from the record.
    pub(super) made: Option<Made>,
    pub(super) candidate: Candidate,
    pub(super) unpacked: Unpacked,
    /// What the author of the BundleDeployment should know about its class.
    pub(super) warnings: Vec<BundleWarning>,
    /// What the newest component of the class makes of the same inputs, if the release keeps an earlier one.
    pub(super) update: Option<Update>,
    /// The memory of all this, until a reconcile takes it.
    shares: Vec<Share>,
}

/// An update of the provisioner that needs approval.
pub(crate) struct Update {
    pub(super) release: Arc<Release>,
    pub(super) candidate: Candidate,
}

/// Why the release that a spec describes is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Class(#[from] ClassError),
    #[error(transparent)]
    Account(#[from] AccountError),
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

/// A preparation that failed, and what it found before it failed.
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

/// The release that the spec describes; `None` while it is being prepared.
pub(super) async fn described(
    handles: &PrepareHandles<'_>,
    deployment: &BundleDeployment,
) -> Option<Result<Prepared, Box<PrepareFailure>>> {
    let name = deployment.name_any();
    let (jobs, requested) = (&handles.preparations.candidates, revisions::requested(deployment));
    let work = || {
        let (deployment, preparer) = (deployment.clone(), Arc::clone(handles.preparer));
        async move {
            let capacity = preparer.capacities.preparations.clone();
            Box::pin(describe(deployment, preparer, &capacity)).await
        }
        .instrument(preparation())
    };
    let on_behalf = requester(deployment, &handles.preparer.cluster.options.accounts);
    let outcome = jobs.outcome(&on_behalf, &name, &requested, work, wake(&name, handles.preparer));
    let described = match handles.slot.lend(outcome).await? {
        Ok(described) => described,
        Err(Panicked) => Err(PrepareError::from(PreparationPanicked).into()),
    };
    if let Ok(prepared) = &described {
        handles.slot.exchange(memory(&prepared.release, prepared.update.as_ref())).await;
    }
    // From here the share of the reconcile counts.
    Some(described.map(|prepared| Prepared { shares: Vec::new(), ..prepared }))
}

/// The release of an earlier revision, rendered again; `None` while it is being prepared.
pub(super) async fn rerendered(
    handles: &PrepareHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Option<Result<Result<Rerendered, RerenderError>, PreparationPanicked>> {
    let work = || {
        let (deployment, revision, preparer) = (deployment.clone(), revision.clone(), Arc::clone(handles.preparer));
        async move {
            let requester = requester(&deployment, &preparer.cluster.options.accounts);
            let size = preparer.memory.sizes.of(&deployment.name_any());
            let share = preparer.capacities.preparations.acquire(&requester, size).await;
            (rerender::rerender(&preparer, &deployment, &revision).await, share)
        }
        .instrument(preparation())
    };
    let (name, number) = (deployment.name_any(), revision.number);
    let requested = revisions::requested(deployment);
    let requested = Digest::of([requested.as_str(), &revision.release_digest].join(" ").as_bytes());
    let (jobs, job) = (&handles.preparations.revisions, format!("{name}/{number}"));
    let on_behalf = requester(deployment, &handles.preparer.cluster.options.accounts);
    let outcome = jobs.outcome(&on_behalf, &job, &requested, work, wake(&name, handles.preparer));
    let Ok((rerendered, share)) = handles.slot.lend(outcome).await? else { return Some(Err(PreparationPanicked)) };
    if let Ok(rerendered) = &rerendered {
        handles.slot.exchange(rerendered.rendered.release.memory()).await;
    }
    drop(share);
    Some(Ok(rerendered))
}

/// The span of a preparation, which may outlive the reconcile that began it.
fn preparation() -> Span {
    chandler_traces::detached(tracing::info_span!(target: "chandler::trace", parent: None, "prepare"))
}

/// Triggers a reconcile of a BundleDeployment, later.
fn wake(name: &str, preparer: &Arc<Preparer>) -> impl FnOnce() + Send + 'static {
    let (name, preparer) = (name.to_owned(), Arc::clone(preparer));
    move || preparer.deployments.wake(&name)
}

/// The release of a BundleDeployment, outside of a reconcile of it, with its share of the memory for checks.
pub(in super::super) async fn described_now(
    deployment: BundleDeployment,
    preparer: Arc<Preparer>,
) -> Result<(Arc<Release>, Vec<Share>), Box<PrepareFailure>> {
    let capacity = preparer.capacities.checks.clone();
    let Prepared { release, shares, .. } = Box::pin(describe(deployment, preparer, &capacity)).await?;
    Ok((release, shares))
}

async fn describe(
    deployment: BundleDeployment,
    preparer: Arc<Preparer>,
    capacity: &Capacity,
) -> Result<Prepared, Box<PrepareFailure>> {
    let spec = &deployment.spec;
    let named = match spec.provisioner_class_name.as_str() {
        "" => None,
        class => Some(class::resolve(&preparer.classes, class).await.map_err(PrepareError::from)?),
    };
    let granted = account::may_fetch(&preparer, &deployment, &spec.source).await;
    granted.map_err(PrepareError::from)?;
    let UnpackedContent { tree, facts } =
        unpack::unpack(&SourceHandles::of(&preparer, &deployment), &deployment).await.map_err(PrepareError::from)?;
    let resolved = match named {
        Some(class) => Ok(DetectedClass { class, warning: None }),
        None => detect::detect(&DetectHandles::of(&preparer), &deployment, &tree).await,
    };
    let DetectedClass { class: ResolvedClass { class, in_use }, warning } = resolved.map_err(|error| {
        let (unpacked, error) = (Some(facts.clone()), error.into());
        Box::new(PrepareFailure { unpacked, provisioner: None, error })
    })?;
    let failed = |error: PrepareError| {
        let (unpacked, provisioner) = (Some(facts.clone()), Some(in_use.clone()));
        Box::new(PrepareFailure { unpacked, provisioner, error })
    };
    let values = values::read(&preparer, &deployment).await;
    let values = values.map_err(|error| failed(error.into()))?;
    let config = Config::layered(&in_use.class, &class.defaults, &values, spec.config.as_ref());
    let config = config.map_err(|error| failed(error.into()))?;
    let inputs = Inputs { preparer: &preparer, deployment: &deployment, tree, facts: &facts, values: &values };
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let of = updates::Inputs {
        provisioner: &in_use,
        content: facts.content_digest.as_str(),
        install_namespace: &spec.install_namespace,
        config: &config,
    };
    let policy = if class.suspended { UpdatePolicy::Manual } else { class.updates };
    let turn = preparer.classes.turn(&in_use.class, &in_use.digest, &deployment.name_any());
    let held = updates::held(policy, turn, history, &of);
    let goes_back = updates::goes_back(policy, turn, history, held);
    let warnings: Vec<BundleWarning> = warning.into_iter().collect();
    let (name, requester) = (deployment.name_any(), requester(&deployment, &preparer.cluster.options.accounts));
    let mut size = preparer.memory.sizes.of(&name);
    loop {
        let mut shares: Vec<Share> = capacity.acquire(&requester, size).await.into_iter().collect();
        let releases = Box::pin(inputs.releases((&class, &in_use, &config), held, goes_back)).await.map_err(failed)?;
        let taken = memory(&releases.described.release, releases.update.as_ref());
        preparer.memory.sizes.note(&name, taken);
        match capacity.more(&requester, &shares, taken) {
            Ok(more) => shares.extend(more),
            // Once there is memory for them, they come from the cache.
            Err(NotFree) if size < taken => {
                size = taken;
                continue;
            }
            Err(NotFree) => {}
        }
        let Releases { made, described: Update { release, candidate }, update, warnings: more } =
            releases.moved(policy, turn, history);
        let warnings = warnings.into_iter().chain(more).collect();
        return Ok(Prepared { release, made, candidate, unpacked: facts, warnings, update, shares });
    }
}

/// Why the newest component of a class has no update for a BundleDeployment.
enum NoUpdate {
    /// It did not render the bundle.
    Failed(String),
    /// It is not called for a while.
    Quarantined(String),
}

/// The releases of one description, and warnings for its author.
struct Releases {
    made: Option<Made>,
    described: Update,
    update: Option<Update>,
    warnings: Vec<BundleWarning>,
}

impl Releases {
    /// The update instead of the earlier component's release, if the policy needs no approval of it.
    fn moved(self, policy: UpdatePolicy, turn: Turn, history: &[Revision]) -> Self {
        match self.update {
            Some(update) if updates::moves(policy, turn, history, &self.described.candidate, &update.candidate) => {
                Self { made: None, described: update, update: None, ..self }
            }
            update => Self { update, ..self },
        }
    }
}

/// An estimate of the memory of a release and its update, in bytes.
fn memory(release: &Release, update: Option<&Update>) -> usize {
    release.memory() + update.map_or(0, |update| update.release.memory())
}

/// What a release is rendered from, besides a class.
struct Inputs<'a> {
    preparer: &'a Arc<Preparer>,
    deployment: &'a BundleDeployment,
    tree: Tree,
    facts: &'a Unpacked,
    values: &'a Values,
}

impl Inputs<'_> {
    /// The release that a class makes of the bundle, and its newest component's release if the installed release keeps an earlier
    /// component. `goes_back`: the newest one rendered what runs, and an earlier one is to take its place again.
    async fn releases(
        &self,
        (class, newest, config): (&Class, &ProvisionerInUse, &Config),
        held: Option<&Revision>,
        goes_back: bool,
    ) -> Result<Releases, PrepareError> {
        let Some(held) = held else {
            let (made, described) = Box::pin(self.render(class, newest.clone(), config)).await?;
            return Ok(Releases { made: Some(made), described, update: None, warnings: Vec::new() });
        };
        let mut warnings = Vec::new();
        let update = if class.suspended {
            // Nothing is offered for approval.
            None
        } else {
            match Box::pin(self.update(class, newest, config)).await {
                Ok(update) => Some(update),
                Err(NoUpdate::Failed(message)) => {
                    warnings.push(updates::failed(newest, held, &message));
                    None
                }
                Err(NoUpdate::Quarantined(message)) => {
                    warnings.push(updates::quarantined(newest, held, &message));
                    None
                }
            }
        };
        let (made, described) = match Box::pin(self.held(class, held, newest, &mut warnings)).await {
            // It goes back from a component that runs, and the earlier one cannot: what runs stays.
            Err(error) if goes_back => {
                warnings.push(updates::unavailable(held, &error.to_string()));
                let (made, described) = Box::pin(self.render(class, newest.clone(), config)).await?;
                (Some(made), described)
            }
            other => other?,
        };
        Ok(Releases { made, described, update, warnings })
    }

    /// Renders with a class.
    async fn render(
        &self,
        class: &Class,
        provisioner: ProvisionerInUse,
        config: &Config,
    ) -> Result<(Made, Update), PrepareError> {
        let (name, spec) = (self.deployment.name_any(), &self.deployment.spec);
        let install_namespace = spec.install_namespace.as_str();
        let (class_name, tree) = (provisioner.class.as_str(), self.tree.clone());
        let requester = &requester(self.deployment, &self.preparer.cluster.options.accounts);
        let input = RenderInput { name: &name, install_namespace, class_name, class, tree, config, requester };
        let Rendered { made, release } = render::render(&RenderHandles::of(self.preparer), input).await?;
        let candidate = Candidate {
            cause: Cause::Spec,
            source: self.facts.resolved_source.clone(),
            content_digest: self.facts.content_digest.to_string(),
            provisioner,
            install_namespace: install_namespace.to_owned(),
            config: config.recorded(),
            own_config: Some(config.own().to_string()),
            spec_config: config.spec().map(ToString::to_string),
            values: self.values.in_use().to_vec(),
            release: ReleaseFacts::of(&release),
            approval: None,
        };
        Ok((made, Update { release, candidate }))
    }

    /// What the newest component of a class makes of the bundle. A component that failed a moment ago is not asked again.
    async fn update(&self, class: &Class, newest: &ProvisionerInUse, config: &Config) -> Result<Update, NoUpdate> {
        let (name, failed) = (self.deployment.name_any(), &self.preparer.memory.failed_updates);
        let requested = revisions::requested(self.deployment);
        let inputs = (&requested, &self.facts.content_digest, &newest.digest, config.digest());
        let inputs = Digest::of_json(&inputs);
        if let Some(message) = failed.get(&name, &inputs) {
            return Err(NoUpdate::Failed(message));
        }
        match self.render(class, newest.clone(), config).await {
            Ok((_, update)) => {
                failed.rendered(&name);
                Ok(update)
            }
            Err(PrepareError::Render(RenderError::Quarantined(error))) => Err(NoUpdate::Quarantined(error.to_string())),
            Err(error) => {
                failed.note(&name, (inputs, &newest.digest), error.to_string());
                Err(NoUpdate::Failed(error.to_string()))
            }
        }
    }

    /// The release as the component of a revision renders it. If that is unavailable, the installed release does not change.
    async fn held(
        &self,
        class: &Class,
        revision: &Revision,
        newest: &ProvisionerInUse,
        warnings: &mut Vec<BundleWarning>,
    ) -> Result<(Option<Made>, Update), PrepareError> {
        let config = self.deployment.spec.config.as_ref();
        let config = Config::of_revision(revision, &class.defaults, self.values, config);
        let config = config.ok_or("the configuration that it had was not kept".to_owned());
        let earlier = provisioner_class::component_of(
            &self.preparer.classes,
            &self.preparer.components,
            class,
            &revision.provisioner,
        )
        .await;
        let earlier = earlier.map_err(|error| error.to_string());
        let unavailable = match config.and_then(|config| Ok((config, earlier?))) {
            Ok((config, earlier)) => {
                let (made, mut held) = self.render(&earlier, revision.provisioner.clone(), &config).await?;
                held.candidate.own_config.clone_from(&revision.own_config_digest);
                held.candidate.spec_config.clone_from(&revision.spec_config_digest);
                return Ok((Some(made), held));
            }
            Err(message) => message,
        };
        if let Some(release) = self.kept(revision).await {
            warnings.push(updates::unavailable(revision, &unavailable));
            let candidate = restore::again(revision, &release, Cause::Spec);
            return Ok((None, Update { release, candidate }));
        }
        let class = &newest.class;
        let message = format!("ProvisionerClass {class}: {}", updates::unavailable(revision, &unavailable).message);
        Err(ClassError(Problem::transient(Reason::ProvisionerNotReady, message)).into())
    }

    /// The release of the current revision, as the record has it.
    async fn kept(&self, revision: &Revision) -> Option<Arc<Release>> {
        let name = self.deployment.name_any();
        let record = self.preparer.records.known(&name)?;
        match restore::kept(revision, &record, &self.preparer.releases).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(deployment = %name, %error, "a kept release cannot be read");
                None
            }
        }
    }
}
