use futures::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex as Shared;
use serde_json::{Value, json};

use super::*;

fn cluster_info(version: &str, kinds: &[&str]) -> ClusterInfo {
    ClusterInfo {
        kubernetes_version: version.to_owned(),
        api_kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        openshift_version: None,
    }
}

#[test]
fn a_change_names_the_differences() {
    let before = cluster_info("v1.33.0", &["a/v1/A", "b/v1/B"]);
    for (now, text) in [
        (before.clone(), ""),
        (cluster_info("v1.34.0", &["a/v1/A", "b/v1/B"]), "Kubernetes v1.33.0 -> v1.34.0"),
        (cluster_info("v1.33.0", &["a/v1/A", "c/v1/C"]), "serves c/v1/C; no longer serves b/v1/B"),
        (cluster_info("v1.33.0", &[]), "no longer serves a/v1/A, b/v1/B"),
    ] {
        let change = Change::between(&before, &now);
        assert_eq!(change.to_string(), text);
        assert_eq!(change.is_empty(), text.is_empty());
    }
    let many: Vec<String> = (0..9).map(|number| format!("v1/K{number}")).collect();
    let change = Change { added: many, ..Change::default() };
    assert_eq!(change.to_string(), "serves v1/K0, v1/K1, v1/K2, v1/K3, v1/K4 and 4 more");
}

/// The responses of an API server: its version, or `None` while it is unavailable; and the kinds of one group.
type Answers = Arc<Shared<(Option<&'static str>, Vec<&'static str>)>>;

fn cluster(answers: &Answers) -> ClusterInfoWatch {
    let answers = Arc::clone(answers);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (version, kinds) = answers.lock().clone();
        let answer = answer(request.uri().path(), version, &kinds);
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    ClusterInfoWatch::new(Client::new(service, "default"), Availability::default())
}

fn answer(path: &str, version: Option<&str>, kinds: &[&str]) -> Response<Body> {
    let resource = |kind: &&str| {
        json!({"resource": kind.to_lowercase(), "scope": "Namespaced", "verbs": ["get", "list"],
               "responseKind": {"group": "x.io", "version": "v1", "kind": kind}})
    };
    let groups = |groups: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups});
    let body = match (path, version) {
        (_, None) => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "reason": "",
                            "message": "unavailable"}),
        ("/version", Some(version)) => json!({
            "major": "1", "minor": "0", "gitVersion": version, "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": ""
        }),
        ("/apis", _) => groups(json!([{
            "metadata": {"name": "x.io"},
            "versions": [{"version": "v1", "resources": kinds.iter().map(resource).collect::<Vec<_>>()}]
        }])),
        _ => groups(json!([])),
    };
    let status = if version.is_some() { 200 } else { 503 };
    Response::builder().status(status).body(Body::from(body.to_string().into_bytes())).unwrap()
}

#[tokio::test]
async fn a_change_is_notified_once_and_an_outage_changes_nothing() {
    let answers: Answers = Arc::new(Shared::new((Some("v1.33.0"), vec!["A"])));
    let set = |version, kinds| *answers.lock() = (version, kinds);
    let cluster = cluster(&answers);
    let mut changes = cluster.changes();
    let mut is_notified = async || {
        let change = changes.next().now_or_never().flatten();
        if let Some(change) = &change {
            assert_eq!(*change, cluster.get().await, "the stream yields the cached cluster info");
        }
        change.is_some()
    };

    // The first cluster info is not a change.
    assert_eq!(*cluster.get().await, cluster_info("v1.33.0", &["x.io/v1/A"]));
    assert!(cluster.refresh().await);
    assert!(!is_notified().await);

    set(Some("v1.34.0"), vec!["A"]);
    assert_eq!(cluster.get().await.kubernetes_version, "v1.33.0", "reconciles see one copy until the next refresh");
    assert!(cluster.refresh().await && is_notified().await);
    assert_eq!(cluster.get().await.kubernetes_version, "v1.34.0");
    assert!(cluster.refresh().await && !is_notified().await);

    set(None, vec![]);
    assert!(!cluster.refresh().await, "the next refresh is sooner");
    assert!(!is_notified().await);
    assert_eq!(*cluster.get().await, cluster_info("v1.34.0", &["x.io/v1/A"]));

    set(Some("v1.34.0"), vec!["A", "B"]);
    assert!(cluster.refresh().await && is_notified().await);
    assert_eq!(*cluster.get().await, cluster_info("v1.34.0", &["x.io/v1/A", "x.io/v1/B"]));
}

#[test]
fn the_version_of_openshift_is_the_one_that_is_wanted() {
    let history = json!([{"state": "Partial", "version": "4.20.1"}, {"state": "Completed", "version": "4.19.9"}]);
    for (status, expected) in [
        (json!({"desired": {"version": "4.20.1"}, "history": history}), Some("4.20.1")),
        (json!({"desired": {"version": ""}, "history": history}), Some("4.20.1")),
        (json!({"history": history}), Some("4.20.1")),
        (json!({"history": []}), None),
        (json!({}), None),
    ] {
        assert_eq!(openshift_version(&json!({"status": status})), expected, "{status}");
    }
    assert_eq!(openshift_version(&json!({})), None);
    let after = ClusterInfo { openshift_version: Some("4.20.1".to_owned()), ..cluster_info("v1.33.0", &[]) };
    let change = Change::between(&cluster_info("v1.33.0", &[]), &after);
    assert_eq!(change.to_string(), "OpenShift unknown -> 4.20.1");
}

#[test]
fn openshift_is_being_installed_until_one_version_was_complete() {
    let (partial, complete) = (json!({"state": "Partial"}), json!({"state": "Completed"}));
    for (status, expected) in [
        (json!({}), false),
        (json!({"history": []}), false),
        (json!({"history": [partial]}), true),
        (json!({"history": [partial, partial]}), true),
        (json!({"history": [complete]}), false),
        (json!({"history": [partial, complete]}), false),
    ] {
        assert_eq!(is_installing(&json!({"status": status})), expected, "{status}");
    }
}

#[tokio::test]
async fn only_an_openshift_is_asked_for_its_version() {
    let asked = Arc::<Shared<Vec<String>>>::default();
    for (kind, refused, expected) in
        [("Widget", false, None), ("ClusterVersion", false, Some("4.20.1")), ("ClusterVersion", true, None)]
    {
        let paths = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            paths.lock().push(path.clone());
            let response = if path.ends_with("/clusterversions/version") {
                let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"},
                                    "status": {"desired": {"version": "4.20.1"}}});
                let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                                     "reason": "Forbidden", "message": "no"});
                let body = if refused { refusal } else { object };
                let code = if refused { 403 } else { 200 };
                Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
            } else {
                let mut response = answer(&path, Some("v1.33.0"), &[kind]);
                if path == "/apis" {
                    let groups = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [{
                        "metadata": {"name": "config.openshift.io"},
                        "versions": [{"version": "v1", "resources": [{
                            "resource": "things", "scope": "Cluster", "verbs": ["get"],
                            "responseKind": {"group": "config.openshift.io", "version": "v1", "kind": kind}
                        }]}]
                    }]});
                    response = Response::new(Body::from(groups.to_string().into_bytes()));
                }
                response
            };
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let cluster = ClusterInfoWatch::new(Client::new(service, "default"), Availability::default());
        assert!(cluster.refresh().await, "a refusal is not retried soon");
        assert_eq!(cluster.get().await.openshift_version.as_deref(), expected);
        let asks = std::mem::take(&mut *asked.lock());
        assert_eq!(asks.iter().any(|path| path.contains("clusterversions")), kind == "ClusterVersion", "{asks:?}");
    }
}
