//! `image-references`: the file in which a bundle names its images, so that an administrator can replace them.
//!
//! It is an ImageStream whose tags name the images in the manifests. OpenShift's release tooling parses it likewise
//! (`pkg/cli/admin/release/image_mapper.go` in `openshift/oc`): tags other than `DockerImage` are ignored, and two tags
//! with one repository are refused.

use std::collections::BTreeMap;

use chandler_sdk::{
    Content, Diagnostic, Location, documents,
    yaml::{Node, pointer_segment},
};

use crate::{
    MANIFESTS,
    images::{Images, Replacements},
    manifest::kind,
    payload,
};

/// The name of the file.
pub(crate) const FILE: &str = "image-references";

/// An image in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its name.
    pub(crate) name: String,
    /// Its placeholder in the manifests: a repository, or a whole reference.
    pub(crate) source: String,
    /// The location of its name.
    place: Location,
}

/// The ImageStream in the file.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Its name: in a release image, the version of the release.
    pub(crate) name: Option<String>,
    /// All of its images by name, also those with ambiguous names, of which the last one counts.
    pub(crate) images: BTreeMap<String, String>,
}

/// The content of the file.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Whether the file is one of a release image, whose images are final.
    is_payload: bool,
    /// The ImageStream, if the file exists and has one.
    pub(crate) stream: Option<Stream>,
    /// Why the file cannot be parsed.
    pub(crate) unreadable: Option<Diagnostic>,
    /// Its images.
    pub(crate) tags: Vec<Tag>,
    /// Its errors. They block a release only if images are replaced.
    pub(crate) findings: Vec<Diagnostic>,
}

/// Whether a document is an ImageStream of `image-references`, which is not a manifest.
pub(crate) fn is_references(file_name: &str, node: &Node) -> bool {
    file_name == FILE && kind(node) == Some("ImageStream")
}

/// Parses the file, if it exists. Without `release`, the file is read as a manifest, too, which reports a syntax error.
pub(crate) fn references(content: &dyn Content, is_payload: bool) -> References {
    let path = format!("{}{FILE}", if is_payload { payload::DIRECTORY } else { MANIFESTS });
    let mut references = References { is_payload, ..References::default() };
    if !content.exists(&path) {
        return references;
    }
    match documents::read_documents(content, &path) {
        Ok(nodes) => {
            for node in nodes.iter().filter(|node| is_references(FILE, node)) {
                references.read(&path, node);
            }
        }
        Err(finding) => references.unreadable = Some(finding),
    }
    references
}

impl References {
    fn read(&mut self, path: &str, root: &Node) {
        let name = root.at("/metadata/name").and_then(Node::as_str).map(str::to_owned);
        let stream = self.stream.get_or_insert_with(|| Stream { name, images: BTreeMap::new() });
        let list = root.at("/spec/tags").and_then(Node::as_sequence).unwrap_or_default();
        for (index, item) in list.iter().enumerate() {
            // The tooling decodes the file with field names in any case, and its own documentation writes `Name`.
            let Some(from) = member(item, "from") else { continue };
            if member(from, "kind").and_then(Node::as_str) != Some("DockerImage") {
                continue;
            }
            let name = member(item, "name").and_then(Node::as_str).unwrap_or_default();
            let source = member(from, "name").and_then(Node::as_str).unwrap_or_default();
            let place = Location { pointer: Some(format!("/spec/tags/{index}")), ..Location::of(path, item) };
            if name.is_empty() || source.is_empty() {
                let message = format!("image {index} has no name or no from.name");
                self.findings.push(finding(&place, message, "set its name and its repository"));
                continue;
            }
            stream.images.insert(name.to_owned(), source.to_owned());
            let same = self.tags.iter().find(|tag| tag.source == source || tag.name == name);
            if let Some(same) = same.filter(|same| same.source != source || same.name != name) {
                let message =
                    format!("images {:?} and {name:?} are ambiguous: {:?} and {source:?}", same.name, same.source);
                self.findings.push(finding(&place, message, "give each image one name and one repository"));
                continue;
            }
            self.tags.push(Tag { name: name.to_owned(), source: source.to_owned(), place });
        }
    }

    /// Warnings about the images of a configuration.
    pub(crate) fn advice(&self, images: &Images) -> Vec<Diagnostic> {
        if images.is_empty() {
            return Vec::new();
        }
        if self.stream.is_none() {
            let message = "the bundle has no file image-references, so no image is replaced";
            let finding =
                Diagnostic::warning("ImageReferencesMissing", message).at(Location::CONFIG).pointer("/images");
            return vec![finding.help("add manifests/image-references to the bundle, or remove images")];
        }
        let unknown = images.iter().filter(|(name, _)| self.tags.iter().all(|tag| tag.name != **name));
        let unknown = unknown.map(|(name, _)| {
            let pointer = format!("/images/{}", pointer_segment(name));
            let finding = Diagnostic::warning("UnknownImage", format!("the bundle has no image {name:?}"));
            let names: Vec<&str> = self.tags.iter().map(|tag| tag.name.as_str()).collect();
            finding.at(Location::CONFIG).pointer(pointer).help(format!("its images are {}", names.join(", ")))
        });
        let is_kept = |tag: &&Tag| !self.is_payload && images.get(&tag.name).is_none();
        let kept = self.tags.iter().filter(is_kept).map(|tag| {
            let message = format!("image {:?} is not configured and remains {:?}", tag.name, tag.source);
            Diagnostic { location: Some(tag.place.clone()), ..Diagnostic::warning("ImageNotConfigured", message) }
                .help("set it in images, too")
        });
        unknown.chain(kept).collect()
    }

    /// The replacements.
    pub(crate) fn replacements(&self, images: &Images) -> Replacements {
        let pairs = self.tags.iter().filter_map(|tag| Some((tag.source.clone(), images.get(&tag.name)?.clone())));
        Replacements::new(pairs.collect())
    }
}

/// A member, found by its name in any case.
fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let entries = node.as_mapping()?;
    entries
        .get(name)
        .or_else(|| entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(name)).map(|entry| &entry.value))
}

fn finding(place: &Location, message: String, help: &str) -> Diagnostic {
    Diagnostic { location: Some(place.clone()), ..Diagnostic::error("InvalidImageReferences", message) }.help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_parsed_with_field_names_in_any_case() {
        let text = b"kind: ImageStream\nspec:\n  tags:\n  - {name: a, from: {kind: DockerImage, name: q/a}}\n  - {name: b, from: {kind: DockerImage, Name: 'q/a:v1'}}\n  - {name: c, from: {kind: ImageStreamTag, name: x}}\n";
        let node = documents::parse_documents(text, "x").unwrap();
        let mut references = References::default();
        references.read("x", &node[0]);
        let tags: Vec<(&str, &str)> =
            references.tags.iter().map(|tag| (tag.name.as_str(), tag.source.as_str())).collect();
        assert_eq!(tags, [("a", "q/a"), ("b", "q/a:v1")]);
        assert_eq!(references.findings, []);
    }
}
