//! A loaded bundle.

use chandler_sdk::{Diagnostic, Location};
use chandler_yaml::Node;
use serde_json::Value;

use crate::csv::Csv;

/// Findings at a location.
pub(crate) trait Locate {
    /// A finding that blocks the release.
    fn error(&self, code: &str, message: impl Into<String>) -> Diagnostic;

    /// A finding that does not block the release.
    fn warning(&self, code: &str, message: impl Into<String>) -> Diagnostic;
}

impl Locate for Location {
    fn error(&self, code: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { location: Some(self.clone()), ..Diagnostic::error(code, message) }
    }

    fn warning(&self, code: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { location: Some(self.clone()), ..Diagnostic::warning(code, message) }
    }
}

/// The location of an object, and of the parts that findings refer to. The object itself is not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The object.
    pub(crate) object: Location,
    parts: [(u32, u32); PARTS.len()],
}

/// The parts of an object that findings refer to.
const PARTS: [&str; 6] =
    ["", "/kind", "/metadata/name", "/spec/preserveUnknownFields", "/spec/conversion", "/spec/names/shortNames"];

impl Place {
    /// The location of an object in a file.
    pub(crate) fn of(path: &str, node: &Node) -> Self {
        let parts = PARTS.map(|pointer| node.nearest(pointer)).map(|part| (part.line, part.column));
        Self { object: Location::of(path, node), parts }
    }

    /// The location of one of the [`PARTS`], or of the nearest parent that exists.
    pub(crate) fn part(&self, pointer: &str) -> Location {
        let mut place = self.object.clone();
        place.pointer = Some(pointer.to_owned());
        if let Some((_, (line, column))) = PARTS.iter().zip(self.parts).find(|(part, _)| **part == pointer) {
            place = place.starting_at(line, column);
        }
        place
    }
}

/// A bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// Its package, or `None` if its file cannot be parsed.
    pub(crate) package: Option<Package>,
    /// Its ClusterServiceVersion.
    pub(crate) csv: Csv,
    /// The file of the ClusterServiceVersion.
    pub(crate) csv_path: String,
    /// The ClusterServiceVersion as written, for positions.
    pub(crate) csv_node: Node,
    /// Its CustomResourceDefinitions, in the order of files and documents.
    pub(crate) crds: Vec<Crd>,
    /// Its other objects, in the same order.
    pub(crate) others: Vec<Other>,
    /// Its properties and dependencies, in `metadata/` and in the ClusterServiceVersion.
    pub(crate) properties: Vec<Property>,
}

/// A property or dependency of a bundle.
#[derive(Debug)]
pub(crate) struct Property {
    /// Its type. An entry of `metadata/dependencies.yaml` has the type of the equivalent property.
    pub(crate) kind: String,
    /// Its value.
    pub(crate) value: Value,
    /// Its location.
    pub(crate) place: Location,
}

/// The content of `metadata/annotations.yaml`.
#[derive(Debug)]
pub(crate) struct Package {
    /// The name of the package; may be empty.
    pub(crate) name: String,
    /// Its actual or expected location.
    pub(crate) place: Location,
}

/// A CustomResourceDefinition in its typed form.
#[derive(Debug)]
pub(crate) struct Crd {
    /// Its apiVersion, which the typed form keeps.
    pub(crate) api_version: String,
    /// Its name.
    pub(crate) name: String,
    /// `spec.preserveUnknownFields`.
    pub(crate) preserves_unknown_fields: bool,
    /// What converts its objects: `Service NAMESPACE/NAME` or a URL; none without a webhook.
    pub(crate) converter: Option<String>,
    /// Its short names that are its plural or singular, too.
    pub(crate) redundant_short_names: Vec<String>,
    /// The CRD as JSON.
    pub(crate) json: Vec<u8>,
    /// Its location.
    pub(crate) place: Place,
}

/// Another object, unchanged.
#[derive(Debug)]
pub(crate) struct Other {
    /// Its apiVersion; may be empty.
    pub(crate) api_version: String,
    /// Its kind.
    pub(crate) kind: String,
    /// Its name; may be empty.
    pub(crate) name: String,
    /// The object.
    pub(crate) value: Value,
    /// Its location.
    pub(crate) place: Place,
}

/// The location of a part of a document, or of the nearest parent that exists.
pub(crate) fn place_in(path: &str, document: &Node, pointer: &str) -> Location {
    Location { pointer: Some(pointer.to_owned()), ..Location::of(path, document.nearest(pointer)) }
}

impl Bundle {
    /// The location of a part of the ClusterServiceVersion, or of the nearest parent that exists.
    pub(crate) fn csv_place(&self, pointer: &str) -> Location {
        place_in(&self.csv_path, &self.csv_node, pointer)
    }

    /// A finding about a part of the ClusterServiceVersion.
    pub(crate) fn csv_finding(&self, code: &str, message: impl Into<String>, pointer: &str) -> Diagnostic {
        self.csv_place(pointer).error(code, message)
    }
}
