//! Stages wait for health, and health is still reported after the rollout, without flapping.

use chandler_api::BundleDeployment;
use chandler_devcluster::workloads::ANNOTATION;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

/// A bundle with this object in one run level and a ConfigMap in the next.
fn gated(object: &Value) -> Bundle {
    let later = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}});
    Bundle::empty()
        .with("manifests/0000_10_first_object.yaml", &object.to_string())
        .with("manifests/0000_20_second_later.yaml", &later.to_string())
}

fn labelled(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}})
}

/// An object of each kind that the simulation can stall, with its behaviour and the message that is reported meanwhile.
fn stalled_objects() -> Vec<(Value, &'static str, &'static str)> {
    let of = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "first"}, "spec": spec});
    let job = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}});
    vec![
        (
            of("apps/v1", "Deployment", json!({"selector": labelled("a"), "template": template("a")})),
            "stall",
            "0 of 1 replica is available",
        ),
        (
            of(
                "apps/v1",
                "StatefulSet",
                json!({"serviceName": "a", "selector": labelled("a"), "template": template("a")}),
            ),
            "stall",
            "0 of 1 replica is ready",
        ),
        (
            of("apps/v1", "DaemonSet", json!({"selector": labelled("a"), "template": template("a")})),
            "stall",
            "0 of 1 pod is available",
        ),
        (of("batch/v1", "Job", json!({"backoffLimit": 0, "template": job})), "fail", "has failed: "),
    ]
}

#[tokio::test]
async fn each_kind_of_workload_gates_its_stage() {
    let world = World::new().await;
    let later: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    for (object, behaviour, message) in stalled_objects() {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let name = format!("{}-{}", world.name(), kind.to_lowercase());
        let mut held = object.clone();
        held["metadata"]["annotations"] = json!({ANNOTATION: behaviour});
        let image = world.push(&gated(&held)).await;
        world.deploy(&name, PLAIN, &image).await;
        let waits = |deployment: Option<&BundleDeployment>| {
            deployment.and_then(|deployment| condition(deployment, "Progressing")).is_some_and(|progressing| {
                progressing.message.contains(&format!("{}/first: {message}", world.namespace))
                    && progressing.message.contains("stage 1 of 2 waits for")
            })
        };
        wait::until(&world.deployments(), &name, &format!("waiting for the {kind}"), waits).await;
        assert!(later.get_opt("later").await.expect("a response").is_none(), "the stage after the {kind} started");
        if kind != "Job" {
            let image = world.push(&gated(&object)).await;
            world.deploy(&name, PLAIN, &image).await;
            world.ready(&name).await;
            later.get("later").await.expect("the next stage");
        }
        world.delete(&name).await;
        wait::until(&later, "later", "gone", |map| map.is_none()).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn a_rule_of_the_spec_gates_a_stage() {
    let world = World::new().await;
    let name = world.name();
    let image =
        world.push(&gated(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}))).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["probes"] = json!([{
        "selector": {"kind": "ConfigMap", "name": "first"}, "rule": "self.metadata.labels['example.com/open' == 'yes'"
    }]);
    world.apply(&name, spec.clone()).await;
    let refused = world.condition(&name, "Ready", "False", "InvalidConfiguration").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    assert!(message.contains("spec.probes[0].rule, line 1, column "), "{message}");

    spec["probes"] = json!([{
        "selector": {"kind": "ConfigMap", "name": "first"}, "rule": "self.metadata.labels['example.com/open'] == 'yes'",
        "message": "the gate is closed",
    }]);
    world.apply(&name, spec).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let closed = |deployment: Option<&BundleDeployment>| {
        deployment.and_then(|deployment| condition(deployment, "Ready")).is_some_and(|ready| {
            ready.message.contains("/first: the gate is closed: field example.com/open does not exist yet")
        })
    };
    wait::until(&world.deployments(), &name, "closed", closed).await;
    assert!(maps.get_opt("later").await.expect("a response").is_none());
    let open = Patch::Merge(json!({"metadata": {"labels": {"example.com/open": "yes"}}}));
    maps.patch("first", &PatchParams::default(), &open).await.expect("a label");
    world.ready(&name).await;
    maps.get("later").await.expect("the next stage");
    world.finish().await;
}

/// Sets the simulated behaviour of the lighthouse keeper's pods. The annotation is not in the release.
async fn simulate(world: &World, behaviour: &str) {
    let keepers: Api<Deployment> = Api::namespaced(world.client.clone(), "lighthouse");
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: behaviour}}}));
    keepers.patch("keeper", &PatchParams::default(), &patch).await.expect("an annotation");
    let wanted = if behaviour == "healthy" { 2 } else { 0 };
    wait::until(&keepers, "keeper", behaviour, |keeper| {
        let status = keeper.and_then(|keeper| keeper.status.as_ref());
        status.is_some_and(|status| status.available_replicas.unwrap_or(0) == wanted)
    })
    .await;
}

#[tokio::test]
async fn a_failure_after_the_rollout_is_reported_and_so_is_the_recovery() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["rollout"] = json!({"healthGracePeriodSeconds": 1});
    world.apply(&name, spec).await;
    world.ready(&name).await;
    simulate(&world, "crash-loop").await;
    // The Deployment only counts replicas; what happens to them is in its Pods, and may become known a little later.
    let cause = "Deployment.apps lighthouse/keeper: CrashLoopBackOff: container ";
    let deployments = world.deployments();
    let broken = wait::until(&deployments, &name, "the cause", |deployment| {
        let healthy = deployment.and_then(|it| condition(it, "Healthy")).filter(|it| it.reason == "Unhealthy");
        healthy.is_some_and(|it| it.message.contains(cause) && it.message.contains(" exited with code 1"))
    });
    let broken = broken.await.expect("the BundleDeployment");
    assert_eq!(condition(&broken, "Healthy").expect("Healthy").status, "False");
    assert_eq!(condition(&broken, "Ready").expect("Ready").status, "False");
    assert_eq!(condition(&broken, "Installed").expect("Installed").status, "True");
    assert_eq!(condition(&broken, "Progressing").expect("Progressing").reason, "Succeeded");
    simulate(&world, "healthy").await;
    world.condition(&name, "Healthy", "True", "Healthy").await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_transient_failure_is_not_reported_and_a_terminal_one_is_at_once() {
    let world = World::new().await;
    let name = world.name();
    let with_status = bundles::sample("plain/lighthouse").replacing(
        "manifests/0000_10_lighthouse_01_beacons.yaml",
        "    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        required: [spec]\n        properties:\n",
        "    storage: true\n    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n        required: [spec]\n        properties:\n          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n",
    );
    let image = world.push(&with_status).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["rollout"] = json!({"healthGracePeriodSeconds": 3600});
    world.apply(&name, spec).await;
    let ready = world.ready(&name).await;
    simulate(&world, "crash-loop").await;

    // A probe that is reconciled afterwards proves that this BundleDeployment was reconciled.
    let probe = format!("{name}-probe");
    let image =
        world.push(&gated(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}))).await;
    world.deploy(&probe, PLAIN, &image).await;
    world.ready(&probe).await;
    let after = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert_eq!(after.metadata.resource_version, ready.metadata.resource_version, "a short failure was reported");
    simulate(&world, "healthy").await;

    let resource = ApiResource {
        group: "lighthouse.example.com".into(),
        version: "v1".into(),
        api_version: "lighthouse.example.com/v1".into(),
        kind: "Beacon".into(),
        plural: "beacons".into(),
    };
    let beacons: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "lighthouse", &resource);
    let stalled = json!({"status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "LampBroken",
        "message": "the lamp is broken", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    beacons.patch_status("north-head", &PatchParams::default(), &Patch::Merge(stalled)).await.expect("a status");
    let broken = world.condition(&name, "Ready", "False", "Unhealthy").await;
    let message = &condition(&broken, "Ready").expect("Ready").message;
    assert_eq!(message, "Beacon.lighthouse.example.com lighthouse/north-head: the lamp is broken");
    world.finish().await;
}
