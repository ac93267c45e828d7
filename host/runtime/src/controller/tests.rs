use std::{collections::BTreeSet, convert::Infallible, future::pending};

use futures::FutureExt as _;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::LogMetrics;

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
}

impl Reconciler for Recorder {
    type Object = ConfigMap;
    type Error = Failure;

    async fn reconcile(&self, object: &ConfigMap) -> Result<Action, Failure> {
        self.record(format!("reconcile {}", object.name_any()));
        Ok(Action::await_change())
    }

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
    fn reconciled(&self, kind: &str, outcome: Outcome, _: Duration) {
        self.0.send(format!("{kind} {}", outcome.as_str())).unwrap_or_default();
    }
}

/// An API server with two objects, of which one does not decode. Its watches have no events.
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
        metrics: Arc::new(LogMetrics),
        own_writes: OwnWrites::default(),
        triggers: Triggers::new().0,
    });
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let guarded = Arc::new(kube::core::DeserializeGuard(Ok(ConfigMap { metadata, ..ConfigMap::default() })));
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
    let (own_writes, metrics) = (OwnWrites::default(), Arc::new(LogMetrics));
    let context = Arc::new(Context { reconciler: Arc::new(reconciler), metrics, own_writes, triggers });
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
