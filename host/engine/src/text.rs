//! Sanitizes text from guests for messages.

use std::borrow::Cow;

use chandler_core::text::printable;

/// The text with control characters [escaped](printable), truncated to at most `limit` bytes at a character boundary
/// and then marked with `…`.
pub(crate) fn sanitize(text: String, limit: usize) -> String {
    let text = truncate(text, limit);
    match printable(&text) {
        Cow::Borrowed(_) => text,
        // Escaping made the text longer.
        Cow::Owned(escaped) => truncate(escaped, limit),
    }
}

/// The text, truncated to at most `limit` bytes at a character boundary and then marked with `…`.
pub(crate) fn truncate(mut text: String, limit: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(ELLIPSIS.len_utf8())));
        text.push(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_text_is_truncated_at_a_character_boundary() {
        assert_eq!(truncate("abc".into(), 3), "abc");
        assert_eq!(truncate("abcdef".into(), 5), "ab…");
        assert_eq!(truncate("ääää".into(), 6), "ä…");
        assert_eq!(sanitize("a\u{1b}[31m\nb\u{61c}".into(), 100), "a\\u{001B}[31m\nb\\u{061C}");
    }

    proptest! {
        #[test]
        fn the_limit_holds(text: String, limit in 3_usize..64) {
            prop_assert!(sanitize(text.clone(), limit).len() <= limit);
            prop_assert!(truncate(text, limit).len() <= limit);
        }
    }
}
