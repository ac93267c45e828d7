//! Loads a [`Bundle`] from the files of a bundle.
//!
//! Every file is parsed, also after errors, so that an author sees all findings at once. A document is dropped as soon
//! as it is converted: a bundle's CRDs are megabytes, and the tree of one is many times its text.

mod duplicates;
mod metadata;
mod old_crd;
mod prefetch;
mod properties;

pub(crate) use metadata::annotations;
pub(crate) use prefetch::{load, prefetch};

use chandler_sdk::{Content, Diagnostic, Location, Severity, check_lists, check_types};
use chandler_yaml::{Document, Limits, Node};

use crate::{
    bundle::{Bundle, Crd, Locate as _, Other, Place},
    compatibility::Compatibility,
    csv::Csv,
    typed::{
        self, Conversion, Record, Spelling,
        convert::Mismatch,
        tables::{crd::CUSTOM_RESOURCE_DEFINITION, csv::CLUSTER_SERVICE_VERSION, meta::METADATA_ONLY_OBJECT},
    },
};

/// The directory of the manifests.
pub(crate) const MANIFESTS: &str = "manifests/";

/// The result of loading.
pub(crate) struct Loaded {
    /// The bundle, as far as it could be parsed; none without a ClusterServiceVersion.
    pub(crate) bundle: Option<Bundle>,
    /// Whether everything in `manifests/` could be parsed, so that absent objects are really missing.
    pub(crate) complete: bool,
    /// Errors. Not empty if there is no bundle.
    pub(crate) errors: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
    /// The compatibility it was loaded with.
    compatibility: Compatibility,
    /// Whether another compatibility would change the result.
    specific: bool,
}

impl Loaded {
    /// Whether loading with this compatibility would give the same result.
    fn serves(&self, compatibility: Compatibility) -> bool {
        self.compatibility == compatibility || !self.specific
    }
}

/// Loads a bundle.
fn read_bundle(content: &dyn Content, compatibility: Compatibility) -> Loaded {
    let mut loader = Loader { compatibility, ..Loader::default() };
    let package = metadata::package(content, &mut loader.warnings).map_err(|finding| loader.errors.push(*finding)).ok();
    let before = loader.errors.len();
    for entry in content.files(MANIFESTS) {
        loader.file(content, &entry.path);
    }
    let complete = loader.errors.len() == before;
    loader.check_presence();
    let Loader { csv, crds, others, mut errors, mut warnings, specific, .. } = loader;
    let mut specific = specific;
    let bundle = csv.map(|mut source| {
        let duplicates = duplicates::settle(&mut source, &others, compatibility.merges_duplicates());
        specific |= !duplicates.errors.is_empty() || !duplicates.warnings.is_empty();
        errors.extend(duplicates.errors);
        warnings.extend(duplicates.warnings);
        let CsvSource { mut csv, path: csv_path, node: csv_node } = source;
        let statements = properties::read(content, &mut csv, &csv_path, &csv_node);
        errors.extend(statements.errors);
        warnings.extend(statements.warnings);
        Bundle { package, csv, csv_path, csv_node, crds, others, properties: statements.properties }
    });
    Loaded { bundle, complete, errors, warnings, compatibility, specific }
}

struct CsvSource {
    csv: Csv,
    path: String,
    node: Node,
}

#[derive(Default)]
struct Loader {
    compatibility: Compatibility,
    files: usize,
    csv: Option<CsvSource>,
    failed_csv: bool,
    crds: Vec<Crd>,
    others: Vec<Other>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    subdirectory: Option<String>,
    specific: bool,
}

impl Loader {
    fn file(&mut self, content: &dyn Content, path: &str) {
        self.files += 1;
        let relative = path.strip_prefix(MANIFESTS).unwrap_or(path);
        if let Some((directory, _)) = relative.split_once('/') {
            self.subdirectory(directory);
            return;
        }
        let bytes = match read(content, path) {
            Ok(bytes) => bytes,
            Err(finding) => return self.errors.push(*finding),
        };
        match chandler_yaml::parse(&bytes, &Limits::default()) {
            Ok(documents) => self.documents(path, documents),
            Err(error) => {
                self.failed_csv |= crate::detect::mentions_csv(&bytes);
                let message = format!("error parsing objects in {path:?}: {}", error.message);
                let finding = Diagnostic::error("InvalidYaml", message).at(path).position(error.line, error.column);
                self.errors.push(finding.help(
                    "every file in manifests/ is parsed as YAML or JSON, whatever its name; move others elsewhere",
                ));
            }
        }
    }

    fn subdirectory(&mut self, directory: &str) {
        let path = format!("{MANIFESTS}{directory}");
        if self.subdirectory.as_ref() == Some(&path) {
            return;
        }
        let message = format!(
            "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: found \
             {path:?}"
        );
        let finding = Location::file(&path).error("SubdirectoryInManifests", message);
        self.errors.push(finding.help("move its files into manifests/ itself"));
        self.subdirectory = Some(path);
    }

    fn documents(&mut self, path: &str, documents: Vec<Document>) {
        suspicious(path, &documents, &mut self.warnings);
        for node in chandler_yaml::flatten_lists(documents) {
            if !node.is_null() {
                self.object(path, node);
            }
        }
    }

    fn object(&mut self, path: &str, node: Node) {
        let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
        match text("kind") {
            "" => {
                let message = format!("error parsing objects in {path:?}: Object 'Kind' is missing");
                let finding = Place::of(path, &node).part("/kind").error("KindMissing", message);
                self.errors.push(finding.help("manifests contain Kubernetes objects, each with a kind"));
            }
            "ClusterServiceVersion" => self.csv(path, node),
            "CustomResourceDefinition" => self.crd(path, &node),
            kind => {
                // Objects that are otherwise unchanged have typed metadata, too.
                if let Err(mismatches) = typed::convert(&node, &METADATA_ONLY_OBJECT, Spelling::Exact) {
                    return self.errors.extend(mismatches.iter().map(|error| mismatch(path, error)));
                }
                let wrong = [check_types(&node, path), check_lists(&node, path)].concat();
                self.specific |= !wrong.is_empty();
                match self.compatibility {
                    Compatibility::Extended if !wrong.is_empty() => return self.errors.extend(wrong),
                    Compatibility::Extended => {}
                    // OLM v1 finds out when the API server refuses the object.
                    Compatibility::Reference => self.warnings.extend(wrong.into_iter().map(as_warning)),
                }
                let name = node.at("/metadata/name").and_then(Node::as_str).unwrap_or_default();
                self.others.push(Other {
                    api_version: text("apiVersion").to_owned(),
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                    value: node.to_json(),
                    place: Place::of(path, &node),
                });
            }
        }
    }

    fn csv(&mut self, path: &str, node: Node) {
        let Some(conversion) = self.convert(path, &node, &CLUSTER_SERVICE_VERSION, true) else {
            self.failed_csv = true;
            return;
        };
        match serde_json::from_slice(&conversion.json) {
            Ok(csv) => {
                let source = CsvSource { csv, path: path.to_owned(), node };
                if let Some(previous) = self.csv.replace(source) {
                    let message = "bundle contains several ClusterServiceVersions, and only the last one is used";
                    let place = Place::of(&previous.path, &previous.node).part("/kind");
                    self.warnings.push(place.warning("SeveralClusterServiceVersions", message).help("keep one"));
                }
            }
            // The typed form has the shape that is expected here; otherwise the tables have a bug.
            Err(error) => {
                let message = format!("error parsing objects in {path:?}: {error}");
                let finding = Place::of(path, &node).part("").error("InvalidObject", message);
                self.errors.push(finding.help("compare the ClusterServiceVersion with the API's documentation"));
            }
        }
    }

    fn crd(&mut self, path: &str, node: &Node) {
        let place = Place::of(path, node);
        let version = node.get("apiVersion").and_then(Node::as_str).unwrap_or_default();
        let old = version == old_crd::API_VERSION;
        self.specific |= old;
        if old && self.compatibility.upgrades_crds() {
            return self.old_crd(path, node);
        }
        if old {
            let message = "apiextensions.k8s.io/v1beta1 is not served by Kubernetes 1.22 and newer, and the schema of \
                           this CustomResourceDefinition is lost";
            let finding =
                Location { pointer: Some("/apiVersion".to_owned()), ..Location::of(path, node.nearest("/apiVersion")) };
            let finding = finding.warning("OldCustomResourceDefinition", message);
            self.warnings.push(finding.help("convert it to apiextensions.k8s.io/v1"));
        }
        self.typed_crd(path, node, place, version, !old);
    }

    /// A v1beta1 CRD that is installed as v1.
    fn old_crd(&mut self, path: &str, node: &Node) {
        let pointer = "/apiVersion";
        let place = Location { pointer: Some(pointer.to_owned()), ..Location::of(path, node.nearest(pointer)) };
        let message = "apiextensions.k8s.io/v1beta1 is not served by Kubernetes 1.22 and newer, and this \
                       CustomResourceDefinition is installed as one of apiextensions.k8s.io/v1";
        let finding = place.warning("OldCustomResourceDefinition", message);
        self.warnings.push(finding.help("convert it in the bundle, and check the resulting schema"));
        let (errors, warnings) = (self.errors.len(), self.warnings.len());
        let upgraded = old_crd::upgrade(node.to_json());
        // As text again, so that it passes through the types in the same way as others.
        match chandler_yaml::parse(upgraded.to_string().as_bytes(), &Limits::default()) {
            Ok(documents) => {
                for document in documents {
                    let place = Place::of(path, node);
                    self.typed_crd(path, &document.root, place, "apiextensions.k8s.io/v1", false);
                }
                // Their positions would refer to the converted text, which is not in the bundle.
                let of_errors = self.errors.iter_mut().skip(errors);
                for finding in of_errors.chain(self.warnings.iter_mut().skip(warnings)) {
                    if let Some(location) = &mut finding.location {
                        let written = node.nearest(location.pointer.as_deref().unwrap_or_default());
                        *location = location.clone().starting_at(written.line, written.column);
                    }
                }
            }
            Err(error) => {
                let message = format!("error parsing objects in {path:?}: {}", error.message);
                let finding = Place::of(path, node).part("").error("InvalidObject", message);
                self.errors.push(finding.help("convert it to apiextensions.k8s.io/v1"));
            }
        }
    }

    fn typed_crd(&mut self, path: &str, node: &Node, place: Place, version: &str, report: bool) {
        let Some(conversion) = self.convert(path, node, &CUSTOM_RESOURCE_DEFINITION, report) else {
            return;
        };
        let name = node.at("/metadata/name").and_then(Node::as_str).unwrap_or_default();
        let keeps = node.at("/spec/preserveUnknownFields").is_some_and(|node| node.as_bool() == Some(true));
        self.crds.push(Crd {
            api_version: version.to_owned(),
            name: name.to_owned(),
            preserves_unknown_fields: keeps,
            converter: converter(node),
            redundant_short_names: redundant_short_names(node),
            json: conversion.json,
            place,
        });
    }

    fn convert(&mut self, path: &str, node: &Node, record: &'static Record, report: bool) -> Option<Conversion> {
        match typed::convert(node, record, self.compatibility.spelling()) {
            Ok(conversion) => {
                self.specific |= !conversion.misspelt.is_empty();
                if report {
                    self.report_dropped(path, &conversion);
                }
                Some(conversion)
            }
            Err(mismatches) => {
                self.specific = true;
                self.errors.extend(mismatches.iter().map(|error| mismatch(path, error)));
                None
            }
        }
    }

    fn report_dropped(&mut self, path: &str, conversion: &Conversion) {
        for misspelt in &conversion.misspelt {
            let place = place(path, (misspelt.line, misspelt.column), &misspelt.pointer);
            let name = misspelt.pointer.rsplit('/').next().unwrap_or_default();
            let suggested = misspelt.suggested.unwrap_or_default();
            let finding = place.warning("MisspeltField", format!("unknown field {name:?} is read as {suggested:?}"));
            self.warnings.push(finding.help("field names are case-sensitive; OLM drops this one"));
        }
        for dropped in &conversion.dropped {
            // Only the API server writes the status; every tool omits it.
            if dropped.pointer == "/status" {
                continue;
            }
            let place = place(path, (dropped.line, dropped.column), &dropped.pointer);
            let name = dropped.pointer.rsplit('/').next().unwrap_or_default();
            let mut finding = place.warning("UnknownField", format!("unknown field {name:?} is dropped"));
            if let Some(suggested) = dropped.suggested {
                finding = finding.help(format!("field names are case-sensitive; did you mean {suggested:?}?"));
            }
            self.warnings.push(finding);
        }
    }

    fn check_presence(&mut self) {
        if self.files == 0 {
            let message = "the bundle has no directory \"manifests\", or it is empty";
            let finding = Location::file("manifests").error("ManifestsMissing", message);
            self.errors.push(finding.help("put the ClusterServiceVersion and its objects into manifests/"));
        } else if self.csv.is_none() && !self.failed_csv {
            let message = "no ClusterServiceVersion found in \"manifests\"";
            let finding = Location::file("manifests").error("ClusterServiceVersionMissing", message);
            self.errors.push(finding.help("a registry+v1 bundle installs what its ClusterServiceVersion describes"));
        }
    }
}

/// What a CRD names as the converter of its objects.
fn converter(crd: &Node) -> Option<String> {
    let conversion = crd.at("/spec/conversion")?;
    let text = |pointer: &str| conversion.at(pointer).and_then(Node::as_str);
    if text("/strategy") != Some("Webhook") {
        return None;
    }
    let service =
        |name| format!("Service {}/{name}", text("/webhook/clientConfig/service/namespace").unwrap_or_default());
    let service = text("/webhook/clientConfig/service/name").map(service);
    Some(service.or_else(|| text("/webhook/clientConfig/url").map(str::to_owned)).unwrap_or_default())
}

/// The short names of a CRD that it has as plural or singular, too.
fn redundant_short_names(crd: &Node) -> Vec<String> {
    let text = |pointer: &str| crd.at(pointer).and_then(Node::as_str);
    let kind = text("/spec/names/kind").map(str::to_lowercase);
    let singular = text("/spec/names/singular").or(kind.as_deref());
    let short_names = crd.at("/spec/names/shortNames").and_then(Node::as_sequence);
    let short_names = short_names.into_iter().flatten().filter_map(Node::as_str);
    short_names
        .filter(|name| Some(*name) == singular || Some(*name) == text("/spec/names/plural"))
        .map(str::to_owned)
        .collect()
}

fn as_warning(finding: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..finding }
}

fn place(path: &str, (line, column): (u32, u32), pointer: &str) -> Location {
    Location { pointer: Some(pointer.to_owned()), ..Location::file(path).starting_at(line, column) }
}

fn mismatch(path: &str, error: &Mismatch) -> Diagnostic {
    let place = place(path, (error.line, error.column), &error.pointer);
    let message = format!("error parsing objects in {path:?}: {}", error.reference);
    place.error("InvalidObject", message).help(error.help())
}

/// A whole file.
fn read(content: &dyn Content, path: &str) -> Result<Vec<u8>, Box<Diagnostic>> {
    content.read(path).map_err(|error| {
        let finding = Diagnostic::error("UnreadableFile", format!("cannot be read: {error}")).at(path);
        Box::new(finding.help("make it a regular file, and the bundle smaller than the host's limit"))
    })
}

/// Valid YAML that is probably a mistake, such as a duplicate key.
fn suspicious(path: &str, documents: &[Document], warnings: &mut Vec<Diagnostic>) {
    for warning in documents.iter().flat_map(|document| &document.warnings) {
        let finding = Diagnostic::warning("SuspiciousYaml", warning.message.clone()).at(path);
        warnings.push(finding.position(warning.line, warning.column));
    }
}
