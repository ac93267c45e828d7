//! What stops `chandler uninstall`, on a whole installation: what the user has not seen, another installation, objects of bundles in the namespace
//! of the controller, and an API server that does not answer.

use std::{fs, process::Stdio, time::Duration};

use chandler_api::Catalog;
use chandler_controller::options::LEASE;
use chandler_devcluster::{Effect, Fault, faults::Verb};
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    apps::v1::Deployment,
    core::v1::ConfigMap,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{
    support::{cache, command},
    uninstall::{Installation, apply},
};

fn catalog(name: &str) -> Catalog {
    serde_json::from_value(json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog", "metadata": {"name": name},
        "spec": {"suspend": true, "source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}}))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_after_the_preview_stops_it_before_anything_is_deleted() {
    let Some(installation) = Installation::start().await else { return };
    let (session, world) = (&installation.session, &installation.session.world);
    // The request that follows the confirmation is held, so that an object can come between.
    let held = Duration::from_secs(20);
    let fault = Fault::new(Effect::Latency { least: held, most: held }).verb(Verb::Patch).times(1);
    world.embedded().unwrap().inject(fault.resource("validatingadmissionpolicies").name("chandler-uninstall"));
    let mut uninstall = command(&cache());
    uninstall.args(["uninstall", "--delete-installed", "--yes", "--system-namespace", &world.system_namespace]);
    uninstall.arg("--kubeconfig").arg(session.kubeconfig());
    let mut uninstall = tokio::process::Command::from(uninstall);
    uninstall.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = uninstall.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut printed = String::new();
    while !printed.contains("of the installation to delete") {
        let line = lines.next_line().await.unwrap().expect("the summary of the preview");
        printed += &line;
    }
    let catalogs: Api<Catalog> = Api::all(world.client.clone());
    let name = format!("{}-late", world.run());
    catalogs.create(&PostParams::default(), &catalog(&name)).await.unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        printed += &line;
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(8), "{printed}");
    for words in [&format!("new since the preview: Catalog {name}"), "nothing was deleted", "run the command again"] {
        assert!(printed.contains(words), "{words:?} is not in {printed}");
    }
    assert!(catalogs.get(&name).await.unwrap().metadata.deletion_timestamp.is_none());
    // New objects are accepted again.
    catalogs.create(&PostParams::default(), &catalog(&format!("{name}-2"))).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.system_namespace);
    assert!(deployments.get("chandler").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_another_one_has_replaced_is_refused() {
    let Some(mut installation) = Installation::start().await else { return };
    installation.stop_controller().await;
    let session = &installation.session;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": "kube-system"}, "spec": {"holderIdentity": "elsewhere"}});
    apply(&session.world.client, &lease).await;
    for arguments in [
        &["uninstall", "--delete-installed", "--yes"][..],
        &["uninstall", "--keep-installed", "--keep-namespace", "--yes"],
        &["uninstall", "--keep-installed", "--without-controller", "--yes"],
    ] {
        let refused = session.run(arguments).await;
        assert_eq!(refused.code, Some(8), "{arguments:?}: {}", refused.stderr);
        for words in [
            "namespace elsewhere holds the Lease of the cluster",
            "--system-namespace elsewhere",
            "kubectl delete lease --namespace kube-system chandler-controller",
        ] {
            assert!(refused.stderr.contains(words), "{words:?} is not in {}", refused.stderr);
        }
    }
    let system = &session.world.system_namespace;
    let deployments: Api<Deployment> = Api::namespaced(session.world.client.clone(), system);
    assert!(deployments.get("chandler").await.is_ok(), "nothing was deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_bundles_that_stay_hold_the_namespace_of_the_controller() {
    let Some(mut installation) = Installation::start().await else { return };
    let session = &installation.session;
    let (name, system) = (session.world.name(), session.world.system_namespace.clone());
    let label = session.label();
    let bundle = tempfile::tempdir().unwrap();
    fs::create_dir(bundle.path().join("manifests")).unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: harbour-tides}\n";
    fs::write(bundle.path().join("manifests/map.yaml"), map).unwrap();
    let directory = bundle.path().display().to_string();
    // Only an account that may do everything can install there.
    let account = json!({"name": "installer", "namespace": session.world.namespace});
    apply(&session.world.client, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})).await;
    let (role, subject) = (
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}),
        json!({"kind": "ServiceAccount", "name": "installer", "namespace": session.world.namespace}),
    );
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                         "metadata": {"name": "installer"}, "roleRef": role, "subjects": [subject]});
    apply(&session.world.client, &binding).await;
    let account = format!("{}/installer", session.world.namespace);
    let fixed = ["install", &name, &directory, "--namespace", &system, "--label", &label];
    let installed = session.run(&[&fixed[..], &["--service-account", &account]].concat()).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let maps: Api<ConfigMap> = Api::namespaced(session.world.client.clone(), &system);
    let of_bundle = async || {
        let all = maps.list(&ListParams::default()).await.unwrap().items;
        all.iter().filter(|map| map.name_any() == "harbour-tides").count()
    };
    assert_eq!(of_bundle().await, 1);
    let refused = session.run(&["uninstall", "--keep-installed", "--yes"]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    for words in ["objects of bundles that stay are in the namespace", "harbour-tides", "--keep-namespace"] {
        assert!(refused.stderr.contains(words), "{words:?} is not in {}", refused.stderr);
    }
    let arguments = ["uninstall", "--keep-installed", "--keep-namespace", "--yes", "--timeout", "4m"];
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(of_bundle().await, 1, "it stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_does_not_answer_is_named_with_the_ways_out() {
    let Some(mut installation) = Installation::start().await else { return };
    let session = &installation.session;
    let client = session.world.client.clone();
    // Its group is served by a Service that does not exist.
    let served = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.tides.example.com"},
        "spec": {"group": "tides.example.com", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                 "insecureSkipTLSVerify": true, "service": {"name": "tides", "namespace": "default"}},
    });
    apply(&client, &served).await;
    // Without the simulation of a cluster, no other client judges it.
    let condition = json!({"type": "Available", "status": "False", "reason": "ServiceNotFound",
                           "message": "service/tides in \"default\" is not present", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let api_services = ApiResource::from_gvk(&GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService"));
    let api_services = Api::<DynamicObject>::all_with(client.clone(), &api_services);
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    api_services.patch_status("v1beta1.tides.example.com", &PatchParams::default(), &patch).await.unwrap();
    let failed = session.run(&["uninstall", "--delete-installed", "--yes"]).await;
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    for words in [
        "cannot all be listed",
        "APIService v1beta1.tides.example.com is not available: ServiceNotFound",
        "kubectl delete apiservice v1beta1.tides.example.com",
        "--keep-namespace",
    ] {
        assert!(failed.stderr.contains(words), "{words:?} is not in {}", failed.stderr);
    }
    let system = session.world.system_namespace.clone();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &system);
    assert!(deployments.get("chandler").await.is_ok(), "nothing was deleted");
    let arguments = ["uninstall", "--delete-installed", "--keep-namespace", "--yes", "--timeout", "4m"];
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_another_product_stays_with_its_binding() {
    let Some(mut installation) = Installation::start().await else { return };
    let client = installation.session.world.client.clone();
    let (name, policies) = ("chandler-sets", Api::<ValidatingAdmissionPolicy>::all(client.clone()));
    policies.delete(name, &DeleteParams::background()).await.unwrap();
    let rule = json!({"apiGroups": ["candles.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["candles"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]},
    });
    apply(&client, &policy).await;
    let arguments = ["uninstall", "--delete-installed", "--yes", "--timeout", "4m"];
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        let line = format!("  keep {kind}.admissionregistration.k8s.io {name}, which is not Chandler's\n");
        assert!(outcome.stdout.contains(&line), "{}", outcome.stdout);
    }
    assert!(policies.get(name).await.is_ok());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client);
    assert!(bindings.get(name).await.is_ok());
}
