//! Leases and leader election, Events, and defaults of built-in kinds.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{deployment, names, pod_template},
};

cases! {
    "3.22" one_of_many_candidates_acquires_a_lease;
    "3.22" a_lease_is_renewed_by_its_holder;
    "3.22" events_are_selected_by_involved_object;
    "3.22" events_are_served_in_two_groups;
    "3.22" defaults_of_deployments;
    "3.22" defaults_of_containers;
    "3.22" defaults_and_addresses_of_services;
    "3.22" string_data_of_secrets;
    "3.22" an_api_service_reports_its_availability: differs("there are no APIServices for what the server itself serves");
}

fn lease(holder: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

async fn one_of_many_candidates_acquires_a_lease(scope: &Scope) {
    let leases = scope.collection("coordination.k8s.io/v1", "leases").await;
    let candidates: Vec<String> = (0..8).map(|number| format!("candidate-{number}")).collect();
    let answers = join_all(candidates.iter().map(|holder| {
        let (leases, lease) = (leases.clone(), lease(holder));
        async move { leases.create(&lease).await.status }
    }))
    .await;
    assert_eq!(answers.iter().filter(|status| **status == 201).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 7, "{answers:?}");

    let read = leases.get("leader").await.ok();
    let answers = join_all(candidates.iter().map(|holder| {
        let (leases, mut taken) = (leases.clone(), read.clone());
        taken["spec"]["holderIdentity"] = json!(format!("{holder}-again"));
        async move { leases.put("leader", &taken).await.status }
    }))
    .await;
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 7, "{answers:?}");
}

async fn a_lease_is_renewed_by_its_holder(scope: &Scope) {
    let leases = scope.collection("coordination.k8s.io/v1", "leases").await;
    let mut held = leases.create(&lease("me")).await.is(201);
    for second in 1..5 {
        held["spec"]["renewTime"] = json!(format!("2026-01-01T00:00:0{second}.000000Z"));
        held = leases.put("leader", &held).await.is(200);
    }
    assert_eq!(held["spec"]["renewTime"], "2026-01-01T00:00:04.000000Z");
    let mut wrong = held.clone();
    wrong["spec"]["leaseDurationSeconds"] = json!(-1);
    leases.put("leader", &wrong).await.invalid("spec.leaseDurationSeconds");
}

async fn event(events: &Collection, scope: &Scope, name: &str, about: &str, kind: &str) {
    let namespace = scope.namespace().await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": kind, "name": about, "namespace": namespace, "uid": format!("uid-of-{about}")},
        "reason": "Tested", "message": "hello", "type": "Normal", "source": {"component": "conformance"}});
    events.create(&event).await.is(201);
}

async fn events_are_selected_by_involved_object(scope: &Scope) {
    let events = scope.collection("v1", "events").await;
    event(&events, scope, "one", "a", "ConfigMap").await;
    event(&events, scope, "two", "b", "ConfigMap").await;
    event(&events, scope, "three", "a", "Secret").await;
    for (selector, expected) in [
        ("involvedObject.name=a", vec!["one", "three"]),
        ("involvedObject.name=a,involvedObject.kind=Secret", vec!["three"]),
        ("involvedObject.uid=uid-of-b", vec!["two"]),
        ("involvedObject.kind!=Secret", vec!["one", "two"]),
        ("reason=Tested,type=Normal,involvedObject.name=b", vec!["two"]),
        ("source=conformance,involvedObject.name=b", vec!["two"]),
        ("type=Warning", vec![]),
    ] {
        assert_eq!(names(&events.list(&format!("fieldSelector={selector}")).await.ok()), expected, "{selector}");
    }
}

async fn events_are_served_in_two_groups(scope: &Scope) {
    let core = scope.collection("v1", "events").await;
    let new = scope.collection("events.k8s.io/v1", "events").await;
    event(&core, scope, "one", "a", "ConfigMap").await;
    let read = new.get("one").await.ok();
    assert_eq!(
        (&read["note"], &read["regarding"]["name"], &read["reason"]),
        (&json!("hello"), &json!("a"), &json!("Tested"))
    );
    let namespace = scope.namespace().await;
    let other = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "two"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "note": "bye", "reason": "Tested", "type": "Warning", "action": "Test",
        "reportingController": "example.com/conformance", "reportingInstance": "conformance-0",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": namespace}});
    new.create(&other).await.is(201);
    let read = core.get("two").await.ok();
    assert_eq!(
        (&read["message"], &read["involvedObject"]["name"], &read["type"]),
        (&json!("bye"), &json!("a"), &json!("Warning"))
    );
    assert_eq!(read["reportingComponent"], "example.com/conformance");
}

async fn defaults_of_deployments(scope: &Scope) {
    let deployments = scope.collection("apps/v1", "deployments").await;
    let mut bare = deployment("web", 1);
    bare["spec"].as_object_mut().unwrap().remove("replicas");
    let spec = deployments.create(&bare).await.is(201)["spec"].clone();
    assert_eq!(spec["replicas"], 1);
    assert_eq!((&spec["revisionHistoryLimit"], &spec["progressDeadlineSeconds"]), (&json!(10), &json!(600)));
    assert_eq!(
        spec["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    );
    let pod = &spec["template"]["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
    ] {
        assert_eq!(pod[field], value, "{field}");
    }
}

async fn defaults_of_containers(scope: &Scope) {
    let templates = scope.pod_templates().await;
    let containers = json!([
        {"name": "tagged", "image": "registry.example.com/a:1", "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}}, "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"name": "latest", "image": "registry.example.com/a"},
        {"name": "limited", "image": "registry.example.com/a:1", "resources": {"limits": {"cpu": "500m"}}},
    ]);
    let created = templates.create(&pod_template("a", containers)).await.is(201);
    let all = &created["template"]["spec"]["containers"];
    assert_eq!((&all[0]["imagePullPolicy"], &all[1]["imagePullPolicy"]), (&json!("IfNotPresent"), &json!("Always")));
    assert_eq!(
        (&all[0]["terminationMessagePath"], &all[0]["terminationMessagePolicy"]),
        (&json!("/dev/termination-log"), &json!("File"))
    );
    assert_eq!(all[0]["ports"][0]["protocol"], "TCP");
    assert_eq!(all[0]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    let probe = &all[0]["livenessProbe"];
    assert_eq!(
        probe,
        &json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
            "successThreshold": 1, "failureThreshold": 3})
    );
    assert_eq!(all[0]["resources"], json!({}));
}

async fn defaults_and_addresses_of_services(scope: &Scope) {
    let services = scope.collection("v1", "services").await;
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let plain =
        services.create(&service("a", json!({"selector": {"app": "x"}, "ports": [{"port": 80}]}))).await.is(201);
    let spec = &plain["spec"];
    assert_eq!(
        (&spec["type"], &spec["sessionAffinity"], &spec["internalTrafficPolicy"]),
        (&json!("ClusterIP"), &json!("None"), &json!("Cluster"))
    );
    assert_eq!(spec["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    assert!(spec["clusterIP"].as_str().unwrap().parse::<std::net::IpAddr>().is_ok(), "{spec}");
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    assert_eq!(
        (&spec["ipFamilyPolicy"], spec["ipFamilies"].as_array().map(Vec::len)),
        (&json!("SingleStack"), Some(1))
    );
    let node = services.create(&service("b", json!({"type": "NodePort", "ports": [{"port": 80}]}))).await.is(201);
    let port = node["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30000..=32767).contains(&port), "{port}");
    let headless = services.create(&service("c", json!({"clusterIP": "None", "ports": [{"port": 80}]}))).await.is(201);
    assert_eq!(headless["spec"]["clusterIP"], "None");
    services.merge("a", &json!({"spec": {"clusterIP": "10.255.255.1"}})).await.refused(422, "Invalid");
}

async fn string_data_of_secrets(scope: &Scope) {
    let secrets = scope.secrets().await;
    let created = secrets
        .create(&json!({"metadata": {"name": "a"}, "data": {"x": "b25l"}, "stringData": {"y": "two"}}))
        .await
        .is(201);
    assert_eq!(created["data"], json!({"x": "b25l", "y": "dHdv"}));
    assert_eq!((created.get("stringData"), &created["type"]), (None, &json!("Opaque")));
    let answer = secrets.create(&json!({"metadata": {"name": "b"}, "data": {"x": "not base64!"}})).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    let number = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": {"port": 5432}});
    let status = secrets.create(&number).await.refused(400, "BadRequest");
    let message = "json: cannot unmarshal number into Go struct field Secret.stringData of type string";
    assert!(status["message"].as_str().unwrap().contains(message), "{status}");
    let answer = secrets.apply("b", "one", &number).await;
    assert!((400..=500).contains(&answer.status), "{} {}", answer.status, answer.text);
    assert_eq!(secrets.get("b").await.status, 404);
    let null = json!({"metadata": {"name": "c"}, "stringData": {"y": null}});
    assert_eq!(secrets.create(&null).await.is(201)["data"], json!({"y": ""}));
}

async fn an_api_service_reports_its_availability(scope: &Scope) {
    let services = Collection::cluster(scope.http(), "apiregistration.k8s.io/v1", "apiservices");
    let apps = services.get("v1.apps").await.ok();
    let available =
        apps["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Available").unwrap();
    assert_eq!((&available["status"], &available["reason"]), (&json!("True"), &json!("Local")));
}
