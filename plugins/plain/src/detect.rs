//! Detects plain+v0 bundles.

use chandler_sdk::{Content, documents::read_documents, yaml::Node};

use crate::{FORMAT, MANIFESTS, manifest::kind, payload::is_payload};

/// The file in which a bundle may declare its format.
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// The annotation with the media type of a bundle's content.
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";

/// The kind that makes a bundle one of another format.
const CSV: &str = "ClusterServiceVersion";

/// Content with manifests that declares no other format, and contains no ClusterServiceVersion. A release image is recognised by its
/// `release-manifests/`, which may contain one: OLM ships its own package server so.
///
/// A manifest may contain the word without being of that kind, as the CRD that OLM ships; so a file with the word is
/// parsed.
pub(crate) fn is_plain(content: &dyn Content) -> bool {
    let manifests = content.files(MANIFESTS);
    if manifests.is_empty() && !is_payload(content) {
        return false;
    }
    match media_type(content) {
        Some(media_type) => media_type == FORMAT,
        None => !manifests.iter().any(|file| holds_csv(content, &file.path)),
    }
}

fn media_type(content: &dyn Content) -> Option<String> {
    if !content.exists(ANNOTATIONS) {
        return None;
    }
    let documents = read_documents(content, ANNOTATIONS).ok()?;
    let annotations = documents.first()?.get("annotations")?;
    annotations.get(MEDIA_TYPE)?.as_str().map(str::to_owned)
}

fn holds_csv(content: &dyn Content, path: &str) -> bool {
    let Ok(bytes) = content.read(path) else {
        return false;
    };
    // Searching text is many times faster than comparing windows of bytes.
    let mentioned = bytes.utf8_chunks().any(|chunk| chunk.valid().contains(CSV));
    let is_csv = |node: &Node| kind(node) == Some(CSV);
    mentioned
        && chandler_sdk::documents::parse_documents(&bytes, path).is_ok_and(|documents| documents.iter().any(is_csv))
}
