//! `image-references`: the file in which a bundle names its images, so that an administrator can replace them.
//!
//! It is an ImageStream whose tags name the images in the manifests. OpenShift's release tooling parses it likewise
//! (`pkg/cli/admin/release/image_mapper.go` in `openshift/oc`): tags other than `DockerImage` are ignored, and two tags
//! with one repository are refused.

use chandler_sdk::{Content, Diagnostic, Location, documents, yaml::Node};

use crate::{
    MANIFESTS,
    images::{Images, Replacements},
    manifest::kind,
    pointer::escape,
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

/// The content of the file.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Whether the file exists.
    found: bool,
    /// Its images.
    pub(crate) tags: Vec<Tag>,
    /// Its errors. They block a release only if images are replaced.
    pub(crate) findings: Vec<Diagnostic>,
}

/// Whether a document is an ImageStream of `image-references`, which is not a manifest.
pub(crate) fn is_references(file_name: &str, node: &Node) -> bool {
    file_name == FILE && kind(node) == Some("ImageStream")
}

/// Parses the file, if it exists. A syntax error is reported with those of the manifests.
pub(crate) fn references(content: &dyn Content) -> References {
    let path = format!("{MANIFESTS}{FILE}");
    let mut references = References::default();
    if !content.exists(&path) {
        return references;
    }
    for node in documents::read_documents(content, &path).unwrap_or_default() {
        if is_references(FILE, &node) {
            references.found = true;
            references.read(&path, &node);
        }
    }
    references
}

impl References {
    fn read(&mut self, path: &str, root: &Node) {
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
        if !self.found {
            let message = "the bundle has no file image-references, so no image is replaced";
            let finding =
                Diagnostic::warning("ImageReferencesMissing", message).at(Location::CONFIG).pointer("/images");
            return vec![finding.help("add manifests/image-references to the bundle, or remove images")];
        }
        let unknown = images.iter().filter(|(name, _)| self.tags.iter().all(|tag| tag.name != **name));
        let unknown = unknown.map(|(name, _)| {
            let pointer = format!("/images/{}", escape(name));
            let finding = Diagnostic::warning("UnknownImage", format!("the bundle has no image {name:?}"));
            let names: Vec<&str> = self.tags.iter().map(|tag| tag.name.as_str()).collect();
            finding.at(Location::CONFIG).pointer(pointer).help(format!("its images are {}", names.join(", ")))
        });
        let kept = self.tags.iter().filter(|tag| images.get(&tag.name).is_none()).map(|tag| {
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
