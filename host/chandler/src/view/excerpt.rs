//! The lines around a location in a file, truncated to the width of a screen.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::{
    lines::{Cut, Window},
    text::{one_line, printable},
};

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
    /// These lines, with the location at `column` of the target line, counted from 1.
    pub fn new(name: &str, window: &Window, column: Option<u32>) -> Self {
        let column = column.and_then(|column| usize::try_from(column).ok()?.checked_sub(1));
        let first_line = window.first;
        let mut excerpt =
            Self { name: one_line(name), text: String::new(), first_line, first_column: 0, start: 0, length: 0 };
        for (number, line) in window.lines.iter().enumerate() {
            if number > 0 {
                excerpt.text.push('\n');
            }
            if number == window.target {
                excerpt.push_target(line, column);
            } else {
                excerpt.text.push_str(&truncate(&printable(&line.text), 0));
            }
        }
        if excerpt.start + excerpt.length < excerpt.text.len() && excerpt.text.ends_with('\n') {
            // An empty line at the end says nothing.
            excerpt.text.pop();
        }
        excerpt
    }

    fn push_target(&mut self, cut: &Cut, column: Option<usize>) {
        // Escaping a character makes it wider.
        let before = |column: usize| cut.text.get(..byte_of(&cut.text, column)).unwrap_or(&cut.text);
        let column = column.map(|column| printable(before(column.saturating_sub(cut.skipped))).chars().count());
        let line = printable(&cut.text);
        let (indent, length) = (line.chars().take_while(|c| c.is_whitespace()).count(), line.chars().count());
        let column = column.unwrap_or(indent).min(length);
        let is_long = cut.skipped > 0 || cut.goes_on || length > LINE_LENGTH;
        let first = if is_long { column.saturating_sub(BEFORE) } else { 0 };
        self.first_column = cut.skipped + first;
        let shown = truncate(&line, first);
        let at = byte_of(&shown, column - first);
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
    use crate::view::{
        diagnostics::{CONFIG, NamedText, Sources},
        lines::Lines,
    };

    /// The excerpt of a text that is one line of a file, or several.
    fn excerpt_of(name: &str, text: &str, line: u32, column: Option<u32>) -> Option<Excerpt> {
        let configuration = Some(NamedText { name, text });
        let window = Lines::new(&Sources { configuration, ..Sources::default() }).around(CONFIG, line, column)?;
        Some(Excerpt::new(name, &window, column))
    }

    fn marked(excerpt: &Excerpt) -> &str {
        &excerpt.text[excerpt.start..excerpt.start + excerpt.length]
    }

    #[test]
    fn the_token_at_the_location_is_marked() {
        let text = "kind: Deployment\nspec: {name: \"a b\", replicas: 3}\nlast: [x, y]";
        for (line, column, what) in [
            (1, Some(1), "kind"),
            (1, Some(7), "Deployment"),
            (2, Some(14), "\"a b\""),
            (2, Some(31), "3"),
            (3, Some(8), "x"),
            (3, Some(99), ""),
            (1, None, "kind"),
        ] {
            let excerpt = excerpt_of("a.yaml", text, line, column).unwrap();
            assert_eq!(marked(&excerpt), what, "{line}:{column:?}");
        }
        assert_eq!(excerpt_of("a.yaml", text, 4, None), None);
        assert_eq!(excerpt_of("a.yaml", text, 0, None), None);
    }

    #[test]
    fn a_long_line_is_truncated_around_the_location() {
        let text = format!("first\n{}\"needle\": 1{}\n", "x".repeat(1 << 20), "y".repeat(1 << 20));
        let excerpt = excerpt_of("a.json", &text, 2, Some((1 << 20) + 1)).unwrap();
        assert_eq!(marked(&excerpt), "\"needle\"");
        assert!(excerpt.text.len() < 3 * LINE_LENGTH);
        let contents = excerpt.read_span(&excerpt.span(), 0, 0).unwrap();
        assert_eq!((contents.line(), contents.column()), (1, 1 << 20));
    }

    #[test]
    fn control_characters_are_escaped() {
        let excerpt = excerpt_of("a\u{1b}[0m", "a: \u{1b}[2J\r\n", 1, None).unwrap();
        let shifted = excerpt_of("a", "a: \u{61c}b", 1, Some(5)).unwrap();
        assert_eq!(marked(&shifted), "b");
        assert!(!excerpt.text.contains('\u{1b}') && !excerpt.text.contains('\r') && !excerpt.name.contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn any_location_in_any_text_can_be_shown(text: String, line: u32, column: Option<u32>) {
            for line in [line, line % 8] {
                if let Some(excerpt) = excerpt_of("x", &text, line, column) {
                    prop_assert!(excerpt.read_span(&excerpt.span(), 1, 1).is_ok());
                }
            }
        }
    }
}
