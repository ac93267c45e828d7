//! The reconciler: its state, and one reconcile.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    thread,
    time::Duration,
};

use chandler_api::{
    AdoptedObject, BundleDeployment, OnFailure, PendingDecision, Reason, Resolution, ResolutionOutput,
    ResolutionStatus, ResolveSetOutput, resolution::DECISIONS,
};
use chandler_catalog::Indexes;
use chandler_decisions::restored;
use chandler_records::{RecordError, Records};
use chandler_resolution::{
    PlannedMember,
    installation::{is_ready, ready},
    status::{self, Answer, Found, Set},
};
use chandler_runtime::{
    Backoff, GenerationTracker, Guarded, KindController, Metrics, Next, OwnWrites, Reconciler, Reflector, Report,
    Shutdown,
};
use chandler_turns::Turns;
use futures::{StreamExt as _, stream};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, core::error_boundary::InvalidObject};
use parking_lot::Mutex;

use super::{
    answer::{Answered, Reply},
    decide::{Decided, Round, Subject},
    decisions::Decisions,
    handover::{Awaited, LOOK_AGAIN},
    membership::Membership,
    observed::Entries,
    preflight::Preflights,
    set::{self, Written},
    sets::Sets,
    states::ResolutionStates,
};
use crate::{
    bundle_deployment::Installer,
    catalog::CatalogStates,
    cluster::Cluster,
    deployments::Deployments,
    events,
    monitoring::ready_reason,
    platform_policy::Policies,
    problem,
    signals::{Signal, Signals},
    undecodable,
};

/// A request to the API server failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// A request for a Resolution or its set.
    #[error("failed to write a Resolution or its set: {}", chandler_source::api_message(.0))]
    Request(#[from] kube::Error),
    /// The record of a set.
    #[error("failed to read the record of a set: {0}")]
    Record(#[from] RecordError),
}

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Request(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found())
    }

    fn of_status(error: kube::Error) -> Self {
        Self::Request(error)
    }
}

/// The reconciler of Resolutions.
pub(crate) struct Resolutions {
    pub(super) cluster: Arc<Cluster>,
    pub(super) signals: Arc<Signals>,
    pub(super) deployments: Deployments,
    pub(super) records: Arc<Records>,
    pub(super) states: Arc<ResolutionStates>,
    pub(super) sets: Arc<Sets>,
    pub(super) catalogs: Arc<CatalogStates>,
    pub(super) policies: Arc<Policies>,
    /// Checks members before they are written.
    pub(super) installer: Arc<Installer>,
    pub(super) indexes: Indexes,
    pub(super) entries: Entries,
    pub(super) own_writes: OwnWrites<Resolution>,
    pub(super) generations: GenerationTracker,
    pub(super) preflights: Preflights,
    /// Who may ask the resolver: requesters take turns, so that expensive questions of one tenant delay each other tenant by one question.
    pub(super) turns: Turns,
    memory: Mutex<HashMap<String, Memory>>,
    backoff: Backoff,
}

/// What is known about a Resolution between reconciles.
#[derive(Default)]
pub(super) struct Memory {
    uid: Option<String>,
    /// The answers, by the round in which they were asked for.
    answered: BTreeMap<usize, Option<Arc<Answered>>>,
    /// The decisions, or `None` if they must be read.
    decisions: Option<Decisions>,
}

impl Memory {
    /// The answer of a round.
    pub(super) fn answered_in(&mut self, round: usize) -> &mut Option<Arc<Answered>> {
        self.answered.entry(round).or_default()
    }

    /// Forgets the answers of the rounds after this one.
    pub(super) fn forget_after(&mut self, round: usize) {
        self.answered.retain(|it, _| *it <= round);
    }

    /// The alternatives of the last round.
    fn alternatives(&self) -> Vec<String> {
        let last = self.answered.values().next_back().and_then(Option::as_ref);
        last.map(|answered| answered.alternatives.clone()).unwrap_or_default()
    }
}

impl Resolutions {
    /// The reconciler, with the indexes of catalogs.
    pub(crate) fn new(
        installer: &Arc<Installer>,
        sets: &Arc<Sets>,
        (catalogs, indexes): (&Arc<CatalogStates>, &Indexes),
        policies: &Arc<Policies>,
        reflector: &Reflector<Resolution>,
    ) -> Self {
        Self {
            cluster: Arc::clone(&installer.cluster),
            signals: Arc::clone(&installer.signals),
            deployments: installer.deployments.clone(),
            records: Arc::clone(&installer.records),
            states: Arc::clone(&sets.resolutions),
            sets: Arc::clone(sets),
            catalogs: Arc::clone(catalogs),
            policies: Arc::clone(policies),
            installer: Arc::clone(installer),
            indexes: indexes.clone(),
            entries: Entries::default(),
            own_writes: reflector.own_writes(),
            generations: GenerationTracker::default(),
            preflights: Preflights::default(),
            turns: Turns::new(at_once()),
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
        let api = Api::all(self.cluster.client.clone());
        let selection = self.cluster.options.watch_selector.watch();
        // The answer depends on the versions and the kinds of the cluster.
        let cluster_changed = self.cluster.info.changes().map(drop);
        let bundles_changed = stream::unfold((Arc::clone(&self.states), None), async |(states, mut last)| {
            states.bundles_changed(&mut last).await;
            Some(((), (states, last)))
        });
        KindController::new(reflector, api, selection, Arc::new(self), metrics, shutdown)
            .reconcile_all_on(cluster_changed)
            .reconcile_all_on(bundles_changed)
    }

    pub(super) fn api(&self) -> Api<Resolution> {
        Api::all(self.cluster.client.clone())
    }

    pub(super) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.options.system_namespace)
    }

    pub(super) fn forget(&self, name: &str) {
        self.preflights.end(name);
        self.sets.decided.forget(name);
        self.states.handovers.forget(name);
        self.memory.lock().remove(name);
        self.backoff.succeeded(name);
    }

    /// Takes what is known about a Resolution; after an error it must be read again.
    fn recall(&self, resolution: &Resolution) -> Memory {
        let known = self.memory.lock().remove(&resolution.name_any());
        let uid = resolution.uid();
        known.filter(|memory| memory.uid == uid).unwrap_or_else(|| Memory { uid, ..Memory::default() })
    }

    fn remember(&self, name: &str, memory: Memory) {
        self.memory.lock().insert(name.to_owned(), memory);
    }

    /// The status to write.
    pub(super) fn report(resolution: &Resolution, found: &Found<'_>, next: Next) -> Report<ResolutionStatus> {
        Report { status: Some(status::derive(resolution, found, Timestamp::now())), next }
    }

    /// Decides, and installs the decision if the output is a set.
    async fn resolve(
        &self,
        resolution: &Resolution,
        memory: &mut Memory,
    ) -> Result<Report<ResolutionStatus>, ReconcileError> {
        let Some(output) = set_output(resolution.spec.output.as_ref()) else {
            let Reply { answer, catalogs, again } = if resolution.spec.suspend {
                Reply::of(Answer::Suspended)
            } else {
                let nothing = Decisions::default();
                self.answer(resolution, (None, &nothing), &Round::default(), memory.answered_in(0)).await
            };
            let alternatives = memory.alternatives();
            let found = Found { answer, catalogs, alternatives, ..Found::default() };
            return Ok(Self::report(resolution, &found, due(again)));
        };
        self.finalize(resolution).await?;
        let maps = self.config_maps();
        let is_stale = self.states.take_stale(&resolution.name_any());
        let mut decisions = match memory.decisions.take().filter(|_| !is_stale) {
            Some(decisions) => decisions,
            None => Decisions::read(&maps, resolution).await?,
        };
        let name = set::deployment_name(&resolution.name_any());
        let mut deployment = self.deployments.get(&name);
        if let Some(restored) = deployment.take_if(|it| decisions.had_created(it, resolution, output)) {
            let api = Api::all(self.cluster.client.clone());
            let linked = set::link(&api, &restored, resolution).await?;
            decisions.note_created(&maps, &linked.uid().unwrap_or_default()).await?;
            tracing::info!(resolution = %resolution.name_any(), set = %name, "restored from a backup");
            deployment = Some(linked);
        }
        if let Some(waiting) = deployment.as_ref().filter(|it| restored::lacks_record(it)) {
            // Without its record, members of the set would count as BundleDeployments of others.
            let again = Next::After(LOOK_AGAIN);
            memory.decisions = Some(decisions);
            if !has_conditions(waiting) {
                return Ok(Report { status: None, next: again });
            }
            let message = format!("BundleDeployment {name} was restored from a backup, and waits for the rest of it");
            let answer = Answer::Failed { reason: Reason::RestoreIncomplete, message };
            return Ok(Self::report(resolution, &Found { answer, ..Found::default() }, again));
        }
        let is_noted = deployment.as_ref().is_some_and(|it| decisions.has_created(it.uid().as_deref()));
        let is_taken = |deployment: &BundleDeployment| {
            let is_ours = is_noted || set::is_as_created(deployment, resolution, output, decisions.newest_first());
            !is_ours || !set::is_owned(deployment, resolution)
        };
        if deployment.as_ref().is_some_and(is_taken) {
            let message = format!(
                "BundleDeployment {name} exists, and this Resolution did not create it: delete it, or give the Resolution another name"
            );
            let answer = Answer::Failed { reason: Reason::ObjectCollision, message };
            memory.decisions = Some(decisions);
            return Ok(Self::report(resolution, &Found { answer, ..Found::default() }, Next::Change));
        }
        if let Some(uid) = deployment.as_ref().filter(|_| !is_noted).and_then(kube::ResourceExt::uid) {
            decisions.note_created(&maps, &uid).await?;
        }
        let current = deployment.as_ref().and_then(set::config_map).and_then(|map| decisions.named(map)).cloned();
        let subject = Subject { resolution, output, current: current.as_ref() };
        let Decided { answer, catalogs, target } = self.decide(subject, &mut decisions, memory).await?;
        let alternatives = memory.alternatives();
        if matches!(&answer, Answer::Plan(plan) if plan.set().next().is_none()) {
            // A set has members. Without the BundleDeployment, an earlier one leaves nothing behind once others have taken over what they
            // need.
            let awaited = self.hand_over(resolution, |_| true).await?;
            if !awaited.is_empty() {
                let answer = noting(answer, &awaited);
                let states = self.states(&[], &answer);
                memory.decisions = Some(decisions);
                let found = Found { answer, catalogs, states, alternatives, ..Found::default() };
                return Ok(Self::report(resolution, &found, Next::After(LOOK_AGAIN)));
            }
            if let Some(deployment) = deployment.filter(|it| it.metadata.deletion_timestamp.is_none()) {
                self.delete_set(&deployment).await?;
            }
            let states = self.states(&[], &answer);
            memory.decisions = Some(decisions);
            let found = Found { answer, catalogs, states, alternatives, ..Found::default() };
            return Ok(Self::report(resolution, &found, due(target.again)));
        }
        let (mut is_current, mut created) = (false, None);
        if let Some(decision) = target.number.and_then(|number| decisions.find(number)) {
            let api = Api::all(self.cluster.client.clone());
            let live = deployment.as_ref().filter(|it| it.metadata.deletion_timestamp.is_none());
            // A BundleDeployment that is being deleted is created again once it is gone.
            if live.is_some() || deployment.is_none() {
                let adopted = self.adopted(&self.taken_over(resolution).await?);
                let membership = Membership::read(&self.sets, resolution).await?;
                // A rollout in progress needs all entries: an edit of the spec would begin it again, without what it already recorded.
                let is_settled = adopted.is_empty() && live.is_some_and(is_ready);
                let collides = live.is_some_and(set::collides);
                let is_obsolete = |it: &AdoptedObject| {
                    is_settled && membership.has_taken_over(&self.deployments, it)
                        || collides && membership.is_interrupted(&self.deployments, it)
                };
                let adoption = (&*adopted, is_obsolete);
                let written = set::write(&api, live, resolution, output, decision, adoption).await?;
                is_current = written == Written::Nothing;
                created = if let Written::Created(uid) = written { Some(uid) } else { None };
            }
            // The decision to which a failed one is rolled back is kept, too.
            let fewest = if output.on_failure == Some(OnFailure::Rollback) { 2 } else { 1 };
            let limit = usize::try_from(output.history_limit.unwrap_or(DECISIONS)).unwrap_or(fewest).max(fewest);
            let number = decision.number;
            if let Some(uid) = created {
                decisions.note_created(&maps, &uid).await?;
            }
            decisions.prune(&maps, limit, number).await?;
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
            history: decisions.summaries(),
        });
        let states = set.as_ref().map(|set| self.states(&set.members, &answer)).unwrap_or_default();
        let pending = target.pending.or_else(|| observed.and_then(approval));
        let found = Found { answer, catalogs, set, states, pending, alternatives, held: None };
        let report = Self::report(resolution, &found, due(target.again));
        memory.decisions = Some(decisions);
        Ok(report)
    }

    /// The reason of the condition Ready of each BundleDeployment that the status names.
    fn states(&self, members: &[PlannedMember], answer: &Answer) -> BTreeMap<String, String> {
        let elsewhere = match answer {
            Answer::Plan(plan) => plan.members.iter().filter_map(|member| member.elsewhere.clone()).collect(),
            _ => Vec::new(),
        };
        let names = members.iter().map(PlannedMember::deployment_name).chain(elsewhere);
        let state = |name: String| {
            let deployment = self.deployments.get(&name)?;
            Some((name, ready(&deployment)?.reason.clone()))
        };
        names.filter_map(state).collect()
    }
}

/// Whether the controller has reported anything about a BundleDeployment yet.
fn has_conditions(deployment: &BundleDeployment) -> bool {
    deployment.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
}

/// When to look again: after a time, or when something changes.
fn due(again: Option<Duration>) -> Next {
    again.map_or(Next::Change, Next::After)
}

/// How many questions the resolver answers at once: each may take seconds of a processor, and a hundred megabytes.
fn at_once() -> usize {
    thread::available_parallelism().map_or(1, |count| (count.get() / 2).clamp(1, 4))
}

/// How the decision is installed, if it is.
pub(super) fn set_output(output: Option<&ResolutionOutput>) -> Option<&ResolveSetOutput> {
    output?.resolve_set.as_ref()
}

/// An answer with notes for users about members that others take over.
pub(super) fn noting(answer: Answer, awaited: &[Awaited]) -> Answer {
    match answer {
        Answer::Plan(mut plan) => {
            plan.notes.extend(awaited.iter().map(Awaited::note));
            Answer::Plan(plan)
        }
        other => other,
    }
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
    type Status = ResolutionStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, resolution: &Resolution) -> Result<Report<ResolutionStatus>, ReconcileError> {
        let name = resolution.name_any();
        // Before the first lists, no BundleDeployment would seem to be installed, and no catalog to exist.
        if !self.deployments.ready().await || !self.catalogs.ready().await {
            return Ok(Report::nothing());
        }
        // All packages would seem to be allowed.
        if name == self.cluster.options.platform_resolution && !self.policies.ready().await {
            return Ok(Report::nothing());
        }
        if resolution.metadata.deletion_timestamp.is_some() {
            return self.tear_down(resolution).await;
        }
        let mut memory = self.recall(resolution);
        let resolved = Box::pin(self.resolve(resolution, &mut memory)).await;
        // Regardless of the result: others wait until each Resolution was looked at once.
        self.states.handovers.answered(&name, &Answer::None);
        let report = resolved?;
        if self.states.exists(&name, resolution.uid().as_deref()) {
            self.remember(&name, memory);
        }
        Ok(report)
    }

    fn failed(&self, resolution: &Resolution, error: &ReconcileError, _: u32) -> Option<ResolutionStatus> {
        let reason = match error {
            ReconcileError::Request(kube::Error::Api(answer)) => problem::refused(answer),
            ReconcileError::Record(error) if !error.is_transient() => Reason::RecordUnavailable,
            // The API server did not respond: the status cannot be written, either.
            ReconcileError::Request(_) | ReconcileError::Record(_) => return None,
        };
        Some(status::interrupted(resolution, reason, &error.to_string(), Timestamp::now()))
    }

    fn status(resolution: &Resolution) -> Option<&ResolutionStatus> {
        resolution.status.as_ref()
    }

    fn reason(status: &ResolutionStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(&self, resolution: &Resolution, stored: Option<&ResolutionStatus>, status: &ResolutionStatus) {
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish(&self.cluster.events, resolution, stored, &status.conditions).await;
    }

    async fn undecodable(&self, guarded: &Guarded<Resolution>, invalid: &InvalidObject) -> Result<(), ReconcileError> {
        undecodable::report(&self.cluster.client, &self.cluster.events, guarded, invalid).await?;
        Ok(())
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    fn observed(&self, resolution: &Resolution) {
        self.generations.observe(resolution);
        self.signals.send(Signal::ResolutionChanged(&resolution.name_any()));
    }

    fn removed(&self, resolution: &ObjectMeta) {
        let name = resolution.name.as_deref().unwrap_or_default();
        self.generations.cancel(name);
        self.forget(name);
        self.signals.send(Signal::ResolutionChanged(name));
    }
}
