//! A text that is read from its start to its end.

/// What ends a named class.
const NAME_END: &str = ":]";

/// What is left of a text.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
    /// How much was left where the last named class ends; zero where none does. Looked for once: each bracket would look again.
    last_name: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, last_name: text.rfind(NAME_END).map_or(0, |at| text.len() - at) }
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// All that is left, which is read.
    pub(crate) fn all(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// The name of a class, if the end of one is still to come; it is read with its end.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        if self.last_name == 0 || self.rest.len() < self.last_name { None } else { self.until(NAME_END) }
    }

    /// The next character, which stays.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        Some(character)
    }

    /// Whether this comes next; then it is read.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// What comes before this text, and is read with it.
    pub(crate) fn until(&mut self, text: &str) -> Option<&'a str> {
        let (before, after) = self.rest.split_once(text)?;
        self.rest = after;
        Some(before)
    }

    /// As many of the next characters as are of this kind, at most so many.
    pub(crate) fn run(&mut self, most: usize, is: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.chars().take(most).take_while(|character| is(*character)).map(char::len_utf8).sum();
        let (run, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        run
    }
}
