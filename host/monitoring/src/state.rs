//! What is read at each scrape.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::{
    Health,
    labels::{ObjectsLabel, OutcomeLabel, StateLabel},
};

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
    /// The number of revisions in the histories of BundleDeployments, by their outcome.
    pub revisions: Vec<(&'static str, usize)>,
    /// Objects that other clients change again after each repair.
    pub contested: usize,
    /// Components that were compiled since the start.
    pub compiled: u64,
    /// Components whose code was read from the cache since the start.
    pub cached: u64,
    /// Files of the code cache that were refused as corrupt or untrusted since the start.
    pub rejected: u64,
    /// Reconciles that wait for their turn.
    pub waiting: usize,
    /// How long the first of them has waited; zero if none waits.
    pub oldest_wait: Duration,
    /// The kubeconfigs of other clusters that are in use, by whether their cluster answered last.
    pub targets: Vec<(&'static str, usize)>,
}

/// Reads what the controller holds.
pub(crate) type Source = Arc<dyn Fn() -> State + Send + Sync>;

/// Reads the state at each scrape.
pub(crate) struct StateCollector {
    pub(crate) health: Health,
    pub(crate) source: Mutex<Option<Source>>,
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
        gauges(&mut encoder, "revisions", "Revisions in the histories of BundleDeployments, by outcome", {
            state.revisions.iter().map(|(outcome, count)| (OutcomeLabel { outcome }, *count))
        })?;
        gauges(&mut encoder, "target_clusters", "Kubeconfigs of other clusters in use, by state of the cluster", {
            state.targets.iter().map(|(state, count)| (StateLabel { state }, *count))
        })?;
        let mut gauge = |name, help, count| {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        let help = "Objects that other clients change again after each repair";
        gauge("contested_objects", help, state.contested)?;
        gauge("reconciles_waiting", "Reconciles of BundleDeployments that wait for their turn", state.waiting)?;
        let oldest = ConstGauge::new(state.oldest_wait.as_secs_f64());
        let help = "How long the first of the waiting reconciles has waited; 0 if none waits";
        let unit = Some(&Unit::Seconds);
        oldest.encode(encoder.encode_descriptor("reconciles_oldest_wait", help, unit, MetricType::Gauge)?)?;
        let mut counter = |name, help, value| {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
        };
        counter("components_compiled", "Components of provisioners that were compiled", state.compiled)?;
        counter("components_cached", "Components whose code was read from the cache", state.cached)?;
        counter(
            "components_rejected",
            "Files of the code cache that were refused as corrupt or untrusted",
            state.rejected,
        )
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
