//! Loads objects from the files of a bundle.

use chandler_sdk::{Content, Diagnostic, documents};

use crate::{
    MANIFESTS,
    manifest::Manifest,
    references::{FILE, is_references},
    stage::stages,
};

/// The content of the files.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Values, in the order of files and documents.
    pub(crate) objects: Vec<Manifest>,
    /// Findings that make the host refuse the bundle.
    pub(crate) errors: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Reads every file, also after errors. Of a release, only files with the extension of a manifest.
pub(crate) fn load(content: &dyn Content, is_release: bool) -> Loaded {
    let mut loaded = Loaded::default();
    let files = content.files(MANIFESTS);
    if files.is_empty() {
        let message = "get objects from bundle manifests: open manifests: file does not exist";
        let finding = Diagnostic::error("ManifestsMissing", message).at(MANIFESTS);
        loaded.errors.push(finding.help("put the Kubernetes objects of the bundle into files in manifests/"));
        return loaded;
    }
    let names: Vec<&str> = files.iter().filter_map(|file| file.path.strip_prefix(MANIFESTS)).collect();
    loaded.errors.extend(subdirectories(&names));
    let (hidden, names): (Vec<&str>, Vec<&str>) =
        names.into_iter().filter(|name| !name.contains('/')).partition(|name| name.starts_with('.'));
    loaded.warnings.extend(hidden.into_iter().map(ignored));
    let is_read = |name: &&str| !is_release || has_manifest_extension(name);
    let (names, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_read);
    loaded.warnings.extend(others.into_iter().filter(|name| !OF_A_RELEASE.contains(name)).map(not_a_manifest));
    for (name, stage) in names.iter().zip(stages(&names)) {
        loaded.file(content, name, stage);
    }
    loaded
}

/// The files of a release that are not manifests.
const OF_A_RELEASE: [&str; 2] = [FILE, "release-metadata"];

/// The files that the cluster-version operator reads.
fn has_manifest_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| matches!(extension, "yaml" | "yml" | "json"))
}

fn not_a_manifest(name: &str) -> Diagnostic {
    let message = "a file of a release without the extension .yaml, .yml or .json is not read as a manifest";
    Diagnostic::warning("FileIgnored", message).at(format!("{MANIFESTS}{name}"))
}

/// One finding for each directory in `manifests/`.
fn subdirectories(names: &[&str]) -> Vec<Diagnostic> {
    let mut directories: Vec<&str> =
        names.iter().filter_map(|name| name.split_once('/')).map(|(directory, _)| directory).collect();
    directories.sort_unstable();
    directories.dedup();
    let finding = |directory: &str| {
        let path = format!("{MANIFESTS}{directory}");
        let message = format!(
            "get objects from bundle manifests: subdirectories are not allowed within the \"manifests\" directory of the \
             bundle image filesystem: found {path:?}"
        );
        Diagnostic::error("SubdirectoryInManifests", message).at(path).help("move its files into manifests/ itself")
    };
    directories.into_iter().map(finding).collect()
}

fn ignored(name: &str) -> Diagnostic {
    let message = "a file whose name begins with a dot is not read as a manifest";
    Diagnostic::warning("HiddenFileIgnored", message).at(format!("{MANIFESTS}{name}"))
}

impl Loaded {
    fn file(&mut self, content: &dyn Content, name: &str, stage: Option<u32>) {
        let path = format!("{MANIFESTS}{name}");
        let read = match documents::read_documents_with_warnings(content, &path) {
            Ok(read) => read,
            Err(mut finding) => {
                finding.message = format!("get objects from bundle manifests: {}", finding.message);
                let help =
                    "every file in manifests/ is parsed as YAML or JSON, whatever its name; move others elsewhere";
                return self.errors.push(finding.help(help));
            }
        };
        self.warnings.extend(read.warnings);
        let objects = read.nodes.into_iter().filter(|node| !is_references(name, node));
        self.objects.extend(objects.map(|node| Manifest { node, path: path.clone(), stage, instructions: Vec::new() }));
    }
}
