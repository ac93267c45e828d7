//! The requirements of a bundle on its cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_sdk::{Request, testing::Recorder};
use serde_json::json;

use crate::support::small::{CRD, Small, one};

fn target(version: &str, kinds: &[&str]) -> Request {
    let target = if version.is_empty() { Request::new() } else { Request::new().with_kubernetes_version(version) };
    target.with_api_kinds(kinds.iter().copied())
}

fn findings(release: &Recorder) -> String {
    let findings = release.findings.iter();
    let lines = findings.map(|finding| format!("{:?} {} {finding}", finding.severity, finding.code));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_kubernetes_that_is_too_old_is_refused() {
    let mut small = Small::new(&["AllNamespaces"]);
    small.csv["spec"]["minKubeVersion"] = json!("1.29.0");
    for version in ["v1.29.0", "v1.36.0-chandler.devcluster", "1.30", "", "unknown"] {
        let release = small.render_for(&json!({}), target(version, &[])).unwrap();
        assert_eq!(findings(&release), "", "{version}");
    }
    let failure = small.render_for(&json!({}), target("v1.28.15+k3s1", &[])).unwrap_err();
    insta::assert_snapshot!(failure, @r"
    unsupported
    manifests/csv.yaml:68:23 (/spec/minKubeVersion): the operator needs Kubernetes 1.29.0, and the cluster runs 1.28.15 (help: upgrade the cluster or use an older version of the operator; compatibility: reference installs it all the same)
    ");
    let release = small.render_for(&json!({"compatibility": "reference"}), target("v1.28.15+k3s1", &[])).unwrap();
    insta::assert_snapshot!(findings(&release), @"Warning KubernetesTooOld manifests/csv.yaml:68:23 (/spec/minKubeVersion): the operator needs Kubernetes 1.29.0, and the cluster runs 1.28.15 (help: upgrade the cluster or use an older version of the operator; compatibility: reference installs it all the same)");
    small.csv["spec"]["minKubeVersion"] = json!("newest");
    let release = small.render_for(&json!({}), target("v1.28.15", &[])).unwrap();
    insta::assert_snapshot!(findings(&release), @r#"Warning InvalidMinKubeVersion manifests/csv.yaml:68:23 (/spec/minKubeVersion): minKubeVersion "newest" is not a version (help: write it as 1.29.0)"#);
}

fn operator_with_requirements() -> Small {
    let mut small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", &CRD.replace("JSONPath", "jsonPath"));
    let spec = &mut small.csv["spec"];
    spec["customresourcedefinitions"] = json!({
        "owned": [{"name": "berths.example.com", "kind": "Berth", "version": "v1"}],
        "required": [
            {"name": "certificates.cert-manager.io", "kind": "Certificate", "version": "v1"},
            {"name": "berths.example.com", "kind": "Berth", "version": "v1"},
        ],
    });
    spec["apiservicedefinitions"] =
        json!({"required": [{"name": "m", "group": "metrics.k8s.io", "version": "v1beta1", "kind": "NodeMetrics"}]});
    spec["nativeAPIs"] = json!([
        {"group": "", "version": "v1", "kind": "Pod"},
        {"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget"},
        {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenReview"},
    ]);
    small
}

#[test]
fn missing_kinds_of_the_target_are_reported() {
    let release = operator_with_requirements().render_for(&json!({}), target("v1.36.0", &["v1/Pod"])).unwrap();
    insta::assert_snapshot!(findings(&release), @r#"
    Warning RequiredApiMissing manifests/csv.yaml:30:9 (/spec/customresourcedefinitions/required/0): the operator needs the CustomResourceDefinition "certificates.cert-manager.io" with version v1 of kind Certificate, and the cluster does not serve it (help: install the operator that owns it)
    Warning RequiredApiMissing manifests/csv.yaml:13:9 (/spec/apiservicedefinitions/required/0): the operator needs the aggregated API metrics.k8s.io/v1beta1/NodeMetrics, and the cluster does not serve it (help: install the operator that serves it)
    Warning NativeApiMissing manifests/csv.yaml:105:7 (/spec/nativeAPIs/1): the operator needs the API policy/v1beta1/PodDisruptionBudget, and the cluster does not serve it (help: use a version of the operator for this Kubernetes)
    "#);
    let served = [
        "v1/Pod",
        "cert-manager.io/v1/Certificate",
        "metrics.k8s.io/v1beta1/NodeMetrics",
        "policy/v1beta1/PodDisruptionBudget",
    ];
    let release = operator_with_requirements().render_for(&json!({}), target("v1.36.0", &served)).unwrap();
    assert_eq!(findings(&release), "");
    // Without a cluster, nothing is missing.
    assert_eq!(findings(&operator_with_requirements().render(&json!({})).unwrap()), "");
}

#[test]
fn unserved_kinds_are_reported_once_for_each_kind() {
    let rule = |name: &str| {
        format!("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {{name: {name}}}\n")
    };
    let small = Small::new(&["AllNamespaces"])
        .webhook("ValidatingAdmissionWebhook", "v.example.com")
        .file("manifests/rules.yaml", &format!("{}---\n{}", rule("a1"), rule("a2")));
    let config = json!({"certificateProvider": "cert-manager"});
    let release = small.render_for(&config, target("v1.36.0", &["v1/Pod"])).unwrap();
    insta::assert_snapshot!(findings(&release), @r#"
    Warning ApiNotServed manifests/rules.yaml:1:1: PrometheusRule "a1" is of the API monitoring.coreos.com/v1, which the cluster does not serve (help: the rollout waits until it does; install a provider of the API)
    Warning ApiNotServed config (/certificateProvider): cert-manager is the certificate provider, and the cluster does not serve its API (help: install cert-manager)
    "#);
    let served = ["monitoring.coreos.com/v1/PrometheusRule", "cert-manager.io/v1/Certificate"];
    assert_eq!(findings(&small.render_for(&config, target("v1.36.0", &served)).unwrap()), "");
    assert_eq!(findings(&small.render(&config).unwrap()), "");
}

#[test]
fn cert_manager_is_missed_only_by_a_bundle_that_needs_certificates() {
    let small = Small::new(&["AllNamespaces"]);
    let config = json!({"certificateProvider": "cert-manager"});
    let release = small.render_for(&config, target("v1.36.0", &["v1/Pod", "apps/v1/Deployment"])).unwrap();
    assert!(!findings(&release).contains("cert-manager"), "{}", findings(&release));
}

#[test]
fn properties_and_dependencies_are_reported() {
    let properties = "properties:\n\
                      - {type: olm.package, value: {packageName: op, version: 1.2.3}}\n\
                      - {type: olm.gvk, value: {group: example.com, version: v1, kind: Berth}}\n\
                      - {type: olm.package.required, value: {packageName: quay, versionRange: '>=1.0.0'}}\n\
                      - {type: olm.gvk.required, value: {group: '', version: v1, kind: Pod}}\n\
                      - {type: olm.gvk.required, value: {group: x.io, version: v1, kind: X}}\n\
                      - {type: someone.elses, value: 1}\n";
    let dependencies = "dependencies:\n\
                        - {type: olm.package, value: {packageName: keycloak-operator, version: '>24.0.0'}}\n\
                        - {type: olm.gvk, value: {group: y.io, version: v1, kind: Yard}}\n\
                        - type: olm.constraint\n  value:\n    failureMessage: needs a tide\n    any: {constraints: [{gvk: {group: y.io, version: v1, kind: Yard}}]}\n\
                        - {type: olm.constraint, value: {failureMessage: needs a moon, cel: {rule: 'true'}}}\n\
                        - {type: olm.constraint, value: {some: {}}}\n\
                        - {value: 1}\n";
    let mut small = Small::new(&["AllNamespaces"])
        .file("metadata/properties.yaml", properties)
        .file("metadata/dependencies.yaml", dependencies);
    small.csv["metadata"]["annotations"]["olm.properties"] =
        json!("[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.12\"}]");
    let release = small.render_for(&json!({}), target("v1.36.0", &["v1/Pod"])).unwrap();
    insta::assert_snapshot!(findings(&release), @r#"
    Warning InvalidDependencies metadata/dependencies.yaml:10:3 (/dependencies/5): failed to unmarshal metadata/dependencies.yaml: an item has no type or no value (help: dependencies is a list of objects with type and value)
    Info MaxOpenShiftVersion manifests/csv.yaml:7:25 (/metadata/annotations/olm.properties): the operator runs up to OpenShift 4.12
    Info ProvidedPackage metadata/properties.yaml:2:3 (/properties/0): the bundle is package "op", version 1.2.3
    Info ProvidedApi metadata/properties.yaml:3:3 (/properties/1): the bundle provides the API example.com/v1/Berth
    Warning RequiredPackage metadata/properties.yaml:4:3 (/properties/2): the operator needs package "quay" in version ">=1.0.0", which is not checked (help: install it first, as a separate BundleDeployment)
    Warning RequiredApiMissing metadata/properties.yaml:6:3 (/properties/4): the operator needs the API x.io/v1/X, and the cluster does not serve it (help: install the operator that provides it)
    Warning RequiredPackage metadata/dependencies.yaml:2:3 (/dependencies/0): the operator needs package "keycloak-operator" in version ">24.0.0", which is not checked (help: install it first, as a separate BundleDeployment)
    Warning RequiredApiMissing metadata/dependencies.yaml:3:3 (/dependencies/1): the operator needs the API y.io/v1/Yard, and the cluster does not serve it (help: install the operator that provides it)
    Warning ConstraintNotMet metadata/dependencies.yaml:4:3 (/dependencies/2): the cluster does not meet a constraint of the operator: needs a tide (help: install what the constraint requires)
    Info ConstraintUnchecked metadata/dependencies.yaml:8:3 (/dependencies/3): a constraint of the operator cannot be checked; if it is not met: needs a moon
    Warning InvalidProperty metadata/dependencies.yaml:9:3 (/dependencies/4): property "olm.constraint" cannot be read: unknown constraint "some" (help: it has no effect; fix or remove it)
    "#);
    let release = small.render(&json!({})).unwrap();
    let lines = findings(&release);
    let unknown: Vec<&str> =
        lines.lines().filter(|line| line.starts_with("Info Required") || line.contains("tide")).collect();
    insta::assert_snapshot!(unknown.join("\n"), @r"
    Info RequiredApi metadata/properties.yaml:5:3 (/properties/3): the operator needs the API v1/Pod
    Info RequiredApi metadata/properties.yaml:6:3 (/properties/4): the operator needs the API x.io/v1/X
    Info RequiredApi metadata/dependencies.yaml:3:3 (/dependencies/1): the operator needs the API y.io/v1/Yard
    Info ConstraintUnchecked metadata/dependencies.yaml:4:3 (/dependencies/2): a constraint of the operator cannot be checked; if it is not met: needs a tide
    ");
}

#[test]
fn max_openshift_version_is_compared_with_the_target() {
    let with = |value: &str| {
        let mut small = Small::new(&["AllNamespaces"]);
        let property = format!("[{{\"type\": \"olm.maxOpenShiftVersion\", \"value\": {value}}}]");
        small.csv["metadata"]["annotations"]["olm.properties"] = json!(property);
        small
    };
    let openshift = target("v1.31.4", &["config.openshift.io/v1/ClusterVersion"]);
    let cases = [
        ("\"4.18\"", "MaxOpenShiftVersion"),
        ("\"4.17\"", "OpenShiftTooNew"),
        ("4.17", "InvalidProperty"),
        ("\"5.1\"", "InvalidProperty"),
        ("true", "InvalidProperty"),
    ];
    for (value, code) in cases {
        let release = with(value).render_for(&json!({}), openshift.clone()).unwrap();
        let codes: Vec<&str> = release.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, [code], "{value}");
    }
    // In other kinds it has no such meaning.
    let release = with("\"4.1\"").render_for(&json!({}), target("v1.31.4", &["v1/Pod"])).unwrap();
    assert_eq!(release.findings[0].code, "MaxOpenShiftVersion");
}

#[test]
fn an_invalid_dependencies_file_is_a_warning() {
    for (text, want) in [
        (
            "dependencies:\n- type: olm.gvk\n    value: {}\n",
            "Warning InvalidDependencies metadata/dependencies.yaml:3:10",
        ),
        ("dependencies: 7\n", "Warning InvalidDependencies metadata/dependencies.yaml:1:15 (/dependencies)"),
        ("dependencies:\n", ""),
        ("", ""),
    ] {
        let release =
            Small::new(&["AllNamespaces"]).file("metadata/dependencies.yaml", text).render(&json!({})).unwrap();
        let found = findings(&release);
        assert!(found.starts_with(want) && found.is_empty() == want.is_empty(), "{text:?}: {found}");
    }
}

#[test]
fn invalid_properties_are_refused_as_in_olm_v1() {
    let mut small = Small::new(&["AllNamespaces"])
        .file("metadata/properties.yaml", "properties:\n- a\n- {type: [a], value: 1}\n- {type: b, value: 2}\n");
    small.csv["metadata"]["annotations"]["olm.properties"] = json!("[{]");
    insta::assert_snapshot!(small.refusal(&json!({})), @r"
    content
    InvalidProperties manifests/csv.yaml:7:25 (/metadata/annotations/olm.properties): failed to unmarshal csv.metadata.annotations['olm.properties']: key must be a string at line 1 column 3
      the annotation holds a JSON list of objects with type and value
    InvalidProperties metadata/properties.yaml:2:3 (/properties/0): failed to unmarshal metadata/properties.yaml: an item is a string, not an object
      properties is a list of objects with type and value
    InvalidProperties metadata/properties.yaml:3:3 (/properties/1): failed to unmarshal metadata/properties.yaml: the type of an item is an array, not text
      properties is a list of objects with type and value
    ");
}

/// Published bundles have such properties, and OLM v1 installs them: Go decodes what is there.
#[test]
fn properties_without_type_or_value_are_kept_with_a_warning() {
    let file = "properties:\n\
                - {type: relatedImage, name: berth, image: 'example.com/berth:1'}\n\
                - {value: 1}\n\
                - null\n\
                - {type: null, value: null}\n\
                - {Type: 7, VALUE: {b: 1}}\n\
                - {Type: first, type: second, value: [2]}\n";
    let mut small = Small::new(&["AllNamespaces"]).file("metadata/properties.yaml", file);
    small.csv["metadata"]["annotations"]["olm.properties"] = json!("[null, {\"Type\": \"a\"}, {\"VALUE\": 1.0}]");
    let release = small.render(&json!({})).unwrap();
    let deployment = one(&release, "Deployment");
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let expected = [
        r#"{"type":"","value":null}"#,
        r#"{"type":"a","value":null}"#,
        r#"{"type":"","value":1.0}"#,
        r#"{"type":"relatedImage","value":null}"#,
        r#"{"type":"","value":1}"#,
        r#"{"type":"","value":null}"#,
        r#"{"type":"","value":null}"#,
        r#"{"type":"7","value":{"b":1}}"#,
        r#"{"type":"second","value":[2]}"#,
    ];
    assert_eq!(annotations["olm.properties"], format!("[{}]", expected.join(",")));
    let invalid: Vec<&str> = release
        .findings
        .iter()
        .filter(|finding| finding.code == "InvalidProperty")
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        invalid,
        [
            "a property has no type",
            r#"property "a" has no value"#,
            "a property has no type",
            r#"property "relatedImage" has no value"#,
            "a property has no type",
            "a property has no type",
            "a property has no type",
        ]
    );
}
