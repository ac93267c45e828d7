//! Decisions about quirks of OLM v1 that no other test file covers. `docs/contributing/registry-v1-differences.md` lists all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use serde_json::{Value, json};

use crate::support::small::{CRD, Small, names, one};

fn codes(small: &Small, config: &Value) -> Vec<String> {
    small.render(config).unwrap().findings.into_iter().map(|finding| finding.code).collect()
}

#[test]
fn accounts_are_sorted_and_default_is_never_created() {
    let mut small = Small::new(&["AllNamespaces"]);
    let strategy = &mut small.csv["spec"]["install"]["spec"];
    let permission = strategy["permissions"][0].clone();
    for name in ["zebra", "", "alpha", "default", "mast"] {
        let mut permission = permission.clone();
        permission["serviceAccountName"] = json!(name);
        strategy["permissions"].as_array_mut().unwrap().push(permission);
    }
    let release = small.render(&json!({})).unwrap();
    let accounts: Vec<&Value> = release
        .objects
        .iter()
        .filter(|object| object.value["kind"] == "ServiceAccount")
        .map(|object| &object.value["metadata"]["name"])
        .collect();
    assert_eq!(accounts, ["alpha", "mast", "op", "zebra"]);
    // The roles of the account without a name are bound to the default account of the namespace.
    let bound = release.objects.iter().any(|object| object.value["subjects"][0]["name"] == "default");
    assert!(bound);
}

#[test]
fn the_last_of_several_cluster_service_versions_wins() {
    let small = Small::new(&["AllNamespaces"]);
    let mut first = small.csv.clone();
    first["metadata"]["name"] = json!("other.v0");
    let small = small.file("manifests/a.yaml", &first.to_string());
    let release = small.render(&json!({})).unwrap();
    assert!(names(&release).iter().all(|name| !name.contains("other.v0")));
    insta::assert_snapshot!(release.findings[0], @"manifests/a.yaml:1:54 (/kind): bundle contains several ClusterServiceVersions, and only the last one is used (help: keep one)");
}

#[test]
fn a_header_that_others_refuse_is_installed_with_warnings() {
    let mut small = Small::new(&["AllNamespaces"]);
    for version in ["1.2.3", "1.2.3-rc.1+build"] {
        small.csv["spec"]["version"] = json!(version);
        assert_eq!(codes(&small, &json!({})), [""; 0], "{version}");
    }
    small.csv["metadata"]["name"] = json!("A_b");
    small.csv["spec"]["version"] = json!("1.2");
    small.csv["spec"]["install"]["strategy"] = json!("helm");
    let release = small.render(&json!({})).unwrap();
    let findings: Vec<String> = release.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(findings.join("\n"));
}

#[test]
fn template_syntax_is_literal_text() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tides}\ndata: {a: '{{ fail \"x\" }}', b: '${B}'}\n";
    let release = Small::new(&["AllNamespaces"]).file("manifests/tides.yaml", map).render(&json!({})).unwrap();
    assert_eq!(one(&release, "ConfigMap")["data"], json!({"a": "{{ fail \"x\" }}", "b": "${B}"}));
}

#[test]
fn a_trailing_dash_in_a_webhook_name_is_removed_with_extended() {
    let small = Small::new(&["AllNamespaces"]).webhook("ValidatingAdmissionWebhook", "v.example.com-");
    let release = small.render(&json!({"certificateProvider": "none"})).unwrap();
    let configuration = one(&release, "ValidatingWebhookConfiguration");
    assert_eq!(
        (&configuration["metadata"]["name"], &configuration["webhooks"][0]["name"]),
        (&json!("v.example.com"), &json!("v.example.com"))
    );
    let refusal = small.refusal(&json!({"certificateProvider": "none", "compatibility": "reference"}));
    assert!(refusal.starts_with("content\nInvalidWebhookName"), "{refusal}");
    // Two names that differ only in the dash are the same.
    let twice = small.webhook("ValidatingAdmissionWebhook", "v.example.com");
    assert_eq!(names(&twice.render(&json!({"certificateProvider": "none"})).unwrap()).len(), names(&release).len());
}

#[test]
fn a_webhook_of_an_unknown_type_is_dropped_with_a_warning() {
    let small = Small::new(&["AllNamespaces"]).webhook("AdmissionWebhook", "v.example.com");
    let config = json!({"certificateProvider": "cert-manager"});
    assert_eq!(codes(&small, &config), ["UnknownWebhookType"]);
    let release = small.render(&config).unwrap();
    assert!(names(&release).iter().all(|name| !name.contains("Configuration")));
}

#[test]
fn webhooks_keep_their_names() {
    // Two operators with one webhook name collide; the host names the owner.
    let small = Small::new(&["AllNamespaces"]).webhook("MutatingAdmissionWebhook", "m.example.com");
    let release = small.render(&json!({"certificateProvider": "none"})).unwrap();
    assert_eq!(one(&release, "MutatingWebhookConfiguration")["metadata"]["name"], "m.example.com");
}

#[test]
fn deployment_labels_are_not_added_to_pods_and_history_limit_is_one() {
    let mut small = Small::new(&["AllNamespaces"]);
    let deployment = &mut small.csv["spec"]["install"]["spec"]["deployments"][0];
    deployment["label"] = json!({"tier": "operators"});
    deployment["spec"]["revisionHistoryLimit"] = json!(10);
    let release = small.render(&json!({})).unwrap();
    let deployment = one(&release, "Deployment");
    assert_eq!(deployment["metadata"]["labels"], json!({"tier": "operators"}));
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], json!({"app": "op"}));
    assert_eq!(deployment["spec"]["revisionHistoryLimit"], 1);
}

#[test]
fn a_crd_need_not_be_owned() {
    let small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", CRD);
    assert!(one(&small.render(&json!({})).unwrap(), "CustomResourceDefinition").is_object());
}

#[test]
fn own_namespace_is_not_a_default() {
    let refusal = Small::new(&["OwnNamespace"]).refusal(&json!({}));
    assert!(refusal.contains("RequiredFieldMissing"), "{refusal}");
    let several = Small::new(&["OwnNamespace", "MultiNamespace"]).refusal(&json!({}));
    assert!(several.contains("required field \"watchNamespace\" or \"watchNamespaces\" is missing"), "{several}");
    let release = Small::new(&["AllNamespaces", "OwnNamespace"]).render(&json!({})).unwrap();
    let annotations = &one(&release, "Deployment")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["olm.targetNamespaces"], "");
}

#[test]
fn the_suggested_namespace_is_ignored() {
    let mut small = Small::new(&["AllNamespaces"]);
    small.csv["metadata"]["annotations"]["operatorframework.io/suggested-namespace"] = json!("elsewhere");
    let release = small.render(&json!({})).unwrap();
    assert_eq!(one(&release, "Deployment")["metadata"]["namespace"], "ns");
}

#[test]
fn subjects_without_a_namespace_get_the_install_namespace() {
    let binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n\
                   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n\
                   subjects: [{kind: ServiceAccount, name: op}, {kind: ServiceAccount, name: x, namespace: other}, {kind: User, name: u}]\n";
    let small = Small::new(&["OwnNamespace"]).file("manifests/b.yaml", binding);
    let subjects = |compatibility: &str| {
        let release = small.render(&json!({"watchNamespace": "ns", "compatibility": compatibility})).unwrap();
        let codes: Vec<String> = release.findings.iter().map(|finding| finding.code.clone()).collect();
        let subjects = one(&release, "ClusterRoleBinding")["subjects"].as_array().unwrap().clone();
        (subjects.iter().map(|subject| subject["namespace"].clone()).collect::<Vec<_>>(), codes)
    };
    let (filled, codes) = subjects("extended");
    assert_eq!(filled, [json!("ns"), json!("other"), json!(null)]);
    assert_eq!(codes, ["SubjectNamespaceMissing"]);
    assert_eq!(subjects("reference"), (vec![json!(null), json!("other"), json!(null)], Vec::new()));
}
