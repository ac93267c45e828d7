//! Fault injection, as clients see it.

#![expect(clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::{sync::Arc, time::Duration};

use chandler_devcluster::{
    Clock, DevCluster, Effect, Fault, Options,
    faults::{Verb, When},
};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::common::{self, CONFIG_MAPS, MERGE, config_map, get, ok, quiet, send, until, watch, without_retries};

/// The counts of the faults: affected and matched requests, in order.
fn counts(cluster: &DevCluster) -> Vec<(u64, u64)> {
    cluster.faults().iter().map(|report| (report.struck, report.matched)).collect()
}

#[tokio::test]
async fn a_request_is_answered_with_a_failure_before_or_after_it_took_effect() {
    let cluster = quiet().await;
    let client = without_retries(&cluster).await;
    let cases = [
        (Effect::Conflict, 409, "Conflict", false),
        (Effect::Gone, 410, "Expired", false),
        (Effect::TooManyRequests { retry_after: Duration::from_millis(1500) }, 429, "TooManyRequests", false),
        (Effect::InternalError, 500, "InternalError", false),
        (Effect::InternalErrorAfterWrite, 500, "InternalError", true),
        (Effect::Unavailable, 503, "ServiceUnavailable", false),
    ];
    for (index, (effect, code, reason, written)) in cases.into_iter().enumerate() {
        cluster.inject(Fault::new(effect).verb(Verb::Create).resource("configmaps").times(1));
        let name = format!("c{index}");
        let (status, body) = send(&client, "POST", CONFIG_MAPS, "", config_map(&name, &json!({}))).await;
        assert_eq!((status, &body["reason"], &body["code"]), (code, &json!(reason), &json!(code)), "{effect}");
        assert_eq!(get(&client, &format!("{CONFIG_MAPS}/{name}")).await.0 == 200, written, "{effect}");
    }
    assert_eq!(counts(&cluster), [(1, 1); 6]);
    assert_eq!(cluster.clear_faults().len(), 6);
    assert_eq!(counts(&cluster), []);
}

#[tokio::test]
async fn an_answer_says_which_faults_struck_and_when_to_come_back() {
    let cluster = quiet().await;
    let client = without_retries(&cluster).await;
    let first = cluster.inject("latency=1ms,resource=configmaps".parse().unwrap());
    let second = cluster.inject("too-many-requests=1500ms,resource=configmaps,times=1".parse().unwrap());
    let answer = async || {
        let request = http::Request::get(CONFIG_MAPS).body(kube::client::Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        let header =
            |name| response.headers().get(name).map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), header("chandler-fault"), header("retry-after"))
    };
    assert_eq!(answer().await, (429, Some(format!("{first}, {second}")), Some("2".to_owned())));
    assert_eq!(answer().await, (200, Some(first.to_string()), None));
}

#[tokio::test]
async fn a_connection_is_reset_before_or_after_the_write() {
    let cluster = quiet().await;
    for (effect, name, written) in [(Effect::Reset, "a", false), (Effect::ResetAfterWrite, "b", true)] {
        cluster.inject(Fault::new(effect).verb(Verb::Create).name(name));
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let map: ConfigMap = serde_json::from_value(config_map(name, &json!({}))).unwrap();
        let error = maps.create(&kube::api::PostParams::default(), &map).await.unwrap_err();
        assert!(!matches!(error, kube::Error::Api(_)), "{error:?}");
        assert_eq!(maps.get_opt(name).await.unwrap().is_some(), written, "{effect}");
    }
}

#[tokio::test]
async fn faults_affect_only_matching_requests() {
    let cluster = quiet().await;
    let agent = |name: &'static str| {
        let cluster = &cluster;
        async move {
            let mut config = common::config(cluster).await;
            config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(name)));
            Client::try_from(config).unwrap()
        }
    };
    let (tested, other) = (agent("tested/1.0").await, agent("kubectl/v1.32").await);
    cluster.inject(Fault::new(Effect::Conflict).client("tested/*"));
    assert_eq!((get(&tested, CONFIG_MAPS).await.0, get(&other, CONFIG_MAPS).await.0), (409, 200));
    cluster.clear_faults();

    cluster.inject(Fault::new(Effect::Conflict).manager("tested").verb(Verb::Create).verb(Verb::Patch));
    let path = |manager: &str| format!("{CONFIG_MAPS}/a?fieldManager={manager}");
    ok(&other, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    assert_eq!(send(&other, "PATCH", &path("tested"), MERGE, json!({"data": {"a": "1"}})).await.0, 409);
    assert_eq!(send(&other, "PATCH", &path("else"), MERGE, json!({"data": {"a": "1"}})).await.0, 200);
    // Without a parameter the user agent is the manager.
    assert_eq!(send(&tested, "POST", CONFIG_MAPS, "", config_map("b", &json!({}))).await.0, 409);
}

#[tokio::test]
async fn latency_passes_on_the_clock_of_the_cluster() {
    let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
    let cluster = common::start(Options { clock: clock.clone(), workloads: false, ..Options::default() }).await;
    cluster.inject("latency=1h,verb=create,times=1".parse().unwrap());
    let client = cluster.client();
    let created = tokio::spawn({
        let client = client.clone();
        async move { ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await }
    });
    while counts(&cluster) != [(1, 1)] {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}/a")).await.0, 404);
    clock.advance(Duration::from_hours(1));
    assert_eq!(created.await.unwrap()["metadata"]["creationTimestamp"], "1970-01-01T01:00:00Z");
}

#[tokio::test]
async fn watches_end_break_off_and_expire() {
    let cluster = quiet().await;
    let client = cluster.client();
    for name in ["a", "b", "c"] {
        ok(&client, "POST", CONFIG_MAPS, "", config_map(name, &json!({}))).await;
    }
    let path = format!("{CONFIG_MAPS}?watch=1");
    let dropped = cluster.inject(Fault::new(Effect::DropWatch(When::Events(2))).times(1));
    let mut events = watch(&client, &path).await;
    assert_eq!(events.summary(2).await, ["ADDED a", "ADDED b"]);
    assert_eq!(events.next().await, None);

    cluster.inject(Fault::new(Effect::ExpireWatch(When::Events(1))).times(1));
    let mut events = watch(&client, &path).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    let error = events.next().await.unwrap();
    assert_eq!(
        (&error["type"], &error["object"]["code"], &error["object"]["reason"]),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    assert_eq!(events.next().await, None);

    cluster.inject(Fault::new(Effect::ResetWatch(When::Events(1))).times(1));
    let request = http::Request::get(&path).body(kube::client::Body::empty()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&first).unwrap()["object"]["metadata"]["name"], "a");
    assert!(matches!(body.next().await, Some(Err(_))), "it must not look like an end in good form");
    assert_eq!(cluster.faults().first().map(|report| (report.id, report.struck)), Some((dropped, 1)));
}

#[tokio::test]
async fn events_and_bookmarks_are_late_or_missing() {
    let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
    let cluster = common::start(Options { clock: clock.clone(), workloads: false, ..Options::default() }).await;
    let client = cluster.client();
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    let streaming = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
         &fieldSelector=metadata.name%3Da"
    );
    let waiting = async |fault: &str, step: Duration, expected: &[&str]| {
        cluster.clear_faults();
        cluster.inject(fault.parse().unwrap());
        let (client, streaming) = (client.clone(), streaming.clone());
        let seen = tokio::spawn(async move {
            let mut events = watch(&client, &streaming).await;
            let mut seen = Vec::new();
            for _ in 0..2 {
                seen.extend(events.summary(1).await);
            }
            seen
        });
        while !seen.is_finished() {
            clock.advance(step);
            tokio::task::yield_now().await;
        }
        assert_eq!(seen.await.unwrap(), expected, "{fault}");
    };
    waiting("slow-watch=1h", Duration::from_mins(50), &["ADDED a", "BOOKMARK -"]).await;
    waiting("late-bookmarks=1h", Duration::from_mins(50), &["ADDED a", "BOOKMARK -"]).await;

    cluster.clear_faults();
    cluster.inject("no-bookmarks".parse().unwrap());
    let mut events = watch(&client, &streaming).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    assert_eq!(events.summary(1).await, ["MODIFIED a"]);
}

#[tokio::test]
async fn reads_from_the_cache_see_the_past() {
    let cluster = quiet().await;
    let client = cluster.client();
    for name in ["a", "b", "c"] {
        ok(&client, "POST", CONFIG_MAPS, "", config_map(name, &json!({}))).await;
    }
    let before = cluster.revision();
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/b"), "", Value::Null).await;
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        let names = items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        names.filter(|name| name != "kube-root-ca.crt").collect()
    };
    cluster.inject(Fault::new(Effect::Stale { revisions: 2 }));
    let stale = ok(&client, "GET", &format!("{CONFIG_MAPS}?resourceVersion=0"), "", Value::Null).await;
    assert_eq!(
        (names(&stale), &stale["metadata"]["resourceVersion"]),
        (vec!["a".into(), "b".into(), "c".into()], &json!(before.to_string()))
    );
    let fresh = ok(&client, "GET", CONFIG_MAPS, "", Value::Null).await;
    assert_eq!(names(&fresh), ["a", "c"]);
    // A cache waits until it is as new as requested.
    let newer = format!("{CONFIG_MAPS}?resourceVersionMatch=NotOlderThan&resourceVersion={}", before + 1);
    let newer = ok(&client, "GET", &newer, "", Value::Null).await;
    assert_eq!(newer["metadata"]["resourceVersion"], (before + 1).to_string());
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}/b?resourceVersion=0")).await.0, 200);
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}/b")).await.0, 404);
    let old = ok(&client, "GET", &format!("{CONFIG_MAPS}/a?resourceVersion=0"), "", Value::Null).await;
    assert_eq!(old["data"]["x"], Value::Null);
    // A watch from the cache starts with old events and catches up.
    let mut events =
        watch(&client, &format!("{CONFIG_MAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(events.summary(2).await, ["ADDED b", "DELETED b"]);
}

#[tokio::test]
async fn a_crd_takes_as_long_as_a_fault_says() {
    let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
    let options =
        Options { clock: clock.clone(), established_delay: Duration::ZERO, workloads: false, ..Options::default() };
    let cluster = common::start(options).await;
    let client = cluster.client();
    cluster.inject("established-delay=1m,name=widgets.*".parse().unwrap());
    ok(&client, "POST", common::CRDS, "", common::widgets()).await;
    let path = format!("{}/widgets.example.com", common::CRDS);
    let accepted = until(&client, &path, |_, crd| !crd["status"]["conditions"].is_null()).await;
    let established = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array().unwrap().clone();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    assert!(!established(&accepted));
    assert_eq!(get(&client, common::WIDGETS).await.0, 404);
    clock.advance(Duration::from_mins(1));
    until(&client, &path, |_, crd| established(crd)).await;
    assert_eq!(get(&client, common::WIDGETS).await.0, 200);
}

#[tokio::test]
async fn faults_can_be_seen_and_changed_while_the_cluster_runs() {
    const FAULTS: &str = "/chandler.dev/faults";
    let cluster = quiet().await;
    let client = without_retries(&cluster).await;
    let post = async |text: &'static str| {
        let request = http::Request::post(FAULTS).body(kube::client::Body::from(text.as_bytes().to_vec())).unwrap();
        let response = client.send(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    // Even a fault for all requests does not affect this path.
    let (status, added) = post("# for a while\ninternal-error\n\nlatency=1ms,verb=get\n").await;
    assert_eq!((status, &added["items"][1]["fault"]), (201, &json!("latency=1ms,verb=get")), "{added}");
    assert_eq!(get(&client, CONFIG_MAPS).await.0, 500);
    let (_, list) = get(&client, FAULTS).await;
    assert_eq!(list["items"][0], json!({"id": 1, "fault": "internal-error", "matched": 1, "struck": 1}));
    assert_eq!(send(&client, "DELETE", &format!("{FAULTS}/1"), "", Value::Null).await.1["items"][0]["struck"], 1);
    assert_eq!(get(&client, CONFIG_MAPS).await.0, 200);
    assert_eq!(get(&client, &format!("{FAULTS}/1")).await.0, 404);
    assert_eq!(get(&client, &format!("{FAULTS}/2")).await.1["items"][0]["id"], 2);
    // All or none.
    let (status, refused) = post("conflict\nconflct").await;
    assert_eq!(status, 400);
    assert_eq!(refused["message"], "fault \"conflct\": \"conflct\" is not an effect: did you mean conflict?");
    assert_eq!(cluster.faults().len(), 1);
    assert_eq!(send(&client, "DELETE", FAULTS, "", Value::Null).await.1["items"].as_array().unwrap().len(), 1);
    assert_eq!(cluster.faults(), []);

    let stranger = cluster.service().of_user("somebody", &[]).client();
    assert_eq!(get(&stranger, FAULTS).await.0, 403);
}

#[tokio::test]
async fn the_simulation_of_workloads_is_spared_unless_it_is_meant() {
    let cluster = common::start(Options::default()).await;
    let client = cluster.client();
    cluster.inject("internal-error,verb=patch,subresource=status".parse().unwrap());
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
    };
    ok(&client, "POST", "/api/v1/namespaces/default/pods", "", pod("a")).await;
    until(&client, "/api/v1/namespaces/default/pods/a", |_, pod| pod["status"]["phase"] == "Running").await;
    cluster.inject("internal-error,simulation=true,verb=patch+update,resource=pods,times=2".parse().unwrap());
    ok(&client, "POST", "/api/v1/namespaces/default/pods", "", pod("b")).await;
    until(&client, "/api/v1/namespaces/default/pods/b", |_, pod| pod["status"]["phase"] == "Running").await;
    assert_eq!(counts(&cluster), [(0, 0), (2, 2)]);
}

/// A controller's cache must reach the current state, whatever faults occur.
#[tokio::test]
async fn a_reflector_comes_to_the_same_through_every_fault() {
    let cluster = quiet().await;
    let client = cluster.client();
    for fault in [
        "latency=1ms..5ms,client=shaken",
        "internal-error,client=shaken,verb=list+watch,every=4,times=3",
        "drop-watch=2,client=shaken,every=2,times=4",
        "expire-watch=1,client=shaken,every=3,times=3",
        "reset-watch=3,client=shaken,times=3",
        "no-bookmarks,client=shaken,probability=50%",
        "stale=5,client=shaken,times=2",
    ] {
        cluster.inject(fault.parse().unwrap());
    }
    let mut config = common::config(&cluster).await;
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("shaken")));
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    let (store, writer) = reflector::store();
    let stream = reflector::reflector(writer, watcher(maps, watcher::Config::default().any_semantic().timeout(1)));
    let stream = stream.backoff(QuickBackoff).touched_objects();
    let running = tokio::spawn(stream.for_each(|_| async {}));
    for round in 0..30 {
        let name = format!("m{}", round % 7);
        let path = format!("{CONFIG_MAPS}/{name}");
        match get(&client, &path).await.0 {
            404 => drop(
                ok(&client, "POST", CONFIG_MAPS, "", config_map(&name, &json!({"round": round.to_string()}))).await,
            ),
            _ if round % 3 == 0 => drop(ok(&client, "DELETE", &path, "", Value::Null).await),
            _ => drop(ok(&client, "PATCH", &path, MERGE, json!({"data": {"round": round.to_string()}})).await),
        }
        tokio::task::yield_now().await;
    }
    let list = ok(&client, "GET", CONFIG_MAPS, "", Value::Null).await;
    let mut expected: Vec<String> = list["items"].as_array().unwrap().iter().map(version).collect();
    expected.sort_unstable();
    let held = || {
        let mut held: Vec<String> =
            store.state().iter().map(|map: &Arc<ConfigMap>| version(&serde_json::to_value(&**map).unwrap())).collect();
        held.sort_unstable();
        held
    };
    let same = async {
        while held() != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(common::PATIENCE, same).await.is_ok(), "{:?} is not {expected:?}", held());
    running.abort();
    assert!(cluster.faults().iter().filter(|report| report.struck > 0).count() >= 4, "{:?}", cluster.faults());
}

/// Name and version of an object.
fn version(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}@{}", text("name"), text("resourceVersion"))
}

struct QuickBackoff;

impl Iterator for QuickBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(5))
    }
}

impl kube::runtime::utils::Backoff for QuickBackoff {
    fn reset(&mut self) {}
}
