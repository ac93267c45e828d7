//! Mistakes with BundleDeployments in a cluster that runs Chandler.

use std::time::{Duration, Instant};

use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::{Messages, mistake};
use crate::dev::Kept;

const BUNDLE: &str = "./tests/fixtures/plain/lighthouse";
const CLASS: &str = "core-rukpak-io-plain";

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Creates a BundleDeployment, as `kubectl create` does.
async fn create(client: &Client, name: &str, spec: Value) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("core.rukpak.io", "v1alpha2", "BundleDeployment"));
    let mut object = DynamicObject::new(name, &kind);
    object.data = json!({ "spec": spec });
    Api::<DynamicObject>::all_with(client.clone(), &kind).create(&PostParams::default(), &object).await.unwrap();
}

/// A spec that is right.
fn spec(image: &str) -> Value {
    json!({
        "installNamespace": "default",
        "provisionerClassName": CLASS,
        "source": {"type": "image", "image": {"ref": image}},
    })
}

/// A spec with another value.
fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

impl Messages {
    /// Waits until the output of a command that does not succeed has these words, for a minute at most. Returns the output.
    fn wait_for(&self, arguments: &[String], words: &str) -> String {
        let started = Instant::now();
        loop {
            let (code, text) = self.run(arguments, "");
            if code != Some(0) && text.contains(words) || started.elapsed() > Duration::from_mins(5) {
                return text;
            }
        }
    }
}

#[test]
fn a_command_about_a_deployment_names_it() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(client(&kept.kubeconfig));
    let mut messages = Messages::new();
    messages.name(kept.kubeconfig.clone(), "KUBECONFIG");
    let of = |arguments: &[&str]| -> Vec<String> {
        arguments.iter().chain(&["--kubeconfig", &kept.kubeconfig]).map(|argument| (*argument).to_owned()).collect()
    };
    let (code, text) = messages.run(&of(&["status", "lighthouse", "--watch", "--timeout", "1m"]), "");
    assert_eq!(code, Some(0), "{text}");
    runtime.block_on(create(
        &client,
        "unbound",
        with(spec("127.0.0.1:1/a:v1"), "serviceAccount", json!({"name": "deployer"})),
    ));
    // Before the first attempt to fetch the image, the message is another one.
    messages.wait_for(&of(&["status", "unbound"]), "cannot be reached");
    messages.check(vec![
        mistake(
            "the status of nothing",
            &of(&["status", "nobody"]),
            "not found",
            "BundleDeployment nobody",
            "kubectl get bundledeployments",
        ),
        mistake(
            "the explanation of nothing",
            &of(&["explain", "nobody"]),
            "no BundleDeployment, Resolution or PlatformOperator",
            "named nobody",
            "kubectl get bundledeployments,resolutions,platformoperators",
        ),
        mistake(
            "the status of no Resolution",
            &of(&["status", "resolution/nobody"]),
            "not found",
            "Resolution nobody",
            "kubectl get resolutions",
        ),
        mistake(
            "the explanation of no PlatformOperator",
            &of(&["explain", "po/nobody"]),
            "not found",
            "PlatformOperator nobody",
            "kubectl get platformoperators",
        ),
        mistake(
            "the rollback of no Resolution",
            &of(&["rollback", "resolution/nobody", "--undo"]),
            "not found",
            "Resolution nobody",
            "kubectl get resolutions",
        ),
        mistake(
            "the approval of no set",
            &of(&["approve", "resolution/nobody"]),
            "not found",
            "BundleDeployment resolveset-nobody",
            "chandler list",
        ),
        mistake(
            "the history of nothing",
            &of(&["history", "nobody"]),
            "not found",
            "BundleDeployment nobody",
            "kubectl get bundledeployments",
        ),
        mistake(
            "the objects of nothing",
            &of(&["tree", "nobody"]),
            "not found",
            "BundleDeployment nobody",
            "kubectl get bundledeployments",
        ),
        mistake(
            "the deletion of nothing",
            &of(&["delete", "nobody", "--yes"]),
            "not found",
            "BundleDeployment nobody",
            "kubectl get bundledeployments",
        ),
        mistake(
            "the rights of nothing",
            &of(&["rbac", "nobody"]),
            "not found",
            "BundleDeployment nobody",
            "kubectl get bundledeployments",
        ),
        mistake(
            "the first revision is the only one",
            &of(&["rollback", "lighthouse"]),
            "revision",
            "lighthouse",
            "chandler history lighthouse",
        ),
        mistake(
            "a revision that was never",
            &of(&["rollback", "lighthouse", "--to", "7"]),
            "revision 7",
            "lighthouse",
            "chandler history lighthouse",
        ),
        mistake(
            "nothing to approve",
            &of(&["approve", "lighthouse"]),
            "no change",
            "BundleDeployment lighthouse",
            "chandler status lighthouse",
        ),
        mistake("a deletion without --yes", &of(&["delete", "lighthouse"]), "--yes", "lighthouse", "--yes"),
        mistake(
            "no object to adopt",
            &of(&["adopt", "lighthouse", "ConfigMap/none", "--bundle", BUNDLE, "--yes"]),
            "ConfigMap none",
            "lighthouse",
            "hint:",
        ),
        mistake(
            "the rights of the controller",
            &of(&["rbac", "lighthouse"]),
            "has no spec.serviceAccount",
            "lighthouse",
            "--service-account NAME",
        ),
        mistake(
            "rights that were never checked",
            &of(&["rbac", "unbound"]),
            "has not checked the permissions",
            "default/deployer",
            "chandler status unbound",
        ),
        mistake(
            "rights of another account",
            &of(&["rbac", "unbound", "--service-account", "other"]),
            "not about ServiceAccount default/other",
            "the status of unbound",
            "--all",
        ),
    ]);
    insta::assert_snapshot!("mistakes.commands", messages.finish());
}

#[test]
fn a_deployment_that_is_not_installed_says_why() {
    let kept = Kept::start(&["--bundle", BUNDLE]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(client(&kept.kubeconfig));
    let mut messages = Messages::new();
    let of = |arguments: &[&str]| -> Vec<String> {
        arguments.iter().chain(&["--kubeconfig", &kept.kubeconfig]).map(|argument| (*argument).to_owned()).collect()
    };
    let (code, text) = messages.run(&of(&["status", "lighthouse", "--watch", "--timeout", "1m"]), "");
    assert_eq!(code, Some(0), "{text}");
    let image = runtime.block_on(async {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("core.rukpak.io", "v1alpha2", "BundleDeployment"));
        let deployments = Api::<DynamicObject>::all_with(client.clone(), &kind);
        let found = deployments.get("lighthouse").await.unwrap();
        found.data["spec"]["source"]["image"]["ref"].as_str().unwrap().to_owned()
    });
    let (host, path) = image.split_once('/').unwrap();
    let repository = format!("{host}/{}", path.split([':', '@']).next().unwrap());
    messages.name(host.to_owned(), "REGISTRY");
    let right = || spec(&image);
    let rows = [
        ("no-tag", spec(&format!("{repository}:v9")), "has no tag v9", repository.clone(), "spec.source"),
        ("no-repository", spec(&format!("{host}/none:v1")), "has no repository none", host.to_owned(), "spec.source"),
        ("no-host", spec("quay.invalid/a:v1"), "is not in DNS", "quay.invalid".to_owned(), "spec.source"),
        (
            "no-class",
            with(right(), "provisionerClassName", json!("helm")),
            "no provisioner class \"helm\"",
            "no-class".to_owned(),
            "spec.provisionerClassName",
        ),
        (
            "no-namespace",
            with(right(), "installNamespace", json!("none")),
            "namespaces \"none\" not found",
            "no-namespace".to_owned(),
            "create the namespace",
        ),
        (
            "no-account",
            with(right(), "serviceAccount", json!({"name": "none"})),
            "ServiceAccount default/none does not exist",
            "no-account".to_owned(),
            "create the ServiceAccount",
        ),
        (
            "no-rights",
            with(right(), "serviceAccount", json!({"name": "default"})),
            "default/default",
            "no-rights".to_owned(),
            "chandler rbac",
        ),
        (
            "no-field",
            with(right(), "config", json!({"replicas": 2})),
            "replicas",
            "no-field".to_owned(),
            "fix spec.config",
        ),
        (
            "no-format",
            with(right(), "provisionerClassName", json!("core-rukpak-io-registry")),
            "metadata/annotations.yaml",
            "no-format".to_owned(),
            "fix the bundle",
        ),
        ("no-room", right(), "already exists", "no-room".to_owned(), "chandler adopt no-room"),
    ];
    for (name, spec, what, place, help) in rows {
        runtime.block_on(create(&client, name, spec));
        let mistake = mistake(name, &of(&["status", name]), what, place, help);
        let status = messages.wait_for(&mistake.arguments, what);
        messages.examine(&mistake, &status);
    }
    messages.finish();
}
