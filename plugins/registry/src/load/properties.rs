//! The properties and dependencies of a bundle.
//!
//! Properties are in the annotation `olm.properties` of the ClusterServiceVersion and in `metadata/properties.yaml`;
//! dependencies in `metadata/dependencies.yaml`. OLM v1 appends the second to the first, which adds them to the pods,
//! and ignores all of them when it renders.

use std::{borrow::Cow, fmt};

use chandler_sdk::{Content, Diagnostic, Location};
use chandler_yaml::{Node, pointer_segment};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
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

impl Statements {
    /// Adds a property. One without type or value says nothing, but OLM v1 accepts it.
    fn add(&mut self, kind: String, value: Value, place: Location) {
        let problem = if kind.is_empty() {
            "a property has no type".to_owned()
        } else if value.is_null() {
            format!("property {kind:?} has no value")
        } else {
            return self.properties.push(Property { kind, value, place });
        };
        self.warnings.push(place.warning("InvalidProperty", problem).help("it has no effect; fix or remove it"));
    }
}

/// A property, with its value as original text. As in Go, the type may be missing, and a missing value is `null`.
#[derive(Default, Serialize)]
struct Raw {
    #[serde(rename = "type")]
    kind: String,
    value: Option<Box<RawValue>>,
}

/// A field of a property. Go ignores the case of names.
fn is_field(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with type and value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut raw = Raw::default();
                while let Some(name) = map.next_key::<Cow<'_, str>>()? {
                    if is_field(&name, "type") {
                        // As in Go, null changes nothing.
                        raw.kind = map.next_value::<Option<String>>()?.unwrap_or(raw.kind);
                    } else if is_field(&name, "value") {
                        raw.value = map.next_value()?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(raw)
            }
        }

        deserializer.deserialize_map(Fields)
    }
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
    // Null is a property without type and value, or no list at all.
    let parsed: Result<Option<Vec<Option<Raw>>>, _> =
        csv.metadata.annotations.get(OLM_PROPERTIES).map_or(Ok(None), |text| serde_json::from_str(text));
    let parsed = parsed.unwrap_or_else(|error| {
        let message = format!("failed to unmarshal csv.metadata.annotations['{OLM_PROPERTIES}']: {error}");
        let help = "the annotation holds a JSON list of objects with type and value";
        statements.errors.push(place.error("InvalidProperties", message).help(help));
        None
    });
    let mut raw: Vec<Raw> = parsed.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect();
    for Raw { kind, value } in &raw {
        let value = value.as_ref().and_then(|value| serde_json::from_str(value.get()).ok());
        statements.add(kind.clone(), value.unwrap_or_default(), place.clone());
    }
    if !content.exists(PROPERTIES) {
        return;
    }
    let root = match parse(content, PROPERTIES, &mut statements.warnings) {
        Ok(Some(root)) => root,
        Ok(None) => return,
        Err(finding) => return statements.errors.push(*finding),
    };
    for Property { kind, value, place } in items(&root, "properties", PROPERTIES, &mut statements.errors) {
        raw.push(Raw { kind: kind.clone(), value: serde_json::value::to_raw_value(&value).ok() });
        statements.add(kind, value, place);
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
    for Property { kind, value, place } in items(&root, "dependencies", DEPENDENCIES, &mut wrong) {
        if kind.is_empty() || value.is_null() {
            let message = format!("failed to unmarshal {DEPENDENCIES}: an item has no type or no value");
            wrong.push(place.error("InvalidDependencies", message).help(help("dependencies")));
            continue;
        }
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

fn help(list: &str) -> String {
    format!("{list} is a list of objects with type and value")
}

/// The items of a list in a file. Without a type it is empty, without a value null. Items that are not objects, or have a type that is not text,
/// are findings.
fn items(root: &Node, list: &str, path: &str, errors: &mut Vec<Diagnostic>) -> Vec<Property> {
    let Some(node) = root.get(list).filter(|node| !node.is_null()) else {
        return Vec::new();
    };
    let at = |pointer: String, node: &Node| Location { pointer: Some(pointer), ..Location::of(path, node) };
    let Some(sequence) = node.as_sequence() else {
        let message = format!("failed to unmarshal {path}: got {}, want a list", node.type_name());
        errors.push(at(format!("/{list}"), node).error("InvalidProperties", message).help(help(list)));
        return Vec::new();
    };
    let mut items = Vec::with_capacity(sequence.len());
    for (index, item) in sequence.iter().enumerate() {
        let pointer = format!("/{list}/{index}");
        match type_and_value(item) {
            Ok((kind, value)) => items.push(Property { kind, value, place: at(pointer, item) }),
            Err(problem) => {
                let message = format!("failed to unmarshal {path}: {problem}");
                errors.push(at(pointer, item).error("InvalidProperties", message).help(help(list)));
            }
        }
    }
    items
}

/// The fields of an item, as Go decodes them after it has sorted the keys: null changes nothing, and whole numbers and booleans are
/// texts where text is wanted.
fn type_and_value(item: &Node) -> Result<(String, Value), String> {
    let (mut kind, mut value) = (String::new(), Value::Null);
    let Some(mapping) = item.as_mapping() else {
        let problem = || format!("an item is {}, not an object", item.article_and_type());
        return if item.is_null() { Ok((kind, value)) } else { Err(problem()) };
    };
    let mut entries: Vec<_> = mapping.iter().collect();
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    for entry in entries {
        if is_field(&entry.key, "value") {
            value = entry.value.to_json();
        } else if is_field(&entry.key, "type") && !entry.value.is_null() {
            kind = match entry.value.to_json() {
                Value::String(text) => text,
                Value::Bool(known) => known.to_string(),
                Value::Number(number) if !number.is_f64() => number.to_string(),
                _ => return Err(format!("the type of an item is {}, not text", entry.value.article_and_type())),
            };
        }
    }
    Ok((kind, value))
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
