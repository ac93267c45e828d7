//! The reconciler: its state, and one reconcile.

use std::{future::pending, io, pin::pin, sync::Arc, time::Duration};

use chandler_api::{Component, ProvisionerClass, ProvisionerClassStatus};
use chandler_decisions::class_calls;
use chandler_records::Records;
use chandler_runtime::{
    Backoff, Cache, KindController, Metrics, Next, OwnWrites, Reconciler, Reflector, Report, Shutdown, leadership,
    status_patch,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _, core::error_boundary::InvalidObject, runtime::reflector::ObjectRef};

use super::{
    classes::Classes, components::Components, load::LoadOutcome, loads::Loads, served::ServedArtifacts, status,
    uses::Uses,
};
use crate::{
    cluster::Cluster,
    deployments::Deployments,
    events,
    memory::Memory,
    monitoring::ready_reason,
    problem,
    registries::SCOUT,
    signals::{Signal, Signals},
};

/// How often the controller checks whether a deleted class is still in use.
const IN_USE_INTERVAL: Duration = Duration::from_secs(5);
/// How often the users of a class are looked at, which is done in memory: while a staged update proceeds, while they have different
/// components, and else.
const STAGE_INTERVAL: Duration = Duration::from_secs(2);
const UPDATE_INTERVAL: Duration = Duration::from_secs(5);
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// How long a class without a component may load before its status says so. An earlier process may have left another status.
const LOADING: Duration = Duration::from_secs(2);

/// The status or the finalizers of a ProvisionerClass could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write a ProvisionerClass: {}", chandler_source::api_message(.0))]
pub(crate) struct ReconcileError(#[from] kube::Error);

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        matches!(&self.0, kube::Error::Api(status) if status.is_conflict() || status.is_not_found())
    }

    fn of_status(error: kube::Error) -> Self {
        Self(error)
    }
}

/// The reconciler of ProvisionerClasses.
pub(crate) struct ProvisionerClasses {
    pub(super) cluster: Arc<Cluster>,
    signals: Arc<Signals>,
    pub(super) deployments: Deployments,
    pub(super) classes: Arc<Classes>,
    pub(super) components: Components,
    pub(super) served: ServedArtifacts,
    pub(super) records: Arc<Records>,
    pub(super) memory: Arc<Memory>,
    loads: Loads,
    store: Cache<Guarded>,
    pub(super) own_writes: OwnWrites<ProvisionerClass>,
    backoff: Backoff,
    /// Completes when the controller ends.
    stopping: Shutdown,
}

/// A ProvisionerClass that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<ProvisionerClass>;

impl ProvisionerClasses {
    /// Opens the state on disk.
    ///
    /// # Errors
    /// The cache directory cannot be used.
    pub(crate) fn open(
        cluster: &Arc<Cluster>,
        signals: &Arc<Signals>,
        deployments: &Deployments,
        (records, memory): (&Arc<Records>, &Arc<Memory>),
        (classes, components): (&Arc<Classes>, &Components),
        reflector: &Reflector<ProvisionerClass>,
    ) -> io::Result<Self> {
        let served = ServedArtifacts::open(&cluster.options.cache_directory.join("classes"))?;
        let (store, own_writes) = (reflector.cache(), reflector.own_writes());
        Ok(Self {
            cluster: Arc::clone(cluster),
            signals: Arc::clone(signals),
            deployments: deployments.clone(),
            classes: Arc::clone(classes),
            components: components.clone(),
            served,
            records: Arc::clone(records),
            memory: Arc::clone(memory),
            loads: Loads::default(),
            store,
            own_writes,
            backoff: Backoff::default(),
            stopping: leadership::shutdown(pending()),
        })
    }

    /// The controller.
    pub(crate) fn controller(
        self,
        reflector: Reflector<ProvisionerClass>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.cluster.client.clone());
        let selection = self.cluster.options.watch_selector.watch();
        let reconciler = Self { stopping: shutdown.clone(), ..self };
        KindController::new(reflector, api, selection, Arc::new(reconciler), metrics, shutdown)
    }

    /// Loads the component of a class. If that takes a while, the status says so meanwhile; returns the class with that status.
    async fn load_reporting(
        &self,
        class: &ProvisionerClass,
        users: &[String],
        again: bool,
    ) -> Result<(LoadOutcome, Option<ProvisionerClass>), ReconcileError> {
        let name = class.name_any();
        let asked = self.classes.take_asked(&name) || again;
        // The uses of a class are counted more often than its image is resolved.
        let interval = self.cluster.options.image_poll_interval;
        if let Some(component) =
            self.loads.recent(class, interval).filter(|component| !asked && self.has(&name, component))
        {
            return Ok((LoadOutcome::Loaded(component), None));
        }
        let mut load = pin!(self.load(class, again));
        if let Ok(outcome) = tokio::time::timeout(LOADING, &mut load).await {
            return Ok((outcome, None));
        }
        let reported = self.report_loading(class, users).await?;
        Ok((load.await, reported))
    }

    /// Whether a class has this component in use.
    fn has(&self, name: &str, component: &Component) -> bool {
        self.classes.in_use(name).is_some_and(|class| class.provisioner.digest().as_str() == component.digest)
    }

    /// Reports a class that could not be decoded to the BundleDeployments that name it. An earlier component stays in use.
    pub(super) fn define_undecodable(&self, class: &Guarded, invalid: &InvalidObject) {
        let (name, classes) = (class.name_any(), &self.classes);
        if classes.in_use(&name).is_none() {
            classes.define_failed(&name, format!("its specification cannot be decoded: {}", invalid.error));
        }
    }

    /// Reports that the component of a class is being loaded, if the status says otherwise. Returns the class with that status.
    async fn report_loading(
        &self,
        class: &ProvisionerClass,
        users: &[String],
    ) -> Result<Option<ProvisionerClass>, ReconcileError> {
        let name = class.name_any();
        if self.classes.in_use(&name).is_some() || !status::promises_a_component(class) {
            return Ok(None);
        }
        let status = status::derive(class, &LoadOutcome::Loading, false, users, Timestamp::now());
        let api: Api<ProvisionerClass> = Api::all(self.cluster.client.clone());
        let written = status_patch::write(&api, &name, class.status.as_ref(), &status).await?;
        if let Some(written) = written {
            self.own_writes.status(written, &status);
        }
        Ok(Some(ProvisionerClass { status: Some(status), ..class.clone() }))
    }

    /// The outcome of a load, if the component that is in use is called at present; else that it is quarantined.
    fn with_quarantine(&self, name: &str, outcome: LoadOutcome) -> LoadOutcome {
        let LoadOutcome::Loaded(component) = outcome else { return outcome };
        let used = self.classes.in_use(name);
        match used.and_then(|used| self.memory.calls.quarantined(name, used.provisioner.digest())) {
            Some(quarantined) => LoadOutcome::Quarantined(component, quarantined.to_string()),
            None => LoadOutcome::Loaded(component),
        }
    }

    /// Lets the component of a class be called again, for the BundleDeployments that wait for it.
    fn release_from_quarantine(&self, name: &str) {
        let Some(used) = self.classes.in_use(name) else { return };
        for waiting in self.memory.calls.release(used.provisioner.digest()) {
            self.memory.try_again(&waiting);
            self.deployments.wake(&waiting);
        }
    }

    /// Takes a class out of use, and triggers the BundleDeployments that name it or have their class detected.
    pub(super) fn forget(&self, name: &str) {
        if !self.classes.remove(name) {
            return;
        }
        self.loads.forget(name);
        tracing::info!(class = %name, "the ProvisionerClass was deleted");
        self.signals.send(Signal::ClassGone(name));
        self.served.forget(name);
    }
}

/// When the users of a class are looked at again.
fn count_interval(uses: Option<&Uses>) -> Duration {
    match uses {
        None => STAGE_INTERVAL,
        Some(uses) if uses.counts.updated == uses.counts.total => COUNT_INTERVAL,
        Some(uses) if uses.admitted > 0 => STAGE_INTERVAL,
        Some(_) => UPDATE_INTERVAL,
    }
}

impl Reconciler for ProvisionerClasses {
    type Object = ProvisionerClass;
    type Status = ProvisionerClassStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, class: &ProvisionerClass) -> Result<Report<ProvisionerClassStatus>, ReconcileError> {
        let name = class.name_any();
        let Some(users) = self.retain(class).await? else {
            return Ok(Report::nothing());
        };
        let requested = status::request(class);
        let (outcome, reported) = tokio::select! {
            loaded = self.load_reporting(class, &users, requested.is_some()) => loaded?,
            // A silent registry may take longer than the time that a Pod has to end.
            () = self.stopping.clone() => return Ok(Report::nothing()),
        };
        let class = reported.as_ref().unwrap_or(class);
        let exists = self.store.get(&ObjectRef::new(&name)).is_some_and(|stored| stored.uid() == class.uid());
        if !exists {
            // It was deleted while its component was loaded, which put it into use again.
            self.forget(&name);
            return Ok(Report::nothing());
        }
        self.loads.note(class, &outcome);
        if requested.is_some() {
            self.release_from_quarantine(&name);
        }
        let outcome = self.with_quarantine(&name, outcome);
        let mut status = status::derive(class, &outcome, self.is_verified(class), &users, Timestamp::now());
        if let Some(request) = requested {
            status.last_handled_reconcile_at = Some(request.to_owned());
        }
        let component = status.component.as_ref().map(|component| component.digest.clone());
        let calls = self.classes.in_use(&name).and_then(|used| self.memory.calls.figures(used.provisioner.digest()));
        let stored = status.calls.take();
        status.calls = class_calls::refreshed(stored.as_ref(), calls, component.as_deref().unwrap_or_default());
        let counted = self.look_at_uses(class, component.as_deref());
        if let Some(counted) = &counted {
            status::set_uses(&mut status, class, counted, Timestamp::now());
        }
        let next = match &outcome {
            // There are few classes, and many wait for each.
            LoadOutcome::Failed { problem, .. } if problem.silent_registry.is_some() => {
                Next::Retry { at_least: problem.retry_after, at_most: Some(SCOUT) }
            }
            LoadOutcome::Failed { problem, .. } if !problem.terminal => {
                Next::Retry { at_least: Duration::ZERO, at_most: None }
            }
            _ => {
                let interval = self.cluster.options.image_poll_interval;
                // A component that does not load is not tried again for the counts: each try asks the registry, and may compile.
                let is_failed = matches!(outcome, LoadOutcome::Failed { .. });
                let interval = if is_failed { interval } else { interval.min(count_interval(counted.as_ref())) };
                Next::After(if users.is_empty() { interval } else { interval.min(IN_USE_INTERVAL) })
            }
        };
        Ok(Report { status: Some(status), next })
    }

    fn failed(&self, class: &ProvisionerClass, error: &ReconcileError, _: u32) -> Option<ProvisionerClassStatus> {
        let ReconcileError(kube::Error::Api(answer)) = error else { return None };
        Some(status::interrupted(class, problem::refused(answer), &error.to_string(), Timestamp::now()))
    }

    fn status(class: &ProvisionerClass) -> Option<&ProvisionerClassStatus> {
        class.status.as_ref()
    }

    fn reason(status: &ProvisionerClassStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(
        &self,
        class: &ProvisionerClass,
        stored: Option<&ProvisionerClassStatus>,
        status: &ProvisionerClassStatus,
    ) {
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish(&self.cluster.events, class, stored, &status.conditions).await;
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    async fn undecodable(&self, class: &Guarded, invalid: &InvalidObject) -> Result<(), ReconcileError> {
        self.define_undecodable(class, invalid);
        Ok(())
    }

    fn removed(&self, class: &ObjectMeta) {
        self.forget(class.name.as_deref().unwrap_or_default());
    }

    fn listed(&self) {
        let known = self.store.state();
        let is_gone = |name: &String| known.iter().all(|class| class.name_any() != *name);
        self.classes.defined().iter().filter(|name| is_gone(name)).for_each(|name| self.forget(name));
    }
}
