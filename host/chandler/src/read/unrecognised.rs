//! Content that no built-in provisioner installs: what it is, and how to make a bundle of it.

use chandler_core::{Content, Entry};

use crate::CommandError;

/// The most files that are looked at.
const FILES: usize = 10_000;

/// The error for content of no known format.
pub fn error(content: &dyn Content) -> CommandError {
    let paths: Vec<String> = content.entries("", None, FILES).into_iter().map(|Entry { path, .. }| path).collect();
    let (what, hint) = describe(&paths);
    CommandError::failed(what).hint(hint)
}

fn describe(paths: &[String]) -> (String, String) {
    let text = |what: &str, hint: &str| (what.to_owned(), hint.to_owned());
    if paths.is_empty() {
        return text("the bundle is empty: it has no files", FORMATS);
    }
    if let Some(path) = shallow(paths, &["Chart.yaml"]) {
        return (
            format!("this is a Helm chart ({path}), which no built-in provisioner installs"),
            "the provisioner `helm` installs charts (docs/helm.md): --provisioner FILE selects its component here, --class its class in a cluster"
                .to_owned(),
        );
    }
    if let Some(directory) = paths.iter().find_map(|path| below(path)) {
        return (
            "no built-in provisioner detects the format of the bundle: the directory has no manifests/".to_owned(),
            format!("its subdirectory {directory} looks like a bundle: give that one"),
        );
    }
    if let Some(path) = shallow(paths, &["kustomization.yaml", "kustomization.yml", "Kustomization"]) {
        return (
            format!("this is a kustomize directory ({path}), which no built-in provisioner installs"),
            "build it into a plain+v0 bundle: `mkdir -p bundle/manifests && kubectl kustomize DIR > bundle/manifests/all.yaml`"
                .to_owned(),
        );
    }
    let has = |directory: &str| paths.iter().any(|path| path.starts_with(directory));
    if has("manifests/") && paths.iter().any(|path| path == "metadata/annotations.yaml") {
        return text(
            "metadata/annotations.yaml names no format that a built-in provisioner installs",
            "for a registry+v1 bundle it has operators.operatorframework.io.bundle.mediatype.v1: registry+v1",
        );
    }
    if has("metadata/") {
        return text("the bundle has metadata/, but no manifests/", FORMATS);
    }
    if paths.iter().any(|path| path.starts_with("configs/") || path == "catalog.yaml" || path == "catalog.json") {
        return text(
            "this is a file-based catalog of OLM, not a bundle",
            "give one of its bundles: the field `image` of an `olm.bundle` in the catalog",
        );
    }
    let is_manifest = |path: &&String| {
        !path.contains('/') && [".yaml", ".yml", ".json"].iter().any(|extension| path.ends_with(extension))
    };
    if let Some(path) = paths.iter().find(is_manifest) {
        return (
            format!("no built-in provisioner detects the format of the bundle: {path} is not below manifests/"),
            "for a plain+v0 bundle, move the files with Kubernetes objects into a directory manifests/".to_owned(),
        );
    }
    text("no built-in provisioner detects the format of the bundle", FORMATS)
}

/// The formats of the built-in provisioners.
const FORMATS: &str = "a registry+v1 bundle has manifests/ and metadata/annotations.yaml, a plain+v0 bundle has manifests/ with \
                       Kubernetes objects; --provisioner selects another provisioner";

/// A file of one of these names, in the root or in a directory of the root, as `helm package` writes it.
fn shallow<'a>(paths: &'a [String], names: &[&str]) -> Option<&'a String> {
    let is_named = |path: &&String| {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        names.contains(&name) && !directory.contains('/')
    };
    paths.iter().filter(is_named).min_by_key(|path| path.matches('/').count())
}

/// The directory of a registry+v1 bundle that this file lies in.
fn below(path: &str) -> Option<&str> {
    path.strip_suffix("/metadata/annotations.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_bundle_is_named() {
        for (paths, expected) in [
            (&[][..], "the bundle is empty"),
            (&["Chart.yaml", "templates/a.yaml"], "this is a Helm chart (Chart.yaml)"),
            (&["nginx/Chart.yaml", "nginx/values.yaml"], "this is a Helm chart (nginx/Chart.yaml)"),
            (&["a.yaml", "kustomization.yaml"], "this is a kustomize directory (kustomization.yaml)"),
            (&["config/manifests/kustomization.yaml", "go.mod"], "no built-in provisioner detects the format"),
            (&["manifests/a.yaml", "metadata/annotations.yaml"], "metadata/annotations.yaml names no format"),
            (&["metadata/annotations.yaml"], "the bundle has metadata/, but no manifests/"),
            (&["configs/a/catalog.yaml"], "this is a file-based catalog"),
            (&["deploy.yaml"], "no built-in provisioner detects the format of the bundle: deploy.yaml is not below"),
            (&["README.md"], "no built-in provisioner detects the format of the bundle"),
        ] {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let (what, hint) = describe(&paths);
            assert!(what.starts_with(expected), "{paths:?}: {what}");
            assert!(!hint.is_empty());
        }
        let nested = ["Makefile".to_owned(), "bundle/metadata/annotations.yaml".to_owned()];
        assert_eq!(describe(&nested).1, "its subdirectory bundle looks like a bundle: give that one");
    }
}
