//! Resolutions on the command line: explain, status, history, rollback and its end.

use std::{collections::BTreeMap, fs};

use chandler_api::Resolution;
use chandler_tests::bundles::Bundle;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::commands::Session;

/// A registry+v1 bundle with one ConfigMap.
fn bundle(package: &str, version: &str) -> Bundle {
    let annotation = |key: &str, value: &str| format!("  operators.operatorframework.io.bundle.{key}.v1: {value}\n");
    let annotations = [
        annotation("mediatype", "registry+v1"),
        annotation("manifests", "manifests/"),
        annotation("metadata", "metadata/"),
        annotation("package", package),
        annotation("channels", "stable"),
        annotation("channel.default", "stable"),
    ];
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{package}.v{version}")},
        "spec": {
            "version": version, "displayName": package,
            "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    });
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": package}, "data": {"version": version}});
    Bundle::empty()
        .with("metadata/annotations.yaml", &format!("annotations:\n{}", annotations.concat()))
        .with("manifests/csv.json", &csv.to_string())
        .with("manifests/map.json", &map.to_string())
}

/// Adds a catalog that has the package in the versions 1.0.0 and 1.1.0.
pub(crate) async fn add_catalog(session: &Session, package: &str) {
    let mut documents = vec![
        format!("schema: olm.package\nname: {package}\ndefaultChannel: stable\n"),
        format!(
            "schema: olm.channel\npackage: {package}\nname: stable\nentries:\n\
             - {{name: {package}.v1.0.0}}\n- {{name: {package}.v1.1.0, replaces: {package}.v1.0.0}}\n"
        ),
    ];
    for version in ["1.0.0", "1.1.0"] {
        let files = bundle(package, version);
        let registry = &session.world.registry;
        let pushed = registry.push_bundle_directory("bundles/tide", version, files.path(), &BTreeMap::new()).await;
        documents.push(format!(
            "schema: olm.bundle\npackage: {package}\nname: {package}.v{version}\nimage: {}\n\
             properties: [{{type: olm.package, value: {{packageName: {package}, version: {version}}}}}]\n",
            pushed.unwrap().reference
        ));
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("catalog.yaml"), documents.join("---\n")).unwrap();
    let (catalog, place) = (format!("{}-tides", session.world.run()), directory.path().to_str().unwrap());
    let label = session.label();
    let added = session.run(&["catalog", "add", &catalog, place, "--label", &label, "--timeout", "1m"]).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolution_is_explained_rolled_back_and_follows_the_catalogs_again() {
    let session = Session::start().await;
    let (package, name) = (format!("{}-tide", session.world.run()), format!("{}-sea", session.world.run()));
    let target = format!("resolution/{name}");
    add_catalog(&session, &package).await;
    let spec = json!({
        "packages": [{"name": package, "version": "<1.1.0"}],
        "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": session.world.namespace}},
    });
    let _: Resolution = session.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    let followed = session.run(&["status", &target, "--watch", "--timeout", "2m"]).await;
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    for part in ["members\n", &package, "1.0.0", "complete and healthy"] {
        assert!(followed.stdout.contains(part), "no {part:?}: {}", followed.stdout);
    }
    let first = session.run(&["rollback", &target]).await;
    assert_eq!(first.code, Some(7), "{}", first.stderr);
    assert!(first.stderr.contains("has no earlier decision"), "{}", first.stderr);

    let resolutions: Api<Resolution> = Api::all(session.world.client.clone());
    let wider = Patch::Merge(json!({"spec": {"packages": [{"name": package}]}}));
    resolutions.patch(&name, &PatchParams::default(), &wider).await.unwrap();
    session.data(&["status", &target, "--watch", "--timeout", "2m"]).await;
    let version = async || -> Value {
        let path = session.json(&["explain", &target, "-o", "json"]).await;
        assert_eq!(path["complete"], true, "{path}");
        assert_eq!((&path["installPlan"], &path["kind"]), (&json!("Complete"), &json!("Resolution")), "{path}");
        path["packages"][0]["installed"].clone()
    };
    assert_eq!(version().await, "1.1.0");
    // Only one object has the name of the package; its explanation names the Resolution.
    let member = session.data(&["explain", &package]).await;
    for part in
        [&format!("BundleDeployment {package}\n"), &name, "AtLatestKnown", "Succeeded", "requested", "✓ members"]
    {
        assert!(member.contains(part), "no {part:?}: {member}");
    }

    let refused = session.run(&["upgrade", &package, "--yes"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for part in [&format!("Resolution {name} decides which version {package} has"), "`chandler explain resolution/"] {
        assert!(refused.stderr.contains(part), "no {part:?}: {}", refused.stderr);
    }

    let tree = session.data(&["tree", &target]).await;
    let lines = [&*format!("Resolution {name}\n"), &format!("BundleDeployment {package}\n"), "ConfigMap\n"];
    assert!(lines.iter().all(|line| tree.contains(line)), "{tree}");
    let objects = session.json(&["tree", &target, "-o", "json"]).await;
    assert_eq!(objects[0]["bundleDeployment"], *package, "{objects}");
    assert!(objects[0]["objects"].as_array().unwrap().iter().any(|it| it["kind"] == "ConfigMap"), "{objects}");

    let back = session.run(&["rollback", &target, "--timeout", "2m"]).await;
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert!(back.stderr.contains(&format!("`chandler rollback {target} --undo`")), "{}", back.stderr);
    assert_eq!(version().await, "1.0.0");
    let history = session.data(&["history", &target]).await;
    assert!(history.contains("spec.output.resolveSet.toDecision is 1"), "{history}");
    let undone = session.run(&["rollback", &target, "--undo", "--timeout", "2m"]).await;
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(version().await, "1.1.0");

    session.data(&["suspend", &target]).await;
    let refused = session.run(&["reconcile", &target]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("`chandler resume {target}`")), "{}", refused.stderr);
    session.data(&["resume", &target, "--timeout", "2m"]).await;
    session.data(&["reconcile", &target, "--timeout", "2m"]).await;
    let nothing = session.run(&["approve", &target, "--yes"]).await;
    assert_eq!(nothing.code, Some(1), "{}", nothing.stderr);
    assert!(nothing.stderr.contains(&format!("no change of BundleDeployment resolveset-{name}")), "{}", nothing.stderr);
    session.world.finish().await;
}
