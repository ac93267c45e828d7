//! Commands with a ProvisionerClass of the cluster, over an update of its component.

use std::{fs, path::Path, time::Duration};

use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_core::Digest;
use chandler_devcluster::{Fault, Options};
use chandler_tests::{Cluster, World, bundles};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{
    approvals::client,
    commands::Session,
    dev::Kept,
    support::{self, Outcome, chandler},
};

fn bundle(directory: &Path, name: &str) -> String {
    let bundle = directory.join(name);
    fs::create_dir_all(bundle.join("manifests")).unwrap();
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    fs::write(bundle.join("manifests/objects.yaml"), map).unwrap();
    bundle.to_str().unwrap().to_owned()
}

/// The image of the class that `chandler dev` made of a file, once it is another one.
async fn published(client: &Client, before: &str) -> String {
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let is_new = |class: Option<&ProvisionerClass>| class.is_some_and(|class| class.spec.image != before);
    let class = await_condition(classes, "my-format", is_new).await.unwrap();
    class.unwrap().spec.image
}

/// Creates a BundleDeployment whose history says that this component rendered it.
async fn installed(world: &World, name: &str, class: &str, image: &str, component: &Value) {
    let mut object = json!({"metadata": {"name": name}, "spec": world.spec(class, image)});
    world.mark(&mut object);
    let deployments: Api<BundleDeployment> = Api::all(world.client.clone());
    deployments.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let revision = json!({
        "number": 1, "source": {"type": "image", "image": {"ref": image}}, "contentDigest": "", "provisioner": component,
        "installNamespace": world.namespace, "configDigest": "", "releaseDigest": "", "outcome": "Succeeded",
    });
    let status = Patch::Merge(json!({"status": {"history": [revision]}}));
    deployments.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// Thousands of installations must be compared within a minute, and not at the cost of the API server and the registry.
#[tokio::test(flavor = "multi_thread")]
async fn the_preview_of_a_class_costs_no_request_for_each_installation() {
    let session = Session::on(World::without_controller(Cluster::embedded(Options::default()).await).await);
    let world = &session.world;
    let wasm = |path: &str| fs::read(support::root().join(path)).unwrap();
    let plain = wasm("target/plugins/plain.wasm");
    let digest = Digest::of(&plain);
    let pushed = world.registry.push_component("provisioners/plain", "v1", plain).unwrap();
    let place = format!("{}/provisioners/plain@{}", world.registry.host(), pushed.digest);
    let class = world.name();
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": class}, "spec": {"image": place}})).await;
    let component = |class: &str| json!({"class": class, "digest": digest, "image": place});
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n";
    let image = world.push(&bundles::Bundle::empty().with("manifests/bell.yaml", map)).await;
    let other = "core-rukpak-io-plain";
    for number in 0..130 {
        installed(world, &format!("{class}-other-{number}"), other, &image, &component(other)).await;
    }
    let add = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            installed(world, &format!("{class}-{number}"), &class, &image, &component(&class)).await;
        }
    };
    add(0..2).await;
    let devcluster = world.embedded().unwrap();
    devcluster.inject(Fault::latency(Duration::ZERO));
    let requests = || devcluster.faults().iter().map(|fault| fault.matched).sum::<u64>();
    let hostile = support::root().join("target/plugins/test/hostile.wasm");
    let target = format!("class/{class}");
    let cost = async |installations: u64| {
        let before = (requests(), world.registry.requests().len());
        let preview = session.run(&["diff", &target, "--provisioner", hostile.to_str().unwrap(), "-o", "json"]).await;
        assert_eq!(preview.code, Some(4), "{}{}", preview.stdout, preview.stderr);
        let report: Value = serde_json::from_str(&preview.stdout).unwrap();
        assert_eq!(report["summary"]["changed"], installations, "{report}");
        (requests() - before.0, world.registry.requests().len() - before.1)
    };
    // The first one fills the cache.
    cost(2).await;
    let of_two = cost(2).await;
    add(2..8).await;
    assert_eq!(cost(8).await, of_two, "requests to the API server and to the registry");
    assert_eq!(of_two.1, 0, "the content and the components are in the cache");
}

#[test]
fn an_update_of_a_class_is_previewed_approved_and_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let (harbour, sail) = (bundle(directory.path(), "harbour"), bundle(directory.path(), "sail"));
    let file = directory.path().join("My_Format.wasm");
    fs::copy(support::root().join("target/plugins/plain.wasm"), &file).unwrap();
    let kept = Kept::start(&["--bundle", &harbour, "--provisioner", file.to_str().unwrap()]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    let done = |arguments: &[&str]| {
        let outcome = run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
        outcome
    };
    done(&["status", "harbour", "--watch", "--timeout", "1m"]);
    done(&["diff", "harbour"]);
    let rendered = done(&["render", &harbour, "--provisioner", "my-format"]);
    assert!(rendered.stdout.contains("kind: ConfigMap") && rendered.stderr.contains("by my-format"), "{rendered:?}");
    let unknown = run(&["render", &harbour, "--provisioner", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("kubectl get provisionerclasses"), "{}", unknown.stderr);

    // A class of the usual policy with the same component.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(client(&kept));
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let before = runtime.block_on(published(&client, ""));
    let class = json!({"metadata": {"name": "sail"}, "spec": {"image": before}});
    runtime.block_on(classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap())).unwrap();
    done(&["reconcile", "provisionerclass/sail", "--timeout", "1m"]);
    done(&["install", "sail", &sail, "--class", "sail", "--create-namespace", "--timeout", "1m"]);

    fs::copy(support::root().join("target/plugins/test/hostile.wasm"), &file).unwrap();
    let image = Patch::Merge(json!({"spec": {"image": runtime.block_on(published(&client, &before))}}));
    runtime.block_on(classes.patch("sail", &PatchParams::default(), &image)).unwrap();
    let pending = |found: Option<&BundleDeployment>| {
        found.and_then(|found| found.status.as_ref()).is_some_and(|status| status.pending_change.is_some())
    };
    runtime.block_on(await_condition(Api::all(client.clone()), "sail", pending)).unwrap();

    let change = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("provisioner: class sail, ")).unwrap_or_default();
        let (before, after) = line.split_once(" -> ").unwrap_or_default();
        assert!(before.contains("(sha256:") && after.starts_with("hostile 1.2.3 (sha256:"), "{text}");
    };
    let preview = run(&["diff", "sail"]);
    assert_eq!(preview.code, Some(4), "{}{}", preview.stdout, preview.stderr);
    change(&preview.stderr);
    let of_class = run(&["diff", "class/sail"]);
    assert_eq!(of_class.code, Some(4), "{}{}", of_class.stdout, of_class.stderr);
    for part in ["sail: changed, class sail", "+ create ConfigMap first", "- remove ConfigMap sail"] {
        assert!(of_class.stdout.contains(part), "{part}: {}", of_class.stdout);
    }
    assert!(of_class.stderr.contains("class sail with hostile 1.2.3 (sha256:"), "{}", of_class.stderr);
    let json = run(&["diff", "provisionerclass/sail", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["summary"]["changed"], &json["deployments"][0]["name"]), (&json!(1), &json!("sail")), "{json}");
    let plain = support::root().join("target/plugins/plain.wasm");
    let of_file = done(&["diff", "class/sail", "--provisioner", plain.to_str().unwrap()]);
    assert!(of_file.stdout.is_empty() && of_file.stderr.contains("1 unchanged, 0 changed"), "{}", of_file.stderr);
    assert_eq!(run(&["diff", "class/sail", &sail]).code, Some(2));
    let approved = done(&["approve", "sail", "--yes"]);
    change(&approved.stdout);
    let updated = |found: Option<&BundleDeployment>| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| status.revision == Some(2) && status.pending_change.is_none())
    };
    runtime.block_on(await_condition(Api::all(client.clone()), "sail", updated)).unwrap();
    done(&["status", "sail", "--watch", "--timeout", "1m"]);
    let history = done(&["history", "sail"]).stdout;
    assert!(history.contains("rendered by class sail, hostile 1.2.3 (sha256:"), "{history}");

    let back = done(&["rollback", "sail", "--to", "1"]);
    assert!(back.stderr.contains("note: revision 1 was rendered by class sail"), "{}", back.stderr);
    done(&["status", "sail", "--watch", "--timeout", "1m"]);
    let listed = done(&["history", "sail"]).stdout;
    assert!(listed.contains("3 (as 1)"), "{listed}");
}
