//! Catalogs of the cluster, from `catalog add` to the installation of a package and `catalog remove`.

use std::{collections::BTreeMap, fs, path::Path};

use chandler_tests::{ArchiveServer, bundles::Bundle, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::json;

use crate::{commands::Session, support};

pub(crate) const PACKAGE: &str = "harbour-operator";

/// A catalog with the bundles of this directory, in the registry of the session: 0.1.0 and 0.2.0, which replaces it.
pub(crate) async fn write_catalog(session: &Session, directory: &Path) {
    let mut documents = vec![
        format!("schema: olm.package\nname: {PACKAGE}\ndefaultChannel: stable\n"),
        format!(
            "schema: olm.channel\npackage: {PACKAGE}\nname: stable\nentries:\n\
             - {{name: {PACKAGE}.v0.1.0}}\n- {{name: {PACKAGE}.v0.2.0, replaces: {PACKAGE}.v0.1.0}}\n"
        ),
    ];
    for version in ["0.1.0", "0.2.0"] {
        let bundle = support::root().join(format!("tests/fixtures/registry/{PACKAGE}.v{version}"));
        let tag = format!("v{version}");
        let registry = &session.world.registry;
        let pushed = registry.push_bundle_directory("bundles/harbour", &tag, &bundle, &BTreeMap::new()).await.unwrap();
        documents.push(format!(
            "schema: olm.bundle\npackage: {PACKAGE}\nname: {PACKAGE}.v{version}\nimage: {}\n\
             properties: [{{type: olm.package, value: {{packageName: {PACKAGE}, version: {version}}}}}]\n",
            pushed.reference
        ));
    }
    fs::write(directory.join("catalog.yaml"), documents.join("---\n")).unwrap();
}

/// A bundle that calls itself the package, in a version that no catalog has.
fn impostor_bundle() -> Bundle {
    let annotation = |key: &str, value: &str| format!("  operators.operatorframework.io.bundle.{key}.v1: {value}\n");
    let annotations = [
        annotation("mediatype", "registry+v1"),
        annotation("manifests", "manifests/"),
        annotation("metadata", "metadata/"),
        annotation("package", PACKAGE),
        annotation("channels", "stable"),
    ];
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{PACKAGE}.v99.0.0")},
        "spec": {"version": "99.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}],
                 "install": {"strategy": "deployment", "spec": {"deployments": []}}},
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "impostor"}});
    Bundle::empty()
        .with("metadata/annotations.yaml", &format!("annotations:\n{}", annotations.concat()))
        .with("manifests/csv.json", &csv.to_string())
        .with("manifests/map.json", &map.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_of_a_catalog_of_the_cluster_is_installed() {
    let session = Session::start().await;
    let directory = tempfile::tempdir().unwrap();
    let (catalog, place) = (format!("{}-ours", session.world.run()), directory.path().to_str().unwrap());
    write_catalog(&session, directory.path()).await;
    let label = session.label();
    let added = session
        .run(&["catalog", "add", &catalog, place, "--priority", "7", "--label", &label, "--timeout", "1m"])
        .await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let contents = "1 package with 1 channel and 2 bundles";
    assert!(added.stderr.contains(&format!("Catalog {catalog} is ready: {contents}")), "{}", added.stderr);

    let rows = session.json(&["catalog", "list", "-o", "json"]).await;
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == *catalog).unwrap().clone();
    assert_eq!(
        (row["state"].as_str(), row["bundles"].as_i64(), row["priority"].as_i64()),
        (Some("Ready"), Some(2), Some(7))
    );
    let table = session.data(&["catalog", "list"]).await;
    assert!(table.starts_with("NAME") && table.contains(&catalog), "{table}");
    for command in [
        &["catalog", "show", PACKAGE][..],
        &["catalog", "search", "harbour"],
        &["catalog", "versions", PACKAGE],
        &["catalog", "channels", PACKAGE],
        &["catalog", "graph", PACKAGE],
        &["catalog", "list", "--packages"],
    ] {
        let text = session.data(&[command, &["--catalog", &catalog]].concat()).await;
        assert!(text.contains("0.2.0"), "{command:?}: {text}");
    }
    let all = session.data(&["catalog", "list", "--packages"]).await;
    assert!(all.contains(PACKAGE), "{all}");

    // A bundle that only calls itself the package is named, and decides nothing.
    let impostor = format!("{}-impostor", session.world.run());
    let image = session.world.push(&impostor_bundle()).await;
    session.world.deploy(&impostor, "core-rukpak-io-registry", &image).await;
    session.world.ready(&impostor).await;
    let does_not_count = format!(
        "BundleDeployment {impostor} calls itself {PACKAGE} 99.0.0; it is not from these catalogs, so it does not count"
    );

    let name = session.world.name();
    let from = ["--catalog", catalog.as_str()];
    let installed = session.install(&name, &format!("{PACKAGE}@<0.2.0"), &from).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    assert!(installed.stderr.contains(&does_not_count), "{}", installed.stderr);
    let choice = format!(
        "{PACKAGE} 0.1.0, catalog {catalog}, channel stable: the best of 2 versions in <0.2.0 that fits on Kubernetes"
    );
    assert!(installed.stderr.contains(&choice), "{}", installed.stderr);
    let deployment = session.world.deployments().get(&name).await.unwrap();
    let image = deployment.spec.source.image.unwrap().reference;
    assert!(image.ends_with("/bundles/harbour:v0.1.0"), "{image}");

    assert_eq!(session.row(&name).await["newerVersion"], "0.2.0");
    let marked = session.json(&["catalog", "versions", PACKAGE, "--catalog", &catalog, "-o", "json"]).await;
    assert_eq!(marked[0]["installed"], format!("{PACKAGE}.v0.1.0"));
    assert_eq!(marked[0]["next"], format!("{PACKAGE}.v0.2.0"));
    let graph = session.data(&["catalog", "graph", PACKAGE, "--catalog", &catalog]).await;
    assert!(graph.contains(&format!("{PACKAGE}.v0.1.0  installed")), "{graph}");
    let outdated = session.run(&["outdated", "-o", "json", "--catalog", &catalog]).await;
    assert!(outdated.stderr.contains(&does_not_count), "{}", outdated.stderr);
    let outdated: serde_json::Value = serde_json::from_str(&outdated.stdout).unwrap();
    assert!(!outdated.as_array().unwrap().iter().any(|row| row["name"] == *impostor), "{outdated}");
    let row = outdated.as_array().unwrap().iter().find(|row| row["name"] == *name).unwrap().clone();
    assert_eq!((row["version"].as_str(), row["newer"]["version"].as_str()), (Some("0.1.0"), Some("0.2.0")));
    let again = session.install(&format!("{name}-2"), PACKAGE, &from).await;
    assert_eq!(again.code, Some(1));
    assert!(
        again.stderr.contains(&format!("is installed: BundleDeployment {name}, version 0.1.0")),
        "{}",
        again.stderr
    );
    let unknown = session.install(&format!("{name}-2"), "harbor-operator", &from).await;
    assert_eq!(unknown.code, Some(7));
    assert!(unknown.stderr.contains(PACKAGE), "it names the similar package: {}", unknown.stderr);

    let upgrade = async |text: &str, more: &[&str]| {
        let arguments = [&["upgrade", &name, text, "--timeout", "2m"][..], more].concat();
        session.run(&arguments).await
    };
    // The way to a third version leads over the second.
    let longer = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(directory.path().join("catalog.yaml")).unwrap();
    let entry = format!("replaces: {PACKAGE}.v0.1.0}}\n");
    let third = format!("{entry}- {{name: {PACKAGE}.v0.3.0, replaces: {PACKAGE}.v0.2.0}}\n");
    let bundle = format!(
        "---\nschema: olm.bundle\npackage: {PACKAGE}\nname: {PACKAGE}.v0.3.0\nimage: registry.invalid/harbour:v0.3.0\n\
         properties: [{{type: olm.package, value: {{packageName: {PACKAGE}, version: 0.3.0}}}}]\n"
    );
    fs::write(longer.path().join("catalog.yaml"), text.replace(&entry, &third) + &bundle).unwrap();
    let longer = format!("longer={}", longer.path().display());
    let first = upgrade(PACKAGE, &["--catalog", &longer, "--dry-run"]).await;
    assert!(first.stderr.contains("upgrading to 0.2.0 first, one of 2 steps on the way to 0.3.0"), "{}", first.stderr);
    let spec = first.data();
    assert!(spec.contains("bundles/harbour:v0.2.0") && !spec.contains("registry.invalid"), "{spec}");

    for (text, code, part) in [
        ("harbor-operator", 2, format!("has package {PACKAGE}, not harbor-operator")),
        (&*format!("{PACKAGE}@<0.1.0"), 5, "no set of bundles fits".to_owned()),
    ] {
        let refused = upgrade(text, &from).await;
        assert_eq!(refused.code, Some(code), "{}", refused.stderr);
        assert!(refused.stderr.contains(&part), "{}", refused.stderr);
    }
    let upgraded = upgrade(PACKAGE, &from).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    assert!(upgraded.stderr.contains(&format!("{PACKAGE} 0.2.0, catalog {catalog}")), "{}", upgraded.stderr);
    let same = upgrade(PACKAGE, &from).await;
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert!(same.stderr.contains("already has the best version that fits"), "{}", same.stderr);

    session.data(&["catalog", "remove", &catalog]).await;
    let catalogs: Api<chandler_api::Catalog> = Api::all(session.world.client.clone());
    wait::until(&catalogs, &catalog, "gone", |catalog| catalog.is_none()).await;
    session.world.finish().await;
}

/// Creates the CRD of a kind of OLM, unless the API server has it. Returns whether the test has to remove it.
async fn serve_kind(session: &Session, group: &str, version: &str, kind: &str, scope: &str) -> bool {
    let plural = format!("{}s", kind.to_lowercase());
    let name = format!("{plural}.{group}");
    let crds: Api<CustomResourceDefinition> = Api::all(session.world.client.clone());
    if crds.get_opt(&name).await.unwrap().is_some() {
        return false;
    }
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}});
    let names =
        json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")});
    let crd = json!({"metadata": {"name": name}, "spec": {"group": group, "scope": scope, "names": names, "versions": [version]}});
    crds.create(&PostParams::default(), &serde_json::from_value(crd).unwrap()).await.unwrap();
    let established = conditions::is_crd_established();
    tokio::time::timeout(wait::PATIENCE, await_condition(crds, &name, established)).await.unwrap().unwrap();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_of_olm_are_read_where_they_are() {
    let session = Session::start().await;
    let (client, run) = (session.world.client.clone(), session.world.run().to_string());
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("configs")).unwrap();
    write_catalog(&session, &directory.path().join("configs")).await;
    let labels = [("operators.operatorframework.io.index.configs.v1".to_owned(), "/configs".to_owned())].into();
    let registry = &session.world.registry;
    let pushed = registry.push_bundle_directory("catalogs/olm", "v1", directory.path(), &labels).await.unwrap();
    let image = pushed.reference;

    let (one, zero) =
        (("olm.operatorframework.io", "v1", "ClusterCatalog"), ("operators.coreos.com", "v1alpha1", "CatalogSource"));
    let mine = [
        (one, serve_kind(&session, one.0, one.1, one.2, "Cluster").await),
        (zero, serve_kind(&session, zero.0, zero.1, zero.2, "Namespaced").await),
    ];
    let (catalog, off, source) = (format!("{run}-olm"), format!("{run}-off"), format!("{run}-source"));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(one.0, one.1, one.2));
    let catalogs: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    for (name, mode) in [(&catalog, "Available"), (&off, "Unavailable")] {
        let spec =
            json!({"source": {"type": "Image", "image": {"ref": image}}, "priority": 3, "availabilityMode": mode});
        let object = DynamicObject::new(name, &kind).data(json!({ "spec": spec }));
        catalogs.create(&PostParams::default(), &object).await.unwrap();
    }
    let resolved = json!({"status": {"resolvedSource": {"type": "Image", "image": {"ref": image}}}});
    catalogs.patch_status(&catalog, &PatchParams::default(), &Patch::Merge(resolved)).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(zero.0, zero.1, zero.2));
    let sources: Api<DynamicObject> = Api::namespaced_with(client.clone(), &session.world.namespace, &kind);
    let object = DynamicObject::new(&source, &kind).data(json!({"spec": {"sourceType": "grpc", "image": image}}));
    sources.create(&PostParams::default(), &object).await.unwrap();

    let both = format!("clustercatalogs,catalogsources/{}", session.world.namespace);
    let rows = session.json(&["catalog", "list", "-o", "json", "--catalogs-from", &both]).await;
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == *name).unwrap().clone();
    assert_eq!((row(&catalog)["state"].as_str(), row(&catalog)["priority"].as_i64()), (Some("Ready"), Some(3)));
    assert_eq!(row(&off)["state"], "Failed");
    assert_eq!(row(&source)["state"], "Ready");
    for name in [&catalog, &source] {
        let shown = session.data(&["catalog", "show", PACKAGE, "--catalogs-from", &both, "--catalog", name]).await;
        assert!(shown.contains("0.2.0") && shown.contains(name), "{shown}");
    }
    // A kind that is given twice counts once.
    for kinds in ["clustercatalogs", "clustercatalogs,clustercatalogs"] {
        let found = session.data(&["catalog", "versions", PACKAGE, "--catalogs-from", kinds]).await;
        assert!(found.contains("0.2.0"), "{kinds}: {found}");
    }
    // Without the switch, they are not Catalogs for Chandler.
    let missing = session.run(&["catalog", "show", PACKAGE, "--catalog", &catalog]).await;
    assert_eq!(missing.code, Some(7), "{}", missing.stderr);
    assert!(missing.stderr.contains("not found"), "{}", missing.stderr);

    let name = session.world.name();
    let installed =
        session.install(&name, PACKAGE, &["--catalogs-from", "clustercatalogs", "--catalog", &catalog]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);

    for name in [&catalog, &off] {
        catalogs.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    for ((group, _, kind), _) in mine.iter().filter(|(_, mine)| *mine) {
        crds.delete(&format!("{}s.{group}", kind.to_lowercase()), &DeleteParams::default()).await.unwrap();
    }
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_with_errors_is_refused_with_their_lines() {
    let session = Session::start().await;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.yaml"), "schema: olm.package\nname: bell\ndefaultChannel: stable\n").unwrap();
    let (catalog, place) = (format!("{}-broken", session.world.run()), directory.path().to_str().unwrap());
    let label = session.label();
    let refused = session.run(&["catalog", "add", &catalog, place, "--label", &label, "--timeout", "1m"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for part in ["2 errors: nothing was created", "a.yaml:1: ", "`chandler catalog lint"] {
        assert!(refused.stderr.contains(part), "no {part:?}: {}", refused.stderr);
    }
    let absent = session.run(&["status", &format!("catalog/{catalog}")]).await;
    assert!(absent.stderr.contains("not found"), "{}", absent.stderr);

    // The controller checks what this machine does not read.
    let server = ArchiveServer::start().await;
    server.serve(support::packed(place));
    let add = ["catalog", "add", &catalog, &server.url(), "--label", &label];
    let added = session.run(&[&add[..], &["--timeout", "1m"]].concat()).await;
    assert_eq!(added.code, Some(1), "{}", added.stderr);
    assert!(added.stderr.contains("a.yaml:1: ") && added.stderr.contains("deleted again"), "{}", added.stderr);
    let absent = session.run(&["status", &format!("catalog/{catalog}")]).await;
    assert!(absent.stderr.contains("not found"), "it leaves nothing behind: {}", absent.stderr);

    let kept = session.run(&[&add[..], &["--wait=false"]].concat()).await;
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    let target = format!("catalog/{catalog}");
    assert_eq!(session.run(&["status", &target, "--watch", "--timeout", "1m"]).await.code, Some(1));
    let listed = session.run(&["catalog", "list"]).await;
    let line = format!("{catalog}: CatalogInvalid: the catalog has 2 errors: a.yaml:1: ");
    assert!(listed.stderr.contains(&line), "{}", listed.stderr);
    let shown = session.run(&["catalog", "show", "bell", "--catalog", &catalog]).await;
    assert_eq!(shown.code, Some(1));
    assert!(shown.stderr.contains("a.yaml:1: "), "{}", shown.stderr);

    // If a registry lacks the image, that is reported at once, not after the timeout.
    let image = format!("{}/none:v1", session.world.registry.host());
    let added = session.run(&["catalog", "add", &format!("{catalog}-2"), &image, "--label", &label]).await;
    assert_eq!(added.code, Some(1), "{}", added.stderr);
    assert!(added.stderr.contains("needs action") && added.stderr.contains(&image), "{}", added.stderr);
    session.world.finish().await;
}

#[test]
fn the_manifests_of_a_catalog_are_printed_without_a_cluster() {
    let image = "quay.io/operatorhubio/catalog:latest";
    let more = ["--pull-secret", "registry", "--poll-interval", "90", "--dry-run"];
    let printed = support::chandler([&["catalog", "add", "ours", image][..], &more].concat(), "").data();
    let [catalog] = support::documents(&printed).try_into().unwrap();
    assert_eq!(catalog["spec"]["source"]["image"], serde_json::json!({"ref": image, "pullSecret": "registry"}));
    assert_eq!((catalog["kind"].as_str(), catalog["spec"]["pollInterval"].as_str()), (Some("Catalog"), Some("90s")));
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.yaml"), "schema: olm.package\nname: bell\n").unwrap();
    let place = directory.path().to_str().unwrap();
    let printed = support::chandler(["catalog", "add", "ours", place, "--dry-run"], "").data();
    let [map, _catalog] = support::documents(&printed).try_into().unwrap();
    assert_eq!(map["metadata"]["annotations"]["chandler.dev/catalogs"], "ours");
    let refused = support::chandler(["catalog", "add", "ours", place, "--pull-secret", "x", "--dry-run"], "");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn platform_operators_of_a_catalog_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let package = |name: &str, mark: &str| {
        format!(
            "---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: stable\n\
             entries: [{{name: {name}.v1.0.0}}]\n---\nschema: olm.bundle\npackage: {name}\nname: {name}.v1.0.0\nimage: quay.io/e/{name}:v1\n\
             properties: [{{type: olm.package, value: {{packageName: {name}, version: 1.0.0}}}}{mark}]\n"
        )
    };
    let mark = ", {type: chandler.dev/platform-operator, value: true}";
    let documents = package("mesh", mark) + &package("mesh-tools", "");
    fs::write(directory.path().join("catalog.yaml"), documents).unwrap();
    let place = directory.path().to_str().unwrap();
    let search = |arguments: &[&str]| {
        let found =
            support::chandler([&["catalog", "search", "--catalog", place, "-o", "json"], arguments].concat(), "");
        assert_eq!(found.code, Some(0), "{}", found.stderr);
        let rows: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
        let names = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), found.stderr)
    };
    assert_eq!(search(&["mesh"]).0, ["mesh", "mesh-tools"]);
    assert_eq!(search(&["--platform"]).0, ["mesh"]);
    assert_eq!(search(&["mesh", "--platform"]).0, ["mesh"]);
    let (none, message) = search(&["tools", "--platform"]);
    assert_eq!(none, [""; 0]);
    assert!(message.contains("no platform operator mentions tools"), "{message}");
}
