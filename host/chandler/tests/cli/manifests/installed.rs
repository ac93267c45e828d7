//! What is printed, on a control plane: it is accepted, the controller runs with it, and the roles of Kubernetes gain what the page says.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use chandler_devcluster::{DevCluster, Options};
use chandler_tests::{Cluster, wait};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    coordination::v1::Lease,
    core::v1::ConfigMap,
};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams, ValidationDirective},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde_json::{Value, json};

use crate::support::{chandler, command};

/// The objects that are printed.
pub(super) fn objects(arguments: &[&str]) -> Vec<Value> {
    let list: Value =
        serde_json::from_str(&chandler([&["manifests", "-o", "json"], arguments].concat(), "").data()).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// Applies objects in their order, as `kubectl apply --server-side` does, and refuses unknown fields. Returns the kinds that are not served.
pub(super) async fn apply(client: &Client, objects: &[Value], dry_run: bool) -> Vec<String> {
    let mut unserved = Vec::new();
    let parameters =
        PatchParams { dry_run, field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("kubectl") };
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = text("/kind");
        let Ok((resource, capabilities)) = pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await
        else {
            unserved.push(kind.to_owned());
            continue;
        };
        let namespace = object["metadata"]["namespace"].as_str();
        assert_eq!(capabilities.scope == Scope::Namespaced, namespace.is_some(), "{object:#}");
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let applied = api.patch(text("/metadata/name"), &parameters, &Patch::Apply(object)).await;
        assert!(applied.is_ok(), "{kind} {}: {applied:?}", text("/metadata/name"));
    }
    unserved
}

pub(super) async fn cluster() -> Cluster {
    Cluster::embedded(Options::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_accepts_every_object_twice_and_a_dry_run() {
    for (arguments, unserved) in [
        (vec!["--set", "content=true", "--set", "watch=true", "--set", "monitoring.dashboard=true"], vec![]),
        (
            vec!["--profile", "openshift", "--set", "permissions=cluster-admin"],
            vec!["ServiceMonitor", "PrometheusRule"],
        ),
        (
            vec!["--profile", "multi-tenant", "--set", "namespace=platform", "--set", "tolerations=a=b:NoExecute"],
            vec![],
        ),
    ] {
        let (cluster, objects) = (cluster().await, objects(&arguments));
        let client = cluster.client();
        for dry_run in [false, false, true] {
            assert_eq!(apply(&client, &objects, dry_run).await, unserved, "{arguments:?}");
        }
    }
}

/// The process of the controller, which ends with the test.
pub(super) struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a kubeconfig for a token.
pub(super) async fn kubeconfig(cluster: &DevCluster, client: &Client, account: &str, path: &Path) {
    let (namespace, name) = account.split_once('/').unwrap();
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"));
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).to_string();
    let request = request.header("content-type", "application/json").body(body.into_bytes()).unwrap();
    let answer: Value = client.request(request).await.unwrap();
    let mut config: Value = serde_saphyr::from_str(&cluster.kubeconfig()).unwrap();
    config["users"][0]["user"] = json!({"token": answer["status"]["token"]});
    write(path, &config.to_string());
}

pub(super) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Starts the controller with the arguments of the Deployment, on ports that are free.
pub(super) fn start(objects: &[Value], kubeconfig: &Path, cache: &Path, log: &Path) -> Controller {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let mut command: Command = command(cache);
    for argument in arguments.iter().map(|argument| argument.as_str().unwrap()) {
        match argument.split_once("=0.0.0.0:") {
            Some((option, _)) => command.arg(format!("{option}=127.0.0.1:0")),
            None => command.arg(argument),
        };
    }
    command.arg("--kubeconfig").arg(kubeconfig).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(log).unwrap());
    Controller(command.spawn().unwrap())
}

/// The account `deployer` in a namespace, which installs the bundle `bell` into the namespace `shop`, and which the controller of a namespace may
/// impersonate.
pub(super) fn tenant(controller: &str, accounts: &str) -> Vec<Value> {
    let tenant = fs::read_to_string(crate::support::root().join("deploy/rbac-service-account.yaml")).unwrap();
    let tenant = tenant.replace("chandler-system", controller);
    let mut tenant: Vec<Value> = serde_saphyr::from_multiple(&tenant).unwrap();
    for object in &mut tenant {
        object["metadata"]["namespace"] = json!(accounts);
    }
    tenant[0]["metadata"]["annotations"] = json!({"chandler.dev/bundledeployments": "bell"});
    tenant.insert(0, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let group = "rbac.authorization.k8s.io";
    tenant.push(json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "deployer-installs", "namespace": "shop"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": accounts}]}));
    // The account writes an owner reference to the BundleDeployment: `chandler rbac` prints this, too.
    tenant.push(json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "owns-bell"},
        "rules": [{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments/finalizers"],
                   "resourceNames": ["bell"], "verbs": ["update"]}]}));
    tenant.push(
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "owns-bell"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "owns-bell"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": accounts}]}),
    );
    tenant
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_with_the_printed_options_and_permissions_install_a_bundle() {
    for (profile, accounts) in [("standalone", "shop"), ("multi-tenant", "chandler-accounts")] {
        let (cluster, objects) = (cluster().await, objects(&["--profile", profile]));
        let (client, dev) = (cluster.client(), cluster.devcluster().unwrap());
        apply(&client, &objects, false).await;
        apply(&client, &tenant("chandler-system", accounts), false).await;

        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        kubeconfig(dev, &client, "chandler-system/chandler", &place("controller")).await;
        write(&place("admin"), &dev.kubeconfig());
        let [first, second] = ["first", "second"].map(|name| {
            start(&objects, &place("controller"), &place(&format!("{name}-cache")), &place(&format!("{name}-log")))
        });

        fs::create_dir_all(place("bell/manifests")).unwrap();
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\ndata: {tone: low}\n";
        fs::write(place("bell/manifests/map.yaml"), map).unwrap();
        let (bundle, admin) = (place("bell"), place("admin"));
        let installed = tokio::task::spawn_blocking(move || {
            let account = format!("{accounts}/deployer");
            let line =
                ["install", "bell", bundle.to_str().unwrap(), "--namespace", "shop", "--service-account", &account];
            chandler([line.as_slice(), &["--kubeconfig", admin.to_str().unwrap(), "--timeout", "3m"]].concat(), "")
        })
        .await
        .unwrap();
        let log =
            || [fs::read_to_string(place("first-log")).unwrap(), fs::read_to_string(place("second-log")).unwrap()];
        assert_eq!(installed.code, Some(0), "{profile}: {}\n{:#?}", installed.stderr, log());

        // The other one continues when the leader is gone.
        let leases: Api<Lease> = Api::namespaced(client.clone(), "chandler-system");
        let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        let before = holder(&leases.get("chandler-controller").await.unwrap());
        let leads_first = log()[1].contains("waits until it is the leader");
        let (leader, waiting) = if leads_first { (first, second) } else { (second, first) };
        drop(leader);
        wait::until(&leases, "chandler-controller", "held by the other one", |lease| {
            lease.is_some_and(|lease| holder(lease).is_some_and(|now| !now.is_empty() && Some(now) != before))
        })
        .await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
        let change = Patch::Merge(json!({"data": {"tone": "high"}}));
        maps.patch("bell", &PatchParams::default(), &change).await.unwrap();
        wait::until(&maps, "bell", "repaired", |map| {
            map.and_then(|map| map.data.as_ref()).is_some_and(|data| data["tone"] == "low")
        })
        .await;
        let denied: Vec<String> = log()
            .iter()
            .flat_map(|log| log.lines())
            .filter(|line| line.contains("is forbidden"))
            .map(str::to_owned)
            .collect();
        assert_eq!(denied, [""; 0], "{profile}");
        drop(waiting);
    }
}

/// Whether the group may do this with BundleDeployments.
async fn may(client: &Client, group: &str, verb: &str) -> bool {
    let attributes = ResourceAttributes {
        group: Some("core.rukpak.io".to_owned()),
        resource: Some("bundledeployments".to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let (groups, user) = (Some(vec![group.to_owned()]), Some("jane".to_owned()));
    let spec = SubjectAccessReviewSpec { resource_attributes: Some(attributes), groups, user, ..Default::default() };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviewed = Api::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    reviewed.status.unwrap().allowed
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_of_kubernetes_gain_what_the_page_says() {
    const VERBS: [&str; 6] = ["get", "create", "delete", "approve", "decide", "installWithControllerRights"];
    for (setting, edit, admin) in [
        ("permissions=service-accounts", vec!["get", "create", "delete"], vec!["get", "create", "delete", "approve"]),
        ("permissions=cluster-admin", vec!["get"], vec!["get"]),
        ("admissionPolicies=false", vec!["get"], vec!["get"]),
    ] {
        let cluster = cluster().await;
        let client = cluster.client();
        apply(&client, &objects(&["--set", setting]), false).await;
        let (group, mut bindings) = ("rbac.authorization.k8s.io", Vec::new());
        for role in ["view", "edit", "admin"] {
            bindings.push(
                json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": group, "kind": "Group", "name": format!("{role}ers")}]}),
            );
            bindings.push(json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": role, "namespace": "default"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": group, "kind": "Group", "name": format!("local-{role}ers")}]}));
        }
        apply(&client, &bindings, false).await;
        // Aggregation is the work of a controller.
        wait::eventually("aggregated", || may(&client, "viewers", "get")).await;
        wait::eventually("aggregated", || may(&client, "adminers", admin.last().unwrap())).await;
        for (role, wanted) in [("view", vec!["get"]), ("edit", edit), ("admin", admin)] {
            for verb in VERBS {
                let found = may(&client, &format!("{role}ers"), verb).await;
                assert_eq!(found, wanted.contains(&verb), "{setting}: {role}: {verb}");
                assert!(
                    !may(&client, &format!("local-{role}ers"), verb).await,
                    "{setting}: {role} of a namespace: {verb}"
                );
            }
        }
    }
}
