//! Repeated signs: the parser takes `!!a` for `!a` and `--a` for `-a`.

use std::borrow::Cow;

/// The text with an even number of signs before an operand left out, and one sign for an odd number. Blanks take their place, so that
/// positions stay the same.
pub(crate) fn collapsed(text: &str) -> Cow<'_, str> {
    let mut scanner = Scanner { text, position: 0, operand: false };
    let mut blanks: Vec<usize> = Vec::new();
    while let Some(token) = scanner.next() {
        if let Token::Signs(mut positions) = token {
            let kept = positions.len() % 2;
            blanks.extend(positions.drain(kept..));
        }
    }
    if blanks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut blanks = blanks.into_iter().peekable();
    let blanked = text.char_indices().map(
        |(position, character)| {
            if blanks.next_if_eq(&position).is_some() { ' ' } else { character }
        },
    );
    Cow::Owned(blanked.collect())
}

enum Token {
    /// The positions of equal signs before an operand.
    Signs(Vec<usize>),
    /// Anything else.
    Other,
}

struct Scanner<'a> {
    text: &'a str,
    position: usize,
    /// Whether an operand ends here, so that a minus is an operator.
    operand: bool,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<Token> {
        let rest = self.text.get(self.position..)?;
        let first = rest.chars().next()?;
        if first.is_whitespace() {
            self.position += first.len_utf8();
            return Some(Token::Other);
        }
        if rest.starts_with("//") {
            self.position += rest.find('\n').unwrap_or(rest.len());
            return Some(Token::Other);
        }
        if let Some(length) = string(rest) {
            self.position += length;
            self.operand = true;
            return Some(Token::Other);
        }
        if first.is_alphanumeric() || first == '_' {
            let word = rest.find(|next: char| !(next.is_alphanumeric() || next == '_')).unwrap_or(rest.len());
            self.position += word;
            self.operand = rest.get(..word) != Some("in");
            return Some(Token::Other);
        }
        let sign = matches!(first, '!' | '-') && !rest.starts_with("!=") && !(first == '-' && self.operand);
        if sign {
            return Some(self.signs(first));
        }
        self.position += if rest.starts_with("!=") { 2 } else { first.len_utf8() };
        self.operand = matches!(first, ')' | ']' | '}');
        Some(Token::Other)
    }

    fn signs(&mut self, sign: char) -> Token {
        let mut positions = Vec::new();
        while let Some(rest) = self.text.get(self.position..) {
            let blanks = rest.len() - rest.trim_start().len();
            let rest = rest.trim_start();
            if !rest.starts_with(sign) || rest.starts_with("!=") {
                break;
            }
            positions.push(self.position + blanks);
            self.position += blanks + 1;
        }
        self.operand = false;
        Token::Signs(positions)
    }
}

/// The length of a string that a text begins with.
fn string(text: &str) -> Option<usize> {
    let prefix = text.bytes().take_while(|byte| matches!(byte, b'r' | b'R' | b'b' | b'B')).count();
    let quoted = text.get(prefix..)?;
    let quote = quoted.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    if prefix > 2 {
        return None;
    }
    let raw = text.get(..prefix)?.contains(['r', 'R']);
    let triple: String = [quote; 3].iter().collect();
    let delimiter = if quoted.starts_with(&triple) { triple } else { quote.to_string() };
    let mut position = prefix + delimiter.len();
    loop {
        let rest = text.get(position..)?;
        if rest.starts_with(&delimiter) {
            return Some(position + delimiter.len());
        }
        let mut characters = rest.chars();
        let Some(next) = characters.next() else { return Some(text.len()) };
        position += next.len_utf8();
        if next == '\\' && !raw {
            position += characters.next().map_or(0, char::len_utf8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_collapsed() {
        for (text, expected) in [
            ("!!a", "  a"),
            ("!!!a", "!  a"),
            ("! !a && !b", "   a && !b"),
            ("--a - --b", "  a -   b"),
            ("a - -b", "a - -b"),
            ("a--b", "a--b"),
            ("f(--1)[--2] --3", "f(  1)[  2] --3"),
            ("a in --b", "a in   b"),
            ("!-a", "!-a"),
            ("a != !b", "a != !b"),
            ("'!!--' + \"--\" + r'\\' + '\\'!!' + '''a'!!'''", "'!!--' + \"--\" + r'\\' + '\\'!!' + '''a'!!'''"),
            ("a // !!b\n!!c", "a // !!b\n  c"),
            ("'unfinished !!", "'unfinished !!"),
            ("ä!!ö", "ä  ö"),
        ] {
            assert_eq!(collapsed(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_keeps_its_length(text in "[-!a'\"\\\\r \n/=()ä]{0,40}") {
            let found = collapsed(&text);
            proptest::prop_assert_eq!(found.len(), text.len());
            proptest::prop_assert_eq!(collapsed(&found), found.as_ref(), "once is enough");
        }
    }
}
