//! The lines of a text.

/// A line without its break and without the spaces at both ends.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: u32,
    /// The number of spaces that it begins with.
    pub(super) indent: usize,
    pub(super) text: &'a str,
    /// All of it but the break.
    pub(super) raw: &'a str,
    /// Whether a break ends it, and not the end of the text.
    pub(super) complete: bool,
}

impl Line<'_> {
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }
}

#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a str,
    number: u32,
    space: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, number: 0, space: false }
    }

    /// Whether a space ended the last line.
    pub(super) fn ended_with_space(&self) -> bool {
        self.space
    }

    /// The next line that the condition accepts; others stay.
    pub(super) fn next_if(&mut self, accept: impl FnOnce(&Line<'a>) -> bool) -> Option<Line<'a>> {
        let mut ahead = self.clone();
        let line = ahead.next().filter(accept)?;
        *self = ahead;
        Some(line)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest.as_bytes());
        let raw = self.rest.get(..end.unwrap_or(self.rest.len()))?;
        self.rest = end.map_or("", |end| self.rest.get(end + 1..).unwrap_or_default());
        self.number += 1;
        self.space = raw.ends_with(' ');
        let text = raw.trim_start_matches(' ');
        let indent = raw.len() - text.len();
        Some(Line { number: self.number, indent, text: text.trim_end_matches(' '), raw, complete: end.is_some() })
    }
}
