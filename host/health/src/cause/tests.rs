//! Statuses as a kubelet, a scheduler and the controllers of Kubernetes write them, and the causes that they show.

use serde_json::{Value, json};

use super::*;

fn owned(mut object: Value, kind: &str, uid: &str, owner: &str) -> Value {
    object["kind"] = json!(kind);
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.insert("namespace".into(), json!("harbour"));
    metadata.insert("uid".into(), json!(uid));
    if !owner.is_empty() {
        metadata.insert("ownerReferences".into(), json!([{"uid": owner, "controller": true}]));
    }
    object
}

fn deployment(status: &Value) -> Value {
    let object = json!({"apiVersion": "apps/v1", "metadata": {"name": "keeper", "generation": 2},
                        "spec": {"replicas": 1}, "status": status});
    owned(object, "Deployment", "d", "")
}

fn set(uid: &str, revision: &str, status: &Value) -> Value {
    let object = json!({"apiVersion": "apps/v1", "metadata": {"name": format!("keeper-{uid}"),
                        "annotations": {"deployment.kubernetes.io/revision": revision}}, "status": status});
    owned(object, "ReplicaSet", uid, "d")
}

fn pod(name: &str, owner: &str, status: &Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/x:1"}],
                 "initContainers": [{"name": "wait", "image": "registry.example.com/wait:1"}]},
        "status": status,
    });
    owned(object, "Pod", name, owner)
}

/// A Pod of the only ReplicaSet with one container in this state.
fn with_state(phase: &str, container: &Value) -> Vec<Value> {
    let mut status = json!({"name": "main", "image": "registry.example.com/x:1", "ready": false, "restartCount": 0});
    status.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    vec![
        set("r", "1", &json!({})),
        pod(
            "keeper-r-1",
            "r",
            &json!({"phase": phase, "conditions": [
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
            {"type": "PodScheduled", "status": "True"}], "containerStatuses": [status]}),
        ),
    ]
}

fn waiting(reason: &str, message: &str) -> Vec<Value> {
    with_state("Pending", &json!({"state": {"waiting": {"reason": reason, "message": message}}}))
}

fn event(uid: &str, reason: &str, message: &str, at: &str) -> Value {
    json!({"metadata": {"name": format!("{uid}.{at}"), "namespace": "harbour"}, "type": "Warning", "reason": reason,
           "message": message, "involvedObject": {"uid": uid}, "lastTimestamp": at})
}

fn of(object: &Value, objects: Vec<Value>, events: Vec<Value>) -> Option<String> {
    cause(object, &Below { objects, events })
}

const NOT_FOUND: &str = r#"rpc error: code = NotFound desc = failed to pull and unpack image "registry.example.com/x:1": failed to resolve reference "registry.example.com/x:1": registry.example.com/x:1: not found"#;

#[test]
fn the_status_of_a_container_shows_the_cause() {
    let ended = |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason, "message": "password=hunter2"}});
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=main pod=keeper-r-1_harbour(u)"}});
    for (objects, expected) in [
        (waiting("ErrImagePull", NOT_FOUND), "ImagePullBackOff: registry.example.com/x:1: not found"),
        (
            waiting(
                "ImagePullBackOff",
                &format!("Back-off pulling image \"registry.example.com/x:1\": ErrImagePull: {NOT_FOUND}"),
            ),
            "ImagePullBackOff: registry.example.com/x:1: not found",
        ),
        (
            waiting("ImagePullBackOff", r#"Back-off pulling image "registry.example.com/x:1""#),
            "ImagePullBackOff: registry.example.com/x:1 cannot be pulled",
        ),
        (
            waiting(
                "InvalidImageName",
                r#"Failed to apply default image tag "X": couldn't parse image name "X": invalid reference format: repository name must be lowercase"#,
            ),
            r#"InvalidImageName: registry.example.com/x:1: Failed to apply default image tag "X": couldn't parse image name "X": invalid reference format: repository name must be lowercase"#,
        ),
        (
            waiting("CreateContainerConfigError", r#"secret "db" not found"#),
            r#"CreateContainerConfigError: secret "db" not found"#,
        ),
        (
            waiting("CreateContainerConfigError", "couldn't find key url in ConfigMap harbour/tides"),
            "CreateContainerConfigError: couldn't find key url in ConfigMap harbour/tides",
        ),
        (
            with_state("Running", &json!({"restartCount": 5, "state": back_off, "lastState": ended(1, "Error")})),
            "CrashLoopBackOff: container main exited with code 1",
        ),
        // Between two attempts it runs, and between two back-offs it has ended: the cause is the same.
        (
            with_state(
                "Running",
                &json!({"restartCount": 5, "state": {"running": {}}, "lastState": ended(1, "Error")}),
            ),
            "CrashLoopBackOff: container main exited with code 1",
        ),
        (
            with_state("Running", &json!({"restartCount": 5, "state": ended(1, "Error")})),
            "CrashLoopBackOff: container main exited with code 1",
        ),
        (
            with_state("Running", &json!({"restartCount": 5, "state": ended(0, "Completed")})),
            "CrashLoopBackOff: container main exited with code 0",
        ),
        (with_state("Running", &json!({"state": ended(2, "Error")})), "container main exited with code 2"),
        (
            with_state("Running", &json!({"restartCount": 1, "state": back_off, "lastState": ended(137, "OOMKilled")})),
            "CrashLoopBackOff: container main was killed: OOMKilled (exit code 137)",
        ),
        (
            with_state(
                "Running",
                &json!({"restartCount": 3, "state": back_off, "lastState": {"terminated": {
                "exitCode": 127, "reason": "StartError", "message": "exec: \"/keeper\": stat /keeper: no such file or directory"}}}),
            ),
            "CrashLoopBackOff: container main did not start: StartError: exec: \"/keeper\": stat /keeper: no such file or directory",
        ),
    ] {
        assert_eq!(of(&deployment(&json!({})), objects, vec![]).as_deref(), Some(expected));
    }
}

#[test]
fn an_init_container_comes_first() {
    let status = json!({"phase": "Pending", "containerStatuses": [
            {"name": "main", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [
            {"name": "done", "ready": true, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}},
            {"name": "wait", "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
             "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}]});
    let objects = vec![set("r", "1", &json!({})), pod("p", "r", &status)];
    assert_eq!(
        of(&deployment(&json!({})), objects, vec![]).as_deref(),
        Some("CrashLoopBackOff: init container wait exited with code 3")
    );
}

#[test]
fn a_pod_without_a_node_reports_the_scheduler() {
    let unscheduled = |message: &str| {
        let conditions =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
        let mut pod = pod("p", "r", &json!({"phase": "Pending", "conditions": conditions}));
        pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        vec![set("r", "1", &json!({})), pod]
    };
    let message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.";
    assert_eq!(
        of(&deployment(&json!({})), unscheduled(message), vec![]).as_deref(),
        Some("Unschedulable: 0/3 nodes are available: 3 Insufficient cpu")
    );
    // The claim that the Pod waits for has more information.
    let mut objects = unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
    let object = json!({"apiVersion": "v1", "metadata": {"name": "data"}, "status": {"phase": "Pending"}});
    objects.push(owned(object, "PersistentVolumeClaim", "c", ""));
    let asked =
        |object: &Value| asks(object, &objects).iter().map(|it| it["metadata"]["uid"].clone()).collect::<Vec<_>>();
    assert_eq!(asked(&deployment(&json!({}))), ["c", "p"]);
    let failed =
        event("c", "ProvisioningFailed", r#"storageclass.storage.k8s.io "fast" not found"#, "2026-01-01T00:00:00Z");
    assert_eq!(
        of(&deployment(&json!({})), objects.clone(), vec![failed]).as_deref(),
        Some(r#"PersistentVolumeClaim data is not bound: storageclass.storage.k8s.io "fast" not found"#)
    );
    // The claim itself.
    let none = "no persistent volumes available for this claim and no storage class is set";
    let claim = objects.pop().unwrap();
    let failed = event("c", "FailedBinding", none, "2026-01-01T00:00:00Z");
    assert_eq!(of(&claim, vec![], vec![failed]), Some(format!("FailedBinding: {none}")));
    assert_eq!(of(&claim, vec![], vec![]), None);
}

#[test]
fn events_tell_what_a_status_does_not() {
    let starting = || waiting("ContainerCreating", "");
    let unready = || with_state("Running", &json!({"state": {"running": {}}}));
    let killed = || {
        with_state(
            "Running",
            &json!({"restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "Error"}}}),
        )
    };
    let pulling = || waiting("ImagePullBackOff", r#"Back-off pulling image "registry.example.com/x:1""#);
    for (objects, events, expected) in [
        (
            pulling(),
            vec![
                ("Failed", "Error: ErrImagePull"),
                ("Failed", &*format!("Failed to pull image \"registry.example.com/x:1\": {NOT_FOUND}")),
            ],
            Some("ImagePullBackOff: registry.example.com/x:1: not found"),
        ),
        (
            starting(),
            vec![
                ("FailedMount", r#"MountVolume.SetUp failed for volume "cert" : secret "webhook-cert" not found"#),
                (
                    "FailedMount",
                    "Unable to attach or mount volumes: unmounted volumes=[cert]: timed out waiting for the condition",
                ),
            ],
            Some(r#"FailedMount: secret "webhook-cert" not found"#),
        ),
        (
            starting(),
            vec![(
                "FailedCreatePodSandBox",
                "Failed to create pod sandbox: plugin type=\"calico\" failed (add): no IPs left",
            )],
            Some(
                "FailedCreatePodSandBox: Failed to create pod sandbox: plugin type=\"calico\" failed (add): no IPs left",
            ),
        ),
        (starting(), vec![("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")], None),
        (
            unready(),
            vec![("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
            Some("Readiness probe failed: HTTP probe failed with statuscode: 503"),
        ),
        (
            unready(),
            vec![("Unhealthy", "Readiness probe failed: cat: /tmp/password: hunter2")],
            Some("Readiness probe failed: its command did not succeed"),
        ),
        (unready(), vec![], None),
        (
            killed(),
            vec![(
                "Unhealthy",
                r#"Liveness probe failed: Get "http://10.1.2.3:8080/healthz?token=x": context deadline exceeded"#,
            )],
            Some(
                r#"CrashLoopBackOff: container main is restarted: Liveness probe failed: Get "http://10.1.2.3:8080/healthz": context deadline exceeded"#,
            ),
        ),
        (killed(), vec![], Some("CrashLoopBackOff: container main exited with code 137")),
    ] {
        let object = deployment(&json!({}));
        let asked: Vec<Value> = asks(&object, &objects).iter().map(|it| it["metadata"]["uid"].clone()).collect();
        assert!(asked.contains(&json!("keeper-r-1")), "{asked:?}");
        let events = events.iter().enumerate();
        let events = events.map(|(index, (reason, message))| {
            event("keeper-r-1", reason, message, &format!("2026-01-01T00:00:0{index}Z"))
        });
        assert_eq!(of(&object, objects.clone(), events.collect()).as_deref(), expected, "{objects:?}");
    }
}

#[test]
fn pods_that_are_refused_report_the_refusal() {
    let quota =
        r#"pods "keeper-r-" is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=0, limited: cpu=0"#;
    let expected = "pods cannot be created: exceeded quota: compute, requested: cpu=1, used: cpu=0, limited: cpu=0";
    let failure = json!({"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": quota}]});
    let object = deployment(&json!({}));
    assert_eq!(of(&object, vec![set("r", "1", &failure)], vec![]).as_deref(), Some(expected));
    assert_eq!(of(&deployment(&failure), vec![], vec![]).as_deref(), Some(expected));
    let refused = |uid: &str, message: &str| vec![event(uid, "FailedCreate", message, "2026-01-01T00:00:00Z")];
    assert_eq!(
        of(&object, vec![set("r", "1", &json!({}))], refused("r", &format!("Error creating: {quota}"))).as_deref(),
        Some(expected)
    );
    let stateful = owned(
        json!({"apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 2}, "status": {}}),
        "StatefulSet",
        "s",
        "",
    );
    assert_eq!(asks(&stateful, &[]), [&stateful]);
    let policy = r#"create Pod web-0 in StatefulSet web failed error: admission webhook "validate.example.com" denied the request: no"#;
    assert_eq!(
        of(&stateful, vec![], refused("s", policy)).as_deref(),
        Some(r#"pods cannot be created: admission webhook "validate.example.com" denied the request: no"#)
    );
    let other = |message: &str| of(&stateful, vec![], refused("s", message)).unwrap();
    assert_eq!(
        other(
            r#"create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: error looking up service account harbour/web: serviceaccount "web" not found"#
        ),
        r#"pods cannot be created: error looking up service account harbour/web: serviceaccount "web" not found"#
    );
}

#[test]
fn a_job_that_failed_shows_its_last_pod() {
    let job = owned(
        json!({"apiVersion": "batch/v1", "metadata": {"name": "migrate"}, "spec": {"backoffLimit": 1},
               "status": {"failed": 2, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                          "message": "Job has reached the specified backoff limit"}]}}),
        "Job",
        "j",
        "",
    );
    let failed = pod(
        "migrate-1",
        "j",
        &json!({"phase": "Failed", "containerStatuses": [
        {"name": "main", "ready": false, "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}),
    );
    let found = of(&job, vec![failed], vec![]).unwrap();
    assert_eq!(found, "container main exited with code 3");
    let health = crate::assess(&job, &crate::Dependencies::default()).because(&found);
    assert_eq!(
        health.message,
        "has failed: Job has reached the specified backoff limit: container main exited with code 3"
    );
    assert!(health.is_permanent());
}

#[test]
fn an_evicted_pod_names_the_pressure() {
    let evicted = json!({"phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 83Mi. Container main was using 5Gi."});
    let objects = vec![set("r", "1", &json!({})), pod("p", "r", &evicted)];
    assert_eq!(
        of(&deployment(&json!({})), objects.clone(), vec![]).as_deref(),
        Some("Evicted: The node was low on resource: memory")
    );
    // The failure of the Pod that replaced it has more information.
    let mut objects = objects;
    objects.extend(waiting("ErrImagePull", NOT_FOUND));
    let found = of(&deployment(&json!({})), objects, vec![]);
    assert_eq!(found.as_deref(), Some("ImagePullBackOff: registry.example.com/x:1: not found"));
}

#[test]
fn pods_of_the_newest_revision_come_first() {
    let broken = |code: i64| {
        json!({"phase": "Running", "containerStatuses": [{"name": "main", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": "Error"}}}]})
    };
    let objects = vec![
        set("old", "9", &json!({})),
        set("new", "10", &json!({})),
        pod("a", "old", &broken(1)),
        pod("b", "new", &broken(2)),
        pod("c", "another", &broken(3)),
    ];
    assert_eq!(
        of(&deployment(&json!({})), objects.clone(), vec![]).as_deref(),
        Some("container main exited with code 2")
    );
    let names = |object: &Value| -> Vec<String> {
        dependents(object, &objects).iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&deployment(&json!({}))), ["keeper-old", "keeper-new", "a", "b"]);
}

#[test]
fn a_pod_that_should_be_gone_shows_what_holds_it() {
    let mut old = pod("keeper-old-1", "old", &json!({"phase": "Running"}));
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let set = set("old", "1", &json!({}));
    assert_eq!(of(&deployment(&json!({})), vec![set.clone(), old.clone()], vec![]), None, "it is being ended");
    old["metadata"]["finalizers"] = json!(["example.com/drain"]);
    assert_eq!(
        of(&deployment(&json!({})), vec![set, old], vec![]).as_deref(),
        Some("Pod keeper-old-1 is being deleted, held by finalizer example.com/drain")
    );
}

#[test]
fn nothing_below_explains_an_object_that_is_paused_deleted_or_not_observed() {
    let objects = waiting("ErrImagePull", NOT_FOUND);
    for (pointer, value) in [
        ("/spec", json!({"paused": true})),
        ("/status", json!({"observedGeneration": 1})),
        ("/metadata", json!({"uid": "d", "namespace": "harbour", "deletionTimestamp": "2026-01-01T00:00:00Z"})),
    ] {
        let mut object = deployment(&json!({}));
        *object.pointer_mut(pointer).unwrap() = value;
        assert_eq!(of(&object, objects.clone(), vec![]), None, "{pointer}");
        assert!(asks(&object, &objects).is_empty());
    }
}

#[test]
fn hostile_objects_make_one_bounded_line() {
    let hostile = "a\u{202e}b\nc ".repeat(500);
    let found = of(&deployment(&json!({})), waiting(&hostile, &hostile), vec![]).unwrap();
    assert!(found.len() <= 400 && !found.contains(['\n', '\u{202e}']), "{found}");
    for object in [json!(null), json!([]), json!({"metadata": 1, "kind": []})] {
        assert_eq!(of(&object, vec![object.clone()], vec![object.clone()]), None);
        assert!(asks(&object, &[]).is_empty() && dependents(&object, &[]).is_empty());
    }
}
