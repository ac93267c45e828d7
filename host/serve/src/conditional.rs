//! Entity tags and ranges (RFC 9110, 13 and 14).

use std::ops::Bound;

use headers::{ETag, HeaderMapExt as _, IfNoneMatch, IfRange, Range};
use http::HeaderMap;

use crate::refusal::Refusal;

/// Which bytes of some content to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first byte.
    pub(crate) offset: u64,
    /// The number of bytes.
    pub(crate) length: u64,
    /// Whether it is less than was asked for without a range.
    pub(crate) is_range: bool,
}

/// Whether the caller has this very content.
pub(crate) fn is_known(headers: &HeaderMap, tag: &ETag) -> bool {
    headers.typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(tag))
}

/// The bytes that a request asks for. Of several ranges, none is served: the whole content is a valid answer (RFC 9110, 14.2).
pub(crate) fn part(headers: &HeaderMap, tag: &ETag, bytes: u64) -> Result<Part, Refusal> {
    let whole = Part { offset: 0, length: bytes, is_range: false };
    let Some(range) = headers.typed_get::<Range>() else { return Ok(whole) };
    if headers.typed_get::<IfRange>().is_some_and(|condition| condition.is_modified(Some(tag), None)) {
        return Ok(whole);
    }
    let mut ranges = range.satisfiable_ranges(bytes);
    match (ranges.next(), ranges.next()) {
        (None, _) => Err(Refusal::Range(bytes)),
        (Some(range), None) => section(range, bytes).ok_or(Refusal::Range(bytes)),
        (Some(_), Some(_)) => Ok(whole),
    }
}

fn section((start, end): (Bound<u64>, Bound<u64>), bytes: u64) -> Option<Part> {
    let offset = match start {
        Bound::Included(start) => start,
        Bound::Excluded(start) => start.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(end) => end.checked_add(1)?,
        Bound::Excluded(end) => end,
        Bound::Unbounded => bytes,
    };
    let length = end.min(bytes).checked_sub(offset).filter(|length| *length > 0)?;
    Some(Part { offset, length, is_range: true })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    fn tag() -> ETag {
        "\"a\"".parse().unwrap()
    }

    #[test]
    fn known_content_is_recognized() {
        for (value, expected) in
            [("\"a\"", true), ("\"b\", \"a\"", true), ("W/\"a\"", true), ("*", true), ("\"b\"", false)]
        {
            assert_eq!(is_known(&headers(&[("if-none-match", value)]), &tag()), expected, "{value}");
        }
        assert!(!is_known(&HeaderMap::new(), &tag()));
    }

    #[test]
    fn ranges_are_those_of_the_rfc() {
        let whole = Ok(Part { offset: 0, length: 100, is_range: false });
        let some = |offset, length| Ok(Part { offset, length, is_range: true });
        for (range, expected) in [
            ("bytes=0-9", some(0, 10)),
            ("bytes=90-", some(90, 10)),
            ("bytes=-10", some(90, 10)),
            ("bytes=0-1000", some(0, 100)),
            ("bytes=99-99", some(99, 1)),
            ("bytes=100-", Err(Refusal::Range(100))),
            ("bytes=0-1,5-6", whole.clone()),
            ("lines=0-1", whole.clone()),
            ("bytes=5-1", Err(Refusal::Range(100))),
        ] {
            assert_eq!(part(&headers(&[("range", range)]), &tag(), 100), expected, "{range}");
        }
        let of = |condition: &str| part(&headers(&[("range", "bytes=0-9"), ("if-range", condition)]), &tag(), 100);
        assert_eq!(of("\"a\""), some(0, 10));
        assert_eq!(of("\"b\""), whole);
        assert_eq!(of("W/\"a\""), whole);
    }

    proptest! {
        #[test]
        fn no_range_leaves_the_content(range in "bytes=[0-9]{0,20}-[0-9]{0,20}(,[0-9]{0,3}-[0-9]{0,3})?", bytes in 0_u64..1000) {
            if let Ok(Part { offset, length, .. }) = part(&headers(&[("range", &range)]), &tag(), bytes) {
                prop_assert!(offset.checked_add(length).is_some_and(|end| end <= bytes));
            }
        }
    }
}
