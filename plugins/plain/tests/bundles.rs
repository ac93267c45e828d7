//! Whole bundles, provisioned natively.

use std::path::Path;

use chandler_plain::Plain;
use chandler_sdk::{
    Failure, Provisioner as _, Request,
    testing::{Bundle, Recorder, run},
};

fn provision<const N: usize>(files: [(&str, &str); N]) -> Result<Recorder, Failure> {
    run::<Plain>(&Bundle::new(files), &Request::default())
}

fn refusal<const N: usize>(files: [(&str, &str); N]) -> String {
    provision(files).unwrap_err().to_string()
}

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";

#[test]
fn objects_are_emitted_as_they_are() {
    let recorder = provision([
        (
            "manifests/b.txt",
            "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
        ),
        (
            "manifests/a",
            &format!("{NAMESPACE}---\napiVersion: x.example.com/v1\nkind: X\nmetadata: {{name: '{{{{ x }}}}'}}\n"),
        ),
        ("README.md", "not a manifest"),
    ])
    .unwrap();
    let lines: Vec<String> = recorder
        .objects
        .iter()
        .map(|object| {
            let origin = object.origin.as_ref().unwrap();
            let value = &object.value;
            format!("{origin} {} {} {:?}", value["kind"], value["metadata"]["name"], object.stage)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    manifests/a:1:1 "Namespace" "a" None
    manifests/a:5:1 "X" "{{ x }}" None
    manifests/b.txt:4:3 "Secret" "s" None
    "#);
}

#[test]
fn run_levels_become_stages() {
    let secret = |name: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}");
    let recorder = provision([
        ("manifests/0000_10_first_00.yaml", &secret("a")),
        ("manifests/0000_50_second_00.yaml", &secret("b")),
        ("manifests/unordered.yaml", &secret("c")),
        ("manifests/image-references", "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: i}\n"),
    ])
    .unwrap();
    let stages: Vec<_> = recorder.objects.iter().map(|object| object.stage).collect();
    assert_eq!(stages, [Some(10), Some(50), Some(100)]);
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    insta::assert_snapshot!(
        refusal([
            ("manifests/a.yaml", NAMESPACE),
            ("manifests/b.yaml", NAMESPACE),
            ("manifests/c.yaml", "a: [\n"),
            ("manifests/d.yaml", "- 1\n"),
            ("manifests/e.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: 1\n"),
        ]),
        @r#"
    invalid content
    manifests/c.yaml:2:1: while parsing a node, did not find expected node content
    manifests/d.yaml:1:1: not a Kubernetes object: found array
    manifests/e.yaml:4:9 (/metadata/name): not a Kubernetes object: metadata.name must be a string that is not empty
    manifests/b.yaml:1:1: Namespace a stands in the bundle twice; the other one is at manifests/a.yaml:1:1
    "#
    );
}

#[test]
fn bundles_without_objects_are_refused_in_the_predecessors_words() {
    insta::assert_snapshot!(refusal([("README.md", "")]), @r"
    invalid content
    get objects from bundle manifests: open manifests: file does not exist (help: put the manifests into a directory manifests/ of the bundle)
    ");
    insta::assert_snapshot!(refusal([("manifests/a.yaml", "# nothing\n")]), @r"
    invalid content
    manifests: invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object
    ");
    insta::assert_snapshot!(refusal([("manifests/b/c.yaml", NAMESPACE), ("manifests/a/b.yaml", NAMESPACE)]), @r#"
    invalid content
    manifests/a: subdirectories are not allowed within the "manifests" directory of the bundle image filesystem: found "manifests/a" (help: move its files into manifests/)
    "#);
}

#[test]
fn detection_looks_at_names_alone() {
    let detect = |files: &[(&str, &str)]| Plain::detect(&Bundle::new(files.iter().copied()));
    assert_eq!(detect(&[("manifests/a.yaml", "")]).as_deref(), Some("plain+v0"));
    assert_eq!(detect(&[("manifests/a.yaml", ""), ("metadata/annotations.yaml", "")]), None);
    assert_eq!(
        detect(&[("manifests", "")]),
        Some("plain+v0".into()),
        "a file of that name is refused later, with a reason"
    );
    assert_eq!(detect(&[("a.yaml", "")]), None);
}

#[test]
fn real_bundles() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/plain");
    if !fixtures.is_dir() {
        eprintln!("skipped: {} does not exist", fixtures.display());
        return;
    }
    for (name, expected) in [
        ("valid", Ok(8)),
        ("provides", Ok(1)),
        ("dependent", Ok(2)),
        ("invalid-crds-and-crs", Ok(3)),
        ("empty", Err("open manifests: file does not exist")),
        ("no-manifests", Err("not a Kubernetes object")),
        ("subdir", Err("found \"manifests/emptydir\"")),
    ] {
        let bundle = Bundle::from_directory(&fixtures.join(name)).unwrap();
        let found = run::<Plain>(&bundle, &Request::default());
        match (found, expected) {
            (Ok(recorder), Ok(count)) => assert_eq!(recorder.objects.len(), count, "{name}"),
            (Err(failure), Err(text)) => assert!(failure.to_string().contains(text), "{name}: {failure}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}
