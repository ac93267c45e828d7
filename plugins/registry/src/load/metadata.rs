//! `metadata/annotations.yaml`: the name of the package.

use std::collections::BTreeMap;

use chandler_sdk::{Content, Diagnostic, Location};
use chandler_yaml::{Limits, Node, pointer_segment};

use crate::bundle::{Locate as _, Package};

/// The file that marks a directory as a bundle.
pub(crate) const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// The annotation with the name of the package.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// Parses the package. The media type and the channels are not checked: the media type was used for detection, and
/// channels concern catalogs.
pub(super) fn package(content: &dyn Content, warnings: &mut Vec<Diagnostic>) -> Result<Package, Box<Diagnostic>> {
    if !content.exists(ANNOTATIONS) {
        let message = format!("open {ANNOTATIONS}: file does not exist");
        let finding = Location::file(ANNOTATIONS).error("AnnotationsMissing", message);
        return Err(Box::new(finding.help("a registry+v1 bundle names its package in metadata/annotations.yaml")));
    }
    let pointer = format!("/annotations/{}", pointer_segment(PACKAGE));
    let Some(root) = parse(content, ANNOTATIONS, warnings)? else {
        let place = Location { pointer: Some(pointer), ..Location::file(ANNOTATIONS).starting_at(1, 1) };
        return Ok(Package { name: String::new(), place });
    };
    let place = Location::of(ANNOTATIONS, root.nearest(&pointer));
    let name = root.at(&pointer);
    let place = Location { pointer: Some(pointer), ..place };
    let Some(name) = name.filter(|name| !name.is_null()) else {
        return Ok(Package { name: String::new(), place });
    };
    name.as_str().map(|text| Package { name: text.to_owned(), place: place.clone() }).ok_or_else(|| {
        let finding = place.error("InvalidAnnotations", format!("annotation {PACKAGE:?} is not a string"));
        Box::new(finding.help(format!("got {}: put the name of the package into quotes", name.type_name())))
    })
}

/// The first document of a file, if there is one.
pub(super) fn parse(
    content: &dyn Content,
    path: &str,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Option<Node>, Box<Diagnostic>> {
    let bytes = super::read(content, path)?;
    match chandler_yaml::parse(&bytes, &Limits::default()) {
        Ok(documents) => {
            super::suspicious(path, &documents, warnings);
            Ok(documents.into_iter().next().map(|document| document.root))
        }
        Err(error) => {
            let finding = Diagnostic::error("InvalidYaml", error.message).at(path);
            let finding = finding.position(error.line, error.column);
            Err(Box::new(finding.help("the file must be YAML or JSON")))
        }
    }
}

/// The annotations of `metadata/annotations.yaml`, if they are strings. Empty if the file is missing or invalid.
pub(crate) fn annotations(content: &dyn Content) -> BTreeMap<String, String> {
    let root = parse(content, ANNOTATIONS, &mut Vec::new()).ok().flatten();
    let annotations = root.as_ref().and_then(|root| root.get("annotations")).and_then(Node::as_mapping);
    annotations
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.key.to_string(), entry.value.as_str()?.to_owned())))
        .collect()
}
