//! What is exposed, by name and number of series.

use super::*;
use crate::{ConditionCount, Phase};

fn metrics() -> Metrics {
    let health = Health::default();
    health.note(Phase::Reconciling);
    Metrics::new("1.2.3", health)
}

#[test]
fn the_exposition_has_what_was_measured() {
    let metrics = metrics();
    metrics.reconciled("BundleDeployment", "completed", "Succeeded", Duration::from_millis(30));
    metrics.stepped(Step::RollOut, Duration::from_millis(20));
    metrics.requested("apply", "configmaps", 200, Some(Duration::from_millis(3)));
    let usage = CallUsage { memory: 2 << 20, read: 4096, returned: 0 };
    metrics.called("core-rukpak-io-registry", CallOutcome::Completed, Duration::from_millis(40), usage);
    metrics.fetched("image", HostClass::Public, CallOutcome::Failed("Unauthorized"), Duration::from_millis(9));
    metrics.looked_up("releases", false);
    metrics.cleaned("content", 5000);
    metrics.repaired(true, 2);
    metrics.answered(ResolverOutcome::Refused, Duration::from_millis(7), 50);
    metrics.renewed("failed");
    metrics.webhook("accepted");
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
        revisions: vec![("Succeeded", 7)],
        contested: 1,
        compiled: 3,
        cached: 1,
        rejected: 2,
        waiting: 4,
        oldest_wait: Duration::from_millis(1500),
        targets: vec![("available", 2)],
    });
    let text = metrics.exposition();
    // The order of several series of a metric is undefined. The bytes that a call read and returned are two.
    let ours = text.lines().filter(|line| !line.contains("process_") && !line.contains("direction=\"returned\""));
    let ours: Vec<&str> = ours.collect();
    insta::assert_snapshot!(ours.join("\n"));
    for name in ["resident_memory_bytes", "cpu_seconds_total", "open_fds", "threads"] {
        assert!(text.contains(&format!("\nprocess_{name} ")), "{name}: {text}");
    }
}

#[test]
fn a_watch_is_counted_and_has_no_duration() {
    let metrics = metrics();
    metrics.requested("watch", "configmaps", 200, Some(Duration::from_mins(5)));
    let text = metrics.exposition();
    let counted = "chandler_api_requests_total{verb=\"watch\",resource=\"configmaps\",code=\"200\"} 1\n";
    assert!(text.contains(counted) && !text.contains("chandler_api_request_duration_seconds_count"), "{text}");
}

#[test]
fn a_failed_call_is_counted_by_its_reason() {
    let metrics = metrics();
    let usage = CallUsage::default();
    metrics.called("hostile", CallOutcome::Completed, Duration::from_millis(40), usage);
    metrics.called("hostile", CallOutcome::Failed("PluginTimeout"), Duration::from_secs(10), usage);
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
    metrics.reconciled("Catalog", "completed", "Succeeded", Duration::ZERO);
    metrics.stepped(Step::Report, Duration::ZERO);
    metrics.requested("get", "pods", 200, Some(Duration::ZERO));
    metrics.called("class", CallOutcome::Completed, Duration::ZERO, CallUsage::default());
    metrics.fetched("git", HostClass::Public, CallOutcome::Completed, Duration::ZERO);
    metrics.looked_up("releases", true);
    metrics.cleaned("releases", 0);
    metrics.repaired(false, 1);
    metrics.answered(ResolverOutcome::Decided, Duration::ZERO, 0);
    metrics.renewed("renewed");
    metrics.notified(NotificationOutcome::Delivered, 1);
    metrics.webhook("accepted");
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

/// Every function that measures gets a thousand names, also where the controller passes only constants.
#[test]
fn a_thousand_hostile_names_do_not_make_many_series() {
    let metrics = metrics();
    let series = || metrics.exposition().lines().filter(|line| !line.starts_with('#')).count();
    let record = |number: usize| {
        let name = format!("name-{number}");
        let quoted = format!("name\"\n{number}");
        let constant: &'static str = name.clone().leak();
        let hostile: &'static str = quoted.clone().leak();
        for (text, word) in [(&name, constant), (&quoted, hostile)] {
            metrics.reconciled(text, word, word, Duration::ZERO);
            metrics.requested("get", text, 404, Some(Duration::ZERO));
            metrics.called(text, CallOutcome::Failed(word), Duration::ZERO, CallUsage::default());
            let host = HostClass::of_location(text);
            metrics.fetched(word, host, CallOutcome::Failed(word), Duration::ZERO);
            metrics.looked_up(word, true);
            metrics.cleaned(word, 1);
            metrics.renewed(word);
        }
        metrics.stepped(Step::ALL[number % Step::ALL.len()], Duration::ZERO);
        metrics.repaired(number.is_multiple_of(2), number);
        metrics.answered(ResolverOutcome::Refused, Duration::ZERO, number as u64);
    };
    (0..1000).for_each(record);
    let bounded = series();
    // A histogram has fourteen lines, and a class two histograms; the words are constants in a controller.
    assert!(bounded < CLASSES * 2 * 14 + KINDS * 14 + WORDS * 24 + RESOURCES + 100, "{bounded} series");
    (1000..2000).for_each(record);
    assert_eq!(series(), bounded, "another thousand names make no series");
    let text = metrics.exposition();
    for other in ["class=\"other\"", "resource=\"other\"", "kind=\"other\"", "reason=\"other\""] {
        assert!(text.contains(other), "{other}: {text}");
    }
}

#[test]
fn durations_of_a_trace_are_its_exemplars() {
    use opentelemetry::{
        Context,
        trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
    };

    let traced = |flags| {
        let (trace, span) = (TraceId::from(0xabc), SpanId::from(1));
        Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, TraceState::default()))
    };
    let metrics = Metrics::new("v1", Health::default());
    let exemplars = || metrics.exposition().matches("# {trace_id=\"00000000000000000000000000000abc\"} ").count();
    let measure = || {
        metrics.stepped(Step::Fetch, Duration::from_secs(1));
        metrics.reconciled("BundleDeployment", "completed", "Succeeded", Duration::from_secs(1));
        metrics.requested("get", "pods", 200, Some(Duration::from_secs(1)));
    };
    measure();
    // A trace that is not recorded can not be looked up.
    let unsampled = traced(TraceFlags::default()).attach();
    measure();
    drop(unsampled);
    assert_eq!(exemplars(), 0, "{}", metrics.exposition());
    let _sampled = traced(TraceFlags::SAMPLED).attach();
    measure();
    measure();
    assert_eq!(exemplars(), 3, "one for each bucket: {}", metrics.exposition());
}
