//! The real kubectl as other users than the administrator. Skipped with a printed reason without kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::process::{Command, Output};

use chandler_devcluster::DevCluster;
use serde_json::json;
use tempfile::TempDir;

use crate::common::quiet;

struct Kubectl {
    directory: TempDir,
    cluster: DevCluster,
}

impl Kubectl {
    /// Starts a cluster for kubectl; `None` without kubectl.
    async fn start() -> Option<Self> {
        if !chandler_test_support::needs::kubectl() {
            return None;
        }
        let cluster = quiet().await;
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
        Some(Self { directory, cluster })
    }

    async fn output(&self, arguments: &str) -> Output {
        let mut command = Command::new("kubectl");
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .env("HOME", self.directory.path());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Runs a command that must succeed. Returns its standard output.
    async fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments).await;
        assert!(output.status.success(), "kubectl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail. Returns both output streams.
    async fn fail(&self, arguments: &str) -> String {
        let output = self.output(arguments).await;
        assert!(!output.status.success(), "kubectl {arguments} succeeded");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
    }
}

#[tokio::test]
async fn kubectl_reviews_its_identity_and_permissions() {
    let Some(kubectl) = Kubectl::start().await else { return };
    assert!(kubectl.run("auth whoami").await.contains("[system:masters system:authenticated]"));
    let account = kubectl.run("auth whoami --as=system:serviceaccount:default:default").await;
    assert!(
        account.contains("[system:serviceaccounts system:serviceaccounts:default system:authenticated]"),
        "{account}"
    );
    assert_eq!(kubectl.run("auth can-i delete nodes").await, "yes\n");
    assert_eq!(kubectl.fail("auth can-i list pods --as=jane").await, "no\n");
    assert_eq!(kubectl.run("auth can-i get /version --as=jane").await, "yes\n");

    kubectl.run("create role reader --verb=get,list --resource=pods,deployments.apps").await;
    kubectl.run("create rolebinding reader --role=reader --user=jane --serviceaccount=default:default").await;
    assert_eq!(kubectl.run("auth can-i list pods --as=jane").await, "yes\n");
    assert_eq!(kubectl.fail("auth can-i list pods --as=jane -n kube-system").await, "no\n");
    assert_eq!(kubectl.run("auth can-i list pods --as=system:serviceaccount:default:default").await, "yes\n");
    let list = kubectl.run("auth can-i --list --as=jane").await;
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines.contains(&vec!["pods", "[]", "[]", "[get", "list]"]), "{list}");
    assert!(lines.contains(&vec!["deployments.apps", "[]", "[]", "[get", "list]"]), "{list}");
    assert!(lines.contains(&vec!["selfsubjectreviews.authentication.k8s.io", "[]", "[]", "[create]"]), "{list}");

    kubectl.run("get pods --as=jane").await;
    let refused = kubectl.fail("get secrets --as=jane").await;
    assert!(
        refused.contains(
            r#"secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default""#
        ),
        "{refused}"
    );
    let refused = kubectl.fail("create role more --verb=get --resource=secrets --as=jane").await;
    assert!(refused.contains(r#"cannot create resource "roles""#), "{refused}");
}

#[tokio::test]
async fn kubectl_makes_tokens_that_are_credentials() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl.run("create serviceaccount robot").await;
    kubectl.run("create clusterrolebinding robot --clusterrole=view --serviceaccount=default:robot").await;
    let token = kubectl.run("create token robot --duration=10m").await;
    let config = kubectl.directory.path().join("kubeconfig");
    let text = std::fs::read_to_string(&config).unwrap();
    let (before, _) = text.split_once("    token: ").unwrap();
    std::fs::write(&config, format!("{before}    token: {token}")).unwrap();
    assert!(kubectl.run("auth whoami").await.contains("system:serviceaccount:default:robot"));
    kubectl.run("get configmaps -A").await;
    assert!(kubectl.fail("get secrets").await.contains("forbidden"));
    std::fs::write(&config, kubectl.cluster.kubeconfig()).unwrap();
    kubectl.run("delete serviceaccount robot").await;
    std::fs::write(&config, format!("{before}    token: {token}")).unwrap();
    assert!(kubectl.fail("get configmaps").await.contains("Unauthorized"));
    std::fs::write(&config, kubectl.cluster.kubeconfig()).unwrap();
    assert!(kubectl.fail("create token robot").await.contains(r#"serviceaccounts "robot" not found"#));
    let short = kubectl.fail("create token default --duration=1m").await;
    assert!(short.contains("may not specify a duration less than 10 minutes"), "{short}");
}

#[tokio::test]
async fn kubectl_reconciles_roles() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let role = |verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "kept"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]})
    };
    let file = kubectl.directory.path().join("role.json");
    let reconcile = format!("auth reconcile -f {}", file.display());
    for verbs in [&["get"][..], &["get", "list"]] {
        std::fs::write(&file, role(verbs).to_string()).unwrap();
        assert!(kubectl.run(&reconcile).await.contains("clusterrole.rbac.authorization.k8s.io/kept reconciled"));
    }
    let verbs = kubectl.run("get clusterrole kept -o jsonpath={.rules[*].verbs[*]}").await;
    assert_eq!(verbs.split_whitespace().collect::<Vec<_>>(), ["get", "list"]);
    let described = kubectl.run("describe clusterrole view").await;
    assert!(described.contains("deployments.apps/scale"), "{described}");
}
