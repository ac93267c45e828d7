//! A text that is read from its start to its end.

/// What is left of a text.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a>(pub(crate) &'a str);

impl<'a> Scanner<'a> {
    /// The next character, which stays.
    pub(crate) fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    /// The next character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.0 = self.0.get(character.len_utf8()..).unwrap_or_default();
        Some(character)
    }

    /// Whether this comes next; then it is read.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// What comes before this text, and is read with it.
    pub(crate) fn until(&mut self, text: &str) -> Option<&'a str> {
        let (before, after) = self.0.split_once(text)?;
        self.0 = after;
        Some(before)
    }

    /// As many of the next characters as are of this kind, at most so many.
    pub(crate) fn run(&mut self, most: usize, is: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.char_indices().take(most).find(|(_, character)| !is(*character)).map(|(at, _)| at);
        let most = self.0.char_indices().nth(most).map_or(self.0.len(), |(at, _)| at);
        let (run, rest) = self.0.split_at_checked(end.unwrap_or(most)).unwrap_or((self.0, ""));
        self.0 = rest;
        run
    }
}
