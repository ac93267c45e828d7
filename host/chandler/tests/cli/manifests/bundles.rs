//! The bundles of Chandler: valid, and installed by another Chandler.

use std::{collections::BTreeSet, fs, path::Path};

use chandler_api::BundleDeployment;
use chandler_tests::wait;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::installed::{Controller, apply, cluster, kubeconfig, objects, start, tenant, write};
use crate::support::{Outcome, chandler, documents};

/// The settings of an installation beside another one. The policies have fixed names and admit one installation.
const BESIDE: [&str; 8] = [
    "--set",
    "namespace=platform",
    "--set",
    "arg=--watch-selector=shard=b",
    "--set",
    "admissionPolicies=false",
    "--set",
    "image=registry.corp.example/chandler:v1",
];

/// Writes a bundle of this format into a directory. Returns the notes.
fn written(format: &str, settings: &[&str], directory: &Path) -> String {
    let line = ["manifests", "--format", format, "--to", directory.to_str().unwrap()];
    let outcome = chandler([&line, settings].concat(), "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    outcome.stderr
}

#[test]
fn bundles_are_valid_for_every_profile() {
    let directory = tempfile::tempdir().unwrap();
    for format in ["plain", "registry"] {
        for profile in ["standalone", "openshift", "multi-tenant"] {
            let bundle = directory.path().join(format!("{format}-{profile}"));
            written(format, &["--profile", profile, "--set", "content=true"], &bundle);
            let linted = chandler(["lint", bundle.to_str().unwrap()], "");
            assert_eq!(linted.code, Some(0), "{format} {profile}: {}{}", linted.stdout, linted.stderr);
            assert!(linted.stderr.starts_with("0 errors, 0 warnings"), "{}{}", linted.stdout, linted.stderr);
        }
    }
}

/// The objects that a bundle renders to.
fn rendered(bundle: &Path, more: &[&str]) -> Vec<Value> {
    let line = ["render", bundle.to_str().unwrap(), "--namespace", "chandler-system", "--name", "chandler"];
    documents(&chandler([&line, more].concat(), "").data())
}

fn names(objects: &[Value], kind: &str) -> BTreeSet<String> {
    let of_kind = objects.iter().filter(|object| object["kind"] == kind);
    of_kind.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_registry_provisioner_makes_the_printed_objects_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let settings = ["--profile", "openshift", "--set", "content=true", "--set", "admissionPolicies=false"];
    let notes = written("registry", &settings, &directory.path().join("bundle"));
    insta::assert_snapshot!(notes.replace(directory.path().to_str().unwrap(), "DIR"), @r"
    wrote 27 files into DIR/bundle
    note: the bundle lacks what its format cannot hold: Namespace chandler-system, ResourceQuota chandler-critical-pods, FlowSchema chandler-leases and chandler
    note: the image registry.example.com/chandler:v0.1.0 is a placeholder: name yours with --set image=IMAGE (docs/install.md, An image)
    note: without the admission policies, every user who may write a BundleDeployment may name every account; the roles edit and admin do not get this permission
    note: uploads are in the cache of one Pod, and the next leader lacks them: keep them with --set cache.claim=NAME
    note: PlatformOperators are refused until an account installs them: --set arg=--platform-service-account=NAME, or with all permissions --set permissions=cluster-admin
    ");
    // OLM v1 accepts it, too.
    let config = directory.path().join("config.yaml");
    fs::write(&config, "compatibility: reference\n").unwrap();
    for more in [vec![], vec!["--values", config.to_str().unwrap()]] {
        let found = rendered(&directory.path().join("bundle"), &more);
        let wanted = objects(&settings);
        for kind in [
            "CustomResourceDefinition",
            "Deployment",
            "ServiceAccount",
            "Service",
            "Role",
            "NetworkPolicy",
            "PrometheusRule",
        ] {
            let elsewhere = |object: &&Value| {
                let namespace = object["metadata"]["namespace"].as_str();
                namespace.is_none_or(|namespace| namespace == "chandler-system")
            };
            let here: Vec<Value> = wanted.iter().filter(elsewhere).cloned().collect();
            assert_eq!(names(&found, kind), names(&here, kind), "{kind}");
        }
        let spec = |objects: &[Value]| {
            let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
            deployment["spec"].clone()
        };
        let (found, wanted) = (spec(&found), spec(&wanted));
        for pointer in ["/template/spec", "/selector", "/replicas", "/strategy"] {
            assert_eq!(found.pointer(pointer), wanted.pointer(pointer), "{pointer}");
        }
    }
}

/// Runs the command beside the tasks of the test.
async fn run(line: Vec<String>) -> Outcome {
    tokio::task::spawn_blocking(move || chandler(line, "")).await.unwrap()
}

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_chandler_installs_it_and_both_install_bundles() {
    for format in ["plain", "registry"] {
        let cluster = cluster().await;
        let (client, dev) = (cluster.client(), cluster.devcluster().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        write(&place("admin"), &dev.kubeconfig());
        let (admin, bundle) = (place("admin"), place("bundle"));
        let (admin, bundle_path) = (admin.to_str().unwrap(), bundle.to_str().unwrap());

        // The first one: CRDs, a namespace, and the permissions of an administrator.
        let mut first = objects(&["--set", "permissions=cluster-admin", "--set", "arg=--watch-selector=!shard"]);
        first.retain(|object| {
            ["CustomResourceDefinition", "Namespace", "Deployment"].contains(&object["kind"].as_str().unwrap())
        });
        let deployed = first.pop().unwrap();
        apply(&client, &first, false).await;
        let first: Controller = start(&[deployed], &place("admin"), &place("first-cache"), &place("first-log"));

        // Only an account with all permissions installs the APIs of Chandler.
        let (group, name) = ("rbac.authorization.k8s.io", "installer");
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": "default"});
        let account = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}),
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
                   "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [subject]}),
        ];
        apply(&client, &account, false).await;

        written(format, &BESIDE, &bundle);
        // All objects of a plain bundle name their namespace, and it contains that.
        let namespace: &[&str] = if format == "plain" {
            &["--namespace", "default"]
        } else {
            &["--namespace", "platform", "--create-namespace"]
        };
        let account = ["--service-account", "default/installer"];
        let install = ["install", "chandler", bundle_path, "--kubeconfig", admin, "--wait=false"];
        let installed = run(line(&[&install, namespace, &account].concat())).await;
        assert_eq!(installed.code, Some(0), "{}", installed.stderr);
        // The CRDs exist: they belong to the new installation from now on.
        let deployments: Api<BundleDeployment> = Api::all(client.clone());
        let adopt = Patch::Merge(json!({"spec": {"collisionProtection": "IfNoController"}}));
        deployments.patch("chandler", &PatchParams::default(), &adopt).await.unwrap();
        let log = |name: &str| fs::read_to_string(place(name)).unwrap();
        let waited = run(line(&["status", "chandler", "--watch", "--timeout", "3m", "--kubeconfig", admin])).await;
        assert_eq!(waited.code, Some(0), "{format}: {}{}\n{}", waited.stdout, waited.stderr, log("first-log"));

        // The second one runs with what was installed, and installs a bundle.
        let second: Api<Deployment> = Api::namespaced(client.clone(), "platform");
        let mut second = serde_json::to_value(second.get("chandler").await.unwrap()).unwrap();
        second["kind"] = json!("Deployment");
        apply(&client, &tenant("platform", "shop"), false).await;
        kubeconfig(dev, &client, "platform/chandler", &place("second")).await;
        let second = start(&[second], &place("second"), &place("second-cache"), &place("second-log"));
        for (name, more) in [("bell", ["--label", "shard=b"].as_slice()), ("gong", &[])] {
            fs::create_dir_all(place(name).join("manifests")).unwrap();
            let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{tone: low}}\n");
            fs::write(place(name).join("manifests/map.yaml"), map).unwrap();
            let path = place(name);
            let install = [
                "install",
                name,
                path.to_str().unwrap(),
                "--namespace",
                "shop",
                "--kubeconfig",
                admin,
                "--timeout",
                "3m",
            ];
            let owner: &[&str] = match name {
                "bell" => &["--service-account", "deployer", "--system-namespace", "platform"],
                _ => &[],
            };
            let installed = run(line(&[&install, more, owner].concat())).await;
            assert_eq!(
                installed.code,
                Some(0),
                "{format} {name}: {}\n{}\n{}",
                installed.stderr,
                log("first-log"),
                log("second-log")
            );
        }
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
        for name in ["bell", "gong"] {
            wait::until(&maps, name, "installed", |map| map.is_some()).await;
        }
        assert!(!log("second-log").contains("is forbidden"), "{format}: {}", log("second-log"));
        drop((first, second));
    }
}
