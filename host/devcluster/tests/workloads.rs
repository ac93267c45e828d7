//! Simulated workloads as users see them: with the real kubectl, rules that change at run time, faults, and many at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::{
    collections::BTreeSet,
    process::{Command, Output},
    time::Duration,
};

use chandler_devcluster::{
    Clock, DevCluster, Effect, Fault, Options,
    faults::{Verb, When},
    workloads::{Behaviour, Rules, Step, Subject},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use time::macros::datetime;

use crate::common::{self, MERGE, get, ok, start, until};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}},
    })
}

fn is_rolled_out(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let wanted = &deployment["spec"]["replicas"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
            .iter()
            .all(|count| status[*count] == *wanted)
        && reason(deployment, "Progressing") == "NewReplicaSetAvailable"
}

fn reason<'a>(object: &'a Value, condition_type: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|condition| condition["type"] == condition_type);
    found.next().and_then(|condition| condition["reason"].as_str()).unwrap_or_default()
}

async fn items(cluster: &DevCluster, path: &str) -> Vec<Value> {
    let (status, list) = get(&cluster.client(), path).await;
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().cloned().unwrap_or_default()
}

struct Kubectl {
    directory: TempDir,
    cluster: DevCluster,
}

impl Kubectl {
    /// A cluster and kubectl; `None` without kubectl.
    async fn start(options: Options) -> Option<Self> {
        if !chandler_test_support::needs::kubectl() {
            return None;
        }
        let cluster = start(options).await;
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
        Some(Self { directory, cluster })
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .env("HOME", self.directory.path());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_follows_rollouts_and_undoes_them() {
    let Some(kubectl) = Kubectl::start(Options::default()).await else { return };
    let client = kubectl.cluster.client();
    ok(&client, "POST", DEPLOYMENTS, "", deployment("web", 3)).await;
    let status = kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    assert!(status.ends_with("deployment \"web\" successfully rolled out\n"), "{status}");

    kubectl.run(&["set", "image", "deployment/web", "c=nginx:2"]).await;
    kubectl.run(&["annotate", "deployment/web", "kubernetes.io/change-cause=second"]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let image =
        |value: &Value| value["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    assert_eq!(image(&get(&client, &format!("{DEPLOYMENTS}/web")).await.1), "nginx:2");
    let history = kubectl.run(&["rollout", "history", "deployment/web"]).await;
    assert!(history.contains("1         <none>") && history.contains("2         second"), "{history}");
    let first = kubectl.run(&["rollout", "history", "deployment/web", "--revision=1"]).await;
    assert!(first.contains("Image:\tnginx:1") && first.contains("pod-template-hash="), "{first}");

    kubectl.run(&["rollout", "undo", "deployment/web"]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let undone = until(&client, &format!("{DEPLOYMENTS}/web"), |_, found| is_rolled_out(found)).await;
    assert_eq!(image(&undone), "nginx:1");
    assert_eq!(undone["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    let sets = items(&kubectl.cluster, REPLICA_SETS).await;
    assert_eq!(sets.len(), 2, "the first one is used again");

    kubectl.run(&["rollout", "restart", "deployment/web"]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    kubectl.run(&["scale", "deployment/web", "--replicas=1"]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    until(&client, &format!("{DEPLOYMENTS}/web"), |_, found| is_rolled_out(found)).await;
    assert_eq!(items(&kubectl.cluster, PODS).await.len(), 1);

    kubectl.run(&["rollout", "pause", "deployment/web"]).await;
    until(&client, &format!("{DEPLOYMENTS}/web"), |_, found| reason(found, "Progressing") == "DeploymentPaused").await;
    kubectl.run(&["set", "image", "deployment/web", "c=nginx:5"]).await;
    kubectl.run(&["rollout", "resume", "deployment/web"]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let described = kubectl.run(&["describe", "deployment", "web"]).await;
    assert!(described.contains("ScalingReplicaSet") && described.contains("NewReplicaSet:"), "{described}");

    kubectl.run(&["delete", "deployment", "web"]).await;
    until(&client, PODS, |_, list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
    until(&client, REPLICA_SETS, |_, list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_follows_stateful_sets_and_daemon_sets() {
    let Some(kubectl) = Kubectl::start(Options::default()).await else { return };
    let client = kubectl.cluster.client();
    for (kind, plural) in [("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")] {
        let mut object = deployment("app", 2);
        object["kind"] = kind.into();
        if kind == "DaemonSet" {
            object["spec"].as_object_mut().unwrap().remove("replicas");
        } else {
            object["spec"]["serviceName"] = "app".into();
        }
        ok(&client, "POST", &format!("/apis/apps/v1/namespaces/default/{plural}"), "", object).await;
        let name = format!("{plural}/app");
        kubectl.run(&["rollout", "status", &name, "--timeout=30s"]).await;
        kubectl.run(&["set", "image", &name, "c=nginx:2"]).await;
        kubectl.run(&["rollout", "status", &name, "--timeout=30s"]).await;
        kubectl.run(&["rollout", "undo", &name]).await;
        kubectl.run(&["rollout", "status", &name, "--timeout=30s"]).await;
        let history = kubectl.run(&["rollout", "history", &name]).await;
        assert!(history.contains("\n2") && history.contains("\n3"), "{history}");
        let pods = items(&kubectl.cluster, PODS).await;
        assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:1"));
        kubectl.run(&["delete", &name]).await;
        until(&client, PODS, |_, list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_behaviour_can_be_changed_at_run_time() {
    let rules = Rules::default();
    let cluster = start(Options { rules: rules.clone(), ..Options::default() }).await;
    let client = cluster.client();
    let web = Subject::object("Deployment", "default", "web");
    rules.behave(web.clone(), Behaviour::CrashLoop);
    ok(&client, "POST", DEPLOYMENTS, "", deployment("web", 2)).await;
    let path = format!("{DEPLOYMENTS}/web");
    until(&client, PODS, |_, list| {
        let pods = list["items"].as_array().unwrap();
        let waits =
            |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff";
        pods.len() == 2 && pods.iter().all(waits)
    })
    .await;
    until(&client, &path, |_, found| reason(found, "Available") == "MinimumReplicasUnavailable").await;
    rules.forget(&web);
    until(&client, &path, |_, found| is_rolled_out(found)).await;
    rules.behave(web, Behaviour::ImagePull);
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}});
    ok(&client, "PATCH", &path, MERGE, change).await;
    let stuck = until(&client, &path, |_, found| found["status"]["updatedReplicas"] == 1).await;
    assert_eq!(reason(&stuck, "Available"), "MinimumReplicasAvailable", "what ran runs on");
    let told = |list: &Value, wanted: &str| {
        list["items"].as_array().into_iter().flatten().any(|event| event["reason"] == wanted)
    };
    for reason in ["ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Pulled", "Started", "BackOff"] {
        until(&client, EVENTS, |_, list| told(list, reason)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_and_deadlines_go_by_the_clock_of_the_cluster() {
    let (rules, clock) = (Rules::default(), Clock::manual(datetime!(2026-01-02 03:04:05 UTC)));
    rules.delay(Subject::object("Deployment", "default", "slow"), Step::Start, Duration::from_mins(5));
    rules.behave(Subject::object("Deployment", "default", "stalled"), Behaviour::Stall);
    let cluster = start(Options { rules, clock: clock.clone(), ..Options::default() }).await;
    let client = cluster.client();
    for name in ["slow", "stalled"] {
        ok(&client, "POST", DEPLOYMENTS, "", deployment(name, 1)).await;
        let path = format!("{DEPLOYMENTS}/{name}");
        until(&client, &path, |_, found| found["status"]["unavailableReplicas"] == 1).await;
    }
    until(&client, PODS, |_, list| {
        let pods = list["items"].as_array().unwrap();
        pods.len() == 2 && pods.iter().all(|pod| pod["spec"]["nodeName"] == "devcluster-node")
    })
    .await;
    // Each step starts when the simulation has seen the change; the clock does not wait for that.
    let moved = async {
        loop {
            clock.advance(Duration::from_mins(2));
            let slow = get(&client, &format!("{DEPLOYMENTS}/slow")).await.1;
            let stalled = get(&client, &format!("{DEPLOYMENTS}/stalled")).await.1;
            if is_rolled_out(&slow) && reason(&stalled, "Progressing") == "ProgressDeadlineExceeded" {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(common::PATIENCE, moved).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_delay_it_and_change_nothing_else() {
    let cluster = start(Options::default()).await;
    let client = cluster.client();
    for (verb, effect) in [
        (Verb::Patch, Effect::Conflict),
        (Verb::Create, Effect::InternalError),
        (Verb::Watch, Effect::DropWatch(When::AT_ONCE)),
        (Verb::Watch, Effect::Gone),
    ] {
        for resource in ["deployments", "replicasets", "pods"] {
            cluster.inject(Fault::new(effect).verb(verb).resource(resource).with_simulation().times(3));
        }
    }
    cluster.compact();
    // The faults also affect the test's own requests.
    let mut created = 0;
    while created < 8 {
        let body = deployment(&format!("web-{created}"), 2);
        let (status, answer) = common::send(&client, "POST", DEPLOYMENTS, "", body).await;
        assert!(matches!(status, 201 | 500), "{status} {answer}");
        created += u32::from(status == 201);
    }
    for number in 0..created {
        until(&client, &format!("{DEPLOYMENTS}/web-{number}"), |_, found| is_rolled_out(found)).await;
    }
    assert_eq!(items(&cluster, REPLICA_SETS).await.len(), 8);
    assert_eq!(items(&cluster, PODS).await.len(), 16, "nothing is made twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_come_up_and_then_nothing_is_written() {
    const MANY: u32 = 100;
    let cluster = start(Options::default()).await;
    let client = cluster.client();
    for number in 0..MANY {
        ok(&client, "POST", DEPLOYMENTS, "", deployment(&format!("web-{number}"), 1)).await;
    }
    until(&client, DEPLOYMENTS, |_, list| {
        let all = list["items"].as_array().unwrap();
        all.len() == MANY as usize && all.iter().all(is_rolled_out)
    })
    .await;
    // The last Event of each Pod is its start; no Events follow it.
    until(&client, EVENTS, |_, list| {
        let started = list["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "Started");
        started.count() == MANY as usize
    })
    .await;
    let names: BTreeSet<String> =
        items(&cluster, PODS).await.iter().map(|pod| pod["status"]["podIP"].as_str().unwrap().to_owned()).collect();
    assert!(names.len() > MANY as usize - 3, "addresses hardly ever collide: {}", names.len());
    let before = cluster.revision();
    // Writes of another client pass through every queue and cause no further writes.
    let annotate = json!({"metadata": {"labels": {"seen": "yes"}}});
    ok(&client, "PATCH", &format!("{DEPLOYMENTS}/web-0"), MERGE, annotate).await;
    ok(&client, "DELETE", &format!("{DEPLOYMENTS}/web-1"), "", Value::Null).await;
    until(&client, PODS, |_, list| list["items"].as_array().is_some_and(|pods| pods.len() == MANY as usize - 1)).await;
    let mut written = Vec::new();
    for path in [DEPLOYMENTS, REPLICA_SETS, PODS, EVENTS] {
        let found = items(&cluster, path).await.into_iter().filter(|object| {
            let version =
                object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok());
            version.unwrap() > before
        });
        written.extend(found.map(|object| format!("{path} {} {}", object["metadata"]["name"], object["reason"])));
    }
    assert_eq!(written, [format!("{DEPLOYMENTS} \"web-0\" null")]);
}

#[tokio::test]
async fn the_log_of_a_pod_says_that_it_is_simulated() {
    let cluster = start(Options::default()).await;
    let client = cluster.client();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1", "args": ["--port=80"]}]},
    });
    ok(&client, "POST", PODS, "", pod).await;
    until(&client, &format!("{PODS}/web"), |_, pod| pod["status"]["phase"] == "Running").await;
    let read = async |query: &str| {
        let request = http::Request::get(format!("{PODS}/web/log{query}")).body(Vec::new()).unwrap();
        client.request_text(request).await
    };
    let log = read("").await.unwrap();
    assert!(
        log.starts_with("chandler dev simulates Pods: no process of container c (image nginx:1) of Pod web runs"),
        "{log}"
    );
    assert!(log.contains("\nargs: --port=80\nsimulated state: running\n"), "{log}");
    assert_eq!(read("?container=c&follow=true").await.unwrap(), log);
    let refused = read("?container=other").await.unwrap_err().to_string();
    assert!(refused.contains("container other is not valid for pod web"), "{refused}");
}
