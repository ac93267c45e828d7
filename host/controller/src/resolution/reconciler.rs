//! The reconciler: its state, and one reconcile.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chandler_api::{
    BundleDeployment, ConditionType, OnFailure, PendingDecision, Reason, Resolution, ResolutionOutput,
    ResolveSetOutput, find_condition,
    maintenance::{Allowed, Windows},
    resolution::DECISIONS,
};
use chandler_catalog::Indexes;
use chandler_resolution::{
    Manifests, Plan, PlannedMember, manifests,
    plan::changes,
    status::{self, Answer, Found, Set},
};
use chandler_runtime::{
    Backoff, GenerationTracker, KindController, Metrics, OwnWrites, Reconciler, Reflector, Shutdown, status_patch,
};
use futures::StreamExt as _;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, runtime::controller::Action};

use super::{
    answer::Answered,
    decisions::{Decision, Decisions},
    preflight::{Preflight, Preflights},
    set,
};
use crate::{context::Context, events};

/// How long a decision that was refused by the checks of its members waits for the next check. A permission that is granted and an image
/// that is pushed change no object that the controller watches.
const CHECK_AGAIN: Duration = Duration::from_secs(30);
/// The longest wait for the next maintenance window: clocks drift.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// A request to the API server failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to write a Resolution or its set: {}", chandler_source::api_message(.0))]
pub(crate) struct ReconcileError(#[from] kube::Error);

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        matches!(&self.0, kube::Error::Api(status) if status.is_conflict() || status.is_not_found())
    }
}

/// The reconciler of Resolutions.
pub(crate) struct Resolutions {
    pub(super) context: Arc<Context>,
    pub(super) indexes: Indexes,
    pub(super) own_writes: OwnWrites<Resolution>,
    pub(super) generations: GenerationTracker,
    preflights: Preflights,
    memory: Mutex<HashMap<String, Memory>>,
    backoff: Backoff,
}

/// What is known of a Resolution between reconciles.
#[derive(Clone, Default)]
struct Memory {
    uid: Option<String>,
    answered: Option<Arc<Answered>>,
    /// The decisions; none if they have to be read.
    decisions: Option<Decisions>,
}

impl Memory {
    fn alternatives(&self) -> Vec<String> {
        self.answered.as_ref().map(|answered| answered.alternatives.clone()).unwrap_or_default()
    }
}

/// What the set is to have.
struct Target {
    /// The number of the decision; none if nothing was decided yet.
    number: Option<i64>,
    pending: Option<PendingDecision>,
    /// When to look again.
    again: Option<Duration>,
}

impl Resolutions {
    /// The reconciler, with the indexes of catalogs.
    pub(crate) fn new(context: &Arc<Context>, indexes: &Indexes, reflector: &Reflector<Resolution>) -> Self {
        Self {
            context: Arc::clone(context),
            indexes: indexes.clone(),
            own_writes: reflector.own_writes(),
            generations: GenerationTracker::default(),
            preflights: Preflights::default(),
            memory: Mutex::default(),
            backoff: Backoff::default(),
        }
    }

    /// The controller.
    pub(crate) fn controller(
        self,
        reflector: Reflector<Resolution>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.context.client.clone());
        let selection = self.context.options.watch_selector.watch();
        // The answer depends on the versions and the kinds of the cluster.
        let cluster_changed = self.context.cluster_info.changes().map(drop);
        KindController::new(reflector, api, selection, Arc::new(self), metrics, shutdown)
            .reconcile_all_on(cluster_changed)
    }

    pub(super) fn api(&self) -> Api<Resolution> {
        Api::all(self.context.client.clone())
    }

    pub(super) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.context.client.clone(), &self.context.options.system_namespace)
    }

    pub(super) fn forget(&self, name: &str) {
        self.preflights.end(name);
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.backoff.succeeded(name);
    }

    /// Takes what is known of a Resolution; after an error it has to be read again.
    fn recall(&self, resolution: &Resolution) -> Memory {
        let known = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&resolution.name_any());
        let uid = resolution.uid();
        known.filter(|memory| memory.uid == uid).unwrap_or_else(|| Memory { uid, ..Memory::default() })
    }

    fn remember(&self, name: &str, memory: Memory) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), memory);
    }

    /// Writes the status and publishes what changed.
    pub(super) async fn report(&self, resolution: &Resolution, found: &Found<'_>) -> Result<(), ReconcileError> {
        let status = status::derive(resolution, found, Timestamp::now());
        let (api, name) = (self.api(), resolution.name_any());
        let written = status_patch::write(&api, &name, resolution.status.as_ref(), &status).await?;
        if let Some(written) = written {
            self.own_writes.status(written, &status);
            let old = resolution.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            events::publish(&self.context.events, resolution, old, &status.conditions).await;
        }
        Ok(())
    }

    /// Decides, and installs the decision if the output is a set.
    async fn resolve(&self, resolution: &Resolution, memory: &mut Memory) -> Result<Action, ReconcileError> {
        let Some(output) = set_output(resolution.spec.output.as_ref()) else {
            let (answer, catalogs) = if resolution.spec.suspend {
                (Answer::Suspended, Vec::new())
            } else {
                self.answer(resolution, None, &mut memory.answered).await
            };
            let alternatives = memory.alternatives();
            self.report(resolution, &Found { answer, catalogs, alternatives, ..Found::default() }).await?;
            return Ok(Action::await_change());
        };
        self.finalize(resolution).await?;
        let maps = self.config_maps();
        let is_stale = self.context.resolutions.take_stale(&resolution.name_any());
        let mut decisions = match memory.decisions.take().filter(|_| !is_stale) {
            Some(decisions) => decisions,
            None => Decisions::read(&maps, resolution).await?,
        };
        let name = set::deployment_name(&resolution.name_any());
        let deployment = self.context.deployment(&name);
        let taken = deployment.as_ref().filter(|deployment| !set::is_owned(deployment, resolution));
        if taken.is_some() {
            let message = format!(
                "BundleDeployment {name} exists, and does not belong to this Resolution: delete it, or give the Resolution another name"
            );
            let answer = Answer::Failed { reason: Reason::ObjectCollision, message };
            self.report(resolution, &Found { answer, ..Found::default() }).await?;
            memory.decisions = Some(decisions);
            return Ok(Action::await_change());
        }
        let current = deployment.as_ref().and_then(set::config_map).and_then(|map| decisions.named(map)).cloned();
        let (answer, catalogs) = self.chosen(resolution, output, &decisions, current.as_ref(), memory).await;
        if matches!(&answer, Answer::Plan(plan) if plan.set().next().is_none()) {
            // A set has members. Without the BundleDeployment, nothing of an earlier one stays.
            if let Some(deployment) = deployment.filter(|it| it.metadata.deletion_timestamp.is_none()) {
                self.delete_set(&deployment).await?;
            }
            self.report(resolution, &Found { answer, catalogs, ..Found::default() }).await?;
            memory.decisions = Some(decisions);
            return Ok(Action::await_change());
        }
        let (answer, target) = self.target(resolution, output, answer, &mut decisions, current.as_ref()).await?;
        let mut is_current = false;
        if let Some(decision) = target.number.and_then(|number| decisions.find(number)) {
            let api = Api::all(self.context.client.clone());
            let live = deployment.as_ref().filter(|it| it.metadata.deletion_timestamp.is_none());
            // One that is being deleted is created again once it is gone.
            if live.is_some() || deployment.is_none() {
                is_current = set::write(&api, live, resolution, output, decision).await?;
            }
            // What a failed decision is rolled back to is kept beside it.
            let fewest = if output.on_failure == Some(OnFailure::Rollback) { 2 } else { 1 };
            let limit = usize::try_from(output.history_limit.unwrap_or(DECISIONS)).unwrap_or(fewest).max(fewest);
            decisions.prune(&maps, limit, decision.number).await?;
        }
        let observed = deployment.as_ref().filter(|_| is_current);
        let in_effect = observed.and_then(set::rolled_back_to).and_then(|map| decisions.named(map));
        let rolled_back = in_effect.is_some();
        let in_effect = in_effect.or_else(|| decisions.find(target.number?));
        let set = in_effect.map(|decision| Set {
            rolled_back,
            number: decision.number,
            deployment: name.clone(),
            observed,
            members: decision.members(),
            states: self.states(&decision.members(), &answer),
            history: decisions.summaries(),
        });
        let pending = target.pending.or_else(|| observed.and_then(approval));
        let alternatives = memory.alternatives();
        self.report(resolution, &Found { answer, catalogs, set, pending, alternatives }).await?;
        memory.decisions = Some(decisions);
        Ok(target.again.map_or_else(Action::await_change, Action::requeue))
    }

    /// The answer, unless the spec says that nothing new is decided.
    async fn chosen(
        &self,
        resolution: &Resolution,
        output: &ResolveSetOutput,
        decisions: &Decisions,
        current: Option<&Decision>,
        memory: &mut Memory,
    ) -> (Answer, Vec<chandler_api::CatalogInUse>) {
        if let Some(number) = output.to_decision {
            let answer = if decisions.find(number).is_some() {
                Answer::RolledBack(number)
            } else {
                let kept: Vec<String> = decisions.numbers().iter().map(ToString::to_string).collect();
                let message = format!("decision {number} is not kept; kept are: {}", kept.join(", "));
                Answer::Failed { reason: Reason::DecisionUnavailable, message }
            };
            return (answer, Vec::new());
        }
        if resolution.spec.suspend {
            return (Answer::Suspended, Vec::new());
        }
        self.answer(resolution, current, &mut memory.answered).await
    }

    /// What the set is to have now. A new decision is stored.
    async fn target(
        &self,
        resolution: &Resolution,
        output: &ResolveSetOutput,
        answer: Answer,
        decisions: &mut Decisions,
        current: Option<&Decision>,
    ) -> Result<(Answer, Target), ReconcileError> {
        let stays = current.map(|it| it.number).or_else(|| decisions.newest().map(|it| it.number));
        let unchanged = |answer| Ok((answer, Target { number: stays, pending: None, again: None }));
        let plan = match &answer {
            Answer::Plan(plan) => plan,
            Answer::RolledBack(number) => {
                let target = Target { number: Some(*number), pending: None, again: None };
                return Ok((answer, target));
            }
            _ => return unchanged(answer),
        };
        let manifests = match Manifests::of(plan.set(), output, resolution.labels()) {
            Ok(manifests) => manifests,
            Err(error) => {
                let reason = Reason::ContentLimitExceeded;
                return unchanged(Answer::Failed { reason, message: error.to_string() });
            }
        };
        let generation = resolution.metadata.generation.unwrap_or_default();
        let maps = self.config_maps();
        if current.is_some_and(|current| current.manifests != manifests) {
            match waits(resolution, current, plan) {
                Ok(None) => {}
                Ok(Some((pending, again))) => {
                    return Ok((answer, Target { number: stays, pending: Some(pending), again }));
                }
                Err(message) => return unchanged(Answer::Failed { reason: Reason::InvalidSpec, message }),
            }
        }
        let is_new = current.is_none_or(|current| current.manifests != manifests);
        if is_new && let Some((pending, again)) = self.preflight(resolution, current, plan, &manifests).await {
            return Ok((answer, Target { number: stays, pending: Some(pending), again }));
        }
        let number = match decisions.newest().filter(|newest| newest.manifests == manifests) {
            Some(newest) => {
                let number = newest.number;
                decisions.confirm(&maps, generation).await?;
                number
            }
            None => decisions.add(&maps, resolution, manifests).await?,
        };
        Ok((answer, Target { number: Some(number), pending: None, again: None }))
    }

    /// Whether a decision waits for the checks of its members, or is refused by them, and when to look again.
    async fn preflight(
        &self,
        resolution: &Resolution,
        current: Option<&Decision>,
        plan: &Plan,
        manifests: &Manifests,
    ) -> Option<(PendingDecision, Option<Duration>)> {
        let (name, context) = (resolution.name_any(), Arc::clone(&self.context));
        let wake = {
            let name = name.clone();
            move || context.resolutions.wake(&name)
        };
        let (reason, message, again) = match self.preflights.check(&self.context, &name, manifests, wake).await {
            Preflight::Passed => return None,
            Preflight::Running => (Reason::Preflighting, "the members are being fetched and checked".to_owned(), None),
            Preflight::Refused(refusals) => (Reason::PreflightFailed, refusals.join("; "), Some(CHECK_AGAIN)),
        };
        let pending = PendingDecision { reason: reason.to_string(), message, changes: difference(current, plan) };
        Some((pending, again))
    }

    /// The reason of the condition Ready of each BundleDeployment that the status names.
    fn states(&self, members: &[PlannedMember], answer: &Answer) -> BTreeMap<String, String> {
        let elsewhere = match answer {
            Answer::Plan(plan) => plan.members.iter().filter_map(|member| member.elsewhere.clone()).collect(),
            _ => Vec::new(),
        };
        let names = members.iter().map(|member| manifests::deployment_name(&member.package)).chain(elsewhere);
        let state = |name: String| {
            let status = self.context.deployment(&name)?.status?;
            Some((name, find_condition(&status.conditions, ConditionType::Ready)?.reason.clone()))
        };
        names.filter_map(state).collect()
    }
}

/// How the decision is installed, if it is.
fn set_output(output: Option<&ResolutionOutput>) -> Option<&ResolveSetOutput> {
    output?.resolve_set.as_ref()
}

/// Whether a change waits for a maintenance window, and when to look again.
fn waits(
    resolution: &Resolution,
    current: Option<&Decision>,
    plan: &Plan,
) -> Result<Option<(PendingDecision, Option<Duration>)>, String> {
    let now = Timestamp::now();
    let windows = Windows::parse(&resolution.spec.maintenance_windows).map_err(|error| error.to_string())?;
    let (message, again) = match windows.at(now) {
        Allowed::Always | Allowed::Until(_) => return Ok(None),
        Allowed::From(start) => {
            let wait = Duration::try_from(start.duration_since(now)).unwrap_or_default().min(LONGEST_WAIT);
            // A second later, so that the window has begun by this clock.
            (format!("the next maintenance window begins at {start}"), Some(wait + Duration::from_secs(1)))
        }
        Allowed::Never => ("no maintenance window begins within two weeks".to_owned(), None),
    };
    let reason = Reason::OutsideMaintenanceWindow.to_string();
    Ok(Some((PendingDecision { reason, message, changes: difference(current, plan) }, again)))
}

/// What a plan changes: a line for each package.
fn difference(current: Option<&Decision>, plan: &Plan) -> Vec<String> {
    let before = current.map(Decision::members).unwrap_or_default();
    let after: Vec<PlannedMember> = plan.set().cloned().collect();
    changes(&before, &after)
}

/// The change of the set that waits for approval.
fn approval(deployment: &BundleDeployment) -> Option<PendingDecision> {
    let change = set::awaited_change(deployment)?;
    let name = deployment.name_any();
    let message = format!("the change waits for approval: `chandler approve {name}`");
    Some(PendingDecision { reason: Reason::ApprovalRequired.to_string(), message, changes: change.objects.clone() })
}

impl Reconciler for Resolutions {
    type Object = Resolution;
    type Error = ReconcileError;

    async fn reconcile(&self, resolution: &Resolution) -> Result<Action, ReconcileError> {
        let (name, context) = (resolution.name_any(), &self.context);
        // Before the first lists, nothing would seem to be installed, and no catalog to exist.
        if context.deployments.wait_until_ready().await.is_err() || !context.catalogs.ready().await {
            return Ok(Action::await_change());
        }
        if resolution.metadata.deletion_timestamp.is_some() {
            return self.tear_down(resolution).await;
        }
        let mut memory = self.recall(resolution);
        let action = self.resolve(resolution, &mut memory).await?;
        if context.resolutions.exists(&name, resolution.uid().as_deref()) {
            self.remember(&name, memory);
        }
        self.backoff.succeeded(&name);
        Ok(action)
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    fn observed(&self, resolution: &Resolution) {
        self.context.cluster_operators.changed();
        self.generations.observe(resolution);
        self.context.platform.resolution_changed(&resolution.name_any());
    }

    fn removed(&self, resolution: &ObjectMeta) {
        self.context.cluster_operators.changed();
        let name = resolution.name.as_deref().unwrap_or_default();
        self.generations.cancel(name);
        self.forget(name);
        self.context.platform.resolution_changed(name);
    }
}
