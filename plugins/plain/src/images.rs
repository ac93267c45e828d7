//! `image-references`: images that an administrator replaces, as OpenShift's release tooling does.
//!
//! A bundle may hold a file `manifests/image-references`, an ImageStream whose tags give names to the images in its manifests.
//! Where the configuration has an image for a name, every reference to the repository of that tag becomes that image.
//!
//! The rule is that of `oc adm release new` (`pkg/cli/admin/release/image_mapper.go`), which replaces text: the repository,
//! with a tag or digest behind it or none, up to white space, a quote or the end. Here it is applied to the texts of the
//! objects and not to the files, so that neither comments nor keys change. A repository that is only the end of a longer one
//! is left alone; there, `quay.io/a` is replaced in `mirror.example.com/quay.io/a`, too.

use chandler_sdk::{Content, Diagnostic, Location, documents, yaml::Node};
use serde_json::Value;

use crate::{
    MANIFESTS,
    config::{Images, escape},
    load::kind,
};

/// The name of the file.
pub(crate) const FILE: &str = "image-references";

/// An image that the file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its name.
    pub(crate) name: String,
    /// What stands for it in the manifests: a repository, or a whole reference.
    pub(crate) source: String,
    /// Where it is named.
    place: Location,
}

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Whether there is such a file.
    found: bool,
    /// Its images.
    pub(crate) tags: Vec<Tag>,
    /// What is wrong with it. It stops a release only where images are to be replaced.
    pub(crate) findings: Vec<Diagnostic>,
}

/// Whether a document is what `image-references` holds. Such a document is no manifest.
pub(crate) fn is_references(file_name: &str, node: &Node) -> bool {
    file_name == FILE && kind(node) == Some("ImageStream")
}

/// Reads the file, if there is one. That it cannot be parsed is reported where all manifests are read.
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
            // The tooling reads the file with a decoder that takes any case, and its own documentation writes `Name`.
            let Some(from) = member(item, "from") else { continue };
            if member(from, "kind").and_then(Node::as_str) != Some("DockerImage") {
                continue;
            }
            let name = member(item, "name").and_then(Node::as_str).unwrap_or_default();
            let source = member(from, "name").and_then(Node::as_str).unwrap_or_default();
            let place = Location { pointer: Some(format!("/spec/tags/{index}")), ..Location::of(path, item) };
            if name.is_empty() || source.is_empty() {
                let message = format!("image {index} has no name or no from.name");
                self.findings.push(finding(&place, message, "name it, and the repository that stands for it"));
                continue;
            }
            let same = self.tags.iter().find(|tag| tag.source == source || tag.name == name);
            if let Some(same) = same.filter(|same| same.source != source || same.name != name) {
                let message =
                    format!("images {:?} and {name:?} are not told apart: {:?} and {source:?}", same.name, same.source);
                self.findings.push(finding(&place, message, "give each image one name and one repository"));
                continue;
            }
            self.tags.push(Tag { name: name.to_owned(), source: source.to_owned(), place });
        }
    }

    /// What an administrator should know about the images of a configuration.
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
            let message = format!("image {:?} is not configured and stays {:?}", tag.name, tag.source);
            Diagnostic { location: Some(tag.place.clone()), ..Diagnostic::warning("ImageNotConfigured", message) }
                .help("set it in images, too")
        });
        unknown.chain(kept).collect()
    }

    /// What is to be replaced by what, longer sources first.
    pub(crate) fn replacements(&self, images: &Images) -> Replacements {
        let mut list: Vec<(String, String)> =
            self.tags.iter().filter_map(|tag| Some((tag.source.clone(), images.get(&tag.name)?.clone()))).collect();
        list.sort_by(|one, other| other.0.len().cmp(&one.0.len()).then_with(|| one.0.cmp(&other.0)));
        Replacements(list)
    }
}

/// A member by its name in any case.
fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let entries = node.as_mapping()?;
    entries
        .get(name)
        .or_else(|| entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(name)).map(|entry| &entry.value))
}

fn finding(place: &Location, message: String, help: &str) -> Diagnostic {
    Diagnostic { location: Some(place.clone()), ..Diagnostic::error("InvalidImageReferences", message) }.help(help)
}

/// Repositories and what stands in for them.
#[derive(Debug, Default)]
pub(crate) struct Replacements(Vec<(String, String)>);

impl Replacements {
    /// Whether there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces in all texts of an object. The JSON pointers of texts that name a repository in a way that cannot be
    /// replaced are returned.
    pub(crate) fn apply(&self, object: &mut Value) -> Vec<String> {
        let mut left = Vec::new();
        self.walk(object, &mut String::new(), &mut left);
        left
    }

    fn walk(&self, value: &mut Value, pointer: &mut String, left: &mut Vec<String>) {
        let length = pointer.len();
        match value {
            Value::String(text) if self.0.iter().any(|(source, _)| text.contains(source.as_str())) => {
                let (replaced, rest) = self.replace(text);
                *text = replaced;
                if rest {
                    left.push(pointer.clone());
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                    self.walk(item, pointer, left);
                    pointer.truncate(length);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    pointer.push('/');
                    pointer.push_str(&escape(key));
                    self.walk(member, pointer, left);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// The text with all references replaced, and whether it still names a repository.
    fn replace(&self, text: &str) -> (String, bool) {
        let mut out = String::with_capacity(text.len());
        let mut left = false;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if may_begin(&out)
                && let Some((source, target)) = self.0.iter().find(|(source, _)| rest.starts_with(source.as_str()))
            {
                let behind = rest.get(source.len()..).unwrap_or_default();
                let behind = behind.get(locator(behind)..).unwrap_or_default();
                match behind.chars().next() {
                    None | Some('"' | '\'') => {
                        (out, rest) = (out + target, behind);
                        continue;
                    }
                    Some(next) if next.is_ascii_whitespace() => {
                        (out, rest) = (out + target, behind);
                        continue;
                    }
                    // Another repository, whose name is longer.
                    Some(next) if is_part_of_name(next) => {}
                    Some(_) => left = true,
                }
            }
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
        (out, left)
    }
}

/// Whether a reference may begin behind this text: not within a word, nor within a longer reference. A transport such as
/// `docker://` may stand before it.
fn may_begin(before: &str) -> bool {
    match before.chars().next_back() {
        None => true,
        Some('/') => before.ends_with("//"),
        Some(last) => !is_part_of_name(last),
    }
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/')
}

/// The length of the tag or digest at the beginning of a text; zero where there is none.
fn locator(text: &str) -> usize {
    const LONGEST_TAG: usize = 128;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(tag) = text.strip_prefix(':') {
        let length = tag.find(|c: char| !(word(c) || matches!(c, '.' | '-'))).unwrap_or(tag.len());
        return if tag.starts_with(word) && length <= LONGEST_TAG { length + 1 } else { 0 };
    }
    let Some(digest) = text.strip_prefix('@') else { return 0 };
    let Some((algorithm, hash)) = digest.split_once(':') else { return 0 };
    let is_algorithm = algorithm.split(['-', '_', '+', '.']).all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let length = hash.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hash.len());
    if is_algorithm && length >= 2 { 1 + algorithm.len() + 1 + length } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replacements() -> Replacements {
        let list = [
            ("quay.io/origin/router", "r.example.com/router@sha256:12"),
            ("quay.io/origin/dns", "d.example.com/dns:v1"),
        ];
        Replacements(list.map(|(source, target)| (source.to_owned(), target.to_owned())).into())
    }

    #[test]
    fn references_are_replaced_with_their_tag_or_digest() {
        let digest = format!("quay.io/origin/router@sha256:{}", "ab".repeat(32));
        for (text, want) in [
            ("quay.io/origin/router", "r.example.com/router@sha256:12"),
            ("quay.io/origin/router:latest", "r.example.com/router@sha256:12"),
            (digest.as_str(), "r.example.com/router@sha256:12"),
            ("--image=quay.io/origin/dns:v4.0 --other", "--image=d.example.com/dns:v1 --other"),
            (
                "a: \"quay.io/origin/dns\"\nb: 'quay.io/origin/router:x'\n",
                "a: \"d.example.com/dns:v1\"\nb: 'r.example.com/router@sha256:12'\n",
            ),
            ("docker://quay.io/origin/dns", "docker://d.example.com/dns:v1"),
            ("quay.io/origin/dns quay.io/origin/dns", "d.example.com/dns:v1 d.example.com/dns:v1"),
            ("\u{e4} quay.io/origin/dns \u{e4}", "\u{e4} d.example.com/dns:v1 \u{e4}"),
        ] {
            assert_eq!(replacements().replace(text), (want.to_owned(), false), "{text}");
        }
    }

    #[test]
    fn other_references_stay() {
        for text in [
            "quay.io/origin/router-proxy:latest",
            "quay.io/origin/router/sub",
            "mirror.example.com/quay.io/origin/router",
            "xquay.io/origin/router",
            "quay.io/origin",
        ] {
            assert_eq!(replacements().replace(text), (text.to_owned(), false), "{text}");
        }
        // What follows is not what ends a reference; the tooling leaves such text alone, too, and says nothing.
        for text in
            ["quay.io/origin/router:a,quay.io/origin/dnx", "quay.io/origin/router;", "quay.io/origin/router:\u{e4}"]
        {
            assert_eq!(replacements().replace(text), (text.to_owned(), true), "{text}");
        }
    }

    #[test]
    fn all_texts_of_an_object_are_looked_at_and_no_key() {
        let mut object = json!({
            "a": ["quay.io/origin/dns", {"b/c": "x,quay.io/origin/dns,"}],
            "quay.io/origin/dns": 1,
        });
        assert_eq!(replacements().apply(&mut object), ["/a/1/b~1c"]);
        assert_eq!(
            object,
            json!({"a": ["d.example.com/dns:v1", {"b/c": "x,quay.io/origin/dns,"}], "quay.io/origin/dns": 1})
        );
    }

    #[test]
    fn the_longest_source_counts() {
        let node = chandler_sdk::documents::parse_documents(
            b"kind: ImageStream\nspec:\n  tags:\n  - {name: a, from: {kind: DockerImage, name: q/a}}\n  - {name: b, from: {kind: DockerImage, Name: 'q/a:v1'}}\n  - {name: c, from: {kind: ImageStreamTag, name: x}}\n",
            "x",
        )
        .unwrap();
        let mut references = References::default();
        references.read("x", &node[0]);
        let mut images = Images::new();
        for name in ["a", "b"] {
            images.insert(name.to_owned(), name.to_owned());
        }
        let replacements = references.replacements(&images);
        assert_eq!(replacements.replace("q/a:v1 q/a:v2 q/a").0, "b a a");
    }
}
