//! Users who lack a permission: every command exits with 8 and names the permission, and none calls an object missing that they may not
//! read. So does one whom an admission policy refuses.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    approvals::client,
    dev::Kept,
    support::{Outcome, chandler, documents},
};

const BUNDLE: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
const NEWER: &str = "./tests/fixtures/registry/harbour-operator.v0.2.0";
const NAME: &str = "harbour-operator";

/// A control plane, and kubeconfigs of users with few permissions.
struct Limited {
    kept: Kept,
    client: Client,
    directory: TempDir,
}

impl Limited {
    async fn start() -> Self {
        let kept = Kept::start(&["--bundle", BUNDLE]);
        let client = client(&kept).await;
        let namespace = json!({"metadata": {"name": "users"}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
        Self { kept, client, directory: tempfile::tempdir().unwrap() }
    }

    /// The kubeconfig of a new ServiceAccount with these permissions.
    async fn user(&self, name: &str, rules: Value) -> PathBuf {
        let create = PostParams::default();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), "users");
        let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        accounts.create(&create, &account).await.unwrap();
        let role: ClusterRole = serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap();
        Api::all(self.client.clone()).create(&create, &role).await.unwrap();
        let binding: ClusterRoleBinding = serde_json::from_value(json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "users"}]}))
        .unwrap();
        Api::all(self.client.clone()).create(&create, &binding).await.unwrap();
        let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
        let token = accounts.create_token_request(name, &create, &request).await.unwrap().status.unwrap().token;
        let [mut kubeconfig]: [Value; 1] =
            documents(&fs::read_to_string(&self.kept.kubeconfig).unwrap()).try_into().unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": token});
        let path = self.directory.path().join(name);
        fs::write(&path, kubeconfig.to_string()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

/// Runs a command as the user of this kubeconfig.
async fn run(kubeconfig: &Path, line: &[&str]) -> Outcome {
    let kubeconfig = kubeconfig.display().to_string();
    let line: Vec<String> = line.iter().copied().chain(["--kubeconfig", &kubeconfig]).map(str::to_owned).collect();
    tokio::task::spawn_blocking(move || chandler(line, "")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_refused_by_name() {
    let limited = Limited::start().await;
    let admin = PathBuf::from(&limited.kept.kubeconfig);
    run(&admin, &["status", NAME, "--watch", "--timeout", "5m"]).await.data();
    let nothing = limited.user("nothing", json!([])).await;
    let own = json!([{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "verbs": ["get", "list", "watch"]}]);
    let reader = limited.user("reader", own).await;

    let reads: &[&[&str]] = &[
        &["list", "-o", "json"],
        &["status", NAME, "-o", "json"],
        &["explain", NAME],
        &["explain", "absent"],
        &["events", NAME],
        &["tree", NAME],
        &["get", NAME],
        &["history", NAME],
        &["outdated"],
        &["content", NAME],
        &["catalog", "list"],
        &["status", "catalog/x"],
    ];
    let writes: &[&[&str]] = &[
        &["approve", NAME],
        &["rollback", NAME],
        &["suspend", NAME],
        &["resume", NAME],
        &["reconcile", NAME],
        &["adopt", NAME, "--yes"],
        &["delete", NAME, "--yes"],
        &["upgrade", NAME, NEWER],
        &["install", "other", BUNDLE, "-n", "users"],
        &["catalog", "add", "x", "registry.invalid/x:v1"],
        &["catalog", "remove", "x"],
    ];
    for line in reads.iter().chain(writes) {
        let refused = run(&nothing, line).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(8), ""), "{line:?}: {}", refused.stderr);
        for part in ["is forbidden: User \"system:serviceaccount:users:nothing\" cannot ", "kubectl auth can-i --list"]
        {
            assert!(refused.stderr.contains(part), "{line:?}: no {part:?} in {}", refused.stderr);
        }
    }
    // A preview reads the objects, which only the controller may.
    let previews: &[&[&str]] = &[
        &["diff", NAME, NEWER],
        &["delete", NAME, "--yes"],
        &["suspend", NAME],
        &["suspend", NAME, "--dry-run"],
        &["reconcile", NAME],
        &["upgrade", NAME, NEWER],
    ];
    for line in previews {
        let refused = run(&reader, line).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(8), ""), "{line:?}: {}", refused.stderr);
        assert!(!refused.stderr.contains("would be refused"), "{line:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("kubectl auth can-i --list"), "{line:?}: {}", refused.stderr);
    }
    // Everything that the user may read is printed, and what cannot is named in the words of the API server.
    for line in [["tree", NAME], ["get", NAME]] {
        let partly = run(&reader, &line).await;
        assert_eq!(partly.code, Some(1), "{}", partly.stderr);
        for part in ["failed to read ConfigMap: configmaps is forbidden: ", "failed to read Deployment.apps: "] {
            assert!(partly.stderr.contains(part), "{line:?}: {}", partly.stderr);
        }
        assert!(!partly.stderr.contains("ApiError") && !partly.stderr.contains("Status {"), "{}", partly.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admission_policy_refuses() {
    let limited = Limited::start().await;
    let admin = PathBuf::from(&limited.kept.kubeconfig);
    run(&admin, &["status", NAME, "--watch", "--timeout", "5m"]).await.data();
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "frozen"}, "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["core.rukpak.io", "chandler.dev"], "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["bundledeployments", "catalogs"]}]},
            "validations": [{"expression": "request.userInfo.username.startsWith('system:')", "message": "the cluster is frozen"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "frozen"}, "spec": {"policyName": "frozen", "validationActions": ["Deny"]}});
    for (plural, object) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        limited.client.request::<Value>(request).await.unwrap();
    }
    let lines: &[&[&str]] = &[
        &["suspend", NAME],
        &["suspend", NAME, "--dry-run"],
        &["reconcile", NAME],
        &["upgrade", NAME, NEWER],
        &["delete", NAME, "--yes"],
        &["install", "other", BUNDLE, "-n", "users"],
        &["catalog", "add", "x", "registry.invalid/x:v1"],
    ];
    for line in lines {
        let refused = run(&admin, line).await;
        assert_eq!(refused.code, Some(8), "{line:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("the cluster is frozen"), "{line:?}: {}", refused.stderr);
    }
}
