//! The properties and dependencies of a bundle.
//!
//! Properties are in the annotation `olm.properties` of the ClusterServiceVersion and in `metadata/properties.yaml`;
//! dependencies in `metadata/dependencies.yaml`. OLM v1 appends the second to the first, which adds them to the pods,
//! and ignores all of them when it renders.

use chandler_sdk::{Content, Diagnostic, Location};
use chandler_yaml::{Node, pointer_segment};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::metadata::parse;
use crate::{
    bundle::{Locate as _, Property},
    csv::Csv,
    names::escape_html,
};

/// The file with the bundle's properties; optional.
const PROPERTIES: &str = "metadata/properties.yaml";

/// The file with the bundle's dependencies; optional.
const DEPENDENCIES: &str = "metadata/dependencies.yaml";

/// The annotation of a ClusterServiceVersion that holds properties.
const OLM_PROPERTIES: &str = "olm.properties";

/// The result of parsing them.
#[derive(Default)]
pub(super) struct Statements {
    /// All properties and dependencies.
    pub(super) properties: Vec<Property>,
    /// Errors, which OLM v1 refuses as well.
    pub(super) errors: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(super) warnings: Vec<Diagnostic>,
}

/// A property, with its value as original text.
#[derive(Serialize, Deserialize)]
struct Raw {
    #[serde(rename = "type")]
    kind: String,
    value: Box<RawValue>,
}

/// Parses all properties, and appends the bundle's to the ClusterServiceVersion's.
pub(super) fn read(content: &dyn Content, csv: &mut Csv, csv_path: &str, csv_node: &Node) -> Statements {
    let mut statements = Statements::default();
    add_properties(content, csv, csv_path, csv_node, &mut statements);
    dependencies(content, &mut statements);
    statements
}

/// Like all annotations of the ClusterServiceVersion, the properties are set on the pods, so the text is formatted as
/// in Go.
fn add_properties(content: &dyn Content, csv: &mut Csv, csv_path: &str, csv_node: &Node, statements: &mut Statements) {
    let pointer = format!("/metadata/annotations/{}", pointer_segment(OLM_PROPERTIES));
    let place = Location { pointer: Some(pointer.clone()), ..Location::of(csv_path, csv_node.nearest(&pointer)) };
    let parsed: Result<Vec<Raw>, _> =
        csv.metadata.annotations.get(OLM_PROPERTIES).map_or(Ok(Vec::new()), |text| serde_json::from_str(text));
    let mut raw = parsed.unwrap_or_else(|error| {
        let message = format!("failed to unmarshal csv.metadata.annotations['{OLM_PROPERTIES}']: {error}");
        let help = "the annotation holds a JSON list of objects with type and value";
        statements.errors.push(place.error("InvalidProperties", message).help(help));
        Vec::new()
    });
    statements.properties.extend(raw.iter().map(|property| Property {
        kind: property.kind.clone(),
        value: serde_json::from_str(property.value.get()).unwrap_or_default(),
        place: place.clone(),
    }));
    if !content.exists(PROPERTIES) {
        return;
    }
    let root = match parse(content, PROPERTIES, &mut statements.warnings) {
        Ok(Some(root)) => root,
        Ok(None) => return,
        Err(finding) => return statements.errors.push(*finding),
    };
    for (kind, value, place) in items(&root, "properties", PROPERTIES, &mut statements.errors) {
        if let Ok(value) = serde_json::value::to_raw_value(&value) {
            raw.push(Raw { kind: kind.clone(), value });
        }
        statements.properties.push(Property { kind, value, place });
    }
    if statements.errors.is_empty() {
        // No properties at all are a nil slice, which Go formats as null.
        let list = (!raw.is_empty()).then_some(raw);
        let text = escape_html(&compact(&serde_json::to_string(&list).unwrap_or_default()));
        csv.metadata.annotations.insert(OLM_PROPERTIES.to_owned(), text);
    }
}

/// OLM v1 does not read the file when it renders a bundle, so errors in it do not block a release.
fn dependencies(content: &dyn Content, statements: &mut Statements) {
    if !content.exists(DEPENDENCIES) {
        return;
    }
    let as_warning = |finding: Diagnostic| Diagnostic {
        severity: chandler_sdk::Severity::Warning,
        code: "InvalidDependencies".to_owned(),
        ..finding
    };
    let root = match parse(content, DEPENDENCIES, &mut statements.warnings) {
        Ok(Some(root)) => root,
        Ok(None) => return,
        Err(finding) => return statements.warnings.push(as_warning(*finding)),
    };
    let mut wrong = Vec::new();
    for (kind, value, place) in items(&root, "dependencies", DEPENDENCIES, &mut wrong) {
        // In this file a package is a required one; among the properties it is the bundle's own.
        let kind = match kind.as_str() {
            "olm.package" => "olm.package.required".to_owned(),
            "olm.gvk" => "olm.gvk.required".to_owned(),
            _ => kind,
        };
        statements.properties.push(Property { kind, value, place });
    }
    statements.warnings.extend(wrong.into_iter().map(as_warning));
}

/// The items of a list in a file, each with its type, value and location. Items without type or value are findings.
fn items(root: &Node, list: &str, path: &str, errors: &mut Vec<Diagnostic>) -> Vec<(String, Value, Location)> {
    let Some(node) = root.get(list).filter(|node| !node.is_null()) else {
        return Vec::new();
    };
    let at = |pointer: String, node: &Node| Location { pointer: Some(pointer), ..Location::of(path, node) };
    let help = format!("{list} is a list of objects with type and value");
    let Some(sequence) = node.as_sequence() else {
        let message = format!("failed to unmarshal {path}: got {}, want a list", node.type_name());
        errors.push(at(format!("/{list}"), node).error("InvalidProperties", message).help(help));
        return Vec::new();
    };
    let mut items = Vec::with_capacity(sequence.len());
    for (index, item) in sequence.iter().enumerate() {
        let place = at(format!("/{list}/{index}"), item);
        if let (Some(kind), Some(value)) = (item.get("type").and_then(Node::as_str), item.get("value")) {
            items.push((kind.to_owned(), value.to_json(), place));
        } else {
            let message = format!("failed to unmarshal {path}: an item has no type or no value");
            errors.push(place.error("InvalidProperties", message).help(help.as_str()));
        }
    }
    items
}

/// JSON without the white space between its tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else {
            if c.is_ascii_whitespace() {
                continue;
            }
            in_string = c == '"';
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_removed_outside_of_strings() {
        assert_eq!(
            compact("[ {\"a b\" : \"x \\\" y\\\\\" ,\n\t\"c\": 1.0} ]"),
            "[{\"a b\":\"x \\\" y\\\\\",\"c\":1.0}]"
        );
    }
}
