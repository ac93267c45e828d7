//! Which traces are recorded.

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt as _, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// The name of the span that a trace begins with.
pub(crate) const ROOT: &str = "reconcile";

/// Records a share of the reconciles, and nothing that happens outside of one: watches, the Lease, polls.
#[derive(Clone, Debug)]
pub(crate) struct Reconciles {
    ratio: Sampler,
}

impl Reconciles {
    /// Records this share, from 0 to 1.
    pub(crate) fn new(ratio: f64) -> Self {
        Self { ratio: Sampler::TraceIdRatioBased(ratio) }
    }
}

impl ShouldSample for Reconciles {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let parent = parent.filter(|context| context.has_active_span());
        let is_recorded = match parent {
            Some(context) => context.span().span_context().is_sampled(),
            None if name == ROOT => {
                return self.ratio.should_sample(None, trace, name, kind, attributes, links);
            }
            None => false,
        };
        let decision = if is_recorded { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop };
        SamplingResult { decision, attributes: Vec::new(), trace_state: TraceState::default() }
    }
}
