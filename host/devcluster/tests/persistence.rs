//! Persistence: what survives a restart, and what continues after it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue fails")]

mod common;

use std::{path::Path, time::Duration};

use chandler_devcluster::{Clock, DevCluster, Options, StartError, store::OpenError};
use common::{
    CONFIG_MAPS, MERGE, WIDGETS, config_map, establish_widgets, get, ok, quiet, send, start, until, until_gone, widget,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn options(data: &Path) -> Options {
    Options { data: Some(data.to_owned()), workloads: false, ..Options::default() }
}

async fn restart(cluster: DevCluster, data: &Path) -> DevCluster {
    cluster.stop().await;
    start(options(data)).await
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": name}},
    })
}

#[tokio::test]
async fn objects_and_credentials_are_the_same_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let created = ok(&cluster.client(), "POST", CONFIG_MAPS, "", config_map("a", &json!({"number": "1"}))).await;
    let (kubeconfig, client, revision) = (cluster.kubeconfig(), cluster.client(), cluster.revision());

    let cluster = restart(cluster, data.path()).await;
    assert_eq!(cluster.kubeconfig(), kubeconfig);
    // The client from before the restart: same address, same CA, same token.
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(until(&client, &path, |status, _| status == 200).await, created);
    assert!(cluster.revision() >= revision);
    let before: u64 = created["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let (status, expired) = get(&client, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", before - 1)).await;
    assert!(status == 410 || expired["object"]["code"] == 410, "{status} {expired}");
    let changed = ok(&client, "PATCH", &path, MERGE, json!({"data": {"number": "2"}})).await;
    assert!(changed["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > revision);
    assert_eq!(changed["metadata"]["uid"], created["metadata"]["uid"]);

    let revision = cluster.revision();
    let cluster = restart(cluster, data.path()).await;
    assert_eq!(cluster.revision(), revision, "to start writes nothing that is there");
}

#[tokio::test]
async fn the_service_of_the_api_server_follows_its_port_and_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = common::start(options(directory.path())).await;
    let service = "/api/v1/namespaces/default/services/kubernetes";
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let before = ok(&cluster.client(), "GET", service, "", Value::Null).await;
    let taken = cluster.url().rsplit_once(':').unwrap().1.to_owned();
    cluster.stop().await;
    // The port of the first run is not free.
    let _other = tokio::net::TcpListener::bind(format!("127.0.0.1:{taken}")).await.unwrap();
    let cluster = common::start(options(directory.path())).await;
    let port: u16 = cluster.url().rsplit_once(':').unwrap().1.parse().unwrap();
    assert_ne!(port.to_string(), taken);
    let client = cluster.client();
    let after = ok(&client, "GET", service, "", Value::Null).await;
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(after["spec"]["ports"][0]["targetPort"], port);

    for (path, pointer) in
        [(service, "/spec/ports/0/targetPort"), (endpoints, "/subsets/0/ports/0/port"), (slice, "/ports/0/port")]
    {
        let live = ok(&client, "GET", path, "", Value::Null).await;
        assert_eq!(live.pointer(pointer), Some(&port.into()), "{path}");
        ok(&client, "DELETE", path, "", Value::Null).await;
        common::until(&client, path, |status, object| {
            status == 200
                && object["metadata"]["uid"] != live["metadata"]["uid"]
                && object.pointer(pointer) == live.pointer(pointer)
        })
        .await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn tokens_of_service_accounts_go_on_working() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    until(&cluster.client(), account, |status, _| status == 200).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = ok(&cluster.client(), "POST", &format!("{account}/token"), "", request).await;
    let token = answer["status"]["token"].as_str().unwrap();

    let cluster = restart(cluster, data.path()).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let review = ok(&cluster.client(), "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", review).await;
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:default", "{review}");
}

#[tokio::test]
async fn crds_are_served_at_once() {
    let data = tempfile::tempdir().unwrap();
    let slow = Options { established_delay: Duration::from_hours(1), ..options(data.path()) };
    let cluster = start(options(data.path())).await;
    establish_widgets(&cluster.client()).await;
    ok(&cluster.client(), "POST", WIDGETS, "", widget("a", &json!({"size": 3}))).await;

    cluster.stop().await;
    let cluster = start(slow).await;
    let (status, found) = get(&cluster.client(), &format!("{WIDGETS}/a")).await;
    assert_eq!((status, &found["spec"]["size"]), (200, &json!(3)));
}

#[tokio::test]
async fn interrupted_deletions_complete() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let client = cluster.client();
    let held = |mut object: Value| {
        object["metadata"]["finalizers"] = json!(["example.com/held"]);
        object
    };
    // A namespace, a CRD and an owner, each blocked by a finalizer of its content.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}});
    ok(&client, "POST", "/api/v1/namespaces", "", namespace).await;
    ok(&client, "POST", "/api/v1/namespaces/ending/configmaps", "", held(config_map("a", &json!({})))).await;
    establish_widgets(&client).await;
    ok(&client, "POST", WIDGETS, "", held(widget("a", &json!({})))).await;
    let owner = ok(&client, "POST", CONFIG_MAPS, "", config_map("owner", &json!({}))).await;
    let mut dependant = held(config_map("dependant", &json!({})));
    dependant["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    ok(&client, "POST", CONFIG_MAPS, "", dependant).await;
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    ok(&client, "DELETE", "/api/v1/namespaces/ending", "", Value::Null).await;
    ok(&client, "DELETE", crd, "", Value::Null).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/owner"), "", foreground).await;

    let cluster = restart(cluster, data.path()).await;
    let client = cluster.client();
    let free = json!({"metadata": {"finalizers": null}});
    for path in [
        "/api/v1/namespaces/ending/configmaps/a".to_owned(),
        format!("{WIDGETS}/a"),
        format!("{CONFIG_MAPS}/dependant"),
    ] {
        until(&client, &path, |_, object| object["metadata"]["deletionTimestamp"].is_string()).await;
        ok(&client, "PATCH", &path, MERGE, free.clone()).await;
    }
    for path in ["/api/v1/namespaces/ending", crd, &format!("{CONFIG_MAPS}/owner")] {
        until_gone(&client, path).await;
    }
}

#[tokio::test]
async fn dependants_whose_owner_vanished_during_downtime_are_deleted() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let mut orphan = config_map("a", &json!({}));
    orphan["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0c0f1d6f-0000-4000-8000-000000000000"}]);
    orphan["metadata"]["finalizers"] = json!(["example.com/held"]);
    ok(&cluster.client(), "POST", CONFIG_MAPS, "", orphan).await;

    let cluster = restart(cluster, data.path()).await;
    let path = format!("{CONFIG_MAPS}/a");
    until(&cluster.client(), &path, |_, object| object["metadata"]["deletionTimestamp"].is_string()).await;
    ok(&cluster.client(), "PATCH", &path, MERGE, json!({"metadata": {"finalizers": null}})).await;
    until_gone(&cluster.client(), &path).await;
}

#[tokio::test]
async fn addresses_in_use_are_not_given_out_again() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let mut used = Vec::new();
    let addresses =
        |object: &Value| (object["spec"]["clusterIP"].clone(), object["spec"]["ports"][0]["nodePort"].clone());
    for name in ["a", "b", "c"] {
        used.push(addresses(&ok(&cluster.client(), "POST", SERVICES, "", service(name)).await));
    }
    let cluster = restart(cluster, data.path()).await;
    for name in ["d", "e", "f"] {
        let (address, port) = addresses(&ok(&cluster.client(), "POST", SERVICES, "", service(name)).await);
        assert!(
            used.iter().all(|(used, used_port)| *used != address && *used_port != port),
            "{address} {port} {used:?}"
        );
        used.push((address, port));
    }
}

#[tokio::test]
async fn a_data_directory_has_one_user_and_one_format() {
    let data = tempfile::tempdir().unwrap();
    let cluster = start(options(data.path())).await;
    let error = DevCluster::start(options(data.path())).await.unwrap_err();
    assert!(matches!(error, StartError::Data(OpenError::InUse { .. })), "{error}");
    cluster.stop().await;
    for file in ["authority.pem", "service-accounts.pem"] {
        let path = data.path().join(file);
        let sound = std::fs::read(&path).unwrap();
        std::fs::write(&path, "no key").unwrap();
        let error = DevCluster::start(options(data.path())).await.unwrap_err();
        assert!(error.to_string().contains(file) && error.to_string().contains("damaged"), "{error}");
        std::fs::write(&path, sound).unwrap();
    }
    start(options(data.path())).await;
}

#[tokio::test]
async fn events_are_kept_for_an_hour() {
    let clock = Clock::manual(OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap());
    let cluster = start(Options { clock: clock.clone(), workloads: false, ..Options::default() }).await;
    let client = cluster.client();
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Tested", "type": "Normal",
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"},
        })
    };
    ok(&client, "POST", events, "", event("once")).await;
    ok(&client, "POST", events, "", event("again")).await;
    clock.advance(Duration::from_mins(59));
    ok(&client, "PATCH", &format!("{events}/again"), MERGE, json!({"count": 2})).await;
    clock.advance(Duration::from_mins(2));
    until_gone(&client, &format!("{events}/once")).await;
    assert_eq!(get(&client, &format!("{events}/again")).await.0, 200);
    clock.advance(Duration::from_hours(1));
    until_gone(&client, &format!("{events}/again")).await;
}

#[tokio::test]
async fn in_memory_nothing_is_kept() {
    let cluster = quiet().await;
    let kubeconfig = cluster.kubeconfig();
    ok(&cluster.client(), "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    cluster.stop().await;
    let cluster = quiet().await;
    assert_ne!(cluster.kubeconfig(), kubeconfig);
    assert_eq!(send(&cluster.client(), "GET", &format!("{CONFIG_MAPS}/a"), "", Value::Null).await.0, 404);
}
