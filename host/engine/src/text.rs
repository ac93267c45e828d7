//! Text from guests, made fit for messages.

use std::borrow::Cow;

use chandler_core::text::printable;

/// At most `limit` bytes of the text as it may be [shown](printable), cut between characters with `…` behind.
pub(crate) fn tame(text: String, limit: usize) -> String {
    let text = truncate(text, limit);
    match printable(&text) {
        Cow::Borrowed(_) => text,
        // Longer than before.
        Cow::Owned(escaped) => truncate(escaped, limit),
    }
}

/// At most `limit` bytes of the text, cut between characters, with `…` behind where something was cut.
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
    fn long_text_is_cut_between_characters() {
        assert_eq!(truncate("abc".into(), 3), "abc");
        assert_eq!(truncate("abcdef".into(), 5), "ab…");
        assert_eq!(truncate("ääää".into(), 6), "ä…");
        assert_eq!(tame("a\u{1b}[31m\nb\u{61c}".into(), 100), "a\\u{001B}[31m\nb\\u{061C}");
    }

    proptest! {
        #[test]
        fn the_limit_holds(text: String, limit in 3_usize..64) {
            prop_assert!(tame(text.clone(), limit).len() <= limit);
            prop_assert!(truncate(text, limit).len() <= limit);
        }
    }
}
