//! Release images of OpenShift: two directories of manifests, one of them with templates.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeMap;

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Provisioner as _, Request,
    testing::{Bundle, Emitted, Recorder, run},
};
use serde_json::{Value, json};

const METADATA: &str =
    r#"{"kind": "cincinnati-metadata-v0", "version": "4.20.1", "previous": ["4.20.0"], "metadata": {"url": "x"}}"#;
const REFERENCES: &str = "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 4.20.1}\nspec:\n  tags:\n  \
    - {name: console, from: {kind: DockerImage, name: 'quay.io/release@sha256:12'}}\n  \
    - {name: same, from: {kind: DockerImage, name: 'quay.io/release@sha256:12'}}\n  \
    - {name: broken, from: {kind: DockerImage, name: 'a: b'}}\n";

/// A release image: paths and texts.
struct Payload(BTreeMap<String, String>);

impl Payload {
    /// One without manifests.
    fn new() -> Self {
        Self(BTreeMap::new())
            .with("release-manifests/release-metadata", METADATA)
            .with("release-manifests/image-references", REFERENCES)
    }

    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    /// With a ConfigMap of the release.
    fn map(self, path: &str, name: &str, data: &str) -> Self {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    \
            include.release.openshift.io/self-managed-high-availability: \"true\"\ndata:\n  a: {data}\n"
        );
        self.with(path, &text)
    }

    fn without(mut self, path: &str) -> Self {
        self.0.remove(path).unwrap();
        self
    }

    fn bundle(&self) -> Bundle {
        Bundle::new(self.0.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    fn render(&self, config: &Value) -> Result<Recorder, Failure> {
        run::<Plain>(&self.bundle(), &Request::default().with_config(config.as_object().unwrap().clone()))
    }

    /// The objects that are installed.
    fn installed(&self, config: &Value) -> Vec<Emitted> {
        self.render(config).unwrap_or_else(|failure| panic!("{failure}")).objects
    }

    /// The findings that refuse it.
    fn refused(&self, config: &Value) -> String {
        let failure = self.render(config).expect_err("a failure");
        let findings = failure.diagnostics().iter().map(|finding| {
            assert!(finding.help.is_some(), "{finding}");
            format!("{} {finding}", finding.code)
        });
        let kind = failure.to_string().lines().next().unwrap().to_owned();
        format!("{kind}\n{}", findings.collect::<Vec<_>>().join("\n"))
    }
}

fn release(image: &str) -> Value {
    json!({"release": {"releaseImage": image}})
}

#[test]
fn both_directories_are_one_order_of_run_levels() {
    let payload = Payload::new()
        .map("manifests/0000_00_cvo_30_x.yaml", "second", "x")
        .map("manifests/0000_00_cvo_00_x.yaml", "first", "x")
        .map("manifests/0000_90_cvo_00_x.yaml", "sixth", "x")
        .map("release-manifests/0000_00_cvo_10_x.yaml", "third", "x")
        .map("release-manifests/0000_00_api_10_x.yml", "beside", "x")
        .map("release-manifests/0000_50_olm_10_x.json.yaml", "fourth", "x")
        .map("release-manifests/0000_50_olm_09_x.yaml", "fifth", "x")
        .map("release-manifests/last.yaml", "last", "x");
    let line = |object: &Emitted| {
        let sequence = object.value["metadata"]["annotations"]["chandler.dev/sequence"].as_str().unwrap();
        format!("{} {sequence} {}", object.stage.unwrap(), object.value["metadata"]["name"].as_str().unwrap())
    };
    let mut lines: Vec<(u32, String)> =
        payload.installed(&json!({"release": {}})).iter().map(|it| (it.stage.unwrap(), line(it))).collect();
    lines.sort_by_key(|(stage, _)| *stage);
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// As ConfigMaps of the operator in `openshift-config`, and its ServiceMonitors.
#[test]
fn an_object_is_applied_with_the_level_of_its_namespace_and_kind() {
    let annotations = json!({"include.release.openshift.io/self-managed-high-availability": "true"});
    let object = |version: &str, kind: &str, name: &str, namespace: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": namespace, "annotations": annotations});
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}).to_string()
    };
    let crd = json!({"group": "a.io", "names": {"kind": "Ship"}});
    let payload = Payload::new()
        .with("manifests/0000_00_cvo_01.yaml", &object("v1", "ConfigMap", "early", "other", json!(null)))
        .with("manifests/0000_00_cvo_02.yaml", &object("v1", "ConfigMap", "late", "config", json!(null)))
        .with("manifests/0000_20_cvo_03.yaml", &object("a.io/v1", "Ship", "ship", "config", json!(null)))
        .with("manifests/0000_20_cvo_04.yaml", &object("b.io/v1", "Ship", "other", "", json!(null)))
        .with("manifests/0000_90_cvo_05.yaml", &object("a.io/v1", "Ship", "last", "", json!(null)))
        .with("release-manifests/0000_10_b_01.yaml", &object("v1", "Namespace", "config", "", json!(null)))
        .with("release-manifests/0000_40_b_01.yaml", &object("v1", "Namespace", "config2", "", json!(null)))
        .with(
            "release-manifests/0000_50_b_02.yaml",
            &object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "ships", "", crd),
        );
    let objects = payload.installed(&json!({"release": {}}));
    let stages: Vec<(&str, u32)> =
        objects.iter().map(|it| (it.value["metadata"]["name"].as_str().unwrap(), it.stage.unwrap())).collect();
    let expected = [
        ("early", 0),
        ("late", 10),
        ("ship", 50),
        ("other", 20),
        ("last", 90),
        ("config", 10),
        ("config2", 40),
        ("ships", 50),
    ];
    assert_eq!(stages, expected);
}

#[test]
fn templates_are_rendered_in_the_directory_of_the_operator_only() {
    let payload = Payload::new()
        .map("manifests/a.yaml", "'{{ .ClusterProfile }}'", "{{.ReleaseImage}}")
        .map("manifests/b.yaml", "b", "{{index .Images \"console\"}} # {{ \"{{ $x }}\" }}")
        .map("manifests/c.yml", "c", "{{index .Images \"same\"}}")
        .with("manifests/notes.txt", "{{ nonsense")
        .map("release-manifests/d.yaml", "d", "'{{.ReleaseImage}} {{ $labels.name }}'");
    let data = |config: &Value| -> Vec<(String, String)> {
        let text =
            |object: &Emitted, pointer: &str| object.value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        payload.installed(config).iter().map(|it| (text(it, "/metadata/name"), text(it, "/data/a"))).collect()
    };
    let pairs = |list: [(&str, &str); 4]| list.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let literal = ("d", "{{.ReleaseImage}} {{ $labels.name }}");
    assert_eq!(
        data(&release("quay.io/release:4")),
        pairs([
            ("self-managed-high-availability", "quay.io/release:4"),
            ("b", "quay.io/release@sha256:12"),
            ("c", "quay.io/release@sha256:12"),
            literal,
        ])
    );
    // Without release-manifests/, manifests/ is a component whose manifests have no templates.
    let component = Payload(BTreeMap::new()).map("manifests/a.yaml", "a", "'{{.ReleaseImage}} {{ $labels.name }}'");
    let rendered = component.render(&release("quay.io/release:4")).unwrap();
    assert_eq!(rendered.objects[0].value["data"]["a"], literal.1);
    assert_eq!(rendered.findings.iter().map(|it| it.code.as_str()).collect::<Vec<_>>(), ["ReleaseImageIgnored"]);
}

#[test]
fn a_configured_image_replaces_the_one_of_the_release_in_templates_too() {
    let references = REFERENCES.lines().filter(|line| !line.contains("same")).collect::<Vec<_>>().join("\n");
    let payload = Payload::new()
        .with("release-manifests/image-references", &references)
        .map("manifests/a.yaml", "a", "{{index .Images \"console\"}}")
        .map("release-manifests/b.yaml", "b", "quay.io/release@sha256:12");
    let rendered = payload.render(&json!({"release": {}, "images": {"console": "example.com/mine:v1"}})).unwrap();
    assert!(rendered.objects.iter().all(|object| object.value["data"]["a"] == "example.com/mine:v1"));
    // The others are final, not forgotten.
    assert_eq!(rendered.findings, []);
}

#[test]
fn errors_in_templates_have_the_position_in_the_file() {
    let payload = Payload::new()
        .map("manifests/a.yaml", "a", "{{ if .ReleaseImage }}x{{ end }}")
        .map("manifests/b.yaml", "b", "{{ .Version }}")
        .map("manifests/c.yaml", "c", "{{ index .Images \"unknown\" }}")
        .map("manifests/d.yaml", "d", "{{ index .Images \"broken\" }}")
        .map("manifests/e.yaml", "e", "{{ .ReleaseImage }}")
        .map("manifests/f.yaml", "f", "{{ .ClusterProfile }}: {{ .ClusterProfile }}")
        .with("manifests/g.yaml", "{kind: '{{ .ClusterProfile }}', metadata: {name: 1}}")
        .with("manifests/h.yaml", "a: '{{.ClusterProfile}}'\na: {{.ClusterProfile}}\n? [{{.ClusterProfile}}, x]\n: b");
    insta::assert_snapshot!(payload.refused(&json!({"release": {}})));
    let payload = Payload::new().map("manifests/e.yaml", "e", "{{ .ReleaseImage }}");
    insta::assert_snapshot!(payload.refused(&json!({"release": {}})));
}

#[test]
fn the_version_is_that_of_the_release_image() {
    let annotated = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {
        "include.release.openshift.io/self-managed-high-availability": "true", "release.openshift.io/major-version": "4"}},
        "data": {"a": "0.0.1-snapshot"}}"#;
    let payload = Payload::new().with("release-manifests/a.json", annotated);
    for config in [json!({"release": {}}), json!({"release": {}, "releaseVersion": "4.20.1+build"})] {
        assert_eq!(payload.installed(&config)[0].value["data"]["a"], "4.20.1");
    }
    insta::assert_snapshot!(payload.refused(&json!({"release": {}, "releaseVersion": "4.20.2"})));
}

#[test]
fn a_release_image_without_a_cluster_is_refused() {
    let payload = Payload::new().map("release-manifests/a.yaml", "a", "x");
    let mut refused = [json!({}), json!({"release": null}), json!({"releaseVersion": "4.20.1"})]
        .map(|config| payload.refused(&config))
        .to_vec();
    refused.dedup();
    refused.push(payload.refused(&json!({"release": {"featureSet": "x", "releaseImage": "a b"}})));
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn an_incomplete_release_image_is_refused() {
    let whole = || Payload::new().map("release-manifests/a.yaml", "a", "x");
    let metadata = |text: &str| whole().with("release-manifests/release-metadata", text);
    let references = |text: &str| whole().with("release-manifests/image-references", text);
    let mut found = Vec::new();
    for payload in [
        whole().without("release-manifests/release-metadata"),
        whole().without("release-manifests/image-references"),
        metadata("{"),
        metadata("[]"),
        metadata(""),
        metadata("{\"version\": \"4.20.1\"}"),
        metadata("{\"kind\": \"cincinnati-metadata-v0\",\n\"version\": \"v4\"}"),
        metadata("{\"kind\": \"cincinnati-metadata-v0\",\n\"version\": \"4.20.2\"}"),
        metadata(&"[".repeat(100_000)),
        references("kind: ImageStream\n"),
        references("kind: ConfigMap\n"),
        references("a: [\n"),
        whole().map("release-manifests/sub/b.yaml", "b", "x"),
        whole().without("release-manifests/a.yaml"),
    ] {
        found.push(payload.refused(&json!({"release": {}})));
    }
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_release_image_is_detected_by_its_directory() {
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a}\n";
    let detected = |payload: &Payload| Plain::detect(&payload.bundle());
    let payload = Payload::new().with("release-manifests/a.yaml", csv);
    assert_eq!(detected(&payload).as_deref(), Some("plain+v0"), "OLM ships a ClusterServiceVersion in releases");
    assert_eq!(detected(&payload.with("manifests/a.yaml", csv)), None, "a registry+v1 bundle with another directory");
    assert_eq!(detected(&Payload(BTreeMap::new()).with("release-manifest/a.yaml", csv)), None);
    let schema = Plain::config_schema(&Payload::new().bundle()).unwrap().unwrap();
    assert!(schema.contains("Replaces quay.io/release@sha256:12."), "{schema}");
}

#[test]
fn findings_about_what_was_rendered_have_the_position_in_the_file() {
    let one_line = |name: &str, annotation: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{name}', annotations: \
            {{include.release.openshift.io/{{{{ .ClusterProfile }}}}: \"true\", {annotation}}}}}}}"
        )
    };
    let positions = |payload: &Payload, findings: &[chandler_sdk::Diagnostic]| -> Vec<String> {
        let line = |finding: &chandler_sdk::Diagnostic| {
            let location = finding.location.as_ref().unwrap();
            let start = location.start.unwrap();
            let line = payload.0[&location.path].lines().nth(start.line as usize - 1).unwrap();
            let behind: String = line.chars().skip(start.column as usize - 1).take(12).collect();
            format!("{} {behind}", finding.code)
        };
        findings.iter().map(line).collect()
    };
    let payload = Payload::new()
        .with("manifests/a.yaml", &one_line("{{.ReleaseImage}}", "capability.openshift.io/name: Teleport"))
        .with("manifests/b.yaml", "a: [{{.ClusterProfile}}, {{.ClusterProfile}}: {]")
        .with("release-manifests/c.yaml", "{{.ClusterProfile}}: x");
    let failure = payload.render(&release("quay.io/release:4")).unwrap_err();
    let refused = positions(&payload, failure.diagnostics());
    let payload = Payload::new().with("manifests/a.yaml", &one_line("a", "a: b, a: '{{.ClusterProfile}}', a: c"));
    let rendered = payload.render(&json!({"release": {}})).unwrap();
    let warned = positions(&payload, &rendered.findings);
    let object = rendered.objects[0].origin.as_ref().unwrap().start.unwrap();
    assert_eq!((object.line, object.column), (1, 1));
    insta::assert_snapshot!([refused, warned].concat().join("\n"));
}

/// Text that expands as far as it can: what is rendered is bounded by the number of actions.
#[test]
fn a_hostile_template_is_refused() {
    let bomb = "{{ .ReleaseImage }}".repeat(200_000);
    let payload =
        Payload::new().map("manifests/a.yaml", "a", &bomb).map("manifests/\u{1b}[31m.yaml", "b", "{{ \u{7} }}");
    let refused = payload.refused(&release("quay.io/release:4"));
    assert!(refused.contains("manifests/a.yaml:8:190006: the template has too many actions"), "{refused}");
    assert!(refused.contains(r"the template has the character '\u{7}'"), "{refused}");
    assert!(refused.len() < 2000);
}

proptest::proptest! {
    /// Whatever a release image contains, it is rendered or refused with findings whose positions are in its files.
    #[test]
    fn any_release_image_is_rendered_or_refused(
        edits in proptest::collection::vec((0_usize..5, 0_usize..400, ".{0,4}|\\{\\{|\\}\\}|\\{\\{\\.ReleaseImage\\}\\}|\"|\n"), 0..6)
    ) {
        let mut payload = Payload::new()
            .map("manifests/0000_00_a_x.yaml", "a", "{{ .ReleaseImage }} # {{ \"{{ $x }}\" }}")
            .map("manifests/0000_90_a_x.yaml", "'{{ .ClusterProfile }}'", "{{ index .Images \"console\" }}")
            .map("release-manifests/0000_50_b_x.yaml", "b", "x");
        for (file, at, text) in edits {
            let content = payload.0.values_mut().nth(file).unwrap();
            let at = content.char_indices().map(|(index, _)| index).nth(at).unwrap_or(content.len());
            content.insert_str(at, &text);
        }
        let findings = match payload.render(&release("quay.io/release:4")) {
            Ok(rendered) => rendered.findings,
            Err(Failure::InvalidContent(findings) | Failure::InvalidConfig(findings)) => {
                assert!(!findings.is_empty());
                findings
            }
            Err(other) => panic!("{other}"),
        };
        for finding in findings {
            let location = finding.location.as_ref().unwrap();
            let (Some(text), Some(start)) = (payload.0.get(&location.path), location.start) else { continue };
            let line = text.split(['\n', '\r']).nth(start.line as usize - 1);
            assert!(line.is_some(), "{finding}: line {} of {text:?}", start.line);
            let is_inside = line.is_some_and(|line| start.column as usize <= line.chars().count() + 1);
            assert!(is_inside || text.contains('\r'), "{finding}: {text:?}");
        }
    }
}
