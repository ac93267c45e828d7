//! Manifests of an OpenShift release: selected for a cluster, and ordered.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Provisioner as _, Request,
    testing::{Bundle, Recorder, run},
};
use serde_json::{Value, json};

const PROFILE: &str = "include.release.openshift.io/self-managed-high-availability";

/// A ConfigMap with these annotations.
fn map(name: &str, annotations: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}}).to_string()
}

/// A ConfigMap for the default profile, with one more annotation.
fn with(name: &str, annotation: &str, value: &str) -> String {
    map(name, &json!({PROFILE: "true", annotation: value}))
}

fn render(files: &[(String, String)], config: &Value) -> Result<Recorder, Failure> {
    let bundle = Bundle::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let config = config.as_object().unwrap().clone();
    run::<Plain>(&bundle, &Request::default().with_config(config))
}

/// The names of the objects that are installed.
fn installed(files: &[(String, String)], config: &Value) -> Vec<String> {
    let recorder = render(files, config).unwrap_or_else(|failure| panic!("{failure}"));
    recorder.objects.iter().map(|object| object.value["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn file(name: &str, text: String) -> (String, String) {
    (format!("manifests/{name}"), text)
}

#[test]
fn manifests_are_selected_for_a_cluster() {
    let files = [
        file("a.yaml", with("always", "a", "b")),
        file("b.yaml", map("not-annotated", &json!(null))),
        file("c.yaml", map("of-another-profile", &json!({"include.release.openshift.io/ibm-cloud-managed": "true"}))),
        file("d.yaml", with("preview", "release.openshift.io/feature-set", "TechPreviewNoUpgrade,CustomNoUpgrade")),
        file("e.yaml", with("no-preview", "release.openshift.io/feature-set", "Default,OKD")),
        file("f.yaml", with("console", "capability.openshift.io/name", "Console+Ingress")),
        file("g.yaml", with("gated", "release.openshift.io/feature-gate", "One,-Two")),
        file("h.yaml", with("five", "release.openshift.io/major-version", "5,-4")),
        file("i.yaml", with("deleted", "release.openshift.io/delete", "true")),
        file("image-references", "kind: ImageStream\napiVersion: image.openshift.io/v1\n".to_owned()),
        file("release-metadata", "{\"kind\": \"cincinnati-metadata-v0\"}".to_owned()),
    ];
    let of = |release: Value| installed(&files, &json!({"release": release, "releaseVersion": "4.20.1"}));
    assert_eq!(of(json!({})), ["always", "no-preview", "console"]);
    assert_eq!(of(json!({"clusterProfile": "ibm-cloud-managed"})), ["of-another-profile"]);
    assert_eq!(of(json!({"featureSet": "TechPreviewNoUpgrade"})), ["always", "preview", "console"]);
    assert_eq!(of(json!({"enabledCapabilities": ["Console"]})), ["always", "no-preview"]);
    assert_eq!(of(json!({"featureGates": ["One"]})), ["always", "no-preview", "console", "gated"]);
    assert_eq!(of(json!({"featureGates": ["One", "Two"]})), ["always", "no-preview", "console"]);
    let five = installed(&files, &json!({"release": {}, "releaseVersion": "5.0.0"}));
    assert_eq!(five, ["always", "no-preview", "console", "five"]);
}

/// A release has one version of a CRD for each feature set.
#[test]
fn one_object_may_have_a_manifest_for_each_feature_set() {
    let files = [
        file("a-Default.yaml", with("a", "release.openshift.io/feature-set", "Default")),
        file("a-Preview.yaml", with("a", "release.openshift.io/feature-set", "TechPreviewNoUpgrade")),
    ];
    assert_eq!(installed(&files, &json!({"release": {}})), ["a"]);
    assert!(
        matches!(render(&files, &json!({})), Err(Failure::InvalidContent(_))),
        "without a cluster, both are installed"
    );
}

#[test]
fn without_a_cluster_the_annotations_mean_nothing() {
    let files = [
        file("0000_10_a_b.yaml", with("deleted", "release.openshift.io/delete", "true")),
        file("0000_10_a_c.yaml", with("created", "release.openshift.io/create-only", "true")),
        file("0000_10_a_d.yaml", with("unknown", "capability.openshift.io/name", "Teleport")),
    ];
    for config in [json!({}), json!({"release": null})] {
        let recorder = render(&files, &config).unwrap();
        assert_eq!(recorder.objects.len(), 3);
        assert!(recorder.objects.iter().all(|object| !object.value.to_string().contains("chandler.dev/")));
    }
}

#[test]
fn the_objects_of_a_component_are_numbered_in_the_order_of_their_files() {
    let files = [
        file("0000_10_b-operator_02_x.yaml", with("second", "a", "b")),
        file("0000_10_b-operator_10_x.yaml", with("third", "a", "b")),
        file("0000_10_b-operator_01_x.yaml", with("first", "a", "b")),
        file("0000_10_c_01_x.yaml", with("other", "release.openshift.io/create-only", "true")),
        file("0000_20_b-operator_01_x.yaml", with("later", "a", "b")),
        file("deployment.yaml", with("last", "a", "b")),
        file("roles.yaml", with("managed", "a", "b")),
    ];
    let overrides = json!([{"kind": "ConfigMap", "name": "managed", "namespace": "any", "unmanaged": true},
        {"kind": "ConfigMap", "name": "last", "unmanaged": false}]);
    let recorder = render(&files, &json!({"release": {"overrides": overrides}})).unwrap();
    let line = |object: &chandler_sdk::testing::Emitted| {
        let annotation = |name: &str| object.value["metadata"]["annotations"][name].as_str().unwrap_or("-").to_owned();
        let name = object.value["metadata"]["name"].as_str().unwrap();
        format!(
            "{} {name} {} {}",
            object.stage.unwrap(),
            annotation("chandler.dev/sequence"),
            annotation("chandler.dev/create-only")
        )
    };
    let lines: Vec<String> = recorder.objects.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    10 first b-operator/0 -
    10 second b-operator/1 -
    10 third b-operator/2 -
    10 other c/3 true
    20 later b-operator/4 -
    100 last /5 -
    100 managed /6 true
    ");
}

#[test]
fn unknown_and_contradictory_annotations_are_refused_with_their_lines() {
    let yaml = |annotations: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    {PROFILE}: \"true\"\n{annotations}"
        )
    };
    let refusal = |text: String| match render(&[file("0000_10_a_b.yaml", text)], &json!({"release": {}})) {
        Err(Failure::InvalidContent(findings)) => {
            assert!(findings.iter().all(|finding| finding.help.is_some()));
            findings.iter().map(|finding| format!("{} {finding}", finding.code)).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other:?}"),
    };
    let mut found = vec![refusal(map("a", &json!({PROFILE: "yes"})))];
    for annotations in [
        "    release.openshift.io/feature-set: Preview\n",
        "    capability.openshift.io/name: Console+Teleport\n",
        "    release.openshift.io/delete: \"false\"\n",
        "    release.openshift.io/create-only: always\n",
        "    release.openshift.io/delete: \"true\"\n    release.openshift.io/create-only: \"true\"\n",
        "    release.openshift.io/feature-set: Default\n    release.openshift.io/feature-gate: One\n",
        "    release.openshift.io/feature-gate: One,-One\n",
        "    release.openshift.io/major-version: new\n",
        "    release.openshift.io/major-version: \"5\"\n",
        "    release.openshift.io/create-only: true\n",
    ] {
        found.push(refusal(yaml(annotations)));
    }
    insta::assert_snapshot!(found.join("\n"));
    let for_others = refusal(map("a", &json!({"include.release.openshift.io/other": "true"})));
    assert!(for_others.starts_with("NoObjectsForCluster"), "{for_others}");
}

#[test]
fn an_image_references_of_a_release_that_cannot_be_parsed_is_refused() {
    let files = [file("a.yaml", with("a", "a", "b")), file("image-references", "a: [".to_owned())];
    let failure = render(&files, &json!({"release": {}})).unwrap_err();
    assert_eq!(failure.diagnostics().iter().map(|it| it.code.as_str()).collect::<Vec<_>>(), ["InvalidYaml"]);
    assert!(failure.to_string().contains("manifests/image-references:1:"), "{failure}");
}

/// The CRD requires a spec, and published manifests have none.
#[test]
fn a_cluster_operator_of_a_release_gets_a_spec() {
    let operator = |version: &str, spec: &Value| {
        let mut object = json!({"apiVersion": version, "kind": "ClusterOperator", "metadata": {"name": "dns", "annotations": {PROFILE: "true"}}});
        object.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let files = [file("a.yaml", object.to_string())];
        let spec = |config: &Value| render(&files, config).unwrap().objects[0].value.get("spec").cloned();
        (spec(&json!({"release": {}})), spec(&json!({})))
    };
    assert_eq!(operator("config.openshift.io/v1", &json!({})), (Some(json!({})), None));
    let set = json!({"spec": {"a": 1}});
    assert_eq!(operator("config.openshift.io/v1", &set), (Some(json!({"a": 1})), Some(json!({"a": 1}))));
    assert_eq!(operator("example.com/v1", &json!({})), (None, None));
}

#[test]
fn a_file_of_a_release_without_the_extension_of_a_manifest_is_ignored_with_a_warning() {
    let files = [file("a.yaml", with("a", "a", "b")), file("README", "{".to_owned())];
    let recorder = render(&files, &json!({"release": {}})).unwrap();
    assert_eq!(recorder.findings.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(), ["FileIgnored"]);
    assert!(Plain::config_schema(&Bundle::new([("manifests/a", "")])).unwrap().unwrap().contains("clusterProfile"));
}
