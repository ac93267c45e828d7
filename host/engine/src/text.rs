//! Text from guests, made fit for messages.

/// At most `limit` bytes of the text, cut between characters with `…` behind, its control characters other than line feed
/// and tab replaced.
pub(crate) fn tame(text: String, limit: usize) -> String {
    let text = truncate(text, limit);
    if text.chars().all(is_tame) {
        return text;
    }
    text.chars().map(|char| if is_tame(char) { char } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn is_tame(char: char) -> bool {
    !char.is_control() || matches!(char, '\n' | '\t')
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
        assert_eq!(tame("a\u{1b}[31m\nb".into(), 100), "a\u{fffd}[31m\nb");
    }

    proptest! {
        #[test]
        fn the_limit_holds(text: String, limit in 3_usize..64) {
            prop_assert!(truncate(text, limit).len() <= limit);
        }
    }
}
