//! Images that the configuration replaces.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Provisioner, Request,
    testing::{Bundle, Recorder, run},
};
use serde_json::{Value, json};

const REFERENCES: &str = "\
kind: ImageStream
apiVersion: image.openshift.io/v1
spec:
  tags:
  - name: ingress-operator
    from: {kind: DockerImage, Name: quay.io/openshift/origin-ingress-operator}
  - name: haproxy-router
    from: {kind: DockerImage, name: quay.io/openshift/origin-haproxy-router}
  - name: not-an-image
    from: {kind: ImageStreamTag, name: x}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress}
spec:
  template:
    spec:
      containers:
      - name: ingress
        # quay.io/openshift/origin-ingress-operator
        image: quay.io/openshift/origin-ingress-operator:latest
        args: ['--router=quay.io/openshift/origin-haproxy-router']
        env: [{name: BOTH, value: 'quay.io/openshift/origin-haproxy-router:v4,x'}]
";

fn bundle(references: &str) -> Bundle {
    Bundle::new([("manifests/image-references", references), ("manifests/ingress.yaml", DEPLOYMENT)])
}

fn provision(bundle: &Bundle, config: &Value) -> Result<Recorder, Failure> {
    run::<Plain>(bundle, &Request::new().with_config(config.as_object().unwrap().clone()))
}

fn findings(recorder: &Recorder) -> String {
    let lines = recorder.findings.iter().map(|finding| format!("{:?} {} {finding}", finding.severity, finding.code));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn images_are_replaced_by_name() {
    let config = json!({"images": {
        "ingress-operator": "mirror.example.com/ingress@sha256:12ab",
        "haproxy-router": "mirror.example.com/router:v1",
    }});
    let recorder = provision(&bundle(REFERENCES), &config).unwrap();
    let container = &recorder.objects[0].value["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "mirror.example.com/ingress@sha256:12ab");
    assert_eq!(container["args"], json!(["--router=mirror.example.com/router:v1"]));
    assert_eq!(recorder.objects[0].origin.as_ref().unwrap().to_string(), "manifests/ingress.yaml:1:1");
    insta::assert_snapshot!(findings(&recorder), @"Warning ImageNotReplaced manifests/ingress.yaml:12:35 (/spec/template/spec/containers/0/env/0/value): the text names an image in a form that cannot be replaced (help: end the reference with white space, a quote or the end of the text)");
}

#[test]
fn without_a_configuration_nothing_is_replaced_or_reported() {
    for config in [json!({}), json!({"images": null}), json!({"images": {}})] {
        let recorder = provision(&bundle(REFERENCES), &config).unwrap();
        let image = recorder.objects[0].value.pointer("/spec/template/spec/containers/0/image").unwrap();
        assert_eq!(image, "quay.io/openshift/origin-ingress-operator:latest");
        assert_eq!(recorder.findings, [], "{config}");
    }
}

#[test]
fn mismatches_of_images_and_configuration_are_reported() {
    let recorder =
        provision(&bundle(REFERENCES), &json!({"images": {"haproxy": "x", "ingress-operator": "y"}})).unwrap();
    insta::assert_snapshot!(findings(&recorder), @r#"
    Warning UnknownImage config (/images/haproxy): the bundle has no image "haproxy" (help: its images are ingress-operator, haproxy-router)
    Warning ImageNotConfigured manifests/image-references:7:5 (/spec/tags/1): image "haproxy-router" is not configured and remains "quay.io/openshift/origin-haproxy-router" (help: set it in images, too)
    "#);
    let without = Bundle::new([("manifests/ingress.yaml", DEPLOYMENT)]);
    let recorder = provision(&without, &json!({"images": {"haproxy": "x"}})).unwrap();
    insta::assert_snapshot!(findings(&recorder), @"Warning ImageReferencesMissing config (/images): the bundle has no file image-references, so no image is replaced (help: add manifests/image-references to the bundle, or remove images)");
}

#[test]
fn ambiguous_references_only_block_a_replacement() {
    let ambiguous = "\
kind: ImageStream
apiVersion: image.openshift.io/v1
spec:
  tags:
  - {name: a, from: {kind: DockerImage, name: quay.io/a}}
  - {name: b, from: {kind: DockerImage, name: quay.io/a}}
  - {name: a, from: {kind: DockerImage, name: quay.io/c}}
  - {name: d, from: {kind: DockerImage}}
";
    let failure = provision(&bundle(ambiguous), &json!({"images": {"a": "x"}})).unwrap_err();
    insta::assert_snapshot!(failure, @r#"
    invalid content
    manifests/image-references:6:5 (/spec/tags/1): images "a" and "b" are ambiguous: "quay.io/a" and "quay.io/a" (help: give each image one name and one repository)
    manifests/image-references:7:5 (/spec/tags/2): images "a" and "a" are ambiguous: "quay.io/a" and "quay.io/c" (help: give each image one name and one repository)
    manifests/image-references:8:5 (/spec/tags/3): image 3 has no name or no from.name (help: set its name and its repository)
    "#);
    let recorder = provision(&bundle(ambiguous), &json!({})).unwrap();
    assert_eq!(recorder.findings.len(), 3);
}

#[test]
fn all_errors_of_an_image_configuration_are_reported() {
    let config = json!({"replicas": 1, "images": {"a": "", "b": "two words", "c": 7, "d/e": "-x"}});
    insta::assert_snapshot!(provision(&bundle(REFERENCES), &config).unwrap_err(), @r#"
    invalid configuration
    config (/images/a): image "a" is not a reference to an image (help: write it as registry.example.com/repository@sha256:...)
    config (/images/b): image "b" is not a reference to an image (help: write it as registry.example.com/repository@sha256:...)
    config (/images/c): image "c" is not a reference to an image (help: write it as registry.example.com/repository@sha256:...)
    config (/images/d~1e): image "d/e" is not a reference to an image (help: write it as registry.example.com/repository@sha256:...)
    config (/replicas): unknown field "replicas" (help: the keys are images, releaseVersion, componentVersions and release)
    "#);
    insta::assert_snapshot!(provision(&bundle(REFERENCES), &json!({"images": ["a"]})).unwrap_err(), @r"
    invalid configuration
    config (/images): images is not an object (help: write it as {name: image})
    ");
    // Together with the errors of the content.
    let failure = provision(&Bundle::new([("manifests/a", "")]), &config).unwrap_err();
    assert_eq!(failure.diagnostics().len(), 6, "{failure}");
    assert!(matches!(failure, Failure::InvalidContent(_)));
}

#[test]
fn the_schema_names_the_images() {
    let schema: Value = serde_json::from_str(&Plain::config_schema(&bundle(REFERENCES)).unwrap().unwrap()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let images = &schema["properties"]["images"];
    let names: Vec<&String> = images["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["haproxy-router", "ingress-operator"]);
    let description = &images["properties"]["haproxy-router"]["description"];
    assert_eq!(description, "Replaces quay.io/openshift/origin-haproxy-router.");
    // Defaults of a class may name images that this bundle does not contain.
    assert_eq!(images["additionalProperties"]["type"], "string");
}
