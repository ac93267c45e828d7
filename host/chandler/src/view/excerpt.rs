//! The lines around a location in a file, truncated to the width of a screen.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::text::{one_line, printable};

/// Lines shown before and after the target line.
const CONTEXT: usize = 1;
/// Longer lines are truncated to this number of characters. Some bundles have files with one line of 1 MiB.
const LINE_LENGTH: usize = 160;
/// Characters shown before the location in a truncated line.
const BEFORE: usize = 60;

/// A few lines of a file, with their position in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: String,
    text: String,
    /// The number of the first line shown, from 0.
    first_line: usize,
    /// The first column of the target line that is shown, from 0.
    first_column: usize,
    /// The marked text: its start and length in bytes of `text`.
    start: usize,
    length: usize,
}

impl Excerpt {
    /// The lines around `line` and `column`, both counted from 1. `None` if the file has no such line.
    pub fn new(name: &str, text: &[u8], line: u32, column: Option<u32>) -> Option<Self> {
        let target = usize::try_from(line).ok()?.checked_sub(1)?;
        let column = column.and_then(|column| usize::try_from(column).ok()?.checked_sub(1));
        let first_line = target.saturating_sub(CONTEXT);
        let mut excerpt =
            Self { name: one_line(name), text: String::new(), first_line, first_column: 0, start: 0, length: 0 };
        let mut found = false;
        let lines = text.split(|byte| *byte == b'\n').enumerate();
        for (number, line) in lines.skip(first_line).take(target - first_line + 1 + CONTEXT) {
            let line = String::from_utf8_lossy(line);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            // Escaping a character makes it wider.
            let column =
                column.map(|column| printable(line.get(..byte_of(line, column)).unwrap_or(line)).chars().count());
            let line = printable(line).into_owned();
            if number > first_line {
                excerpt.text.push('\n');
            }
            if number == target {
                found = true;
                excerpt.push_target(&line, column);
            } else {
                excerpt.text.push_str(&truncate(&line, 0));
            }
        }
        if found && excerpt.start + excerpt.length < excerpt.text.len() && excerpt.text.ends_with('\n') {
            // No line follows the last line feed of a file.
            excerpt.text.pop();
        }
        found.then_some(excerpt)
    }

    fn push_target(&mut self, line: &str, column: Option<usize>) {
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        let column = column.unwrap_or(indent).min(line.chars().count());
        self.first_column = if line.chars().count() > LINE_LENGTH { column.saturating_sub(BEFORE) } else { 0 };
        let shown = truncate(line, self.first_column);
        let at = byte_of(&shown, column - self.first_column);
        self.start = self.text.len() + at;
        self.length = token(shown.get(at..).unwrap_or_default());
        self.text.push_str(&shown);
    }

    /// The marked text, in bytes of the excerpt.
    pub fn span(&self) -> SourceSpan {
        (self.start, self.length).into()
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        // A span with context starts at the beginning of a line; only a span without context has a column.
        let column = if before == 0 { inner.column() + self.first_column } else { inner.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line() + self.first_line,
            column,
            inner.line_count(),
        )))
    }
}

/// At most [`LINE_LENGTH`] characters of a line, from this one.
fn truncate(line: &str, from: usize) -> String {
    line.chars().skip(from).take(LINE_LENGTH).collect()
}

/// The byte offset of the character with this index.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
}

/// The length in bytes of the first token of `text`: a quoted string, a key or a word.
fn token(text: &str) -> usize {
    let mut characters = text.char_indices();
    let end = match characters.next() {
        None => 0,
        Some((_, quote @ ('"' | '\''))) => {
            characters.find(|(_, c)| *c == quote).map_or(text.len(), |(byte, c)| byte + c.len_utf8())
        }
        Some((_, first)) => {
            let end = characters.find(|(_, c)| c.is_whitespace() || matches!(c, ',' | ']' | '}'));
            let word = text.get(..end.map_or(text.len(), |(byte, _)| byte)).unwrap_or(text);
            word.strip_suffix(':').unwrap_or(word).len().max(first.len_utf8())
        }
    };
    end.max(usize::from(!text.is_empty()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(excerpt: &Excerpt) -> &str {
        &excerpt.text[excerpt.start..excerpt.start + excerpt.length]
    }

    #[test]
    fn the_token_at_the_location_is_marked() {
        let text = b"kind: Deployment\nspec: {name: \"a b\", replicas: 3}\nlast: [x, y]";
        for (line, column, what) in [
            (1, Some(1), "kind"),
            (1, Some(7), "Deployment"),
            (2, Some(14), "\"a b\""),
            (2, Some(31), "3"),
            (3, Some(8), "x"),
            (3, Some(99), ""),
            (1, None, "kind"),
        ] {
            let excerpt = Excerpt::new("a.yaml", text, line, column).unwrap();
            assert_eq!(marked(&excerpt), what, "{line}:{column:?}");
        }
        assert_eq!(Excerpt::new("a.yaml", text, 4, None), None);
        assert_eq!(Excerpt::new("a.yaml", text, 0, None), None);
    }

    #[test]
    fn a_long_line_is_truncated_around_the_location() {
        let text = format!("first\n{}\"needle\": 1{}\n", "x".repeat(1 << 20), "y".repeat(1 << 20));
        let excerpt = Excerpt::new("a.json", text.as_bytes(), 2, Some((1 << 20) + 1)).unwrap();
        assert_eq!(marked(&excerpt), "\"needle\"");
        assert!(excerpt.text.len() < 3 * LINE_LENGTH);
        let contents = excerpt.read_span(&excerpt.span(), 0, 0).unwrap();
        assert_eq!((contents.line(), contents.column()), (1, 1 << 20));
    }

    #[test]
    fn control_characters_are_escaped() {
        let excerpt = Excerpt::new("a\u{1b}[0m", b"a: \x1b[2J\r\n", 1, None).unwrap();
        let shifted = Excerpt::new("a", "a: \u{61c}b".as_bytes(), 1, Some(5)).unwrap();
        assert_eq!(marked(&shifted), "b");
        assert!(!excerpt.text.contains('\u{1b}') && !excerpt.text.contains('\r') && !excerpt.name.contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn any_location_in_any_text_can_be_shown(text: Vec<u8>, line: u32, column: Option<u32>) {
            for line in [line, line % 8] {
                if let Some(excerpt) = Excerpt::new("x", &text, line, column) {
                    prop_assert!(excerpt.read_span(&excerpt.span(), 1, 1).is_ok());
                }
            }
        }
    }
}
