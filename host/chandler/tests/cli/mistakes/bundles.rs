//! Mistakes in bundles and configurations.

use std::{fs, path::Path, process::Command};

use super::{Messages, copy, mistake};
use crate::support::root;

const BUNDLE: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";
const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
    ("templates/deployment.yaml", "kind: {{ .Values.kind }}\n"),
];
const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn what_is_no_bundle_is_named() {
    let mut messages = Messages::new();
    let chart = messages.directory("shop", CHART);
    let packed = messages.path("shop-1.0.0.tgz");
    let tar = ["--create", "--gzip", "--file", &packed, "--directory", messages.home.path().to_str().unwrap(), "shop"];
    assert!(Command::new("tar").args(tar).status().unwrap().success());
    let kustomize =
        messages.directory("overlay", &[("kustomization.yaml", "resources: [a.yaml]\n"), ("a.yaml", OBJECT)]);
    let repository = messages.directory(
        "repository",
        &[("Makefile", "all:\n"), ("bundle/metadata/annotations.yaml", ""), ("bundle/manifests/a.yaml", OBJECT)],
    );
    let loose = messages.directory("loose", &[("deploy.yaml", OBJECT)]);
    let catalog = messages.directory("catalog", &[("configs/shop/catalog.yaml", "schema: olm.package\nname: shop\n")]);
    let metadata = messages.directory("metadata-only", &[("metadata/annotations.yaml", "annotations: {}\n")]);
    let empty = messages.directory("empty", &[]);
    let archive = messages.file("notes.txt", "not an archive\n");
    let manifest = messages.file("deployment.yaml", OBJECT);
    let leaving = messages.directory("leaving", &[("manifests/a.yaml", OBJECT)]);
    std::os::unix::fs::symlink("/etc/hostname", Path::new(&leaving).join("manifests/b.yaml")).unwrap();
    messages.check(vec![
        mistake(
            "a mistyped path",
            &["render", "./not-there"],
            "no such file or directory",
            "./not-there",
            "quay.io/example/bundle:v1",
        ),
        mistake(
            "a mistyped name",
            &["render", "not-there"],
            "no such file or directory",
            "not-there",
            "registry and tag",
        ),
        mistake(
            "a file that is not an archive",
            &["render", &archive],
            "is a file of text, not a bundle",
            &archive,
            "a bundle is a directory",
        ),
        mistake(
            "a manifest instead of a bundle",
            &["lint", &manifest],
            "is a file with YAML or JSON, not a bundle",
            &manifest,
            "mkdir -p bundle/manifests",
        ),
        mistake("an empty directory", &["render", &empty], "the bundle is empty", "it has no files", "manifests/"),
        mistake("a Helm chart", &["render", &chart], "this is a Helm chart", "Chart.yaml", "docs/helm.md"),
        mistake("a packaged Helm chart", &["lint", &packed], "this is a Helm chart", "Chart.yaml", "docs/helm.md"),
        mistake(
            "a Helm chart for dev",
            &["dev", "--bundle", &chart],
            "this is a Helm chart",
            "Chart.yaml",
            "docs/helm.md",
        ),
        mistake(
            "a kustomize directory",
            &["lint", &kustomize],
            "this is a kustomize directory",
            "kustomization.yaml",
            "kubectl kustomize",
        ),
        mistake(
            "the repository of an operator",
            &["render", &repository],
            "no manifests/",
            "the directory",
            "its subdirectory bundle looks like",
        ),
        mistake("manifests in the root", &["render", &loose], "not below manifests/", "deploy.yaml", "move the files"),
        mistake("a catalog", &["render", &catalog], "a file-based catalog", "not a bundle", "give one of its bundles"),
        mistake("metadata only", &["render", &metadata], "no manifests/", "metadata/", "a registry+v1 bundle has"),
        mistake(
            "the address of an image",
            &["render", "oci://quay.io/a/b:v1"],
            "is a URL",
            "oci://quay.io/a/b:v1",
            "`quay.io/a/b:v1`",
        ),
        mistake(
            "another protocol",
            &["render", "ftp://example.com/a.tgz"],
            "is a URL",
            "ftp://example.com/a.tgz",
            "archives have URLs such as",
        ),
        mistake(
            "a URL with a digest of another kind",
            &["render", "https://example.com/a.tgz#md5=0"],
            "has a fragment that is not a digest",
            "https://example.com/a.tgz",
            "sha256sum",
        ),
        mistake(
            "a URL with a password",
            &["render", "https://user:s3cret@example.com/a.tgz"],
            "has a user name or a password",
            "the URL of the bundle",
            "curl --netrc",
        ),
        mistake(
            "a URL without TLS",
            &["render", "http://example.com/a.tgz"],
            "is asked without TLS",
            "http://example.com/a.tgz",
            "--plain-http-registry example.com",
        ),
        mistake(
            "a web server that is down",
            &["render", "http://127.0.0.1:1/a.tgz"],
            "cannot be reached",
            "http://127.0.0.1:1/a.tgz",
            "curl -iL",
        ),
        mistake(
            "a link out of the bundle",
            &["render", &leaving],
            "which is outside",
            "manifests/b.yaml",
            "remove the entry",
        ),
        mistake(
            "a cache that cannot be written",
            &["render", BUNDLE, "--cache-directory", "/proc/self/none"],
            "failed to",
            "/proc/self/none",
            "--cache-directory",
        ),
    ]);
    insta::assert_snapshot!("mistakes.bundles", messages.finish());
}

#[test]
fn what_is_wrong_in_a_bundle_has_its_line() {
    let mut messages = Messages::new();
    let plain = |messages: &Messages, name: &str, text: &str| messages.directory(name, &[("manifests/a.yaml", text)]);
    let tabs = plain(&messages, "tabs", "kind: ConfigMap\n\tapiVersion: v1\n");
    let template =
        plain(&messages, "template", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n");
    let versionless = plain(&messages, "versionless", "kind: ConfigMap\nmetadata: {name: a}\n");
    let kindless = plain(&messages, "kindless", "apiVersion: v1\nmetadata: {name: a}\n");
    let nameless = plain(&messages, "nameless", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n");
    let number = plain(&messages, "number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n");
    let twice = plain(&messages, "twice", &format!("{OBJECT}---\n{OBJECT}data: {{b: c}}\n"));
    let none = plain(&messages, "none", "# later\n");
    let nested = messages.directory("nested", &[("manifests/a.yaml", OBJECT), ("manifests/more/b.yaml", OBJECT)]);
    // Copies of the sample operator, each with one mistake.
    let operator = |messages: &Messages, name: &str, file: &str, from: &str, to: &str| {
        let copied = messages.path(name);
        copy(&root().join(BUNDLE), Path::new(&copied));
        let path = Path::new(&copied).join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}: {from} is not in {file}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        copied
    };
    let csv = "manifests/harbour-operator.clusterserviceversion.yaml";
    let annotations = "metadata/annotations.yaml";
    let colon = operator(&messages, "colon", csv, "\nspec:\n", "\nspec\n");
    let modes = messages.path("modes");
    copy(&root().join(BUNDLE), Path::new(&modes));
    let text = fs::read_to_string(Path::new(&modes).join(csv)).unwrap().replace("supported: true", "supported: false");
    fs::write(Path::new(&modes).join(csv), text).unwrap();
    let crd = "manifests/harbour.example.com_berths.yaml";
    let crd = operator(&messages, "crd", crd, "kind: CustomResourceDefinition", "kind: CustomResourceDefinitions");
    let kind = operator(&messages, "kind", csv, "kind: ClusterServiceVersion", "kind: ClusterServiceVersions");
    let package = operator(
        &messages,
        "package",
        annotations,
        "  operators.operatorframework.io.bundle.package.v1: harbour-operator\n",
        "",
    );
    let media = operator(&messages, "media", annotations, "registry+v1", "registry+v2");
    let without = operator(&messages, "without", csv, "", "");
    fs::remove_file(Path::new(&without).join(csv)).unwrap();
    messages.check(vec![
        mistake("tabs", &["render", &tabs], "found a tab", "manifests/a.yaml:1:7", "is parsed as YAML"),
        mistake(
            "a template of Helm",
            &["render", &template],
            "a key must be a scalar",
            "manifests/a.yaml:3:19",
            "is parsed as YAML",
        ),
        mistake(
            "an object without a version",
            &["render", &versionless],
            "'apiVersion' is missing",
            "manifests/a.yaml:1:1",
            "such as v1",
        ),
        mistake(
            "an object without a kind",
            &["render", &kindless],
            "'Kind' is missing",
            "manifests/a.yaml:1:1",
            "such as ConfigMap",
        ),
        mistake(
            "an object without a name",
            &["render", &nameless],
            "'metadata.name' is missing",
            "manifests/a.yaml:3:11",
            "every object needs one",
        ),
        mistake(
            "a number for a name",
            &["render", &number],
            "got an integer, want text",
            "manifests/a.yaml:3:18",
            "in quotes",
        ),
        mistake(
            "an object twice",
            &["render", &twice],
            "ConfigMap a is a duplicate",
            "manifests/a.yaml:5:1",
            "remove one of them",
        ),
        mistake("no object", &["render", &none], "found zero objects", "none/manifests", "put at least one file"),
        mistake(
            "a directory in manifests",
            &["render", &nested],
            "subdirectories are not allowed",
            "manifests/more",
            "move its files",
        ),
        mistake("no colon", &["render", &colon], "simple key expect ':'", format!("{csv}:14:14"), "is parsed as YAML"),
        mistake(
            "no install mode",
            &["render", &modes],
            "must support at least one of",
            format!("{csv}:27:5"),
            "spec.installModes",
        ),
        mistake(
            "a mistyped CRD",
            &["render", &crd],
            "'berths.harbour.example.com' not found",
            format!("{csv}:33:13"),
            "put the CRD into",
        ),
        mistake(
            "a mistyped kind",
            &["render", &kind],
            "no ClusterServiceVersion found",
            "kind/manifests",
            "its ClusterServiceVersion",
        ),
        mistake("no package", &["render", &package], "package name is empty", annotations, "set the annotation"),
        mistake(
            "an unknown media type",
            &["render", &media],
            "names no format",
            annotations,
            "mediatype.v1: registry+v1",
        ),
        mistake(
            "no ClusterServiceVersion",
            &["render", &without],
            "no ClusterServiceVersion found",
            "without/manifests",
            "its ClusterServiceVersion",
        ),
    ]);
    insta::assert_snapshot!("mistakes.content", messages.finish());
}

#[test]
fn what_is_wrong_in_a_configuration_has_its_line() {
    let mut messages = Messages::new();
    let no_wasm = messages.file("hello.wasm", "hello");
    let config = |name, input, what, place: &str, help| {
        mistake(name, &["render", BUNDLE, "--config", "-"], what, place, help).with_input(input)
    };
    messages.check(vec![
        config(
            "an unknown field",
            "watchNamespaces: x\n",
            "unknown field \"watchNamespaces\"",
            "standard input:1:1",
            "install modes",
        ),
        config("a wrong type", "watchNamespace: [a]\n", "got array, want string", "standard input:1:1", "into quotes"),
        config(
            "two namespaces",
            "watchNamespace: a,b\n",
            "must match pattern",
            "standard input:1:1",
            "lower-case letters",
        ),
        config(
            "no namespace",
            "watchNamespace: A_B\n",
            "must match pattern",
            "standard input:1:1",
            "lower-case letters",
        ),
        config(
            "a list",
            "- a\n",
            "the configuration in standard input is invalid",
            "standard input:1:1",
            "spec.config",
        ),
        config(
            "broken YAML",
            "a: [1\n",
            "the configuration in standard input is invalid",
            "standard input:",
            "spec.config",
        ),
        mistake(
            "a mistyped file",
            &["render", BUNDLE, "--config", "values.yml"],
            "failed to read the configuration",
            "values.yml",
            "--config takes a file",
        ),
        mistake(
            "an unknown class",
            &["render", BUNDLE, "--provisioner", "helm"],
            "no provisioner class",
            "\"helm\"",
            "core-rukpak-io-plain",
        ),
        mistake(
            "a component that is not there",
            &["render", BUNDLE, "--provisioner", "./a.wasm"],
            "failed to read the provisioner",
            "./a.wasm",
            ".wasm",
        ),
        mistake(
            "a component that is none",
            &["render", BUNDLE, "--provisioner", &no_wasm],
            "failed to load provisioner",
            &no_wasm,
            "contract",
        ),
        mistake(
            "the wrong class",
            &["render", BUNDLE, "--provisioner", "core-rukpak-io-plain", "--config", "-"],
            "unknown field \"watchNamespace\"",
            "standard input:1:1",
            "the keys are images",
        )
        .with_input("watchNamespace: a\n"),
    ]);
    insta::assert_snapshot!("mistakes.configuration", messages.finish());
}
