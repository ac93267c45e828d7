//! The API without sockets.

use std::{sync::Arc, time::Duration};

use chandler_devcluster::{
    Effect, Fault,
    faults::{Exposure, Verb},
    service::ServiceError,
};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{Controller, controller::Action, watcher},
};
use serde_json::json;

use crate::common::{self, CONFIG_MAPS, MERGE, config_map, get, ok, quiet, send, watch};

#[tokio::test]
async fn a_service_and_a_connection_show_the_same() {
    let cluster = quiet().await;
    let (inside, outside) = (Client::new(cluster.service(), "default"), cluster.client());
    let created = ok(&inside, "POST", CONFIG_MAPS, "", config_map("a", &json!({"x": "1"}))).await;
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(get(&outside, &path).await, (200, created.clone()));
    assert_eq!(get(&inside, &path).await, (200, created));
    assert_eq!(inside.apiserver_version().await.unwrap(), outside.apiserver_version().await.unwrap());
    let large = config_map("b", &json!({"x": "y".repeat(4 << 20)}));
    assert_eq!(send(&inside, "POST", CONFIG_MAPS, "", large).await.0, 413);

    let mut events = watch(&inside, &format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;
    ok(&outside, "PATCH", &path, MERGE, json!({"data": {"x": "2"}})).await;
    assert_eq!(events.summary(2).await, ["ADDED a", "MODIFIED a"]);
}

#[tokio::test]
async fn a_controller_runs_on_a_service() {
    let cluster = quiet().await;
    let client = cluster.service().client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let reconcile = |map: Arc<ConfigMap>, client: Arc<Client>| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced((*client).clone());
        let metadata = json!({"name": map.name_any(), "annotations": {"seen": "yes"}});
        let seen = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let parameters = PatchParams::apply("tester").force();
        maps.patch(&map.name_any(), &parameters, &Patch::Apply(seen)).await.map(|_| Action::await_change())
    };
    let controller = Controller::new(maps.clone(), watcher::Config::default().labels("mine=yes"))
        .run(reconcile, |_, _: &kube::Error, _| Action::requeue(Duration::from_millis(10)), Arc::new(client.clone()))
        .for_each(|_| async {});
    let running = tokio::spawn(controller);
    for name in ["a", "b"] {
        let mut map = config_map(name, &json!({}));
        map["metadata"]["labels"] = json!({"mine": "yes"});
        ok(&client, "POST", CONFIG_MAPS, "", map).await;
        common::until(&client, &format!("{CONFIG_MAPS}/{name}"), |_, map| {
            map["metadata"]["annotations"]["seen"] == "yes"
        })
        .await;
    }
    running.abort();
}

#[tokio::test]
async fn rbac_applies_to_other_users() {
    let cluster = quiet().await;
    let stranger = cluster.service().of_user("somebody", &[]).client();
    let (status, body) = get(&stranger, CONFIG_MAPS).await;
    assert_eq!(status, 403, "{body}");
    assert!(body["message"].as_str().unwrap().contains("User \"somebody\" cannot list"), "{body}");
    assert_eq!(get(&stranger, "/version").await.0, 200);
    let master = cluster.service().of_user("somebody", &["system:masters"]).client();
    assert_eq!(get(&master, CONFIG_MAPS).await.0, 200);
}

#[tokio::test]
async fn faults_strike_here_too_unless_the_service_is_spared() {
    let cluster = quiet().await;
    let exposed = cluster.service().client();
    let spared = cluster.service().exposed(Exposure::Spared).client();
    cluster.inject(Fault::new(Effect::Conflict).verb(Verb::List));
    assert_eq!((get(&exposed, CONFIG_MAPS).await.0, get(&spared, CONFIG_MAPS).await.0), (409, 200));
    cluster.inject(Fault::new(Effect::ResetAfterWrite).verb(Verb::Create));
    let map: ConfigMap = serde_json::from_value(config_map("a", &json!({}))).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(exposed);
    let error = maps.create(&kube::api::PostParams::default(), &map).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert_eq!(get(&spared, &format!("{CONFIG_MAPS}/a")).await.0, 200);
}

#[tokio::test]
async fn a_service_ends_with_its_cluster() {
    let cluster = quiet().await;
    let service = cluster.service();
    let client = service.client();
    let mut events = watch(&client, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", cluster.revision())).await;
    cluster.stop().await;
    assert_eq!(events.next().await, None);
    let error = client.apiserver_version().await.unwrap_err();
    let stopped = ServiceError::Stopped.to_string();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    assert!(causes.map(ToString::to_string).any(|message| message.contains(&stopped)), "{error:?}");
}
