//! Renders bundles with the provisioner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Provisioner, Request, Severity,
    testing::{Bundle, Recorder, run},
};

fn provision(bundle: &Bundle) -> Result<Recorder, Failure> {
    run::<Plain>(bundle, &Request::default())
}

/// The objects, one per line: stage, identity, origin.
fn release(bundle: &Bundle) -> String {
    let recorder = provision(bundle).unwrap_or_else(|failure| panic!("{failure}"));
    let mut lines: Vec<String> = Vec::new();
    for object in &recorder.objects {
        let text = |pointer: &str| object.value.pointer(pointer).and_then(|value| value.as_str()).unwrap_or("-");
        let stage = object.stage.map_or("-".to_owned(), |stage| stage.to_string());
        let origin = object.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        lines.push(format!(
            "{stage} {} {}/{} {origin}",
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name")
        ));
    }
    lines.extend(recorder.findings.iter().map(|finding| format!("{:?} {} {finding}", finding.severity, finding.code)));
    lines.join("\n")
}

/// The findings of a refused bundle, one per line.
fn refusal(bundle: &Bundle) -> String {
    match provision(bundle).expect_err("the bundle is refused") {
        Failure::InvalidContent(findings) => {
            for finding in &findings {
                assert_eq!(finding.severity, Severity::Error, "{finding}");
                assert!(finding.help.is_some(), "no help: {finding}");
                let place = finding.location.as_ref().unwrap_or_else(|| panic!("no place: {finding}"));
                let parsed = place.line().is_some() && finding.code != "InvalidYaml";
                assert_eq!(place.pointer.is_some(), parsed, "no pointer: {finding}");
            }
            findings.iter().map(|finding| format!("{} {finding}", finding.code)).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other}"),
    }
}

const A: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn objects_are_emitted_in_the_order_of_files_and_documents() {
    let bundle = Bundle::new([
        ("manifests/b.json", r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}"#),
        (
            "manifests/a",
            "---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: d, namespace: ns}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n",
        ),
        ("manifests/empty.yaml", ""),
        ("README.md", "# not a manifest: {"),
    ]);
    insta::assert_snapshot!(release(&bundle), @r"
    - Deployment ns/d manifests/a:7:3
    - Pod -/p manifests/a:10:3
    - Namespace -/b manifests/b.json:1:1
    ");
}

#[test]
fn template_syntax_is_literal_text() {
    let text = "{{ .Values.x }} ${X} {{ fail \"no\" }}";
    let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: '{text}'}}\n");
    let recorder = provision(&Bundle::new([("manifests/a.yaml", object)])).unwrap();
    assert_eq!(recorder.objects[0].value["data"]["x"], text);
}

#[test]
fn run_levels_become_stages() {
    let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let bundle = Bundle::new([
        ("manifests/0000_50_olm_01-b.yaml", object("b")),
        ("manifests/0000_10_kube_01-a.yaml", object("a")),
        ("manifests/deployment.yaml", object("c")),
    ]);
    insta::assert_snapshot!(release(&bundle), @r"
    10 ConfigMap -/a manifests/0000_10_kube_01-a.yaml:1:1
    50 ConfigMap -/b manifests/0000_50_olm_01-b.yaml:1:1
    100 ConfigMap -/c manifests/deployment.yaml:1:1
    ");
}

#[test]
fn components_of_one_level_share_a_stage() {
    let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let bundle = Bundle::new([
        ("manifests/0000_70_monitoring_01-a.yaml", object("monitoring-a")),
        ("manifests/0000_70_monitoring_02-b.yaml", object("monitoring-b")),
        ("manifests/0000_70_samples_01-a.yaml", object("samples-a")),
        ("manifests/0000_80_console_01-a.yaml", object("console-a")),
        ("manifests/0000_08_dns_01-a.yaml", object("dns-a")),
    ]);
    insta::assert_snapshot!(release(&bundle), @r"
    8 ConfigMap -/dns-a manifests/0000_08_dns_01-a.yaml:1:1
    70 ConfigMap -/monitoring-a manifests/0000_70_monitoring_01-a.yaml:1:1
    70 ConfigMap -/monitoring-b manifests/0000_70_monitoring_02-b.yaml:1:1
    70 ConfigMap -/samples-a manifests/0000_70_samples_01-a.yaml:1:1
    80 ConfigMap -/console-a manifests/0000_80_console_01-a.yaml:1:1
    ");
}

#[test]
fn any_kind_is_installed_unchanged() {
    let text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: berths.example.com}\n---\n\
                apiVersion: example.com/v1\nkind: Berth\nmetadata: {name: b}\n---\n\
                apiVersion: example.com/v1\nkind: Berth\nmetadata: {name: b, namespace: north}\n---\n\
                apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\nwebhooks: []\n---\n\
                apiVersion: v1\nkind: Node\nmetadata: {name: worker}\nspec: {}\n";
    let bundle = Bundle::new([("manifests/all", text)]);
    // No namespace is added: only the host knows which kinds are namespaced.
    insta::assert_snapshot!(release(&bundle), @r"
    - CustomResourceDefinition -/berths.example.com manifests/all:1:1
    - Berth -/b manifests/all:5:1
    - Berth north/b manifests/all:9:1
    - ValidatingWebhookConfiguration -/v manifests/all:13:1
    - Node -/worker manifests/all:18:1
    ");
    // Nothing is added, dropped or rewritten, including zero values and unknown fields.
    let object = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"a":null,"b":0,"c":"1024Mi","d":[]},"x":false}"#;
    let recorder = provision(&Bundle::new([("manifests/p.json", object)])).unwrap();
    assert_eq!(recorder.objects[0].value.to_string(), object);
}

#[test]
fn image_references_are_not_installed() {
    let references = "kind: ImageStream\napiVersion: image.openshift.io/v1\nspec: {tags: []}\n";
    let bundle = Bundle::new([("manifests/a.yaml", A), ("manifests/image-references", references)]);
    insta::assert_snapshot!(release(&bundle), @"- ConfigMap -/a manifests/a.yaml:1:1");
    // In other files this kind has no special meaning.
    let bundle = Bundle::new([("manifests/stream.yaml", references)]);
    insta::assert_snapshot!(refusal(&bundle), @"NameMissing manifests/stream.yaml:1:1 (/metadata/name): Object 'metadata.name' is missing (help: every object needs one, in quotes if it could be a number)");
}

#[test]
fn all_errors_are_reported_at_once() {
    let bundle = Bundle::new([
        ("manifests/a.yaml", "a: [\n"),
        (
            "manifests/b.yaml",
            "- 1\n---\ntext\n---\nkind: 1\nmetadata: {generateName: x-}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n}\n",
        ),
        ("manifests/c.yaml", A),
        ("manifests/x/d.yaml", A),
        ("manifests/w/e/f.yaml", A),
    ]);
    insta::assert_snapshot!(refusal(&bundle), @r#"
    SubdirectoryInManifests manifests/w: get objects from bundle manifests: subdirectories are not allowed within the "manifests" directory of the bundle image filesystem: found "manifests/w" (help: move its files into manifests/ itself)
    SubdirectoryInManifests manifests/x: get objects from bundle manifests: subdirectories are not allowed within the "manifests" directory of the bundle image filesystem: found "manifests/x" (help: move its files into manifests/ itself)
    InvalidYaml manifests/a.yaml:2:1: get objects from bundle manifests: while parsing a node, did not find expected node content (help: every file in manifests/ is parsed as YAML or JSON, whatever its name; move others elsewhere)
    NotAnObject manifests/b.yaml:1:1: got an array, want a Kubernetes object (help: every document in manifests/ must be an object; move others elsewhere)
    NotAnObject manifests/b.yaml:3:1: got a string, want a Kubernetes object (help: every document in manifests/ must be an object; move others elsewhere)
    ApiVersionMissing manifests/b.yaml:5:1 (/apiVersion): Object 'apiVersion' is missing (help: every object needs one, such as v1 or apps/v1)
    KindMissing manifests/b.yaml:5:7 (/kind): Object 'Kind' is missing: got an integer, want text (help: every object needs one, such as ConfigMap)
    NameMissing manifests/b.yaml:6:11 (/metadata/name): Object 'metadata.name' is missing (help: generateName creates another object each time; set metadata.name)
    NamespaceInvalid manifests/b.yaml:10:32 (/metadata/namespace): Object 'metadata.namespace' is not a string: got a boolean (help: put it into quotes)
    "#);
}

#[test]
fn invalid_objects_are_refused_with_their_line() {
    let text = "apiVersion: v1/x/y\nkind: Config-Map\nmetadata:\n  name: a/\n  namespace: '%2f'\n";
    insta::assert_snapshot!(refusal(&Bundle::new([("manifests/a.yaml", text)])), @r#"
    InvalidIdentity manifests/a.yaml:1:13 (/apiVersion): API servers reject the apiVersion "v1/x/y" (help: an apiVersion is a version or group/version, a kind is letters and digits, a name has no / and no %)
    InvalidIdentity manifests/a.yaml:2:7 (/kind): API servers reject the kind "Config-Map" (help: an apiVersion is a version or group/version, a kind is letters and digits, a name has no / and no %)
    InvalidIdentity manifests/a.yaml:4:9 (/metadata/name): API servers reject the name "a/" (help: an apiVersion is a version or group/version, a kind is letters and digits, a name has no / and no %)
    InvalidIdentity manifests/a.yaml:5:14 (/metadata/namespace): API servers reject the namespace "%2f" (help: an apiVersion is a version or group/version, a kind is letters and digits, a name has no / and no %)
    "#);
}

#[test]
fn missing_parts_are_reported_with_the_messages_of_rukpak() {
    insta::assert_snapshot!(refusal(&Bundle::new([("a.yaml", A)])), @"ManifestsMissing manifests/: get objects from bundle manifests: open manifests: file does not exist (help: put the Kubernetes objects of the bundle into files in manifests/)");
    insta::assert_snapshot!(refusal(&Bundle::new([("manifests/a.yaml", "# nothing\n")])), @"NoObjects manifests/: invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object (help: put at least one file with a Kubernetes object directly into manifests/)");
}

#[test]
fn duplicate_objects_are_refused_or_reported() {
    let other = "apiVersion: v2\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: c}\n";
    let bundle = Bundle::new([("manifests/a.yaml", A), ("manifests/b.yaml", A)]);
    insta::assert_snapshot!(release(&bundle), @r"
    - ConfigMap -/a manifests/a.yaml:1:1
    Warning DuplicateObject manifests/b.yaml:1:1: ConfigMap a is a duplicate, equal to the one at manifests/a.yaml:1:1 (help: remove one of them)
    ");
    let bundle = Bundle::new([("manifests/a.yaml", A), ("manifests/b.yaml", other)]);
    insta::assert_snapshot!(refusal(&bundle), @"DuplicateObject manifests/b.yaml:1:1: ConfigMap a is a duplicate, different from the one at manifests/a.yaml:1:1 (help: remove one of them)");
}

#[test]
fn duplicate_keys_of_lists_are_refused() {
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        \
               ports:\n        - {name: http, containerPort: 80}\n        - {name: more, containerPort: 80, protocol: TCP}\n";
    insta::assert_snapshot!(refusal(&Bundle::new([("manifests/a.yaml", web)])), @r#"DuplicateListKey manifests/a.yaml:11:11 (/spec/template/spec/containers/0/ports/1): spec.template.spec.containers[0].ports: duplicate entries for key [containerPort=80,protocol="TCP"]: an API server accepts it once and refuses each later update (help: remove it, or the item at manifests/a.yaml:10:11)"#);
}

#[test]
fn suspicious_content_is_reported() {
    let bundle =
        Bundle::new([("manifests/.gitignore", "*"), ("manifests/a.yaml", &format!("{A}data: {{a: b, a: c}}\n"))]);
    insta::assert_snapshot!(release(&bundle), @r#"
    - ConfigMap -/a manifests/a.yaml:1:1
    Warning HiddenFileIgnored manifests/.gitignore: a file whose name begins with a dot is not read as a manifest
    Warning SuspiciousYaml manifests/a.yaml:4:14: key "a" is a duplicate with another value; the one in line 4 is ignored
    "#);
}

#[test]
fn bundles_of_other_formats_are_not_detected() {
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a}\n";
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {names: {kind: ClusterServiceVersion}}\n";
    let annotations = |media_type: &str| {
        format!("annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: {media_type}\n")
    };
    for (files, recognised) in [
        (vec![("manifests/a.yaml", A.to_owned())], true),
        (vec![("manifests/a.yaml", crd.to_owned())], true),
        (vec![("manifests/a.yaml", format!("{A}---\n{csv}"))], false),
        (vec![("manifests/a.yaml", A.to_owned()), ("metadata/annotations.yaml", annotations("registry+v1"))], false),
        (vec![("manifests/a.yaml", A.to_owned()), ("metadata/annotations.yaml", annotations("plain+v0"))], true),
        (vec![("manifests/a.yaml", A.to_owned()), ("metadata/annotations.yaml", "annotations: {}".to_owned())], true),
        (vec![("manifests.yaml", A.to_owned())], false),
        (vec![], false),
    ] {
        let detected = Plain::detect(&Bundle::new(files.clone()));
        assert_eq!(detected.as_deref(), recognised.then_some("plain+v0"), "{files:?}");
    }
}

/// The bundles of rukpak's own tests, or `None` if they are not available.
fn fixture(name: &str) -> Option<Bundle> {
    let directory = chandler_test_support::needs::fixture(&format!("plain/{name}"))?;
    Some(Bundle::from_directory(&directory).unwrap())
}

#[test]
fn rukpak_bundles_render_as_with_rukpak() {
    for (name, objects) in
        [("dependent", 2), ("invalid-crds-and-crs", 3), ("invalid-missing-crds", 14), ("provides", 1), ("valid", 8)]
    {
        let Some(bundle) = fixture(name) else { return };
        let recorder = provision(&bundle).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!(recorder.objects.len(), objects, "{name}");
        assert_eq!(recorder.findings, [], "{name}");
    }
    for (name, message) in [
        ("empty", "get objects from bundle manifests: open manifests: file does not exist"),
        ("no-manifests", "found zero objects: plain+v0 bundles are required to contain at least one object"),
        ("subdir", "found \"manifests/emptydir\""),
    ] {
        let Some(bundle) = fixture(name) else { return };
        let refusal = refusal(&bundle);
        assert!(refusal.contains(message), "{name}: {refusal}");
    }
}
