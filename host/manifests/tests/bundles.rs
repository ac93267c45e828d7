//! The bundles of Chandler have the objects that `chandler manifests` prints, or name what they lack.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::BundleDeployment;
use chandler_manifests::{Bundle, Profile, objects, plain, registry};
use serde_json::{Value, json};

use crate::{canonical, chosen};

/// The objects of a bundle in the order of its files.
fn contents(bundle: &Bundle) -> Vec<Value> {
    let files = bundle.files.iter().filter(|(path, _)| path.starts_with("manifests/"));
    files.flat_map(|(_, text)| serde_saphyr::from_multiple::<Value>(text).unwrap()).collect()
}

fn named(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
}

#[test]
fn a_plain_bundle_has_the_printed_objects_in_their_order() {
    const INCLUDE: &str = "include.release.openshift.io/self-managed-high-availability";
    for (profile, options) in [
        (Profile::Standalone, vec!["namespace=platform", "content=true"]),
        (Profile::OpenShift, vec!["permissions=cluster-admin"]),
        (Profile::MultiTenant, vec![]),
    ] {
        let settings = chosen(profile, &options);
        let bundle = plain(&settings).unwrap();
        let found = contents(&bundle).into_iter().map(|mut object| {
            let annotations = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut);
            let include = annotations.and_then(|annotations| annotations.remove(INCLUDE));
            assert_eq!(include, (profile == Profile::OpenShift).then(|| json!("true")));
            if object["metadata"]["annotations"] == json!({}) {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            canonical(&mut object);
            object
        });
        let mut wanted = objects(&settings).unwrap();
        wanted.iter_mut().for_each(canonical);
        let found: Vec<Value> = found.collect();
        assert_eq!(found.iter().map(named).collect::<Vec<_>>(), wanted.iter().map(named).collect::<Vec<_>>());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted, "{}", named(wanted));
        }
        assert_eq!(bundle.omitted, [""; 0]);
    }
}

#[test]
fn the_files_of_a_plain_bundle_have_a_run_level() {
    let bundle = plain(&chosen(Profile::Standalone, &[])).unwrap();
    insta::assert_snapshot!("plain-files", bundle.files.keys().map(String::as_str).collect::<Vec<_>>().join("\n"));
}

/// What a registry+v1 bundle makes of the objects: files, or a part of the ClusterServiceVersion, or nothing.
#[test]
fn a_registry_bundle_names_what_it_lacks() {
    let bundle = registry(&chosen(Profile::MultiTenant, &["content=true"])).unwrap();
    insta::assert_snapshot!("registry-files", bundle.files.keys().map(String::as_str).collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!("registry-omitted", bundle.omitted.join("\n"));
}

fn csv(bundle: &Bundle) -> Value {
    let csv = contents(bundle).into_iter().find(|object| object["kind"] == "ClusterServiceVersion");
    csv.unwrap()
}

/// Every permission of the printed roles, with the namespace in which it applies.
fn granted(objects: &[Value]) -> BTreeSet<String> {
    let mut granted = BTreeSet::new();
    let bindings = objects.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("RoleBinding"));
    for binding in bindings.filter(|binding| binding["subjects"][0]["name"] == "chandler") {
        let role = objects.iter().find(|role| {
            role["kind"] == binding["roleRef"]["kind"]
                && role["metadata"]["name"] == binding["roleRef"]["name"]
                && role["metadata"]["namespace"] == binding["metadata"]["namespace"]
        });
        for rule in role.unwrap()["rules"].as_array().unwrap() {
            granted.insert(format!("{} {rule}", binding["metadata"]["namespace"]));
        }
    }
    granted
}

#[test]
fn the_permissions_of_a_registry_bundle_are_the_printed_ones() {
    for profile in [Profile::Standalone, Profile::OpenShift] {
        let settings = chosen(profile, &["content=true"]);
        let wanted = granted(&objects(&settings).unwrap());
        let bundle = registry(&settings).unwrap();
        let mut contents = contents(&bundle);
        for object in &mut contents {
            // The install namespace.
            if ["Role", "RoleBinding"].contains(&object["kind"].as_str().unwrap()) {
                object["metadata"]["namespace"] = json!(settings.namespace);
            }
        }
        let mut found = granted(&contents);
        let permissions = &csv(&bundle)["spec"]["install"]["spec"]["clusterPermissions"];
        assert_eq!(permissions.as_array().unwrap().len(), 1);
        assert_eq!(permissions[0]["serviceAccountName"], "chandler");
        found.extend(permissions[0]["rules"].as_array().unwrap().iter().map(|rule| format!("null {rule}")));
        // The format has no roles for other namespaces than the one of the operator.
        let widened = |text: &String| match text.split_once(' ').unwrap() {
            ("\"kube-system\"" | "\"default\"", rule) => format!("null {rule}"),
            _ => text.clone(),
        };
        assert_eq!(found, wanted.iter().map(widened).collect());
    }
    let all = registry(&chosen(Profile::Standalone, &["permissions=cluster-admin"])).unwrap();
    let rules = csv(&all)["spec"]["install"]["spec"]["clusterPermissions"][0]["rules"].clone();
    assert!(rules.as_array().unwrap().contains(&json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})));
}

#[test]
fn without_the_policies_users_may_not_write() {
    let bundle = registry(&chosen(Profile::Standalone, &[])).unwrap();
    let names: Vec<String> = contents(&bundle).iter().map(named).collect();
    assert!(names.iter().any(|name| name == "ClusterRole chandler-view"), "{names:#?}");
    for name in ["ClusterRole chandler-edit", "ClusterRole chandler-admin"] {
        assert!(!names.iter().any(|found| found == name), "{name}");
    }
}

#[test]
fn the_cluster_service_version_describes_the_bundle() {
    let settings = chosen(Profile::Standalone, &["image=registry.corp.example/chandler:v1", "namespace=platform"]);
    let bundle = registry(&settings).unwrap();
    let csv = csv(&bundle);
    let annotations = &csv["metadata"]["annotations"];
    assert_eq!(annotations["containerImage"], "registry.corp.example/chandler:v1");
    assert_eq!(annotations["operatorframework.io/suggested-namespace"], "platform");
    let examples: Vec<BundleDeployment> = serde_json::from_str(annotations["alm-examples"].as_str().unwrap()).unwrap();
    assert_eq!(examples.len(), 1);
    let modes: BTreeMap<&str, bool> = csv["spec"]["installModes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mode| (mode["type"].as_str().unwrap(), mode["supported"].as_bool().unwrap()))
        .collect();
    let wanted =
        [("AllNamespaces", true), ("MultiNamespace", false), ("OwnNamespace", false), ("SingleNamespace", false)];
    assert_eq!(modes, wanted.into());
    let printed = objects(&settings).unwrap().into_iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(csv["spec"]["install"]["spec"]["deployments"][0]["spec"], printed["spec"]);
    let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap();
    let crds = contents(&bundle).into_iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    let versions: usize = crds.map(|crd| crd["spec"]["versions"].as_array().unwrap().len()).sum();
    assert_eq!(owned.len(), versions);
}
