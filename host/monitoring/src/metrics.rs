//! The metrics of the controller, and their text form (OpenMetrics 1.0).
//!
//! The names are a public interface: docs/monitoring.md lists them, and a test compares that page with this module.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, text},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
        histogram::Histogram,
        info::Info,
    },
    registry::{Registry, Unit},
};

use crate::{Bounded, Health, process::Process};

/// The media type of [`Metrics::exposition`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The prefix of all names, except the names of metrics of the process.
const PREFIX: &str = "chandler";
/// Values of a label that objects of the cluster name: resources of requests, and classes of provisioners.
const RESOURCES: usize = 200;
const CLASSES: usize = 50;
/// Upper bounds of durations in seconds: from a reconcile that changes nothing to a fetch that times out.
const DURATIONS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];

/// How a call of a provisioner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It returned objects.
    Completed,
    /// It failed, for this reason of a condition.
    Failed(&'static str),
}

impl CallOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(reason) => reason,
        }
    }
}

/// How many objects of a kind have a condition with this status and reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct ConditionCount {
    /// The kind, such as `BundleDeployment`.
    pub kind: &'static str,
    /// The type of the condition, such as `Ready`.
    pub condition: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The reason, or `other` for one that the controller does not know: other clients may write a status.
    pub reason: &'static str,
}

/// What the controller holds now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The number of objects of each kind.
    pub objects: Vec<(&'static str, usize)>,
    /// The number of objects with each condition.
    pub conditions: Vec<(ConditionCount, usize)>,
    /// Components that were compiled since the start.
    pub compiled: u64,
    /// Components whose code was read from the cache since the start.
    pub cached: u64,
    /// Reconciles that wait for their turn.
    pub waiting: usize,
}

/// Reads what the controller holds.
type Source = Arc<dyn Fn() -> State + Send + Sync>;

/// The metrics of one controller.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_durations: Family<KindLabel, Histogram, fn() -> Histogram>,
    requests: Family<RequestLabels, Counter>,
    request_durations: Family<VerbLabel, Histogram, fn() -> Histogram>,
    calls: Family<CallLabels, Counter>,
    call_durations: Family<ClassLabel, Histogram, fn() -> Histogram>,
    resources: Bounded,
    classes: Bounded,
    state: Arc<StateCollector>,
}

impl Metrics {
    /// No measurements yet. `version` is the version of the controller.
    pub fn new(version: &str, health: Health) -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATIONS);
        let metrics = Self {
            registry: Registry::default(),
            reconciles: Family::default(),
            reconcile_durations: Family::new_with_constructor(durations),
            requests: Family::default(),
            request_durations: Family::new_with_constructor(durations),
            calls: Family::default(),
            call_durations: Family::new_with_constructor(durations),
            resources: Bounded::new(RESOURCES),
            classes: Bounded::new(CLASSES),
            state: Arc::new(StateCollector { health, source: Mutex::default() }),
        };
        metrics.registered(version)
    }

    fn registered(mut self, version: &str) -> Self {
        let mut registry = Registry::default();
        let ours = registry.sub_registry_with_prefix(PREFIX);
        ours.register("build", "The version of the controller", Info::new([("version", version.to_owned())]));
        ours.register("reconciles", "Reconciles that ended, by kind and outcome", self.reconciles.clone());
        ours.register_with_unit(
            "reconcile_duration",
            "Duration of reconciles, including the time in which they wait for their turn",
            Unit::Seconds,
            self.reconcile_durations.clone(),
        );
        let help = "Requests to the API server, by verb, resource and status code (0: no answer)";
        ours.register("api_requests", help, self.requests.clone());
        ours.register_with_unit(
            "api_request_duration",
            "Time until the API server answers, by verb; not measured for watches",
            Unit::Seconds,
            self.request_durations.clone(),
        );
        let help =
            "Calls of provisioners that render a bundle, by class and outcome: completed, or the reason of the failure";
        ours.register("provisioner_calls", help, self.calls.clone());
        ours.register_with_unit(
            "provisioner_call_duration",
            "Duration of calls of provisioners, including the time in which they wait for a thread",
            Unit::Seconds,
            self.call_durations.clone(),
        );
        ours.register_collector(Box::new(Arc::clone(&self.state)));
        registry.register_collector(Box::new(Process));
        self.registry = registry;
        self
    }

    /// A reconcile of an object of this kind ended. The kind and the outcome are constants of the controller.
    pub fn reconciled(&self, kind: &str, outcome: &'static str, duration: Duration) {
        let kind = kind.to_owned();
        self.reconciles.get_or_create(&ReconcileLabels { kind: kind.clone(), outcome }).inc();
        self.reconcile_durations.get_or_create(&KindLabel { kind }).observe(duration.as_secs_f64());
    }

    /// The API server answered a request with this status code, or did not (0).
    pub fn requested(&self, verb: &'static str, resource: &str, code: u16, duration: Duration) {
        let resource = self.resources.value(resource).into_owned();
        self.requests.get_or_create(&RequestLabels { verb, resource, code: u32::from(code) }).inc();
        if verb != "watch" {
            self.request_durations.get_or_create(&VerbLabel { verb }).observe(duration.as_secs_f64());
        }
    }

    /// A provisioner of this class rendered a bundle, or failed to.
    pub fn called(&self, class: &str, outcome: CallOutcome, duration: Duration) {
        let class = self.classes.value(class).into_owned();
        self.calls.get_or_create(&CallLabels { class: class.clone(), outcome: outcome.as_str() }).inc();
        self.call_durations.get_or_create(&ClassLabel { class }).observe(duration.as_secs_f64());
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectsLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    class: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: String,
}

/// Reads the state at each scrape.
struct StateCollector {
    health: Health,
    source: Mutex<Option<Source>>,
}

impl fmt::Debug for StateCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateCollector").field("health", &self.health).finish_non_exhaustive()
    }
}

impl Collector for StateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let leader = ConstGauge::new(i64::from(self.health.phase().is_leader()));
        let help = "Whether this controller holds the Lease, or needs none";
        leader.encode(encoder.encode_descriptor("leader", help, None, MetricType::Gauge)?)?;
        let source = self.source.lock().clone();
        let Some(state) = source.map(|source| source()) else { return Ok(()) };
        gauges(&mut encoder, "objects", "Objects that this controller reconciles, by kind", {
            state.objects.iter().map(|(kind, count)| (ObjectsLabel { kind }, *count))
        })?;
        gauges(&mut encoder, "conditions", "Objects with a condition, by kind, condition, status and reason", {
            state.conditions.iter().map(|(labels, count)| (labels.clone(), *count))
        })?;
        let waiting = ConstGauge::new(i64::try_from(state.waiting).unwrap_or(i64::MAX));
        let help = "Reconciles of BundleDeployments that wait for their turn";
        waiting.encode(encoder.encode_descriptor("reconciles_waiting", help, None, MetricType::Gauge)?)?;
        let mut counter = |name, help, value| {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
        };
        counter("components_compiled", "Components of provisioners that were compiled", state.compiled)?;
        counter("components_cached", "Components whose code was read from the cache", state.cached)
    }
}

fn gauges<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, usize)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, count) in values {
        let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        gauge.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;

    fn metrics() -> Metrics {
        let health = Health::default();
        health.note(Phase::Reconciling);
        Metrics::new("1.2.3", health)
    }

    #[test]
    fn the_exposition_has_what_was_measured() {
        let metrics = metrics();
        metrics.reconciled("BundleDeployment", "completed", Duration::from_millis(30));
        metrics.requested("apply", "configmaps", 200, Duration::from_millis(3));
        metrics.called("core-rukpak-io-registry", CallOutcome::Completed, Duration::from_millis(40));
        metrics.read_state_with(|| State {
            objects: vec![("BundleDeployment", 2)],
            conditions: vec![(
                ConditionCount {
                    kind: "BundleDeployment",
                    condition: "Ready",
                    status: "False",
                    reason: "PermissionsMissing",
                },
                1,
            )],
            compiled: 3,
            cached: 1,
            waiting: 4,
        });
        let text = metrics.exposition();
        // One series of each metric: the order of several is undefined.
        let ours: Vec<&str> = text.lines().filter(|line| !line.contains("process_")).collect();
        insta::assert_snapshot!(ours.join("\n"));
        for name in ["resident_memory_bytes", "cpu_seconds_total", "open_fds", "threads"] {
            assert!(text.contains(&format!("\nprocess_{name} ")), "{name}: {text}");
        }
    }

    #[test]
    fn a_watch_is_counted_and_has_no_duration() {
        let metrics = metrics();
        metrics.requested("watch", "configmaps", 200, Duration::from_mins(5));
        let text = metrics.exposition();
        let counted = "chandler_api_requests_total{verb=\"watch\",resource=\"configmaps\",code=\"200\"} 1\n";
        assert!(text.contains(counted) && !text.contains("chandler_api_request_duration_seconds_count"), "{text}");
    }

    #[test]
    fn a_failed_call_is_counted_by_its_reason() {
        let metrics = metrics();
        metrics.called("hostile", CallOutcome::Completed, Duration::from_millis(40));
        metrics.called("hostile", CallOutcome::Failed("PluginTimeout"), Duration::from_secs(10));
        let text = metrics.exposition();
        for line in [
            "chandler_provisioner_calls_total{class=\"hostile\",outcome=\"PluginTimeout\"} 1\n",
            "chandler_provisioner_calls_total{class=\"hostile\",outcome=\"completed\"} 1\n",
            "chandler_provisioner_call_duration_seconds_count{class=\"hostile\"} 2\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn the_page_lists_each_metric_with_its_type() {
        let metrics = metrics();
        metrics.reconciled("Catalog", "completed", Duration::ZERO);
        metrics.requested("get", "pods", 200, Duration::ZERO);
        metrics.called("class", CallOutcome::Completed, Duration::ZERO);
        metrics.read_state_with(State::default);
        let text = metrics.exposition();
        let mut exposed: Vec<(String, &str)> = Vec::new();
        for line in text.lines() {
            let Some((name, type_)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            let suffix = match type_ {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            exposed.push((format!("{name}{suffix}"), type_));
        }
        exposed.sort();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut listed: Vec<(String, &str)> = Vec::new();
        for line in page.lines().filter(|line| line.starts_with("| `chandler_") || line.starts_with("| `process_")) {
            let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`'));
            if let (Some(name), Some(type_)) = (cells.nth(1), cells.next()) {
                listed.push((name.to_owned(), type_));
            }
        }
        listed.sort();
        assert_eq!(listed, exposed);
    }

    #[test]
    fn hostile_names_do_not_make_many_series() {
        let metrics = metrics();
        let empty = metrics.exposition().len();
        for number in 0..1000 {
            metrics.called(&format!("class-{number}"), CallOutcome::Completed, Duration::ZERO);
            metrics.requested("get", &format!("resource\"\n{number}"), 404, Duration::ZERO);
            metrics.requested("get", &format!("resource{number}"), 404, Duration::ZERO);
        }
        let text = metrics.exposition();
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        // Each class has one counter, and a histogram of fourteen lines.
        assert!(series < 60 * 15 + 250, "{series} series, {} bytes more", text.len() - empty);
        assert!(text.contains("class=\"other\"") && text.contains("resource=\"other\""), "{text}");
    }
}
