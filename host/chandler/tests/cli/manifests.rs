//! `chandler manifests`, and the Deployment in deploy/controller.yaml: it fits the command and the Pod Security Standard that its namespace
//! enforces.

mod bundles;
mod checked;
mod installed;

use std::fs;

use chandler::Arguments;
use clap::Parser as _;
use serde_json::{Value, json};

use crate::support::{chandler, documents, root};

/// What is printed: a line for each object, and the notes.
fn printed(arguments: &[&str]) -> String {
    let outcome = chandler([&["manifests"], arguments].concat(), "");
    let notes = outcome.stderr.clone();
    let objects = documents(&outcome.data());
    let name = |object: &Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", text("/kind").unwrap(), text("/metadata/name").unwrap())
    };
    let lines: Vec<String> = objects.iter().map(name).collect();
    format!("{}\n\n{notes}", lines.join("\n"))
}

#[test]
fn each_profile_prints_its_objects_in_the_order_in_which_they_are_applied() {
    insta::assert_snapshot!("standalone", printed(&[]));
    insta::assert_snapshot!(
        "openshift",
        printed(&["--profile", "openshift", "--set", "image=quay.io/corp/chandler:v1"])
    );
    insta::assert_snapshot!("multi-tenant", printed(&["--profile", "multi-tenant", "--set", "content=true"]));
}

#[test]
fn both_formats_have_the_same_objects() {
    let list: Value = serde_json::from_str(&chandler(["manifests", "-o", "json"], "").data()).unwrap();
    let (items, yaml) = (list["items"].as_array().unwrap(), documents(&chandler(["manifests"], "").data()));
    assert_eq!(items.len(), yaml.len());
    for (item, document) in items.iter().zip(&yaml) {
        // In CRDs, the parser reads floats without a fraction as integers.
        let is_crd = item["kind"] == "CustomResourceDefinition";
        let shown = |object: &Value| if is_crd { object["metadata"].clone() } else { object.clone() };
        assert_eq!(shown(item), shown(document));
    }
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("List"), &json!("v1")));
}

#[test]
fn files_are_written_into_a_directory_that_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let chart = directory.path().join("chart");
    let chart = chart.to_str().unwrap();
    let line = ["manifests", "--format", "chart", "--to", chart, "--set", "image=registry.corp.example/chandler:v1"];
    let written = chandler(line, "");
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.stderr);
    insta::assert_snapshot!(written.stderr.replace(chart, "DIR"), @"wrote 34 files into DIR");
    let values = fs::read_to_string(directory.path().join("chart/values.yaml")).unwrap();
    assert!(values.contains("\nimage: registry.corp.example/chandler:v1\n"), "{values}");
    assert!(directory.path().join("chart/templates/controller.yaml").is_file());
    for (line, words) in [
        (line.as_slice(), "is not empty"),
        (&["manifests", "--format", "plain"], "name their directory with --to DIR"),
        (&["manifests", "--to", "/nonexistent"], "chart, plain or registry"),
        (
            &["manifests", "--format", "chart", "--to", "/nonexistent", "--set", "replicas=9"],
            "is not a value of replicas",
        ),
    ] {
        let refused = chandler(line, "");
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn an_unknown_profile_or_setting_is_refused_with_what_may_be_meant() {
    for (line, words) in [
        (["--profile", "multitenant"], "multi-tenant"),
        (["--set", "monitoring.rule=true"], "did you mean monitoring.rules?"),
        (["--set", "metrics=yes"], "\"yes\" is not a value of metrics: write true or false"),
        (
            ["--set", "arg=--concurency=3"],
            "the controller would refuse its options: unexpected argument '--concurency'",
        ),
    ] {
        let outcome = chandler(["manifests"].iter().chain(&line), "");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}

fn pod() -> Value {
    let text = fs::read_to_string(root().join("deploy/controller.yaml")).unwrap();
    let deployment: Value = serde_saphyr::from_str(&text).unwrap();
    deployment.pointer("/spec/template/spec").unwrap().clone()
}

fn arguments(container: &Value) -> Vec<&str> {
    container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect()
}

#[test]
fn the_command_accepts_the_arguments_of_the_deployment_and_listens_on_its_ports() {
    let pod = pod();
    let container = &pod["containers"][0];
    let arguments = arguments(container);
    Arguments::try_parse_from(["chandler"].iter().chain(&arguments)).unwrap();
    let port = |name: &str| {
        let ports = container["ports"].as_array().unwrap();
        ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"].clone()
    };
    for (option, name) in [("--probe-address", "probes"), ("--metrics-address", "https-metrics")] {
        let value = arguments.iter().find_map(|argument| argument.strip_prefix(option)?.strip_prefix('=')).unwrap();
        assert_eq!(value, format!("0.0.0.0:{}", port(name)), "{option}");
    }
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "probes"}), "{probe}");
    }
}

/// <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>
#[test]
fn the_pod_meets_the_standard_that_its_namespace_enforces() {
    let pod = pod();
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for member in ["hostNetwork", "hostPID", "hostIPC"] {
        assert_eq!(pod[member], Value::Null, "{member}");
    }
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["runAsNonRoot"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(context["readOnlyRootFilesystem"], true);
    }
    for volume in pod["volumes"].as_array().unwrap() {
        let members: Vec<&String> = volume["emptyDir"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["sizeLimit"], "{volume}");
    }
    let text = fs::read_to_string(root().join("deploy/rbac.yaml")).unwrap();
    assert!(text.contains("pod-security.kubernetes.io/enforce: restricted"), "{text}");
}

/// The kubelet evicts a Pod whose volume is larger than `sizeLimit`: the controller must refuse to write before.
#[test]
fn the_volume_of_the_caches_is_larger_than_the_limits_of_the_controller() {
    const GIB: u64 = 1 << 30;
    let pod = pod();
    let gib = |quantity: &Value| {
        let text = quantity.as_str().unwrap_or_default();
        text.strip_suffix("Gi").unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap() * GIB
    };
    let volume = |name: &str| {
        let volume = pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == name);
        gib(&volume.unwrap()["emptyDir"]["sizeLimit"])
    };
    let options = chandler_controller::Options::default();
    // The code of components has 2 GiB (host/engine/src/code/cache.rs).
    let most = options.content_cache_bytes + options.releases.disk_bytes + options.catalog_index_bytes + 2 * GIB;
    assert!(volume("cache") > most, "{most}");
    let resources = &pod["containers"][0]["resources"];
    let (limit, request) = (&resources["limits"]["ephemeral-storage"], &resources["requests"]["ephemeral-storage"]);
    assert!(gib(limit) > volume("cache") + volume("tmp"), "{resources}");
    assert!(gib(request) <= gib(limit), "{resources}");
}

/// The end-to-end test `controller_rights` shows that these rules suffice to check the callers of the content service, and that all are needed.
#[test]
fn callers_of_metrics_are_checked_with_the_permissions_of_the_content_service() {
    let rules = |file: &str, name: &str| {
        let text = fs::read_to_string(root().join("deploy").join(file)).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let role = objects.iter().find(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == name);
        role.unwrap()["rules"].clone()
    };
    assert_eq!(rules("metrics.yaml", "chandler-metrics"), rules("content.yaml", "chandler-content"));
    let reader = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    assert_eq!(rules("metrics.yaml", "chandler-metrics-reader"), reader);
}
