//! Loads the values of the files of a bundle.

use chandler_sdk::{Content, Diagnostic, documents::read_documents_with_warnings, yaml::Node};

/// A value, and the file that it is in.
pub(crate) type Value = (Node, String);

/// The content of the files.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Values, in the order of files, documents and items.
    pub(crate) nodes: Vec<Value>,
    /// Findings that make the host refuse the bundle.
    pub(crate) errors: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Whether a file of this path is read.
pub(crate) fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ends = name.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "yaml" | "yml" | "json"));
    ends && !name.starts_with('.')
}

/// Reads every file, also after errors.
pub(crate) fn load(content: &dyn Content) -> Loaded {
    let mut loaded = Loaded::default();
    for file in content.files("").into_iter().filter(|file| is_manifest(&file.path)) {
        match read_documents_with_warnings(content, &file.path) {
            Ok(read) => {
                loaded.warnings.extend(read.warnings);
                for node in read.nodes {
                    loaded.add(&node, &file.path);
                }
            }
            Err(finding) => loaded.errors.push(finding.help("every .yaml, .yml and .json file of a set is a manifest")),
        }
    }
    loaded
}

impl Loaded {
    /// Adds a document; the items of a list are added one by one.
    fn add(&mut self, node: &Node, path: &str) {
        match node.get("items").and_then(Node::as_sequence).filter(|_| is_list(node)) {
            Some(items) => self.nodes.extend(items.iter().map(|item| (item.clone(), path.to_owned()))),
            None => self.nodes.push((node.clone(), path.to_owned())),
        }
    }
}

/// What `kubectl get -o yaml` prints, with any kind of list.
fn is_list(node: &Node) -> bool {
    node.get("kind").and_then(Node::as_str).is_some_and(|kind| matches!(kind, "List" | "BundleDeploymentList"))
}
