//! Commands with a ProvisionerClass of the cluster, over an update of its component.

use std::{fs, path::Path};

use chandler_api::{BundleDeployment, ProvisionerClass};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::json;

use crate::{
    approvals::client,
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
