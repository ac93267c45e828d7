//! The real kubectl against the development cluster. Skipped with a printed reason without kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::{
    fmt::Write as _,
    path::PathBuf,
    process::{Command, Output},
};

use chandler_devcluster::{DevCluster, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{start, widgets};

struct Kubectl {
    directory: TempDir,
    cluster: DevCluster,
}

/// Starts a cluster for kubectl; `None` without kubectl.
async fn kubectl() -> Option<Kubectl> {
    if !chandler_test_support::needs::kubectl() {
        return None;
    }
    let cluster = start(Options::default()).await;
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
    Some(Kubectl { directory, cluster })
}

impl Kubectl {
    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .env("HOME", self.directory.path());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Runs a command that must succeed; returns what it prints.
    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail; returns the error that it prints.
    async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert!(!output.status.success(), "kubectl {arguments:?} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    fn file(&self, name: &str, object: &Value) -> String {
        let path: PathBuf = self.directory.path().join(name);
        std::fs::write(&path, serde_json::to_vec(object).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}}},
    })
}

#[tokio::test]
async fn objects_are_applied_shown_and_deleted() {
    let Some(kubectl) = kubectl().await else { return };
    let file = kubectl.file("web.json", &deployment());
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "deployment.apps/web created\n");
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "deployment.apps/web unchanged\n");
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    kubectl.run(&["wait", "--for=condition=Available", "deployment/web", "--timeout=30s"]).await;
    let table = kubectl.run(&["get", "deployments"]).await;
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(&lines[1][..4], ["web", "2/2", "2", "2"]);
    assert!(kubectl.run(&["get", "deploy", "web", "-o", "wide"]).await.contains("nginx"));
    let described = kubectl.run(&["describe", "deployment", "web"]).await;
    assert!(described.contains("2 desired | 2 updated | 2 total | 2 available | 0 unavailable"), "{described}");
    kubectl.run(&["scale", "deployment/web", "--replicas=3"]).await;
    assert_eq!(kubectl.run(&["get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"]).await, "3");
    kubectl.run(&["label", "deployment", "web", "tier=front"]).await;
    assert_eq!(kubectl.run(&["get", "deploy", "-l", "tier=front", "-o", "name"]).await, "deployment.apps/web\n");
    kubectl.run(&["delete", "-f", &file]).await;
    assert!(kubectl.fail(&["get", "deploy", "web"]).await.contains(r#"deployments.apps "web" not found"#));
}

#[tokio::test]
async fn server_side_apply_is_idempotent_and_finds_conflicts() {
    let Some(kubectl) = kubectl().await else { return };
    let file = kubectl.file("web.json", &deployment());
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    kubectl.run(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let version = ["get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}"];
    let before = kubectl.run(&version).await;
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    assert_eq!(kubectl.run(&version).await, before, "the second apply wrote nothing");

    kubectl.run(&["scale", "deployment/web", "--replicas=5"]).await;
    let conflict = kubectl.fail(&["apply", "--server-side", "-f", &file]).await;
    assert!(
        conflict.contains(r#"conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas"#),
        "{conflict}"
    );
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &file]).await;

    let mut changed = deployment();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2".into();
    let changed = kubectl.file("changed.json", &changed);
    let difference = kubectl.output(&["diff", "--server-side", "-f", &changed]).await;
    assert_eq!(difference.status.code(), Some(1), "there is a difference");
    assert!(String::from_utf8_lossy(&difference.stdout).contains("nginx:2"));
    let misspelt = {
        let mut object = deployment();
        object["spec"]["replica"] = 1.into();
        kubectl.file("misspelt.json", &object)
    };
    assert!(kubectl.fail(&["apply", "-f", &misspelt]).await.contains("spec.replica"));
}

#[tokio::test]
async fn crds_are_established_explained_and_shown() {
    let Some(kubectl) = kubectl().await else { return };
    let crd = kubectl.file("crd.json", &widgets());
    kubectl.run(&["apply", "-f", &crd]).await;
    kubectl.run(&["wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=30s"]).await;
    let object = kubectl.file(
        "w.json",
        &json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red"}}),
    );
    assert_eq!(kubectl.run(&["apply", "-f", &object]).await, "widget.example.com/w created\n");
    assert_eq!(kubectl.run(&["apply", "-f", &object]).await, "widget.example.com/w unchanged\n");
    let table = kubectl.run(&["get", "wd"]).await;
    assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "w", "3"]);
    assert!(kubectl.run(&["explain", "widget.spec.size"]).await.contains("<integer>"));
    assert!(kubectl.run(&["explain", "deployment.spec.replicas"]).await.contains("<integer>"));
    let refused = kubectl.fail(&["patch", "widget", "w", "--type=merge", "-p", r#"{"spec":{"size":0}}"#]).await;
    assert!(refused.contains("spec.size: Invalid value: 0"), "{refused}");
    kubectl.run(&["wait", "--for=jsonpath={.spec.size}=3", "widget/w", "--timeout=30s"]).await;
    kubectl.run(&["delete", "widget", "w"]).await;
    kubectl.run(&["delete", "crd", "widgets.example.com"]).await;
    assert!(kubectl.fail(&["get", "wd"]).await.contains("the server"));
}

#[tokio::test]
async fn protobuf_bodies_of_kubectl_are_decoded() {
    let Some(kubectl) = kubectl().await else { return };
    kubectl.run(&["create", "namespace", "shop"]).await;
    kubectl.run(&["create", "configmap", "c", "-n", "shop", "--from-literal=key=value"]).await;
    kubectl.run(&["create", "secret", "generic", "s", "-n", "shop", "--from-literal=key=value"]).await;
    kubectl.run(&["create", "serviceaccount", "a", "-n", "shop"]).await;
    assert_eq!(kubectl.run(&["get", "configmap", "c", "-n", "shop", "-o", "jsonpath={.data.key}"]).await, "value");
    assert_eq!(kubectl.run(&["get", "secret", "s", "-n", "shop", "-o", "jsonpath={.data.key}"]).await, "dmFsdWU=");
    assert_eq!(kubectl.run(&["auth", "can-i", "create", "pods"]).await, "yes\n");
    assert!(kubectl.run(&["auth", "whoami"]).await.contains("kubernetes-admin"));
    kubectl.run(&["delete", "namespace", "shop"]).await;
    assert!(kubectl.fail(&["get", "namespace", "shop"]).await.contains("not found"));
}

/// Commands like `kubectl create` that send protobuf: the arguments, and the expected object.
const CREATED: &[(&str, &str, &str)] = &[
    (
        "create deployment web --image=nginx --replicas=2 --port=80",
        "deployment/web",
        "{.spec.replicas} {.spec.template.spec.containers[0].ports[0].containerPort} {.spec.selector.matchLabels.app}",
    ),
    ("create job one --image=busybox -- sleep 1", "job/one", "{.spec.template.spec.containers[0].command}"),
    (
        "create cronjob nightly --image=busybox --schedule=0_3_*_*_*",
        "cronjob/nightly",
        "{.spec.schedule} {.spec.jobTemplate.spec.template.spec.restartPolicy}",
    ),
    ("create role reader --verb=get,list --resource=pods", "role/reader", "{.rules[0].verbs} {.rules[0].resources}"),
    ("create rolebinding r --role=reader --user=jane", "rolebinding/r", "{.roleRef.name} {.subjects[0].name}"),
    ("create clusterrole all --verb=get --non-resource-url=/x", "clusterrole/all", "{.rules[0].nonResourceURLs}"),
    ("create clusterrolebinding c --clusterrole=all --group=g", "clusterrolebinding/c", "{.subjects[0].kind}"),
    ("create service clusterip ip --tcp=80:8080", "service/ip", "{.spec.ports[0].targetPort} {.spec.type}"),
    ("create service nodeport np --tcp=81:web", "service/np", "{.spec.ports[0].targetPort} {.spec.type}"),
    (
        "create ingress i --class=x --rule=a.example.com/*=ip:80",
        "ingress/i",
        "{.spec.rules[0].http.paths[0].backend.service.port.number} {.spec.rules[0].http.paths[0].pathType}",
    ),
    ("create quota q --hard=cpu=1,pods=2", "resourcequota/q", "{.spec.hard}"),
    ("create poddisruptionbudget p --selector=app=web --min-available=50%", "pdb/p", "{.spec.minAvailable}"),
    ("create priorityclass high --value=10 --description=d", "priorityclass/high", "{.value}"),
    ("run shell --image=busybox --env=A=b", "pod/shell", "{.spec.containers[0].env[0]}"),
    ("expose deployment web --port=80 --name=exposed", "service/exposed", "{.spec.selector} {.spec.ports[0].port}"),
    ("autoscale deployment web --max=3 --cpu-percent=50", "hpa/web", "{.spec.maxReplicas}"),
];

#[tokio::test]
async fn every_create_command_works() {
    let Some(kubectl) = kubectl().await else { return };
    let mut found = String::new();
    for (command, object, path) in CREATED {
        let arguments: Vec<String> = command.split(' ').map(|argument| argument.replace('_', " ")).collect();
        kubectl.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let shown = kubectl.run(&["get", object, "-o", &format!("jsonpath={path}")]).await;
        writeln!(found, "{object}: {shown}").unwrap();
    }
    insta::assert_snapshot!(found, @r#"
    deployment/web: 2 80 web
    job/one: ["sleep","1"]
    cronjob/nightly: 0 3 * * * OnFailure
    role/reader: ["get","list"] ["pods"]
    rolebinding/r: reader jane
    clusterrole/all: ["/x"]
    clusterrolebinding/c: Group
    service/ip: 8080 ClusterIP
    service/np: web NodePort
    ingress/i: 80 Prefix
    resourcequota/q: {"cpu":"1","pods":"2"}
    pdb/p: 50%
    priorityclass/high: 10
    pod/shell: {"name":"A","value":"b"}
    service/exposed: {"app":"web"} 80
    hpa/web: 3
    "#);
    kubectl.run(&["delete", "pod/shell", "--grace-period=0", "--force"]).await;
    kubectl.run(&["scale", "deployment/web", "--replicas=1"]).await;
    assert_eq!(kubectl.run(&["get", "deployment/web", "-o", "jsonpath={.spec.replicas}"]).await, "1");
    kubectl.run(&["delete", "deployment,service", "--all", "--cascade=foreground"]).await;
}

#[tokio::test]
async fn the_api_server_has_a_service() {
    let Some(kubectl) = kubectl().await else { return };
    let port = kubectl.cluster.url().rsplit_once(':').unwrap().1.to_owned();
    let shown = kubectl.run(&["get", "service,endpoints,endpointslice", "--no-headers"]).await;
    let rows: Vec<Vec<&str>> =
        shown.lines().filter(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect();
    let address = format!("127.0.0.1:{port}");
    let cells = |row: usize, count: usize| rows[row].get(..count).unwrap_or_default().to_vec();
    assert_eq!(cells(0, 5), ["service/kubernetes", "ClusterIP", "10.96.0.1", "<none>", "443/TCP"], "{shown}");
    assert_eq!(cells(1, 2), ["endpoints/kubernetes", &address], "{shown}");
    assert_eq!(cells(2, 4), ["endpointslice.discovery.k8s.io/kubernetes", "IPv4", &port, "127.0.0.1"], "{shown}");
    assert_eq!(rows.len(), 3, "{shown}");
}

#[tokio::test]
async fn the_version_names_the_devcluster() {
    let Some(kubectl) = kubectl().await else { return };
    assert!(kubectl.run(&["version"]).await.contains("chandler.devcluster"));
    let resources = kubectl.run(&["api-resources", "-o", "name"]).await;
    for resource in
        ["pods", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io", "events.events.k8s.io"]
    {
        assert!(resources.lines().any(|line| line == resource), "{resource}");
    }
    let namespaces = kubectl.run(&["get", "namespaces"]).await;
    let names: Vec<&str> = namespaces.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["NAME", "default", "kube-node-lease", "kube-public", "kube-system"]);
    assert!(kubectl.cluster.url().starts_with("https://127.0.0.1:"));
}
