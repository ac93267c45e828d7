//! The metrics of the controller, and their text form (OpenMetrics 1.0).
//!
//! The names are a public interface: docs/monitoring.md lists them, and a test compares that page with this module.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter, exemplar::HistogramWithExemplars, family::Family, gauge::Gauge, histogram::Histogram,
        info::Info,
    },
    registry::{Registry, Unit},
};

use crate::{
    Bounded, Health,
    labels::{
        BytesLabels, CacheLabel, CallLabels, ClassLabel, FetchLabels, KindLabel, LookupLabels, OutcomeLabel,
        ReconcileLabels, RequestLabels, SourceLabel, StepLabel, TraceLabel, VerbLabel,
    },
    measurements::{CallOutcome, CallUsage, HostClass, NotificationOutcome, ResolverOutcome, Step},
    process::Process,
    state::{State, StateCollector},
};

/// The media type of [`Metrics::exposition`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The prefix of all names, except the names of metrics of the process.
const PREFIX: &str = "chandler";
/// Values of a label that objects of the cluster name: resources of requests, and classes of provisioners.
const RESOURCES: usize = 200;
const CLASSES: usize = 50;
/// Values of labels that are constants of the controller: kinds; outcomes, reasons and types of sources. They are limited, too, so that a mistake
/// in the controller cannot fill the memory.
const KINDS: usize = 16;
const WORDS: usize = 250;
/// Upper bounds of durations in seconds: from a reconcile that changes nothing to a fetch that times out.
const DURATIONS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];
/// Upper bounds of the memory of a call in bytes: from a few pages to the largest limit that is usual.
const MEMORY: [f64; 7] =
    [262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0, 67_108_864.0, 268_435_456.0, 1_073_741_824.0];
/// Upper bounds of the steps of an answer of the resolver.
const STEPS: [f64; 7] = [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0];

/// Histograms by labels.
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;
/// Durations by labels. Each bucket has the trace of its last duration as its exemplar, if that was traced.
type Durations<L> = Family<L, HistogramWithExemplars<TraceLabel>, fn() -> HistogramWithExemplars<TraceLabel>>;

/// The metrics of one controller.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_durations: Durations<KindLabel>,
    step_durations: Durations<StepLabel>,
    requests: Family<RequestLabels, Counter>,
    request_durations: Durations<VerbLabel>,
    calls: Family<CallLabels, Counter>,
    call_durations: Durations<ClassLabel>,
    call_memory: Histograms<ClassLabel>,
    call_bytes: Family<BytesLabels, Counter>,
    fetches: Family<FetchLabels, Counter>,
    fetch_durations: Durations<SourceLabel>,
    lookups: Family<LookupLabels, Counter>,
    cache_bytes: Family<CacheLabel, Gauge>,
    repairs: Family<OutcomeLabel, Counter>,
    answers: Family<OutcomeLabel, Counter>,
    answer_durations: Histogram,
    answer_steps: Histogram,
    renewals: Family<OutcomeLabel, Counter>,
    webhooks: Family<OutcomeLabel, Counter>,
    notifications: Family<OutcomeLabel, Counter>,
    resources: Bounded,
    classes: Bounded,
    kinds: Bounded,
    words: Bounded,
    state: Arc<StateCollector>,
}

fn durations<L: EncodeLabelSet + Clone + std::hash::Hash + Eq>() -> Durations<L> {
    Family::new_with_constructor(|| HistogramWithExemplars::new(DURATIONS.into_iter()))
}

/// Adds a duration, with the trace of the code that runs.
fn observe<L: EncodeLabelSet + Clone + std::hash::Hash + Eq>(durations: &Durations<L>, label: &L, duration: Duration) {
    let trace = chandler_traces::trace_id().map(|trace_id| TraceLabel { trace_id });
    let at = trace.is_some().then(SystemTime::now);
    durations.get_or_create(label).observe(duration.as_secs_f64(), trace, at);
}

impl Metrics {
    /// No measurements yet. `version` is the version of the controller.
    pub fn new(version: &str, health: Health) -> Self {
        let metrics = Self {
            registry: Registry::default(),
            reconciles: Family::default(),
            reconcile_durations: durations(),
            step_durations: durations(),
            requests: Family::default(),
            request_durations: durations(),
            calls: Family::default(),
            call_durations: durations(),
            call_memory: Family::new_with_constructor(|| Histogram::new(MEMORY)),
            call_bytes: Family::default(),
            fetches: Family::default(),
            fetch_durations: durations(),
            lookups: Family::default(),
            cache_bytes: Family::default(),
            repairs: Family::default(),
            answers: Family::default(),
            answer_durations: Histogram::new(DURATIONS),
            answer_steps: Histogram::new(STEPS),
            renewals: Family::default(),
            webhooks: Family::default(),
            notifications: Family::default(),
            resources: Bounded::new(RESOURCES),
            classes: Bounded::new(CLASSES),
            kinds: Bounded::new(KINDS),
            words: Bounded::new(WORDS),
            state: Arc::new(StateCollector { health, source: Mutex::default() }),
        };
        metrics.registered(version)
    }

    fn registered(mut self, version: &str) -> Self {
        let mut registry = Registry::default();
        let ours = registry.sub_registry_with_prefix(PREFIX);
        ours.register("build", "The version of the controller", Info::new([("version", version.to_owned())]));
        let help = "Reconciles that ended, by kind, outcome and reason: the reason of the condition Ready afterwards";
        ours.register("reconciles", help, self.reconciles.clone());
        ours.register_with_unit(
            "reconcile_duration",
            "Duration of reconciles, including the time in which they wait for their turn",
            Unit::Seconds,
            self.reconcile_durations.clone(),
        );
        let help = "Duration of the steps of reconciles of BundleDeployments";
        ours.register_with_unit("reconcile_step_duration", help, Unit::Seconds, self.step_durations.clone());
        let help = "Requests to the API server, by verb, resource and status code (0: no answer)";
        ours.register("api_requests", help, self.requests.clone());
        ours.register_with_unit(
            "api_request_duration",
            "Time until the API server answers, by verb; not measured for watches",
            Unit::Seconds,
            self.request_durations.clone(),
        );
        self.register_calls(ours);
        self.register_contents(ours);
        let help = "Objects that differed from their release and were to be repaired, by outcome";
        ours.register("repairs", help, self.repairs.clone());
        ours.register("resolver_answers", "Answers of the resolver, by outcome", self.answers.clone());
        let help = "Processor time of an answer of the resolver";
        ours.register_with_unit("resolver_duration", help, Unit::Seconds, self.answer_durations.clone());
        let help = "Steps of the search for an answer of the resolver: clauses that it visited";
        ours.register("resolver_steps", help, self.answer_steps.clone());
        let help = "Renewals of the Leases that this controller holds, by outcome";
        ours.register("lease_renewals", help, self.renewals.clone());
        ours.register("webhook_requests", "Requests at paths for webhooks, by outcome", self.webhooks.clone());
        let help = "Notifications of Alerts, by outcome: delivered, failed, dropped or suppressed";
        ours.register("notifications", help, self.notifications.clone());
        ours.register_collector(Box::new(Arc::clone(&self.state)));
        registry.register_collector(Box::new(Process));
        self.registry = registry;
        self
    }

    fn register_calls(&self, ours: &mut Registry) {
        let help =
            "Calls of provisioners that render a bundle, by class and outcome: completed, or the reason of the failure";
        ours.register("provisioner_calls", help, self.calls.clone());
        ours.register_with_unit(
            "provisioner_call_duration",
            "Duration of calls of provisioners, including the time in which they wait for a thread",
            Unit::Seconds,
            self.call_durations.clone(),
        );
        let help = "Largest memory of the instance of a call";
        ours.register_with_unit("provisioner_call_memory", help, Unit::Bytes, self.call_memory.clone());
        let help = "Bytes that calls of provisioners read of bundles, and returned as objects";
        ours.register_with_unit("provisioner_call_transfer", help, Unit::Bytes, self.call_bytes.clone());
    }

    fn register_contents(&self, ours: &mut Registry) {
        let help = "Sources that were fetched or read from the cache, by type, class of the host and outcome";
        ours.register("fetches", help, self.fetches.clone());
        let help = "Time until the content of a source is there";
        ours.register_with_unit("fetch_duration", help, Unit::Seconds, self.fetch_durations.clone());
        ours.register("cache_lookups", "Lookups in a cache, by result: hit or miss", self.lookups.clone());
        let help = "Bytes of a cache after its last hourly cleanup";
        ours.register_with_unit("cache", help, Unit::Bytes, self.cache_bytes.clone());
    }

    /// A reconcile of an object of this kind ended, after which its condition `Ready` has this reason. The kind, the outcome and the reason are
    /// constants of the controller.
    pub fn reconciled(&self, kind: &str, outcome: &'static str, reason: &'static str, duration: Duration) {
        let kind = self.kinds.value(kind).into_owned();
        let (outcome, reason) = (self.words.constant(outcome), self.words.constant(reason));
        self.reconciles.get_or_create(&ReconcileLabels { kind: kind.clone(), outcome, reason }).inc();
        observe(&self.reconcile_durations, &KindLabel { kind }, duration);
    }

    /// A step of the reconcile of a BundleDeployment ended.
    pub fn stepped(&self, step: Step, duration: Duration) {
        observe(&self.step_durations, &StepLabel { step: step.as_str() }, duration);
    }

    /// The API server answered a request with this status code, or did not (0). Without a duration, the client repeats the request.
    pub fn requested(&self, verb: &'static str, resource: &str, code: u16, duration: Option<Duration>) {
        let resource = self.resources.value(resource).into_owned();
        self.requests.get_or_create(&RequestLabels { verb, resource, code: u32::from(code) }).inc();
        if let Some(duration) = duration.filter(|_| verb != "watch") {
            observe(&self.request_durations, &VerbLabel { verb }, duration);
        }
    }

    /// A provisioner of this class rendered a bundle, or failed to.
    #[expect(clippy::cast_precision_loss, reason = "a histogram has a few buckets")]
    pub fn called(&self, class: &str, outcome: CallOutcome, duration: Duration, usage: CallUsage) {
        let class = self.classes.value(class).into_owned();
        let outcome = self.words.constant(outcome.as_str());
        self.calls.get_or_create(&CallLabels { class: class.clone(), outcome }).inc();
        for (direction, bytes) in [("read", usage.read), ("returned", usage.returned)] {
            self.call_bytes.get_or_create(&BytesLabels { class: class.clone(), direction }).inc_by(bytes);
        }
        let label = ClassLabel { class };
        observe(&self.call_durations, &label, duration);
        self.call_memory.get_or_create(&label).observe(usage.memory as f64);
    }

    /// The content of a source of this type was obtained, or not for this reason. Type and reason are constants of the controller.
    pub fn fetched(&self, source: &'static str, host: HostClass, outcome: CallOutcome, duration: Duration) {
        let (source, outcome) = (self.words.constant(source), self.words.constant(outcome.as_str()));
        let labels = FetchLabels { source, host: host.as_str(), outcome };
        self.fetches.get_or_create(&labels).inc();
        observe(&self.fetch_durations, &SourceLabel { source }, duration);
    }

    /// A cache had what was looked up in it, or did not.
    pub fn looked_up(&self, cache: &'static str, is_hit: bool) {
        let cache = self.words.constant(cache);
        let result = if is_hit { "hit" } else { "miss" };
        self.lookups.get_or_create(&LookupLabels { cache, result }).inc();
    }

    /// A cache was cleaned, and has this size now.
    pub fn cleaned(&self, cache: &'static str, bytes: u64) {
        let cache = self.words.constant(cache);
        self.cache_bytes.get_or_create(&CacheLabel { cache }).set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// So many objects were repaired, or could not be repaired.
    pub fn repaired(&self, is_done: bool, objects: usize) {
        let outcome = if is_done { "completed" } else { "failed" };
        let objects = u64::try_from(objects).unwrap_or(u64::MAX);
        self.repairs.get_or_create(&OutcomeLabel { outcome }).inc_by(objects);
    }

    /// The resolver answered, after so much processor time and so many steps.
    #[expect(clippy::cast_precision_loss, reason = "a histogram has a few buckets")]
    pub fn answered(&self, outcome: ResolverOutcome, time: Duration, steps: u64) {
        self.answers.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
        self.answer_durations.observe(time.as_secs_f64());
        self.answer_steps.observe(steps as f64);
    }

    /// A request for a Receiver was answered. The outcome is a constant of the controller.
    pub fn webhook(&self, outcome: &'static str) {
        self.webhooks.get_or_create(&OutcomeLabel { outcome: self.words.constant(outcome) }).inc();
    }

    /// The Leases were renewed, or not. The outcome is a constant of the controller.
    pub fn renewed(&self, outcome: &'static str) {
        self.renewals.get_or_create(&OutcomeLabel { outcome: self.words.constant(outcome) }).inc();
    }

    /// So many notifications of Alerts had this outcome.
    pub fn notified(&self, outcome: NotificationOutcome, number: u64) {
        self.notifications.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc_by(number);
    }

    /// From now on, a scrape reads what the controller holds with this.
    pub fn read_state_with(&self, source: impl Fn() -> State + Send + Sync + 'static) {
        *self.state.source.lock() = Some(Arc::new(source));
    }

    /// All metrics as text, of the type [`MEDIA_TYPE`].
    pub fn exposition(&self) -> String {
        let mut exposition = String::new();
        // Writing to a String does not fail.
        text::encode(&mut exposition, &self.registry).unwrap_or_default();
        exposition
    }
}

#[cfg(test)]
mod tests;
