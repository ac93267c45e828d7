//! Whether content is a registry+v1 bundle.

use chandler_sdk::Content;

use crate::load;

/// What this provisioner calls its format.
pub(crate) const FORMAT: &str = "registry+v1";

/// The annotation with the media type of a bundle's content.
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";

/// More manifests than this are not looked into: those of real bundles have a hundred at most.
const MOST_FILES: u32 = 200;

/// A ClusterServiceVersion names its kind within so many bytes of its beginning, or within the whole small file.
const HEAD: u32 = 256 * 1024;

/// The format, if `metadata/annotations.yaml` names it, or if it names none and some manifest is a ClusterServiceVersion.
pub(crate) fn detect(content: &dyn Content) -> Option<String> {
    let is_csv = |path: &str| content.read_at(path, 0, HEAD).is_ok_and(|bytes| mentions_csv(&bytes));
    let recognised = match load::annotations(content).get(MEDIA_TYPE) {
        Some(media_type) => media_type == FORMAT,
        None => content.page(load::MANIFESTS, None, MOST_FILES).iter().any(|entry| is_csv(&entry.path)),
    };
    recognised.then(|| FORMAT.to_owned())
}

/// Whether a manifest may be a ClusterServiceVersion: a search for the word, far cheaper than parsing.
pub(crate) fn mentions_csv(bytes: &[u8]) -> bool {
    const WORD: &str = "ClusterServiceVersion";
    // The search in text is many times faster than one that compares windows of bytes; text that is none at its end, as
    // where a character is cut in two, is searched up to there.
    bytes.utf8_chunks().any(|chunk| chunk.valid().contains(WORD))
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
