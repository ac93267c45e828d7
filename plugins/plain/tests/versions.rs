//! Versions that the configuration replaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Request,
    testing::{Bundle, Recorder, run},
};
use serde_json::{Value, json};

const OPERATOR: &str = "\
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: harbour}
status:
  versions:
  # 0.0.1-snapshot-nobody
  - {name: operator, version: '0.0.1-snapshot'}
  - {name: kubelet, version: '0.0.1-snapshot-kubernetes'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: harbour, labels: {version: 0.0.1-snapshot}}
spec:
  template:
    spec:
      containers:
      - name: harbour
        image: quay.io/harbour/operator:0.0.1-snapshot
        env: [{name: VERSIONS, value: 'operator=0.0.1-snapshot,kubernetes=0.0.1-snapshot-kubernetes'}]
";

fn provision(text: &str, config: &Value) -> Result<Recorder, Failure> {
    let references = "kind: ImageStream\nspec: {tags: [{name: harbour, from: {kind: DockerImage, name: quay.io/harbour/operator}}]}\n";
    let bundle = Bundle::new([("manifests/image-references", references), ("manifests/harbour.yaml", text)]);
    run::<Plain>(&bundle, &Request::new().with_config(config.as_object().unwrap().clone()))
}

fn findings(recorder: &Recorder) -> String {
    let lines = recorder.findings.iter().map(|finding| format!("{:?} {} {finding}", finding.severity, finding.code));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn versions_of_release_and_components_are_filled_in() {
    let config = json!({
        "releaseVersion": "4.20.1+git.1",
        "componentVersions": {"kubernetes": "1.33.4", "machine-os": "9.6.0"},
        "images": {"harbour": "registry.example.com/harbour@sha256:12ab"},
    });
    let recorder = provision(OPERATOR, &config).unwrap();
    let (operator, deployment) = (&recorder.objects[0].value, &recorder.objects[1].value);
    assert_eq!(
        operator["status"]["versions"],
        json!([{"name": "operator", "version": "4.20.1"}, {"name": "kubelet", "version": "1.33.4"}])
    );
    assert_eq!(deployment["metadata"]["labels"]["version"], "4.20.1");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example.com/harbour@sha256:12ab", "images come first, with their tags");
    assert_eq!(container["env"][0]["value"], "operator=4.20.1,kubernetes=1.33.4");
    assert_eq!(findings(&recorder), "");
    // The tag of an image that is not replaced is treated as any other text.
    let config = json!({"releaseVersion": "4.20.1", "componentVersions": {"kubernetes": "1.33.4"}});
    let recorder = provision(OPERATOR, &config).unwrap();
    let image = recorder.objects[1].value.pointer("/spec/template/spec/containers/0/image").unwrap();
    assert_eq!(image, "quay.io/harbour/operator:4.20.1");
}

#[test]
fn without_a_version_nothing_is_replaced_or_reported() {
    for config in
        [json!({}), json!({"releaseVersion": null, "componentVersions": null}), json!({"componentVersions": {}})]
    {
        let recorder = provision(OPERATOR, &config).unwrap();
        assert_eq!(recorder.objects[0].value["status"]["versions"][0]["version"], "0.0.1-snapshot");
        assert_eq!(recorder.findings, [], "{config}");
    }
}

#[test]
fn missing_versions_are_refused_as_by_the_openshift_tooling() {
    insta::assert_snapshot!(provision(OPERATOR, &json!({"releaseVersion": "4.20.1"})).unwrap_err(), @r#"
    invalid configuration
    manifests/harbour.yaml:8:30 (/status/versions/1/version): unknown version reference "kubernetes" (help: set componentVersions.kubernetes)
    manifests/harbour.yaml:19:39 (/spec/template/spec/containers/0/env/0/value): unknown version reference "kubernetes" (help: set componentVersions.kubernetes)
    "#);
    // The tooling does not replace the version of the release if it has none.
    let recorder = provision(OPERATOR, &json!({"componentVersions": {"kubernetes": "1.33.4"}})).unwrap();
    insta::assert_snapshot!(findings(&recorder), @r"
    Warning ReleaseVersionNotConfigured manifests/harbour.yaml:7:31 (/status/versions/0/version): 0.0.1-snapshot is the placeholder for the version of the release, which is not configured (help: set releaseVersion, too)
    Warning ReleaseVersionNotConfigured manifests/harbour.yaml:12:45 (/metadata/labels/version): 0.0.1-snapshot is the placeholder for the version of the release, which is not configured (help: set releaseVersion, too)
    Warning ReleaseVersionNotConfigured manifests/harbour.yaml:19:39 (/spec/template/spec/containers/0/env/0/value): 0.0.1-snapshot is the placeholder for the version of the release, which is not configured (help: set releaseVersion, too)
    Warning ReleaseVersionNotConfigured manifests/harbour.yaml:18:16 (/spec/template/spec/containers/0/image): 0.0.1-snapshot is the placeholder for the version of the release, which is not configured (help: set releaseVersion, too)
    ");
    let empty =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 0.0.1-snapshot-, b: 0.0.1-snapshot-xy}\n";
    insta::assert_snapshot!(provision(empty, &json!({"releaseVersion": "4.20.1"})).unwrap_err(), @r#"
    invalid content
    manifests/harbour.yaml:4:11 (/data/a): empty version references are not allowed (help: name a component in lower-case letters after 0.0.1-snapshot-)
    manifests/harbour.yaml:4:31 (/data/b): unknown version reference "xy" (help: set componentVersions.xy)
    "#);
}

#[test]
fn all_errors_of_a_version_configuration_are_reported() {
    let config = json!({
        "releaseVersion": "4.20",
        "componentVersions": {"K8s": "1.2.3", "kubernetes": "v1.33.4", "machine-os": 9.6},
    });
    insta::assert_snapshot!(provision(OPERATOR, &config).unwrap_err(), @r#"
    invalid configuration
    config (/componentVersions/K8s): "K8s" is not a component name (help: use two or more lower-case letters, digits and dashes, and no dash at its ends)
    config (/componentVersions/kubernetes): the version of "kubernetes" is not a semantic version (help: write it as 4.20.1, in quotes)
    config (/componentVersions/machine-os): the version of "machine-os" is not a semantic version (help: write it as 4.20.1, in quotes)
    config (/releaseVersion): releaseVersion is not a semantic version (help: write it as 4.20.1, in quotes)
    "#);
    let config = json!({"releaseVersion": 4.2, "componentVersions": "1.2.3"});
    insta::assert_snapshot!(provision(OPERATOR, &config).unwrap_err(), @r"
    invalid configuration
    config (/componentVersions): componentVersions is not an object (help: write it as {component: version})
    config (/releaseVersion): releaseVersion is not a string (help: put it into quotes)
    ");
}
