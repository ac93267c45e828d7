use std::{
    io::{self, Write},
    sync::Arc,
};

use http::HeaderMap;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SimpleSpanProcessor, SpanData, SpanExporter},
};
use parking_lot::Mutex;
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::{WithTraceId, detached, inject, trace_id};

#[derive(Clone, Debug, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().extend(batch);
        Ok(())
    }
}

impl Exported {
    /// What is exported of this work.
    fn of(ratio: f64, work: impl FnOnce()) -> Vec<SpanData> {
        let spans = Self::default();
        let exporter = spans.exporter(ratio);
        let subscriber = tracing_subscriber::registry().with(exporter.layer());
        tracing::subscriber::with_default(subscriber, work);
        spans.0.lock().clone()
    }

    fn exporter(&self, ratio: f64) -> Exporter {
        let provider = SdkTracerProvider::builder()
            .with_span_processor(SimpleSpanProcessor::new(self.clone()))
            .with_sampler(Reconciles::new(ratio));
        Exporter(provider.build())
    }
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_ref()).collect()
}

fn reconcile() -> tracing::Span {
    tracing::info_span!(target: "chandler::trace", "reconcile", name = "bell")
}

fn step(name: &'static str) -> tracing::Span {
    tracing::info_span!(target: "chandler::trace", "step", otel.name = name)
}

#[test]
fn a_reconcile_is_one_trace_without_the_text_of_log_lines() {
    let spans = Exported::of(1.0, || {
        reconcile().in_scope(|| {
            tracing::error!(password = "s3cret", "a line");
            step("plan").in_scope(|| {
                tracing::info_span!(target: "elsewhere", "hidden", password = "s3cret").in_scope(|| {
                    step("request").in_scope(|| tracing::info!(target: "chandler::trace", "s3cret"));
                });
            });
        });
        step("request of a watch").in_scope(|| step("below it").in_scope(|| {}));
    });
    assert_eq!(names(&spans), ["request", "plan", "reconcile"]);
    let trace = spans[0].span_context.trace_id();
    assert!(spans.iter().all(|span| span.span_context.trace_id() == trace && span.events.is_empty()));
    assert_eq!(spans[0].parent_span_id, spans[1].span_context.span_id(), "hidden spans are left out");
    assert_eq!(spans[1].parent_span_id, spans[2].span_context.span_id());
    assert!(!format!("{spans:?}").contains("s3cret"));
}

#[test]
fn a_ratio_of_nothing_exports_nothing() {
    let spans = Exported::of(0.0, || {
        reconcile().in_scope(|| {
            let mut headers = HeaderMap::new();
            inject(&mut headers);
            assert_eq!((trace_id(), headers.len()), (None, 0));
            step("plan").in_scope(|| {});
        });
    });
    assert!(spans.is_empty(), "{spans:?}");
}

#[test]
fn requests_carry_the_trace_and_the_span() {
    let mut headers = HeaderMap::new();
    inject(&mut headers);
    assert!(headers.is_empty() && trace_id().is_none());
    let spans = Exported::of(1.0, || reconcile().in_scope(|| inject(&mut headers)));
    let span = &spans[0].span_context;
    let expected = format!("00-{}-{}-01", span.trace_id(), span.span_id());
    assert_eq!(headers["traceparent"], expected.as_str());
}

#[test]
fn work_that_outlives_a_reconcile_is_in_its_trace_and_does_not_prolong_it() {
    let spans = Exported::of(1.0, || {
        let root = reconcile();
        let job = root.in_scope(|| detached(tracing::info_span!(target: "chandler::trace", parent: None, "prepare")));
        drop(root);
        job.in_scope(|| step("tree").in_scope(|| {}));
    });
    assert_eq!(names(&spans), ["reconcile", "tree", "prepare"]);
    assert_eq!(spans[2].parent_span_id, spans[0].span_context.span_id());
    assert!(spans.iter().all(|span| span.span_context.trace_id() == spans[0].span_context.trace_id()));
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_of_a_reconcile_name_its_trace_and_others_are_unchanged() {
    for is_json in [false, true] {
        let (exported, written) = (Exported::default(), Written::default());
        let out = written.clone();
        let layer = tracing_subscriber::fmt::layer().without_time().with_ansi(false).with_writer(move || out.clone());
        let spans_are_off = || filter_fn(|metadata| metadata.target() != TARGET);
        let layer = if is_json {
            layer.json().flatten_event(true).map_event_format(WithTraceId::json).with_filter(spans_are_off()).boxed()
        } else {
            layer.map_event_format(WithTraceId::text).with_filter(spans_are_off()).boxed()
        };
        let subscriber = tracing_subscriber::registry().with(layer).with(exported.exporter(1.0).layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("before");
            reconcile().in_scope(|| step("plan").in_scope(|| tracing::info!(objects = 2, "applied")));
        });
        let id = exported.0.lock()[0].span_context.trace_id().to_string();
        let text = String::from_utf8(written.0.lock().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        if is_json {
            let line: Value = serde_json::from_str(lines[1]).unwrap();
            assert_eq!((line["trace_id"].as_str(), line["objects"].as_i64()), (Some(id.as_str()), Some(2)), "{text}");
            assert!(serde_json::from_str::<Value>(lines[0]).unwrap().get("trace_id").is_none());
        } else {
            let target = "chandler_traces::exporter::tests";
            let applied = format!(" INFO {target}: applied objects=2 trace_id={id}");
            assert_eq!(lines, [format!(" INFO {target}: before"), applied]);
        }
    }
}
