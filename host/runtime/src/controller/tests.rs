use std::{collections::BTreeSet, convert::Infallible, future::pending};

use futures::FutureExt as _;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, NamespaceStatus, Secret};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::{LogMetrics, Next};

/// Reports every call.
struct Recorder {
    calls: mpsc::UnboundedSender<String>,
    backoff: Backoff,
}

impl Recorder {
    fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (calls, received) = mpsc::unbounded_channel();
        (Self { calls, backoff: Backoff::default() }, received)
    }

    fn record(&self, call: String) {
        self.calls.send(call).unwrap_or_default();
    }
}

#[derive(Debug, thiserror::Error)]
#[error("failed")]
struct Failure {
    is_conflict: bool,
}

impl ReconcileError for Failure {
    fn is_conflict(&self) -> bool {
        self.is_conflict
    }

    fn of_status(_: kube::Error) -> Self {
        Self { is_conflict: false }
    }
}

impl Reconciler for Recorder {
    type Object = ConfigMap;
    /// Kinds without a status have none to write.
    type Status = ();
    type Error = Failure;

    async fn reconcile(&self, object: &ConfigMap) -> Result<Report<()>, Failure> {
        self.record(format!("reconcile {}", object.name_any()));
        Ok(Report::nothing())
    }

    fn failed(&self, _: &ConfigMap, _: &Failure, _: u32) -> Option<()> {
        None
    }

    fn status(_: &ConfigMap) -> Option<&()> {
        None
    }

    async fn written(&self, _: &ConfigMap, _: Option<&()>, (): &()) {}

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    async fn undecodable(&self, guarded: &Guarded<ConfigMap>, invalid: &InvalidObject) -> Result<(), Failure> {
        self.record(format!("undecodable {}: {}", guarded.name_any(), !invalid.error.is_empty()));
        Ok(())
    }

    fn observed(&self, object: &ConfigMap) {
        assert!(object.managed_fields().is_empty());
        self.record(format!("observed {}", object.name_any()));
    }

    fn removed(&self, object: &ObjectMeta) {
        self.record(format!("removed {:?}", object.name));
    }

    fn listed(&self) {
        self.record("listed".to_owned());
    }

    fn answers_again(&self, name: &str) {
        self.record(format!("answers again for {name}"));
    }
}

struct Outcomes(mpsc::UnboundedSender<String>);

impl Metrics for Outcomes {
    fn reconciled(&self, kind: &str, outcome: Outcome, _: Option<Reason>, _: Duration) {
        self.0.send(format!("{kind} {}", outcome.as_str())).unwrap_or_default();
    }
}

/// An API server with two objects; one of them does not decode. Its watches have no events.
fn client() -> Client {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            pending::<()>().await;
        }
        let object = |name: &str, data| {
            let metadata = json!({"name": name, "namespace": "n", "managedFields": [{"manager": "kubectl"}]});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        };
        let items = [object("good", json!({})), object("odd", json!("not a map"))];
        let list =
            json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": items});
        Ok::<_, Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn objects_are_reconciled_and_one_that_does_not_decode_is_reported_until_shutdown() {
    let (reconciler, mut calls) = Recorder::new();
    let metrics = Arc::new(Outcomes(reconciler.calls.clone()));
    let reflector = Reflector::new(Availability::default());
    let cache = reflector.cache();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = stopped.map(drop).boxed().shared();
    let (api, config) = (Api::all(client()), watcher::Config::default());
    let controller = KindController::new(reflector, api, config, Arc::new(reconciler), metrics, &shutdown);
    let running = tokio::spawn(controller.run());
    let expected = BTreeSet::from(
        [
            "observed good",
            "listed",
            "reconcile good",
            "ConfigMap completed",
            "undecodable odd: true",
            "ConfigMap undecodable",
        ]
        .map(str::to_owned),
    );
    let mut received = BTreeSet::new();
    while received.len() < expected.len() {
        received.insert(calls.recv().await.expect("the controller runs"));
    }
    assert_eq!(received, expected);
    assert_eq!(cache.state().len(), 2);
    stop.send(()).expect("the controller runs");
    running.await.expect("it stops");
}

#[tokio::test]
async fn of_other_kinds_only_metadata_is_requested() {
    let (requested, mut requests) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let accepted = request.headers().get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        requested.send((request.uri().path().to_owned(), accepted.unwrap_or_default().to_owned())).unwrap_or_default();
        pending::<Result<Response<Body>, Infallible>>()
    });
    let client = Client::new(service, "default");
    let shutdown = pending().boxed().shared();
    let controller = KindController::new(
        Reflector::new(Availability::default()),
        Api::all(client.clone()),
        watcher::Config::default(),
        Arc::new(Recorder::new().0),
        Arc::new(LogMetrics),
        &shutdown,
    )
    .watches(Api::<PartialObjectMeta<Secret>>::all(client), watcher::Config::default(), |_| Vec::new());
    let running = tokio::spawn(controller.run());
    loop {
        let (path, accepted) = requests.recv().await.expect("the controller runs");
        if path.ends_with("/secrets") {
            assert!(accepted.contains("as=PartialObjectMetadata"), "{accepted}");
            break;
        }
    }
    running.abort();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_first_list_that_never_comes() {
    let service = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let (api, config) = (Api::all(Client::new(service, "default")), watcher::Config::default());
    let shutdown = std::future::ready(()).boxed().shared();
    let reconciler = Arc::new(Recorder::new().0);
    KindController::new(
        Reflector::new(Availability::default()),
        api,
        config,
        reconciler,
        Arc::new(LogMetrics),
        &shutdown,
    )
    .run()
    .await;
}

#[tokio::test]
async fn a_failed_reconcile_is_retried_with_backoff() {
    let reconciler = Arc::new(Recorder::new().0);
    let context = Arc::new(Context {
        reconciler: Arc::clone(&reconciler),
        api: Api::all(client()),
        metrics: Arc::new(LogMetrics),
        own_writes: OwnWrites::default(),
        triggers: Triggers::new().0,
    });
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let guarded = Arc::new(Guarded::written(ConfigMap { metadata, ..ConfigMap::default() }));
    for (failures, is_conflict) in [(1, false), (2, true)] {
        let action = retry(Arc::clone(&guarded), &Failure { is_conflict }, Arc::clone(&context));
        assert_ne!(action, Action::await_change());
        assert_eq!(reconciler.backoff.failures("a"), failures);
    }
}

#[tokio::test]
async fn what_failed_is_reconciled_when_the_api_server_answers_again() {
    let (reconciler, mut received) = Recorder::new();
    for _ in 0..20 {
        reconciler.backoff.failed("a");
    }
    let (triggers, requests) = Triggers::new();
    let (own_writes, metrics, api) = (OwnWrites::default(), Arc::new(LogMetrics), Api::all(client()));
    let context = Arc::new(Context { reconciler: Arc::new(reconciler), api, metrics, own_writes, triggers });
    let returns = stream::iter([()]).chain(stream::pending());
    let retrying = retry_all(returns, Arc::clone(&context));
    let mut requests = Box::pin(requests);
    tokio::select! {
        () = retrying => panic!("it never ends"),
        object = requests.next() => assert_eq!(object.map(|object| object.name), Some("a".to_owned())),
    }
    assert_eq!(received.try_recv().as_deref(), Ok("answers again for a"));
    assert_eq!(context.reconciler.backoff.failures("a"), 0);
}

/// Reports a phase, or fails.
struct Phases {
    result: Result<Next, Failure>,
    written: mpsc::UnboundedSender<String>,
    backoff: Backoff,
}

impl Reconciler for Phases {
    type Object = Namespace;
    type Status = NamespaceStatus;
    type Error = Failure;

    async fn reconcile(&self, _: &Namespace) -> Result<Report<NamespaceStatus>, Failure> {
        match &self.result {
            Ok(next) => Ok(Report { status: Some(phase("Active")), next: next.clone() }),
            Err(Failure { is_conflict }) => Err(Failure { is_conflict: *is_conflict }),
        }
    }

    fn failed(&self, _: &Namespace, _: &Failure, failures: u32) -> Option<NamespaceStatus> {
        Some(phase(&format!("Failed after {failures}")))
    }

    fn status(namespace: &Namespace) -> Option<&NamespaceStatus> {
        namespace.status.as_ref()
    }

    async fn written(&self, _: &Namespace, stored: Option<&NamespaceStatus>, status: &NamespaceStatus) {
        let phase = |status: &NamespaceStatus| status.phase.clone().unwrap_or_default();
        self.written.send(format!("{:?} -> {}", stored.map(phase), phase(status))).unwrap_or_default();
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }
}

fn phase(phase: &str) -> NamespaceStatus {
    NamespaceStatus { phase: Some(phase.to_owned()), ..NamespaceStatus::default() }
}

/// Reconciles a Namespace once, after two failed reconciles, against an API server that accepts a status or refuses it. Returns the result,
/// the statuses that were written, and the number of failures in a row.
async fn reconciled(result: Result<Next, Failure>, stored: &str, accepts: bool) -> (bool, Vec<String>, u32) {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        assert_eq!(request.uri().path(), "/api/v1/namespaces/a/status");
        let body = http_body_util::BodyExt::collect(request.into_body()).await.unwrap().to_bytes();
        let patch: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let (code, answer) = if accepts {
            (
                200,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "status": patch["status"]}),
            )
        } else {
            (500, json!({"kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500}))
        };
        let answer = Body::from(answer.to_string().into_bytes());
        Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
    });
    let (sender, mut written) = mpsc::unbounded_channel();
    let reconciler = Phases { result, written: sender, backoff: Backoff::default() };
    reconciler.backoff.failed("a");
    reconciler.backoff.failed("a");
    let context = Arc::new(Context {
        reconciler: Arc::new(reconciler),
        api: Api::all(Client::new(service, "default")),
        metrics: Arc::new(LogMetrics),
        own_writes: OwnWrites::default(),
        triggers: Triggers::new().0,
    });
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, status: Some(phase(stored)), ..Namespace::default() };
    let result = reconcile(Arc::new(Guarded::written(namespace)), Arc::clone(&context)).await;
    let statuses = std::iter::from_fn(|| written.try_recv().ok()).collect();
    (result.is_ok(), statuses, context.reconciler.backoff.failures("a"))
}

#[tokio::test]
async fn what_a_reconcile_found_is_written_and_only_then_it_succeeded() {
    let ok = |next: Next| Ok(next);
    let written = || vec![r#"Some("Old") -> Active"#.to_owned()];
    assert_eq!(reconciled(ok(Next::Change), "Old", true).await, (true, written(), 0));
    assert_eq!(reconciled(ok(Next::Change), "Active", true).await, (true, vec![], 0), "it does not differ");
    let retry = Next::Retry { at_least: Duration::ZERO, at_most: None };
    assert_eq!(reconciled(ok(retry), "Old", true).await, (true, written(), 3));
    assert_eq!(reconciled(ok(Next::Change), "Old", false).await, (false, vec![], 2), "the failures still count");
}

#[tokio::test]
async fn a_failure_is_written_to_the_status_unless_the_object_changed_meanwhile() {
    let failed = |is_conflict| Err(Failure { is_conflict });
    let written = vec![r#"Some("Old") -> Failed after 2"#.to_owned()];
    assert_eq!(reconciled(failed(false), "Old", true).await, (false, written, 2));
    assert_eq!(reconciled(failed(true), "Old", true).await, (false, vec![], 2));
    assert_eq!(reconciled(failed(false), "Old", false).await, (false, vec![], 2));
}
