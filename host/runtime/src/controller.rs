//! Runs the reconciler of one kind: its watch, cache, triggers, error policy and shutdown.

use std::{
    collections::HashSet,
    fmt::Debug,
    future::Future,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_client::Availability;
use chandler_core::Reason;
use futures::{Stream, StreamExt as _, future::Either, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Resource, ResourceExt as _,
    core::{PartialObjectMeta, error_boundary::InvalidObject},
    runtime::{
        Controller,
        controller::{Action, Config, Error},
        reflector::ObjectRef,
        watcher::{self, Event, watcher},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tracing::{Instrument as _, Span, field::Empty};

use crate::{
    Backoff, Cache, Guarded, Metrics, Outcome, OwnWrites, Reflector, Report, Shutdown, Triggers, cache::Filler, decode,
    reconnect::reconnecting, reflector::reflect, room::Room, status_patch,
};

/// How long the events of one object are collected before it is reconciled.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Reconciles the objects of one kind. The implementor is the state of the reconciler.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind.
    type Object: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug + Send + Sync + 'static;
    /// The status of the kind.
    type Status: Clone + Default + Serialize + Send + Sync + 'static;
    /// Why a reconcile failed.
    type Error: ReconcileError;

    /// Reconciles one object, and returns what its status is to be and when to reconcile it again. Two reconciles of one object never
    /// overlap. The object is the newest one at the start; after a wait, read it again from the cache, with [`OwnWrites::newest`].
    fn reconcile(
        &self,
        object: &Self::Object,
    ) -> impl Future<Output = Result<Report<Self::Status>, Self::Error>> + Send;

    /// The status to write after a failed reconcile, or `None` if the next reconcile is likely to succeed, or if writing the status failed.
    /// `failures` is the number of failed reconciles in a row before this one.
    fn failed(&self, object: &Self::Object, error: &Self::Error, failures: u32) -> Option<Self::Status>;

    /// The stored status.
    fn status(object: &Self::Object) -> Option<&Self::Status>;

    /// The reason of the condition `Ready` in a status, for metrics.
    fn reason(_status: &Self::Status) -> Option<Reason> {
        None
    }

    /// The runtime wrote this status over the stored one: publishes what changed.
    fn written(
        &self,
        object: &Self::Object,
        stored: Option<&Self::Status>,
        status: &Self::Status,
    ) -> impl Future<Output = ()> + Send;

    /// The delays between retries of failed reconciles.
    fn backoff(&self) -> &Backoff;

    /// Handles an object that could not be decoded. The runtime has logged it, and calls this again when the object changes.
    fn undecodable(
        &self,
        _guarded: &Guarded<Self::Object>,
        _invalid: &InvalidObject,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// The watch delivered an object that is new or changed. It is reconciled afterwards.
    fn observed(&self, _object: &Self::Object) {}

    /// An object was deleted, or no longer matches the watch; then it has no deletion timestamp.
    fn removed(&self, _object: &ObjectMeta) {}

    /// The watch delivered a complete list, which the cache holds. A deletion while the watch was interrupted shows only in it.
    fn listed(&self) {}

    /// The API server answers again. An object whose reconcile failed before is reconciled next, regardless of its backoff.
    fn answers_again(&self, _name: &str) {}
}

/// The error of a reconcile.
pub trait ReconcileError: std::error::Error + Send + 'static {
    /// Whether the reconcile wrote an object that had changed since it was read, or was deleted. The watch delivers what became of it, so
    /// this is not reported as a failure.
    fn is_conflict(&self) -> bool;

    /// The error of a status that could not be written.
    fn of_status(error: kube::Error) -> Self;
}

/// The controller of one kind.
pub struct KindController<R: Reconciler> {
    controller: Controller<Guarded<R::Object>>,
    cache: Cache<Guarded<R::Object>>,
    availability: Availability,
    shutdown: Shutdown,
    context: Arc<Context<R>>,
}

struct Context<R: Reconciler> {
    reconciler: Arc<R>,
    /// Writes the status.
    api: Api<R::Object>,
    metrics: Arc<dyn Metrics>,
    own_writes: OwnWrites<R::Object>,
    triggers: Triggers<R::Object>,
}

impl<R: Reconciler> KindController<R> {
    /// Reconciles the objects that `api` and `config` select, whenever another client changes one of them or its triggers request
    /// it. Stops on shutdown when the reconciles in progress have ended.
    ///
    /// The number of concurrent reconciles is unlimited; use [`Slots`](crate::Slots) to limit it.
    pub fn new(
        reflector: Reflector<R::Object>,
        api: Api<Guarded<R::Object>>,
        config: watcher::Config,
        reconciler: Arc<R>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> Self {
        let (cache, own_writes, triggers) = (reflector.cache(), reflector.own_writes(), reflector.triggers());
        let watched =
            Watched { cache: cache.clone(), own_writes: own_writes.clone(), reconciler: Arc::clone(&reconciler) };
        let availability = reflector.availability;
        let statuses = Api::all(api.clone().into_client());
        let events = watch(reflector.filler, api, config, availability.clone(), watched);
        let controller = Controller::for_stream(events.map(Ok), cache.store())
            .with_config(Config::default().debounce(DEBOUNCE))
            .graceful_shutdown_on(shutdown.clone())
            .reconcile_on(reflector.requests.map(|object| ObjectRef::new(&object.name)));
        let context = Arc::new(Context { reconciler, api: statuses, metrics, own_writes, triggers });
        Self { controller, cache, availability, shutdown: shutdown.clone(), context }
    }

    /// Also reconciles the objects that `dependents` returns for an object of another kind that is created, changed or deleted.
    /// Only the metadata of that kind is watched.
    #[must_use]
    pub fn watches<O, I>(
        mut self,
        api: Api<PartialObjectMeta<O>>,
        config: watcher::Config,
        dependents: impl Fn(PartialObjectMeta<O>) -> I + Send + 'static,
    ) -> Self
    where
        O: Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<Guarded<R::Object>>>,
    {
        // The watches of kube's controller share one backoff, in which nothing at all is reconciled.
        let events = reconnecting(move || watcher(api.clone(), config.clone()), self.availability.clone());
        let touched = events.filter_map(|event| std::future::ready(touched(event)));
        let dependents =
            touched.flat_map(move |object| stream::iter(dependents(object).into_iter().collect::<Vec<_>>()));
        self.controller = self.controller.reconcile_on(dependents);
        self
    }

    /// Also reconciles every object for each item of a stream.
    #[must_use]
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self {
        self.controller = self.controller.reconcile_all_on(trigger);
        self
    }

    /// Runs until shutdown.
    pub async fn run(self) {
        let again = retry_all(self.availability.returns(), Arc::clone(&self.context));
        let running = self.controller.run(reconcile, retry, self.context).for_each(async |result| {
            if let Err(Error::QueueError(error)) = result {
                tracing::debug!(kind = %R::Object::kind(&()), %error, "the watch was interrupted");
            }
        });
        let cache = self.cache;
        let started = async move { cache.ready().await };
        tokio::select! {
            () = running => {}
            () = again => {}
            () = shut_down_before_start(self.shutdown, started) => {
                tracing::info!(kind = %R::Object::kind(&()), "shut down before the first list was complete");
            }
        }
    }
}

/// What the events of a watch concern.
struct Watched<R: Reconciler> {
    cache: Cache<Guarded<R::Object>>,
    own_writes: OwnWrites<R::Object>,
    reconciler: Arc<R>,
}

/// Whenever the API server answers again, reconciles the objects whose last reconcile failed. [`Slots`](crate::Slots) limits how many
/// run at once, which prevents a stampede. Never completes.
async fn retry_all<R: Reconciler>(returns: impl Stream<Item = ()>, context: Arc<Context<R>>) {
    let mut returns = pin!(returns);
    while returns.next().await.is_some() {
        for name in context.reconciler.backoff().reset() {
            context.reconciler.answers_again(&name);
            // An error means that the controller has stopped.
            context.triggers.send(ObjectRef::new(&name)).unwrap_or_default();
        }
    }
    std::future::pending::<()>().await;
}

/// The object that an event is about.
fn touched<O>(event: Event<O>) -> Option<O> {
    match event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => Some(object),
        Event::Init | Event::InitDone => None,
    }
}

/// Watches a kind, fills its cache and calls the hooks of its reconciler. Yields the objects to reconcile: objects that are listed, created,
/// or changed by another client.
fn watch<R: Reconciler>(
    filler: Filler<Guarded<R::Object>>,
    api: Api<Guarded<R::Object>>,
    config: watcher::Config,
    availability: Availability,
    watched: Watched<R>,
) -> impl Stream<Item = Guarded<R::Object>> + Send {
    let mut room = Room::default();
    let events = reflect(filler, api, config, availability, move |event| room.take(event));
    events.filter_map(move |event| std::future::ready(watched.to_reconcile(event)))
}

impl<R: Reconciler> Watched<R> {
    /// Calls the hooks for an event that the cache holds, and returns the object if it must be reconciled.
    fn to_reconcile(&self, event: Event<Guarded<R::Object>>) -> Option<Guarded<R::Object>> {
        let (reconciler, own_writes) = (&self.reconciler, &self.own_writes);
        match event {
            Event::Apply(guarded) => {
                guarded.0.iter().for_each(|object| reconciler.observed(object));
                own_writes.wakes(guarded.meta()).then_some(guarded)
            }
            // A list has only the last of several changes.
            Event::InitApply(guarded) => {
                guarded.0.iter().for_each(|object| reconciler.observed(object));
                Some(guarded)
            }
            Event::Delete(guarded) => {
                own_writes.forget(&guarded.name_any());
                reconciler.removed(guarded.meta());
                None
            }
            Event::InitDone => {
                let known: HashSet<String> = self.cache.state().iter().map(|guarded| guarded.name_any()).collect();
                own_writes.retain(|name| known.contains(name));
                reconciler.listed();
                None
            }
            Event::Init => None,
        }
    }
}

/// The root of a trace.
async fn reconcile<R: Reconciler>(
    guarded: Arc<Guarded<R::Object>>,
    context: Arc<Context<R>>,
) -> Result<Action, R::Error> {
    let span = tracing::info_span!(
        target: "chandler::trace",
        "reconcile",
        kind = %R::Object::kind(&()),
        name = guarded.meta().name,
        generation = guarded.meta().generation,
        outcome = Empty,
        otel.status_code = Empty,
    );
    reconcile_in_span(guarded, context, span.clone()).instrument(span).await
}

async fn reconcile_in_span<R: Reconciler>(
    guarded: Arc<Guarded<R::Object>>,
    context: Arc<Context<R>>,
    span: Span,
) -> Result<Action, R::Error> {
    let started = Instant::now();
    let guarded = context.own_writes.newest(guarded);
    let (result, completed) = match decode(&guarded) {
        Ok(object) => (context.reconcile(&guarded, object).await, Outcome::Completed),
        Err(invalid) => {
            let handled = context.reconciler.undecodable(&guarded, invalid).await;
            (handled.map(|()| Action::await_change()), Outcome::Undecodable)
        }
    };
    let outcome = match &result {
        Ok(_) => completed,
        Err(error) if error.is_conflict() => Outcome::Conflict,
        Err(_) => Outcome::Failed,
    };
    span.record("outcome", outcome.as_str());
    if outcome == Outcome::Failed {
        // Messages may have text from plugins and registries; the status and the log have them.
        span.record("otel.status_code", "ERROR");
    }
    let newest = context.own_writes.newest(guarded);
    let reason = newest.0.as_ref().ok().and_then(|object| R::reason(R::status(object)?));
    context.metrics.reconciled(&R::Object::kind(&()), outcome, reason, started.elapsed());
    result
}

impl<R: Reconciler> Context<R> {
    /// Reconciles an object, and writes to its status what was found, also if the reconcile failed.
    async fn reconcile(&self, guarded: &Arc<Guarded<R::Object>>, object: &R::Object) -> Result<Action, R::Error> {
        let name = object.name_any();
        // An error means that the controller has stopped.
        let again = || self.triggers.send(ObjectRef::new(&name)).unwrap_or_default();
        let _in_progress = self.own_writes.begin(object, again);
        let result = self.reconciler.reconcile(object).await;
        // The reconcile may have written the status itself.
        let newest = self.own_writes.newest(Arc::clone(guarded));
        let newest = newest.0.as_ref().unwrap_or(object);
        let error = match result {
            Ok(Report { status, next }) => {
                if let Some(status) = status {
                    self.write(newest, &status).await.map_err(R::Error::of_status)?;
                }
                return Ok(next.action(&name, self.reconciler.backoff()));
            }
            Err(error) => error,
        };
        let failures = self.reconciler.backoff().failures(&name);
        let status = self.reconciler.failed(newest, &error, failures);
        if let Some(status) = status.filter(|_| !error.is_conflict())
            && let Err(unwritten) = self.write(newest, &status).await
        {
            let kind = R::Object::kind(&());
            tracing::warn!(%kind, name, error = %unwritten, "the status does not report why the reconcile failed");
        }
        Err(error)
    }

    /// Writes a status if it differs from the stored one.
    #[tracing::instrument(target = "chandler::trace", name = "status", skip_all)]
    async fn write(&self, object: &R::Object, status: &R::Status) -> Result<(), kube::Error> {
        let stored = R::status(object);
        if let Some(written) = status_patch::write(&self.api, &object.name_any(), stored, status).await? {
            self.own_writes.status(written, status);
            self.reconciler.written(object, stored, status).await;
        }
        Ok(())
    }
}

/// The longest pause after a conflict. The write that came between has ended, so a long pause is of no use.
const AFTER_CONFLICT: Duration = Duration::from_secs(5);

/// The error policy: retry with backoff.
fn retry<R: Reconciler>(guarded: Arc<Guarded<R::Object>>, error: &R::Error, context: Arc<Context<R>>) -> Action {
    let (kind, name) = (R::Object::kind(&()), guarded.name_any());
    let backoff = context.reconciler.backoff();
    if error.is_conflict() {
        tracing::debug!(%kind, name, %error, "the object changed or was deleted during its reconcile");
        return Action::requeue(backoff.failed_at_most(&name, AFTER_CONFLICT));
    }
    tracing::warn!(%kind, name, %error, "reconcile failed");
    Action::requeue(backoff.failed(&name))
}

/// Completes when shutdown comes before the start. kube's controller waits for the first list even after it was asked to stop,
/// and that list may never come.
async fn shut_down_before_start(shutdown: Shutdown, started: impl Future<Output = bool>) {
    let started = pin!(started);
    if let Either::Right(_) = futures::future::select(shutdown, started).await {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests;
