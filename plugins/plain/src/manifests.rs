//! The objects of a bundle, or everything that is wrong with it.

use std::collections::BTreeMap;

use chandler_sdk::{Content, Diagnostic, Entry, Location, read_documents, yaml::Node};

/// The directory of the manifests.
const MANIFESTS: &str = "manifests/";

/// An object and the file that holds it.
pub(crate) struct Manifest {
    /// The path of the file in the bundle.
    pub(crate) path: String,
    /// The last part of the path.
    pub(crate) file_name: String,
    /// The object.
    pub(crate) object: Node,
}

/// All objects, in the order of the file names. Everything that is wrong is found at once.
pub(crate) fn load(content: &dyn Content) -> Result<Vec<Manifest>, Vec<Diagnostic>> {
    let files = content.files(MANIFESTS);
    if files.is_empty() {
        let missing = "get objects from bundle manifests: open manifests: file does not exist";
        return Err(vec![
            Diagnostic::error("NoManifests", missing)
                .help("put the manifests into a directory manifests/ of the bundle"),
        ]);
    }
    if let Some(finding) = subdirectory(&files) {
        return Err(vec![finding]);
    }
    let (mut manifests, mut findings) = (Vec::new(), Vec::new());
    for file in files {
        match read_documents(content, &file.path) {
            Ok(documents) => {
                let file_name = file.file_name().to_owned();
                let objects = documents.into_iter().filter(|document| !is_image_references(&file_name, document));
                manifests.extend(objects.map(|object| Manifest {
                    path: file.path.clone(),
                    file_name: file_name.clone(),
                    object,
                }));
            }
            Err(finding) => findings.push(finding),
        }
    }
    findings.extend(manifests.iter().filter_map(malformed));
    findings.extend(duplicates(&manifests));
    if findings.is_empty() && manifests.is_empty() {
        let none = "invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object";
        findings.push(Diagnostic::error("NoObjects", none).at("manifests"));
    }
    if findings.is_empty() { Ok(manifests) } else { Err(findings) }
}

fn subdirectory(files: &[Entry]) -> Option<Diagnostic> {
    let nested = files.iter().find_map(|file| file.path.strip_prefix(MANIFESTS)?.split_once('/'));
    let (directory, _) = nested?;
    let message = format!(
        "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: found \
         \"manifests/{directory}\""
    );
    let finding = Diagnostic::error("Subdirectory", message).at(format!("manifests/{directory}"));
    Some(finding.help("move its files into manifests/"))
}

/// The cluster-version operator's list of images lies beside the manifests and is not one.
fn is_image_references(file_name: &str, document: &Node) -> bool {
    file_name == "image-references" && document.get("kind").and_then(Node::as_str) == Some("ImageStream")
}

fn malformed(manifest: &Manifest) -> Option<Diagnostic> {
    let object = &manifest.object;
    let finding = |message: String, pointer: &str| {
        Some(Diagnostic::error("NotAnObject", message).at(&manifest.path).within(object, pointer))
    };
    if object.as_mapping().is_none() {
        return finding(format!("not a Kubernetes object: found {}", object.type_name()), "");
    }
    for (pointer, field) in [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")] {
        match object.at(pointer) {
            None => return finding(format!("not a Kubernetes object: {field} is missing"), pointer),
            Some(value) if value.as_str().is_none_or(str::is_empty) => {
                return finding(
                    format!("not a Kubernetes object: {field} must be a string that is not empty"),
                    pointer,
                );
            }
            Some(_) => {}
        }
    }
    None
}

/// Two objects of one identity; the host would refuse the second without knowing the first one's place.
fn duplicates(manifests: &[Manifest]) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<[&str; 4], &Manifest> = BTreeMap::new();
    let mut findings = Vec::new();
    for manifest in manifests {
        let Some(identity) = identity(&manifest.object) else { continue };
        let Some(first) = seen.insert(identity, manifest) else { continue };
        let [_, kind, namespace, name] = identity;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let place = Location::of(&first.path, &first.object);
        let message =
            format!("{kind} {namespace}{slash}{name} stands in the bundle twice; the other one is at {place}");
        findings.push(Diagnostic::error("DuplicateObject", message).at(&manifest.path).node(&manifest.object));
    }
    findings
}

/// Group, kind, namespace and name.
fn identity(object: &Node) -> Option<[&str; 4]> {
    let text = |pointer| object.at(pointer).and_then(Node::as_str);
    let group = text("/apiVersion")?.split_once('/').map_or("", |(group, _)| group);
    Some([group, text("/kind")?, text("/metadata/namespace").unwrap_or_default(), text("/metadata/name")?])
}
