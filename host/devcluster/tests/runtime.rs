//! kube's runtime against the development cluster: controllers, reflectors, leases, simulated workloads.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chandler_devcluster::{
    Effect, Fault, Options,
    faults::{Verb, When},
    workloads::ANNOTATION,
};
use futures::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, PersistentVolumeClaim, Service},
};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Action,
        reflector,
        wait::await_condition,
        watcher::{self, watcher},
    },
};
use serde_json::{Value, json};

use crate::common::{self, CONFIG_MAPS, PATIENCE, config_map, ok, quiet, start, until};

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct ReconcileError(#[from] kube::Error);

/// Keeps a copy of every ConfigMap labelled `copy=yes`.
async fn reconcile(source: Arc<ConfigMap>, client: Arc<(kube::Client, AtomicUsize)>) -> Result<Action, ReconcileError> {
    client.1.fetch_add(1, Ordering::SeqCst);
    let maps: Api<ConfigMap> = Api::namespaced(client.0.clone(), "default");
    let copy = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{}-copy", source.name_any()), "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "controller": true,
            "name": source.name_any(), "uid": source.uid().unwrap_or_default()}]},
        "data": source.data,
    });
    let name = format!("{}-copy", source.name_any());
    maps.patch(&name, &PatchParams::apply("copier").force(), &Patch::Apply(&copy)).await?;
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_controller_converges_and_survives_dropped_and_expired_watches() {
    let cluster = quiet().await;
    let client = cluster.client();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let context = Arc::new((client.clone(), AtomicUsize::new(0)));
    let controller = Controller::new(maps.clone(), watcher::Config::default().labels("copy=yes").timeout(1))
        .owns(maps.clone(), watcher::Config::default().timeout(1))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(20)), Arc::clone(&context))
        .for_each(|_| async {});
    let running = tokio::spawn(controller);

    let mut source = config_map("a", &json!({"x": "1"}));
    source["metadata"]["labels"] = json!({"copy": "yes"});
    ok(&client, "POST", CONFIG_MAPS, "", source.clone()).await;
    let copy = format!("{CONFIG_MAPS}/a-copy");
    until(&client, &copy, |_, copy| copy["data"]["x"] == "1").await;

    // Every watch ends after a second; these end at once, or expire.
    let fault = |effect: Effect| Fault::new(effect).verb(Verb::Watch).resource("configmaps").times(4);
    cluster.inject(fault(Effect::DropWatch(When::AT_ONCE)));
    cluster.inject(fault(Effect::Gone));
    for value in ["2", "3"] {
        let change = json!({"data": {"x": value}});
        ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), common::MERGE, change).await;
        cluster.compact();
        until(&client, &copy, |_, copy| copy["data"]["x"] == value).await;
    }
    // A deleted child is created again.
    ok(&client, "DELETE", &copy, "", Value::Null).await;
    until(&client, &copy, |_, copy| copy["data"]["x"] == "3").await;
    assert!(context.1.load(Ordering::SeqCst) >= 4);
    running.abort();
}

#[tokio::test]
async fn a_reflector_matches_the_list_in_both_list_modes() {
    for config in [watcher::Config::default().page_size(2), watcher::Config::default().streaming_lists()] {
        let cluster = quiet().await;
        let client = cluster.client();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        for name in ["a", "b", "c", "d", "e"] {
            ok(&client, "POST", CONFIG_MAPS, "", config_map(name, &json!({"x": "1"}))).await;
        }
        let (store, writer) = reflector::store();
        let stream = reflector::reflector(writer, watcher(maps, config)).default_backoff().touched_objects();
        let running = tokio::spawn(stream.for_each(|_| async {}));
        #[expect(clippy::disallowed_methods, reason = "one task waits, for a reflector of kube itself")]
        let listed = store.wait_until_ready();
        tokio::time::timeout(PATIENCE, listed).await.unwrap().unwrap();
        ok(&client, "DELETE", &format!("{CONFIG_MAPS}/a"), "", Value::Null).await;
        ok(&client, "PATCH", &format!("{CONFIG_MAPS}/b"), common::MERGE, json!({"data": {"x": "2"}})).await;
        ok(&client, "POST", CONFIG_MAPS, "", config_map("f", &json!({"x": "3"}))).await;
        let held = || -> BTreeMap<String, String> {
            let value =
                |map: &Arc<ConfigMap>| map.data.as_ref().and_then(|data| data.get("x").cloned()).unwrap_or_default();
            let maps = store.state();
            maps.iter()
                .filter(|map| map.name_any() != "kube-root-ca.crt")
                .map(|map| (map.name_any(), value(map)))
                .collect()
        };
        let expected = [("b", "2"), ("c", "1"), ("d", "1"), ("e", "1"), ("f", "3")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let same = async {
            while held() != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, same).await.is_ok(), "{:?}", held());
        running.abort();
    }
}

#[tokio::test]
async fn a_lease_is_won_by_one() {
    let cluster = quiet().await;
    let client = cluster.client();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease =
        ok(&client, "POST", leases, "", json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": ""}})).await;
    let take = |holder: &str| {
        let (client, mut lease) = (client.clone(), lease.clone());
        lease["spec"]["holderIdentity"] = holder.into();
        async move { common::send(&client, "PUT", &format!("{leases}/leader"), "", lease).await.0 }
    };
    let mut results = futures::future::join_all(["one", "two", "three", "four"].map(take)).await;
    results.sort_unstable();
    assert_eq!(results, [200, 409, 409, 409]);
}

fn deployment(name: &str, image: &str, annotation: Option<&str>) -> Deployment {
    let annotations: BTreeMap<&str, &str> = annotation.into_iter().map(|value| (ANNOTATION, value)).collect();
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}, "annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": image}]}}},
    }))
    .unwrap()
}

fn has(deployment: Option<&Deployment>, condition_type: &str, status: &str) -> bool {
    let conditions = deployment.and_then(|deployment| deployment.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|found| found.type_ == condition_type && found.status == status))
}

#[tokio::test]
async fn workloads_become_ready_unless_simulated_to_fail() {
    let cluster = start(Options::default()).await;
    let client = cluster.client();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let cases = [
        ("healthy", deployment("healthy", "nginx", None), "Available", "True"),
        ("stalled", deployment("stalled", "nginx", Some("stall")), "Available", "False"),
        ("failed", deployment("failed", "nginx", Some("fail")), "Progressing", "False"),
        ("unpullable", deployment("unpullable", "registry.invalid/x:1", None), "Available", "False"),
    ];
    for (name, deployment, condition_type, status) in cases {
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
        let reached = await_condition(deployments.clone(), name, move |found: Option<&Deployment>| {
            has(found, condition_type, status)
        });
        assert!(tokio::time::timeout(PATIENCE, reached).await.is_ok(), "{name}");
    }
    // Fixing the workload lets it become ready.
    let fix = json!({"spec": {"template": {"metadata": {"annotations": {ANNOTATION: null}}}}});
    deployments.patch("stalled", &PatchParams::default(), &Patch::Merge(fix)).await.unwrap();
    let fixed = await_condition(deployments, "stalled", |found: Option<&Deployment>| has(found, "Available", "True"));
    tokio::time::timeout(PATIENCE, fixed).await.unwrap().unwrap();
}

#[tokio::test]
async fn jobs_complete_claims_are_bound_and_services_get_addresses() {
    let cluster = start(Options::default()).await;
    let client = cluster.client();
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}});
    ok(&client, "POST", "/apis/batch/v1/namespaces/default/jobs", "", job).await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    ok(&client, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", "", claim).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {
        "type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 80}]}});
    let service = ok(&client, "POST", "/api/v1/namespaces/default/services", "", service).await;
    assert!(service["spec"]["clusterIP"].as_str().unwrap().starts_with("10.96."));
    assert!(service["spec"]["ports"][0]["nodePort"].as_u64().unwrap() >= 30_000);

    let job_done = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()?.succeeded) == Some(1);
    let bound = |claim: Option<&PersistentVolumeClaim>| {
        claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
    };
    let addressed = |service: Option<&Service>| {
        service.and_then(|service| service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()).is_some()
    };
    let all = async {
        await_condition(Api::namespaced(client.clone(), "default"), "j", job_done).await.unwrap();
        await_condition(Api::namespaced(client.clone(), "default"), "p", bound).await.unwrap();
        await_condition(Api::namespaced(client.clone(), "default"), "s", addressed).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
}

#[tokio::test]
async fn it_can_be_stopped_while_watches_are_open() {
    let cluster = quiet().await;
    let client = cluster.client();
    let mut events = common::watch(&client, &format!("{CONFIG_MAPS}?watch=true")).await;
    events.next().await;
    tokio::time::timeout(PATIENCE, cluster.stop()).await.unwrap();
}
