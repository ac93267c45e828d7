//! The files in `metadata/`.

use std::collections::BTreeMap;

use chandler_sdk::{Content, Diagnostic, Location};
use chandler_yaml::{Limits, Node};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    bundle::{Locate as _, Package},
    csv::Csv,
    names::escape_html,
};

/// The file that makes a directory a bundle.
pub(crate) const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// The file with the bundle's properties; optional.
const PROPERTIES: &str = "metadata/properties.yaml";

/// The annotation with the name of the package.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// The annotation of a ClusterServiceVersion that holds properties.
const OLM_PROPERTIES: &str = "olm.properties";

/// Reads the package. The media type and the channels are not checked: the media type decided, if anything did, that
/// this provisioner was asked, and channels are a catalog's business.
pub(super) fn package(content: &dyn Content) -> Result<Package, Box<Diagnostic>> {
    if !content.exists(ANNOTATIONS) {
        let message = format!("open {ANNOTATIONS}: file does not exist");
        let finding = Location::file(ANNOTATIONS).error("AnnotationsMissing", message);
        return Err(Box::new(finding.help("a registry+v1 bundle names its package in metadata/annotations.yaml")));
    }
    let Some(root) = parse(content, ANNOTATIONS)? else {
        return Ok(Package { name: String::new(), place: Location::file(ANNOTATIONS) });
    };
    let name = root.get("annotations").and_then(|annotations| annotations.get(PACKAGE));
    let place = Location::of(ANNOTATIONS, name.unwrap_or(&root));
    match name {
        Some(name) if !name.is_null() => match name.as_str() {
            Some(text) => Ok(Package { name: text.to_owned(), place }),
            None => Err(Box::new(place.error("InvalidAnnotations", format!("annotation {PACKAGE:?} is not a string")))),
        },
        _ => Ok(Package { name: String::new(), place }),
    }
}

/// The first document of a file, if there is one.
fn parse(content: &dyn Content, path: &str) -> Result<Option<Node>, Box<Diagnostic>> {
    let bytes = super::read(content, path)?;
    match chandler_yaml::parse(&bytes, &Limits::default()) {
        Ok(documents) => Ok(documents.into_iter().next().map(|document| document.root)),
        Err(error) => {
            let finding = Diagnostic::error("InvalidYaml", error.message).at(path);
            Err(Box::new(finding.position(error.line, error.column)))
        }
    }
}

/// A property, its value as the text it was.
#[derive(Serialize, Deserialize)]
struct Property {
    #[serde(rename = "type")]
    kind: String,
    value: Box<RawValue>,
}

/// Appends the properties of the bundle to those of the ClusterServiceVersion. As all its annotations they end up on the
/// pods, so the text is the one that Go writes.
pub(super) fn add_properties(content: &dyn Content, csv: &mut Csv, csv_path: &str) -> Result<(), Box<Diagnostic>> {
    let mut properties: Vec<Property> = match csv.metadata.annotations.get(OLM_PROPERTIES) {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            let message = format!("failed to unmarshal csv.metadata.annotations['{OLM_PROPERTIES}']: {error}");
            Box::new(Location::file(csv_path).error("InvalidProperties", message))
        })?,
        None => Vec::new(),
    };
    if !content.exists(PROPERTIES) {
        return Ok(());
    }
    let Some(root) = parse(content, PROPERTIES)? else {
        return Ok(());
    };
    for (index, item) in root.get("properties").and_then(Node::as_sequence).unwrap_or_default().iter().enumerate() {
        let kind = item.get("type").and_then(Node::as_str);
        let value = item.get("value").and_then(|value| serde_json::value::to_raw_value(&value.to_json()).ok());
        let (Some(kind), Some(value)) = (kind, value) else {
            let pointer = Some(format!("/properties/{index}"));
            let place = Location { pointer, ..Location::of(PROPERTIES, item) };
            let message = format!("failed to unmarshal {PROPERTIES}: a property has no type or no value");
            return Err(Box::new(place.error("InvalidProperties", message)));
        };
        properties.push(Property { kind: kind.to_owned(), value });
    }
    // No properties at all are a nil slice, which Go writes as null.
    let list = (!properties.is_empty()).then_some(properties);
    let text = escape_html(&compact(&serde_json::to_string(&list).unwrap_or_default()));
    csv.metadata.annotations.insert(OLM_PROPERTIES.to_owned(), text);
    Ok(())
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

/// The annotations of `metadata/annotations.yaml`, those that are strings. Empty where the file is not there or not
/// readable.
pub(crate) fn annotations(content: &dyn Content) -> BTreeMap<String, String> {
    let root = parse(content, ANNOTATIONS).ok().flatten();
    let annotations = root.as_ref().and_then(|root| root.get("annotations")).and_then(Node::as_mapping);
    annotations
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.key.to_string(), entry.value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_strings_stay() {
        assert_eq!(
            compact("[ {\"a b\" : \"x \\\" y\\\\\" ,\n\t\"c\": 1.0} ]"),
            "[{\"a b\":\"x \\\" y\\\\\",\"c\":1.0}]"
        );
    }
}
