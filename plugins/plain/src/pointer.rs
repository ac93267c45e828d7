//! JSON pointers (RFC 6901).

/// A key as a segment of a JSON pointer.
pub(crate) fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}
