//! `deploy/` is what `chandler manifests` prints without options, for people who apply files and for kustomize.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use chandler_manifests::{PLACEHOLDER, Profile, SETTINGS, Settings, VERSION, objects};
use chandler_test_support::needs;
use serde_json::Value;

use crate::{canonical, chart::EXAMPLES, chosen};

fn deploy() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy"))
}

fn read(name: &str) -> String {
    fs::read_to_string(deploy().join(name)).unwrap()
}

/// What these settings print.
fn printed(profile: Profile, settings: &[&str]) -> Vec<Value> {
    objects(&chosen(profile, settings)).unwrap()
}

fn resources() -> Vec<String> {
    let kustomization: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    kustomization["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The objects by kind and name.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let named = objects.into_iter().map(|mut object| {
        let metadata = &object["metadata"];
        let name = format!("{} {}/{}", object["kind"], metadata["namespace"], metadata["name"]);
        canonical(&mut object);
        (name, object)
    });
    named.collect()
}

/// Compares object by object, so that a difference is short.
#[track_caller]
fn same(found: Vec<Value>, wanted: Vec<Value>) {
    let (found, wanted) = (by_name(found), by_name(wanted));
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, object) in &found {
        assert_eq!(object, &wanted[name], "{name}");
    }
}

#[test]
fn the_listed_files_are_what_is_printed_without_options() {
    let files = resources();
    let found = files.iter().flat_map(|name| serde_saphyr::from_multiple::<Value>(&read(name)).unwrap());
    same(found.collect(), objects(&Settings::of(Profile::Standalone)).unwrap());
    let image = format!("image: {PLACEHOLDER}:v{VERSION}\n");
    assert!(read("controller.yaml").contains(&image), "the image of deploy/controller.yaml is not {image}");
}

#[test]
fn kustomize_makes_what_is_printed_without_options() {
    if !needs::kubectl() {
        return;
    }
    let output = Command::new("kubectl").arg("kustomize").arg(deploy()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    same(serde_saphyr::from_multiple(&text).unwrap(), objects(&Settings::of(Profile::Standalone)).unwrap());
}

#[test]
fn the_kustomization_names_every_file() {
    let kustomization = read("kustomization.yaml");
    for entry in fs::read_dir(deploy()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name == "kustomization.yaml" || kustomization.contains(&name),
            "deploy/kustomization.yaml lacks {name}"
        );
    }
}

#[test]
fn every_setting_changes_something() {
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(keys, EXAMPLES.map(|(key, _)| key));
    for (key, value) in EXAMPLES {
        let needed: &[&str] = if key == "receiver.tlsSecret" { &["receiver=true"] } else { &[] };
        let setting = format!("{key}={value}");
        let changed = [needed, &[setting.as_str()]].concat();
        assert_ne!(printed(Profile::Standalone, &changed), printed(Profile::Standalone, needed), "{key}");
    }
}

#[test]
fn another_namespace_replaces_the_one_of_the_files_everywhere() {
    let settings = ["namespace=platform", "content=true", "monitoring.serviceMonitor=true", "watch=true"];
    let objects = printed(Profile::MultiTenant, &settings);
    let ours = objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition");
    for object in ours.clone() {
        assert!(!object.to_string().contains("chandler-system"), "{object:#}");
    }
    let text = serde_json::to_string(&ours.collect::<Vec<_>>()).unwrap();
    for wanted in ["system:serviceaccount:platform:chandler", "--system-namespace=platform"] {
        assert!(text.contains(wanted), "{wanted}");
    }
}

#[test]
fn roles_of_kubernetes_write_only_where_policies_check_the_author() {
    let writers = |settings: &[&str]| {
        let objects = printed(Profile::Standalone, settings);
        let names = objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let labels = names.filter_map(|role| Some((role["metadata"]["labels"].as_object()?, role)));
        let aggregated = labels.filter(|(labels, _)| labels.keys().any(|label| label.contains("aggregate-to")));
        aggregated.map(|(_, role)| role["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(writers(&[]), ["chandler-view", "chandler-edit", "chandler-admin"]);
    assert_eq!(writers(&["permissions=cluster-admin"]), ["chandler-view"]);
    assert_eq!(writers(&["admissionPolicies=false"]), ["chandler-view"]);
}

/// What the settings make of the Deployment.
fn deployment(profile: Profile, settings: &[&str]) -> Value {
    let objects = printed(profile, settings);
    objects.into_iter().find(|object| object["kind"] == "Deployment").unwrap()
}

#[test]
fn a_volume_has_one_replica() {
    let shape = |settings: &[&str]| {
        let spec = deployment(Profile::Standalone, settings)["spec"].clone();
        (spec["replicas"].as_u64().unwrap(), spec["strategy"]["type"].as_str().unwrap().to_owned())
    };
    assert_eq!(shape(&[]), (2, "RollingUpdate".to_owned()));
    assert_eq!(shape(&["content=true"]), (2, "RollingUpdate".to_owned()));
    // A volume that one node can attach blocks a Pod that starts before the other ends.
    assert_eq!(shape(&["cache.claim=cache"]), (1, "Recreate".to_owned()));
    assert_eq!(shape(&["content=true", "cache.claim=cache", "replicas=2"]), (2, "RollingUpdate".to_owned()));
}

#[test]
fn openshift_chooses_user_and_group() {
    let pod = |profile| deployment(profile, &[])["spec"]["template"].clone();
    let (ours, theirs) = (pod(Profile::Standalone), pod(Profile::OpenShift));
    let user = |pod: &Value| pod.pointer("/spec/containers/0/securityContext/runAsUser").cloned();
    let group = |pod: &Value| pod.pointer("/spec/securityContext/fsGroup").cloned();
    assert!(user(&ours).is_some() && group(&ours).is_some(), "{ours:#}");
    assert_eq!((user(&theirs), group(&theirs)), (None, None), "{theirs:#}");
    assert_eq!(theirs["metadata"]["annotations"]["openshift.io/required-scc"], "restricted-v2");
}

#[test]
fn a_policy_without_ports_admits_nothing() {
    let ingress = |settings: &[&str]| {
        let objects = printed(Profile::Standalone, settings);
        objects.into_iter().find(|object| object["kind"] == "NetworkPolicy").unwrap()["spec"]["ingress"].clone()
    };
    assert_eq!(ingress(&["metrics=false"]), serde_json::json!([]));
    for (setting, second) in [("content=true", 8443), ("receiver=true", 8444)] {
        let ports = ingress(&[setting]);
        assert_eq!((&ports[0]["ports"][0]["port"], &ports[0]["ports"][1]["port"]), (&9443.into(), &second.into()));
    }
}
