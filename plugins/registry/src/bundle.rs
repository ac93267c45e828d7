//! A bundle, as it was loaded.

use chandler_sdk::{Diagnostic, Location};
use chandler_yaml::Node;
use serde_json::Value;

use crate::csv::Csv;

/// Findings at a place.
pub(crate) trait Locate {
    /// One that stops the release.
    fn error(&self, code: &str, message: impl Into<String>) -> Diagnostic;

    /// One that does not.
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

/// Where an object stands, and the parts of it that findings are about. The object itself is not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The object.
    pub(crate) object: Location,
    parts: [(u32, u32); PARTS.len()],
}

/// The parts of an object that findings are about.
const PARTS: [&str; 4] = ["", "/kind", "/metadata/name", "/spec/preserveUnknownFields"];

impl Place {
    /// The place of an object in a file.
    pub(crate) fn of(path: &str, node: &Node) -> Self {
        let parts = PARTS.map(|pointer| node.nearest(pointer)).map(|part| (part.line, part.column));
        Self { object: Location::of(path, node), parts }
    }

    /// The place of one of the [`PARTS`], or of the nearest value around it that is written.
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
    /// Its package; none where what should name it cannot be read.
    pub(crate) package: Option<Package>,
    /// Its ClusterServiceVersion.
    pub(crate) csv: Csv,
    /// The file of the ClusterServiceVersion.
    pub(crate) csv_path: String,
    /// The ClusterServiceVersion as it is written, for positions.
    pub(crate) csv_node: Node,
    /// Its CustomResourceDefinitions, in the order of files and documents.
    pub(crate) crds: Vec<Crd>,
    /// Its other objects, in the same order.
    pub(crate) others: Vec<Other>,
    /// What it says of itself and of what it needs, in `metadata/` and in the ClusterServiceVersion.
    pub(crate) properties: Vec<Property>,
}

/// A statement of a bundle about itself or its needs.
#[derive(Debug)]
pub(crate) struct Property {
    /// Its type. An entry of `metadata/dependencies.yaml` has that of the property that says the same.
    pub(crate) kind: String,
    /// What it says.
    pub(crate) value: Value,
    /// Where it stands.
    pub(crate) place: Location,
}

/// What `metadata/annotations.yaml` says.
#[derive(Debug)]
pub(crate) struct Package {
    /// The name of the package; may be empty.
    pub(crate) name: String,
    /// Where it is, or should be.
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
    /// It as JSON.
    pub(crate) json: Vec<u8>,
    /// Where it comes from.
    pub(crate) place: Place,
}

/// Another object, as it is.
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
    /// Where it comes from.
    pub(crate) place: Place,
}

impl Bundle {
    /// The place of a part of the ClusterServiceVersion, or of the nearest part around it that is written.
    pub(crate) fn csv_place(&self, pointer: &str) -> Location {
        let node = self.csv_node.nearest(pointer);
        Location { pointer: Some(pointer.to_owned()), ..Location::of(&self.csv_path, node) }
    }

    /// A finding about a part of the ClusterServiceVersion.
    pub(crate) fn csv_finding(&self, code: &str, message: impl Into<String>, pointer: &str) -> Diagnostic {
        self.csv_place(pointer).error(code, message)
    }
}
