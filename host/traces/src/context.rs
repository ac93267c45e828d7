//! The trace of the code that runs.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt as _},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The header of W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The ID of the trace that is being recorded here, as 32 hexadecimal digits.
pub fn trace_id() -> Option<String> {
    recorded(|context| context.trace_id().to_string())
}

/// Adds the header `traceparent` of the current span, if its trace is being recorded. Nothing else of the trace leaves with the request: no
/// `tracestate` and no baggage.
pub fn inject(headers: &mut HeaderMap) {
    let value = recorded(|context| format!("00-{}-{}-01", context.trace_id(), context.span_id()));
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// Makes a root span (`parent: None`) a part of the current trace. Work that outlives a reconcile needs such a span: a reconcile would not end
/// before the child of its span.
pub fn detached(span: Span) -> Span {
    if !span.is_disabled() && recorded(|_| ()).is_some() {
        // An error means that nothing exports the span.
        let _ = span.set_parent(Context::current());
    }
    span
}

fn recorded<T>(read: impl FnOnce(&SpanContext) -> T) -> Option<T> {
    Context::map_current(|context| {
        let span = context.span();
        let context = span.span_context();
        (context.is_valid() && context.is_sampled()).then(|| read(context))
    })
}
