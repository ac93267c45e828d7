//! Detects registry+v1 bundles.

use chandler_sdk::{Content, documents::read_documents, yaml::Node};

use crate::load;

/// The name of the format.
pub(crate) const FORMAT: &str = "registry+v1";

/// The kind of the manifest that a bundle must have.
const KIND: &str = "ClusterServiceVersion";

/// The annotation with the media type of a bundle's content.
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";

/// The number of manifests that are searched; real bundles have at most a hundred.
const MOST_FILES: u32 = 200;

/// A ClusterServiceVersion has its kind within this many bytes of its beginning, or anywhere in a small file.
const HEAD: u32 = 256 * 1024;

/// The format, if `metadata/annotations.yaml` declares it, or if it declares none and a manifest is a
/// ClusterServiceVersion.
pub(crate) fn detect(content: &dyn Content) -> Option<String> {
    let is_csv =
        |path: &str| content.read_at(path, 0, HEAD).is_ok_and(|bytes| mentions_csv(&bytes)) && holds_csv(content, path);
    let recognised = match load::annotations(content).get(MEDIA_TYPE) {
        Some(media_type) => media_type == FORMAT,
        None => content.page(load::MANIFESTS, None, MOST_FILES).iter().any(|entry| is_csv(&entry.path)),
    };
    recognised.then(|| FORMAT.to_owned())
}

/// Whether a manifest that has the word is a ClusterServiceVersion: the CRD that OLM ships has it, too. A file that cannot be parsed counts,
/// so that its errors are reported.
fn holds_csv(content: &dyn Content, path: &str) -> bool {
    read_documents(content, path).map_or(true, |documents| documents.iter().any(is_csv))
}

fn is_csv(node: &Node) -> bool {
    node.get("kind").and_then(Node::as_str) == Some(KIND)
}

/// Whether a manifest may be a ClusterServiceVersion: a search for the word, far cheaper than parsing.
pub(crate) fn mentions_csv(bytes: &[u8]) -> bool {
    // Searching text is many times faster than comparing windows of bytes; if the end is not valid UTF-8, as with a
    // truncated character, the part before it is searched.
    bytes.utf8_chunks().any(|chunk| chunk.valid().contains(KIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_is_found_anywhere_in_the_text() {
        assert!(mentions_csv(b"kind: ClusterServiceVersion"));
        assert!(mentions_csv(b"\xff\xc3 ClusterServiceVersion \xff"));
        assert!(!mentions_csv(b"kind: ClusterServiceVersio"));
        assert!(!mentions_csv(b""));
    }
}
