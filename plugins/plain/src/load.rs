//! Loads objects from the files of a bundle.

use chandler_sdk::{
    Content, Diagnostic, Position,
    documents::{self, Documents},
};

use crate::{
    MANIFESTS,
    manifest::Manifest,
    payload,
    references::{FILE, is_references},
    stage::{across, stages},
    template::{Fields, Reason, Rendered, TemplateError, render},
};

/// Which files are read, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout<'a> {
    /// Every file in `manifests/`.
    Plain,
    /// The manifests of a part of a release in `manifests/`: files with the extension of a manifest.
    Release,
    /// A release image: the manifests in `manifests/`, rendered with these fields, and those in `release-manifests/`.
    Payload(&'a Fields<'a>),
}

/// The content of the files.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Values, in the order of files and documents.
    pub(crate) objects: Vec<Manifest>,
    /// Findings that make the host refuse the bundle.
    pub(crate) errors: Vec<Diagnostic>,
    /// What is missing in the configuration.
    pub(crate) configuration: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Reads every file, also after errors.
pub(crate) fn load(content: &dyn Content, layout: Layout<'_>) -> Loaded {
    let mut loaded = Loaded::default();
    let own = loaded.names(content, MANIFESTS, layout);
    match layout {
        Layout::Plain | Layout::Release if own.is_none() => {
            let message = "get objects from bundle manifests: open manifests: file does not exist";
            let finding = Diagnostic::error("ManifestsMissing", message).at(MANIFESTS);
            loaded.errors.push(finding.help("put the Kubernetes objects of the bundle into files in manifests/"));
        }
        Layout::Plain | Layout::Release => {
            let names = own.unwrap_or_default();
            let stages = stages(&names);
            loaded.directory(content, MANIFESTS, &names, &stages, layout);
        }
        Layout::Payload(_) => {
            let own = own.unwrap_or_default();
            let components = loaded.names(content, payload::DIRECTORY, layout).unwrap_or_default();
            let (first, second) = across(&own, &components);
            loaded.directory(content, MANIFESTS, &own, &first, layout);
            loaded.directory(content, payload::DIRECTORY, &components, &second, layout);
        }
    }
    loaded
}

/// The files of a release that are not manifests.
const OF_A_RELEASE: [&str; 2] = [FILE, payload::METADATA];

/// The files that the cluster-version operator reads.
fn has_manifest_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| matches!(extension, "yaml" | "yml" | "json"))
}

fn not_a_manifest(path: String) -> Diagnostic {
    let message = "a file of a release without the extension .yaml, .yml or .json is not read as a manifest";
    Diagnostic::warning("FileIgnored", message).at(path)
}

/// One finding for each directory in a directory of manifests.
fn subdirectories(parent: &str, names: &[String]) -> Vec<Diagnostic> {
    let mut directories: Vec<&str> =
        names.iter().filter_map(|name| name.split_once('/')).map(|(directory, _)| directory).collect();
    directories.sort_unstable();
    directories.dedup();
    let finding = |directory: &str| {
        let path = format!("{parent}{directory}");
        let message = format!(
            "get objects from bundle manifests: subdirectories are not allowed within the {:?} directory of the \
             bundle image filesystem: found {path:?}",
            parent.trim_end_matches('/')
        );
        Diagnostic::error("SubdirectoryInManifests", message)
            .at(path)
            .help(format!("move its files into {parent} itself"))
    };
    directories.into_iter().map(finding).collect()
}

fn ignored(path: String) -> Diagnostic {
    let message = "a file whose name begins with a dot is not read as a manifest";
    Diagnostic::warning("HiddenFileIgnored", message).at(path)
}

impl Loaded {
    /// The names of the manifests in a directory, or `None` if it has no files.
    fn names(&mut self, content: &dyn Content, directory: &str, layout: Layout<'_>) -> Option<Vec<String>> {
        let files = content.files(directory);
        if files.is_empty() {
            return None;
        }
        let names: Vec<String> =
            files.iter().filter_map(|file| file.path.strip_prefix(directory)).map(str::to_owned).collect();
        self.errors.extend(subdirectories(directory, &names));
        let (hidden, names): (Vec<String>, Vec<String>) =
            names.into_iter().filter(|name| !name.contains('/')).partition(|name| name.starts_with('.'));
        let path = |name: &String| format!("{directory}{name}");
        self.warnings.extend(hidden.iter().map(|name| ignored(path(name))));
        let is_read = |name: &String| matches!(layout, Layout::Plain) || has_manifest_extension(name);
        let (names, others): (Vec<String>, Vec<String>) = names.into_iter().partition(is_read);
        let others = others.iter().filter(|name| !OF_A_RELEASE.contains(&name.as_str()));
        self.warnings.extend(others.map(|name| not_a_manifest(path(name))));
        Some(names)
    }

    fn directory(
        &mut self,
        content: &dyn Content,
        directory: &str,
        names: &[String],
        stages: &[Option<u32>],
        layout: Layout<'_>,
    ) {
        for (name, stage) in names.iter().zip(stages) {
            let path = format!("{directory}{name}");
            let read = match layout {
                Layout::Payload(fields) if directory == MANIFESTS => self.template(content, &path, fields),
                _ => documents::read_documents_with_warnings(content, &path).map(Some),
            };
            match read {
                Ok(Some(documents)) => self.file(documents, &path, name, *stage),
                Ok(None) => {}
                Err(mut finding) => {
                    finding.message = format!("get objects from bundle manifests: {}", finding.message);
                    let which = match layout {
                        Layout::Plain => "is parsed as YAML or JSON, whatever its name",
                        _ => "with the extension .yaml, .yml or .json is parsed",
                    };
                    let help = format!("every file in {directory} {which}; move others elsewhere");
                    self.errors.push(finding.help(help));
                }
            }
        }
    }

    fn file(&mut self, read: Documents, path: &str, name: &str, stage: Option<u32>) {
        self.warnings.extend(read.warnings);
        let objects = read.nodes.into_iter().filter(|node| !is_references(name, node));
        let manifest = |node| Manifest { node, path: path.to_owned(), stage, instructions: Vec::new() };
        self.objects.extend(objects.map(manifest));
    }

    /// The documents of a template, or `None` after errors in it.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        expect(clippy::result_large_err, reason = "a finding is made once for a bad file")
    )]
    fn template(
        &mut self,
        content: &dyn Content,
        path: &str,
        fields: &Fields<'_>,
    ) -> Result<Option<Documents>, Diagnostic> {
        let unreadable = |error| Diagnostic::error("UnreadableFile", format!("cannot be read: {error}")).at(path);
        let bytes = content.read(path).map_err(unreadable)?;
        // The parser reports what is not UTF-8.
        let Ok(text) = str::from_utf8(&bytes) else {
            return documents::parse_documents_with_warnings(&bytes, path).map(Some);
        };
        let rendered = match render(text, fields) {
            Ok(rendered) => rendered,
            Err(errors) => {
                for error in errors {
                    self.template_error(path, error);
                }
                return Ok(None);
            }
        };
        drop(bytes);
        let read = documents::parse_documents_with_warnings(rendered.text.as_bytes(), path);
        if rendered.is_unchanged() {
            return read.map(Some);
        }
        let mut read = read.map_err(|mut finding| {
            relocate(&mut finding, &rendered);
            finding
        })?;
        read.warnings.iter_mut().for_each(|warning| relocate(warning, &rendered));
        read.nodes.iter_mut().for_each(|node| node.relocate(&|line, column| rendered.origin(line, column)));
        Ok(Some(read))
    }

    fn template_error(&mut self, path: &str, error: TemplateError) {
        let fields = "a template has only {{ .ReleaseImage }}, {{ .ClusterProfile }}, {{ index .Images \"name\" }} and {{ \"text\" }}";
        let (code, message, help) = match error.reason {
            Reason::Unsupported(what) => ("UnsupportedTemplate", format!("the template has {what}"), fields),
            Reason::TooMany => ("UnsupportedTemplate", "the template has too many actions".to_owned(), fields),
            Reason::UnknownImage(name) => (
                "UnknownTemplateImage",
                format!("the template names the image {name:?}, which image-references does not have"),
                "correct the name, or add the image to release-manifests/image-references",
            ),
            Reason::InvalidImage(name) => (
                "UnknownTemplateImage",
                format!("the image {name:?} of image-references is not a reference to an image"),
                "correct it in release-manifests/image-references",
            ),
            Reason::ReleaseImageMissing => {
                let message = "the template has the image of the release, which is not configured";
                let finding = Diagnostic::error("ReleaseImageNotConfigured", message).at(path);
                let help = "set release.releaseImage, to the image from which the bundle comes";
                self.configuration.push(finding.position(error.line, error.column).help(help));
                return;
            }
        };
        self.errors.push(Diagnostic::error(code, message).at(path).position(error.line, error.column).help(help));
    }
}

/// Moves a finding about a rendered text to the file.
fn relocate(finding: &mut Diagnostic, rendered: &Rendered) {
    let Some(location) = &mut finding.location else { return };
    for position in [&mut location.start, &mut location.end].into_iter().flatten() {
        let (line, column) = rendered.origin(position.line, position.column);
        *position = Position { line, column };
    }
}
