//! Duplicate items in lists of pods: merged where they have one meaning, and refused otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use serde_json::{Value, json};

use crate::support::small::{Small, one};

/// An operator whose container has these fields.
fn operator(fields: Value) -> Small {
    let mut small = Small::new(&["AllNamespaces"]);
    for (name, value) in fields.as_object().unwrap() {
        pod(&mut small)["containers"][0][name] = value.clone();
    }
    small
}

fn pod(small: &mut Small) -> &mut Value {
    &mut small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]
}

/// The container, and the findings.
fn rendered(small: &Small, config: &Value) -> (Value, String) {
    let release = small.render(config).unwrap();
    let findings: Vec<String> = release.findings.iter().map(|finding| format!("{} {finding}", finding.code)).collect();
    (one(&release, "Deployment")["spec"]["template"]["spec"].clone(), findings.join("\n"))
}

#[test]
fn duplicates_with_one_meaning_are_merged_with_a_warning() {
    let mut small = operator(json!({
        "env": [
            {"name": "MODE", "value": "a"}, {"name": "LEVEL", "value": "1"}, {"name": "MODE", "value": "b"},
            {"name": "LEVEL", "value": "1"},
        ],
        "ports": [
            {"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 8080, "protocol": "TCP"},
            {"containerPort": 53, "protocol": "UDP"}, {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"containerPort": 53},
        ],
        "readinessProbe": {"httpGet": {"port": "http"}},
    }));
    pod(&mut small)["imagePullSecrets"] = json!([{"name": "pull"}, {"name": "pull"}]);
    pod(&mut small)["hostAliases"] =
        json!([{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["a", "b"]}]);
    let (rendered, findings) = rendered(&small, &json!({}));
    assert_eq!(rendered["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(rendered["hostAliases"], json!([{"ip": "10.0.0.1", "hostnames": ["a", "b"]}]));
    let container = &rendered["containers"][0];
    assert_eq!(container["env"], json!([{"name": "LEVEL", "value": "1"}, {"name": "MODE", "value": "b"}]));
    assert_eq!(
        container["ports"],
        json!([
            {"name": "http", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"containerPort": 53},
        ])
    );
    insta::assert_snapshot!(findings, @r#"
    DuplicateListKey manifests/csv.yaml:89:21 (/spec/install/spec/deployments/0/spec/template/spec/hostAliases/1): spec.install.spec.deployments[0].spec.template.spec.hostAliases: duplicate entries for key [ip="10.0.0.1"]: their host names are merged (help: remove it, or the item at manifests/csv.yaml:83:21)
    DuplicateListKey manifests/csv.yaml:101:21 (/spec/install/spec/deployments/0/spec/template/spec/imagePullSecrets/1): spec.install.spec.deployments[0].spec.template.spec.imagePullSecrets: duplicate entries for key [name="pull"]: one of them is used (help: remove it, or the item at manifests/csv.yaml:98:21)
    DuplicateListKey manifests/csv.yaml:41:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/2): spec.install.spec.deployments[0].spec.template.spec.containers[0].env: duplicate entries for key [name="MODE"]: the last value is used (help: remove it, or the item at manifests/csv.yaml:33:25)
    DuplicateListKey manifests/csv.yaml:45:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/3): spec.install.spec.deployments[0].spec.template.spec.containers[0].env: duplicate entries for key [name="LEVEL"]: the last value is used (help: remove it, or the item at manifests/csv.yaml:37:25)
    DuplicateListKey manifests/csv.yaml:57:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/ports/1): spec.install.spec.deployments[0].spec.template.spec.containers[0].ports: duplicate entries for key [containerPort=8080,protocol="TCP"]: the name "metrics" is dropped, since nothing in the bundle uses it (help: remove it, or the item at manifests/csv.yaml:53:25)
    DuplicateListKey manifests/csv.yaml:66:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/ports/3): spec.install.spec.deployments[0].spec.template.spec.containers[0].ports: duplicate entries for key [containerPort=53,protocol="UDP"]: one of them is used (help: remove it, or the item at manifests/csv.yaml:62:25)
    "#);
}

#[test]
fn duplicates_that_may_have_several_meanings_are_refused() {
    // The first value is part of another variable, or of the last value.
    let small = operator(json!({"env": [
        {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"},
        {"name": "C", "value": "1"}, {"name": "C", "value": "$(C)2"},
    ]}));
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    DuplicateListKey manifests/csv.yaml:41:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/2): spec.install.spec.deployments[0].spec.template.spec.containers[0].env: duplicate entries for key [name="A"]: an API server accepts it once and refuses each later update
      remove it, or the item at manifests/csv.yaml:33:25
    DuplicateListKey manifests/csv.yaml:49:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/4): spec.install.spec.deployments[0].spec.template.spec.containers[0].env: duplicate entries for key [name="C"]: an API server accepts it once and refuses each later update
      remove it, or the item at manifests/csv.yaml:45:25
    "#);
    // Both names are in use, or the ports differ.
    let small = operator(json!({
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 8080}, {"containerPort": 1},
            {"containerPort": 1, "hostPort": 1}],
        "readinessProbe": {"httpGet": {"port": "http"}},
    }));
    let monitor = "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: m}\nspec: {podMetricsEndpoints: [{port: metrics}]}\n";
    insta::assert_snapshot!(small.file("manifests/monitor.yaml", monitor).refusal(&json!({})), @r#"
    content
    DuplicateListKey manifests/csv.yaml:39:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/ports/1): spec.install.spec.deployments[0].spec.template.spec.containers[0].ports: duplicate entries for key [containerPort=8080,protocol="TCP"]: an API server accepts it once and refuses each later update
      remove it, or the item at manifests/csv.yaml:35:25
    DuplicateListKey manifests/csv.yaml:46:25 (/spec/install/spec/deployments/0/spec/template/spec/containers/0/ports/3): spec.install.spec.deployments[0].spec.template.spec.containers[0].ports: duplicate entries for key [containerPort=1,protocol="TCP"]: an API server accepts it once and refuses each later update
      remove it, or the item at manifests/csv.yaml:43:25
    "#);
}

#[test]
fn a_name_of_a_port_that_something_uses_is_kept() {
    let ports = json!([{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 8080}]);
    let (rendered, findings) =
        rendered(&operator(json!({"ports": ports, "livenessProbe": {"tcpSocket": {"port": "metrics"}}})), &json!({}));
    assert_eq!(rendered["containers"][0]["ports"], json!([{"name": "metrics", "containerPort": 8080}]));
    assert!(findings.contains(r#"the name "http" is dropped"#), "{findings}");
}

#[test]
fn reference_leaves_duplicates_as_olm_does() {
    let env = json!([{"name": "MODE", "value": "a"}, {"name": "MODE", "value": "b"}]);
    let (rendered, findings) = rendered(&operator(json!({"env": env})), &json!({"compatibility": "reference"}));
    assert_eq!(rendered["containers"][0]["env"], env);
    assert!(findings.starts_with("DuplicateListKey") && findings.contains("refuses each later update"), "{findings}");
}

#[test]
fn duplicates_in_other_objects_are_refused() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nsecrets:\n- name: x\n- name: x\n";
    let small = Small::new(&["AllNamespaces"]).file("manifests/account.yaml", account);
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    DuplicateListKey manifests/account.yaml:6:3 (/secrets/1): secrets: duplicate entries for key [name="x"]: an API server accepts it once and refuses each later update
      remove it, or the item at manifests/account.yaml:5:3
    "#);
}
