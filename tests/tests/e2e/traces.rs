//! Each reconcile is one trace, from the source to the status, and the API server receives its ID.

use std::{collections::BTreeSet, env, process::Command, sync::Arc, time::Duration};

use chandler_tests::{
    InProcess, World,
    bundles::{Bundle, config_map},
    collector::{Collector, ExportedSpan},
};
use chandler_traces::{ExportOptions, Exporter};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams, client::Body};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tower::util::MapRequestLayer;
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::PLAIN;

/// The spans of one installation. The provisioner's comes from the engine.
const STEPS: &[&str] = &[
    "reconcile",
    "prepare",
    "source",
    "digest",
    "tree",
    "release",
    "provisioner",
    "plan",
    "preflights",
    "stages",
    "probes",
    "prune",
    "status",
];

fn names(spans: &[&ExportedSpan]) -> BTreeSet<String> {
    spans.iter().map(|span| span.name.clone()).collect()
}

/// The variable of a process that runs one test.
const ALONE: &str = "CHANDLER_TESTS_ALONE";

/// Whether this process runs this test alone, as with cargo-nextest. If not, the test runs in a process of its own.
fn is_alone(test: &str) -> bool {
    if env::var_os("NEXTEST").is_some() || env::var_os(ALONE).is_some() {
        return true;
    }
    let program = env::current_exe().expect("the path of this program");
    let status = Command::new(program).args(["--exact", test]).env(ALONE, "1").status();
    assert!(status.expect("the program starts").success(), "{test} failed in a process of its own");
    false
}

/// The exporter is a subscriber of the whole process, which other tests have set already.
#[test]
fn an_installation_is_one_trace_and_its_requests_and_events_name_it() {
    if is_alone("traces::an_installation_is_one_trace_and_its_requests_and_events_name_it") {
        Runtime::new().expect("a runtime").block_on(trace());
    }
}

async fn trace() {
    let collector = Collector::new();
    let options = ExportOptions {
        endpoint: collector.url().parse().expect("a URL"),
        ratio: 1.0,
        certificate_authority: None,
        version: "v0.0.0",
    };
    let exporter = Exporter::start(&options, tokio::runtime::Handle::current()).expect("an exporter");
    tracing_subscriber::registry().with(exporter.layer()).try_init().expect("the first subscriber of the process");
    let mut world = World::new().await;
    world.stop_controller().await;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let recording = MapRequestLayer::new(move |request: http::Request<Body>| {
        let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
        kept.lock().push((request.method().to_string(), request.uri().path().to_owned(), header));
        request
    });
    let client = chandler_client::builder(world.config()).expect("a configuration").with_layer(&recording).build();
    world.start_controller_on(InProcess::RecordsRequests, client);

    let image = world.push(&Bundle::empty().with("manifests/map.yaml", &config_map("bell", "v1"))).await;
    let name = world.name();
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    world.stop_controller().await;
    let exporter = tokio::task::spawn_blocking(move || exporter.shut_down(Duration::from_mins(1)));
    exporter.await.expect("the exporter stops");

    let spans = collector.spans();
    let traces: BTreeSet<&str> = spans.iter().map(|span| span.trace.as_str()).collect();
    let of = |trace: &str| -> Vec<&ExportedSpan> { spans.iter().filter(|span| span.trace == trace).collect() };
    let complete =
        traces.iter().map(|trace| of(trace)).find(|spans| STEPS.iter().all(|step| names(spans).contains(*step)));
    let complete = complete.unwrap_or_else(|| {
        panic!("no trace has all steps: {:#?}", traces.iter().map(|it| names(&of(it))).collect::<Vec<_>>())
    });
    let root = complete.iter().find(|span| span.parent.is_empty()).expect("a root");
    assert_eq!(root.name, "reconcile");
    for attribute in ["kind=BundleDeployment".to_owned(), format!("name={name}"), "outcome=completed".to_owned()] {
        assert!(root.attributes.contains(&attribute), "{root:?}");
    }
    assert!(complete.iter().all(|span| span.parent.is_empty() == (span == root)), "one root: {complete:#?}");

    // The API server received the trace and the span of the request that created the object.
    let sent = sent.lock().clone();
    let header = |method: &str, ending: &str| {
        let of = sent.iter().find(|(verb, path, _)| verb == method && path.ends_with(ending));
        of.unwrap_or_else(|| panic!("no {method} of {ending}")).2.clone()
    };
    let request = header("POST", &format!("/namespaces/{}/configmaps", world.namespace)).expect("a header");
    let [_, trace, span, flags] = request.split('-').collect::<Vec<_>>()[..] else { panic!("{request}") };
    assert_eq!((trace, flags), (root.trace.as_str(), "01"));
    assert!(complete.iter().any(|other| other.id == span && other.name.ends_with(" configmaps")), "{request}");
    assert_eq!(header("GET", "/version"), None, "nothing outside of a reconcile is traced");

    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let events = events.list(&ListParams::default()).await.expect("Events").items;
    let about = |event: &&Event| event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name.as_str());
    let ids: Vec<Option<&String>> = events
        .iter()
        .filter(about)
        .map(|event| event.metadata.annotations.as_ref()?.get("chandler.dev/trace-id"))
        .collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| id.is_some_and(|id| traces.contains(id.as_str()))), "{ids:?}");
    world.start_controller();
    world.finish().await;
}
