//! Whether content is a plain+v0 bundle.

use chandler_sdk::{Content, documents::read_documents, yaml::Node};

use crate::{FORMAT, MANIFESTS, manifest::kind};

/// The file in which a bundle may say what it is.
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// The annotation with the media type of a bundle's content.
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";

/// What makes a bundle one of another format.
const CSV: &str = "ClusterServiceVersion";

/// Content with manifests that does not say that it is something else, and that holds no ClusterServiceVersion.
///
/// The CustomResourceDefinition of that kind, as OLM itself ships it, is nothing to stumble over; so a file that holds the
/// word is parsed.
pub(crate) fn is_plain(content: &dyn Content) -> bool {
    let manifests = content.files(MANIFESTS);
    if manifests.is_empty() {
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
    // The search in text is many times faster than one that compares windows of bytes.
    let mentioned = bytes.utf8_chunks().any(|chunk| chunk.valid().contains(CSV));
    let is_csv = |node: &Node| kind(node) == Some(CSV);
    mentioned
        && chandler_sdk::documents::parse_documents(&bytes, path).is_ok_and(|documents| documents.iter().any(is_csv))
}
