//! The ID of the trace in log lines.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Full, Json, Writer},
    },
    registry::LookupSpan,
};

use crate::trace_id;

/// A format of log lines, and the field `trace_id` while a trace is being recorded. Other lines are unchanged.
#[derive(Debug)]
pub struct WithTraceId<F> {
    inner: F,
    is_json: bool,
}

impl<T> WithTraceId<Format<Full, T>> {
    /// Text.
    pub fn text(format: Format<Full, T>) -> Self {
        Self { inner: format, is_json: false }
    }
}

impl<T> WithTraceId<Format<Json, T>> {
    /// One JSON object per line.
    pub fn json(format: Format<Json, T>) -> Self {
        Self { inner: format, is_json: true }
    }
}

impl<F, S, N> FormatEvent<S, N> for WithTraceId<F>
where
    F: FormatEvent<S, N>,
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(id) = trace_id() else { return self.inner.format_event(context, out, event) };
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end_matches('\n');
        match line.strip_prefix('{').filter(|_| self.is_json) {
            Some(rest) => writeln!(out, "{{\"trace_id\":\"{id}\",{rest}"),
            None => writeln!(out, "{line} trace_id={id}"),
        }
    }
}
