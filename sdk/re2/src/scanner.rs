//! Reads a text from start to end.

/// The end of a named class.
const NAME_END: &str = ":]";

/// The rest of a text.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
    /// The length of the rest after the last named class; zero if there is none. It is computed once, since each bracket would
    /// search again.
    last_name: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, last_name: text.rfind(NAME_END).map_or(0, |at| text.len() - at) }
    }

    /// The rest.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Reads the rest.
    pub(crate) fn all(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// Reads the name of a class and its end, if the end of one follows.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        if self.last_name == 0 || self.rest.len() < self.last_name { None } else { self.until(NAME_END) }
    }

    /// The next character, which is not read.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Reads the next character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        Some(character)
    }

    /// Reads this text if it comes next; returns whether it did.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads up to and including this text; returns the part before it.
    pub(crate) fn until(&mut self, text: &str) -> Option<&'a str> {
        let (before, after) = self.rest.split_once(text)?;
        self.rest = after;
        Some(before)
    }

    /// Reads characters of this kind, up to a limit.
    pub(crate) fn run(&mut self, most: usize, is: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.chars().take(most).take_while(|character| is(*character)).map(char::len_utf8).sum();
        let (run, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        run
    }
}
