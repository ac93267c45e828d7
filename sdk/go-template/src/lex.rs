//! The lexer: text and actions, with trim markers and comments.

use std::fmt;

use crate::literal::quote;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    String,
    Text,
    Variable,
    Keyword(Keyword),
}

/// The words that cannot be functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Dot,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

/// A token. The value of an error is its message.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Where it begins, in bytes.
    pub(crate) position: usize,
    pub(crate) line: usize,
    pub(crate) value: String,
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::End => formatter.write_str("EOF"),
            Kind::Error => formatter.write_str(&self.value),
            Kind::Keyword(_) => write!(formatter, "<{}>", self.value),
            _ => match self.value.char_indices().nth(10) {
                Some((end, _)) => {
                    write!(formatter, "{}...", quote(self.value.get(..end).unwrap_or_default().as_bytes()))
                }
                None => formatter.write_str(&quote(self.value.as_bytes())),
            },
        }
    }
}

/// Reads tokens from a text.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// Where the next token begins.
    start: usize,
    line: usize,
    inside: bool,
    parentheses: usize,
    failed: bool,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_alphanumeric(char: char) -> bool {
    // Go's unicode.IsLetter and IsDigit; Rust's tables have letter-like marks and other numbers as well, which no chart uses in a name.
    char == '_' || char.is_alphanumeric()
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, start: 0, line: 1, inside: false, parentheses: 0, failed: false }
    }

    /// A part of the text.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Takes the next bytes as a token.
    fn emit(&mut self, kind: Kind, length: usize) -> Token {
        let value = self.rest().get(..length).unwrap_or_default();
        let token = Token { kind, position: self.start, line: self.line, value: value.to_owned() };
        self.skip(length);
        token
    }

    fn skip(&mut self, length: usize) {
        self.line += newlines(self.rest().get(..length).unwrap_or_default());
        self.start += length;
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        self.failed = true;
        Token { kind: Kind::Error, position: self.start, line: self.line, value: message.into() }
    }

    pub(crate) fn next(&mut self) -> Token {
        if self.failed {
            return Token { kind: Kind::End, position: 0, line: self.line, value: "EOF".into() };
        }
        if self.inside { self.action() } else { self.outside() }
    }

    /// The token outside of actions.
    fn outside(&mut self) -> Token {
        loop {
            let rest = self.rest();
            let Some(at) = rest.find("{{") else {
                return if rest.is_empty() {
                    Token { kind: Kind::End, position: self.start, line: self.line, value: "EOF".into() }
                } else {
                    self.emit(Kind::Text, rest.len())
                };
            };
            let trims = trims_left(rest.get(at + 2..).unwrap_or_default());
            if at > 0 {
                let text = rest.get(..at).unwrap_or_default();
                let kept = if trims { text.trim_end_matches(SPACES).len() } else { at };
                if kept > 0 {
                    let token = self.emit(Kind::Text, kept);
                    self.skip(at - kept);
                    return token;
                }
                self.skip(at);
            }
            let marker = if trims { 2 } else { 0 };
            if !self.rest().get(2 + marker..).is_some_and(|rest| rest.starts_with("/*")) {
                let token = self.emit(Kind::LeftDelimiter, 2);
                self.skip(marker);
                self.inside = true;
                self.parentheses = 0;
                return token;
            }
            self.skip(2 + marker);
            let rest = self.rest();
            let Some(end) = rest.get(2..).and_then(|rest| rest.find("*/")) else {
                return self.error("unclosed comment");
            };
            let end = end + 4;
            let Some(trims) = right_delimiter(rest.get(end..).unwrap_or_default()) else {
                return self.error("comment ends before closing delimiter");
            };
            self.skip(end + 2 + if trims { 2 } else { 0 });
            if trims {
                self.trim();
            }
        }
    }

    fn trim(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
    }

    fn close(&mut self, trims: bool) -> Token {
        if trims {
            self.skip(2);
        }
        let token = self.emit(Kind::RightDelimiter, 2);
        if trims {
            self.trim();
        }
        self.inside = false;
        token
    }

    /// The token inside of an action.
    fn action(&mut self) -> Token {
        let rest = self.rest();
        if let Some(trims) = right_delimiter(rest) {
            return if self.parentheses == 0 { self.close(trims) } else { self.error("unclosed left paren") };
        }
        let Some(char) = rest.chars().next() else { return self.error("unclosed action") };
        let after = rest.get(char.len_utf8()..).unwrap_or_default();
        match char {
            ' ' | '\t' | '\r' | '\n' => {
                let mut spaces = rest.bytes().take_while(|byte| is_space(*byte)).count();
                // The last space may belong to a trim marker.
                if rest.get(spaces..).is_some_and(|rest| rest.starts_with("-}}")) {
                    spaces -= 1;
                }
                self.emit(Kind::Space, spaces)
            }
            '=' => self.emit(Kind::Assign, 1),
            ':' if after.starts_with('=') => self.emit(Kind::Declare, 2),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe, 1),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => match after.find('`') {
                Some(end) => self.emit(Kind::RawString, end + 2),
                None => self.error("unterminated raw quoted string"),
            },
            '$' => self.name(Kind::Variable, Kind::Variable),
            '.' if !after.starts_with(|char: char| char.is_ascii_digit()) && !after.is_empty() => {
                self.name(Kind::Field, Kind::Keyword(Keyword::Dot))
            }
            '.' | '+' | '-' | '0'..='9' => self.number(),
            '(' => {
                self.parentheses += 1;
                self.emit(Kind::LeftParenthesis, 1)
            }
            ')' if self.parentheses == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parentheses -= 1;
                self.emit(Kind::RightParenthesis, 1)
            }
            _ if is_alphanumeric(char) => self.word(),
            ' '..='~' => self.emit(Kind::Char, 1),
            _ => self.error(format!("unrecognized character in action: {}", unicode(char))),
        }
    }

    /// A field or variable; with nothing after its first character, it is `alone`.
    fn name(&mut self, kind: Kind, alone: Kind) -> Token {
        let rest = self.rest();
        let after = rest.get(1..).unwrap_or_default();
        if terminates(after) {
            return self.emit(alone, 1);
        }
        let length = 1 + after.find(|char| !is_alphanumeric(char)).unwrap_or(after.len());
        self.terminated(kind, length)
    }

    fn terminated(&mut self, kind: Kind, length: usize) -> Token {
        let after = self.rest().get(length..).unwrap_or_default();
        match after.chars().next() {
            Some(char) if !terminates(after) => self.error(format!("bad character {}", unicode(char))),
            _ => self.emit(kind, length),
        }
    }

    fn word(&mut self) -> Token {
        let rest = self.rest();
        let length = rest.find(|char| !is_alphanumeric(char)).unwrap_or(rest.len());
        let kind = match rest.get(..length).unwrap_or_default() {
            "block" => Kind::Keyword(Keyword::Block),
            "break" => Kind::Keyword(Keyword::Break),
            "continue" => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "nil" => Kind::Keyword(Keyword::Nil),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.terminated(kind, length)
    }

    fn quoted(&mut self, mark: char, kind: Kind, message: &str) -> Token {
        let mut escaped = false;
        for (index, char) in self.rest().char_indices().skip(1) {
            match char {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if char == mark => return self.emit(kind, index + 1),
                _ => {}
            }
        }
        self.error(message)
    }

    fn number(&mut self) -> Token {
        let bytes = self.rest().as_bytes();
        let mut at = 0;
        let accept = |at: &mut usize, set: &[u8]| {
            let found = bytes.get(*at).is_some_and(|byte| set.contains(byte));
            *at += usize::from(found);
            found
        };
        accept(&mut at, b"+-");
        let mut digits: &[u8] = b"0123456789_";
        let mut exponent: &[u8] = b"eE";
        if accept(&mut at, b"0") {
            if accept(&mut at, b"xX") {
                (digits, exponent) = (b"0123456789abcdefABCDEF_", b"pP");
            } else if accept(&mut at, b"oO") {
                (digits, exponent) = (b"01234567_", b"");
            } else if accept(&mut at, b"bB") {
                (digits, exponent) = (b"01_", b"");
            }
        }
        while accept(&mut at, digits) {}
        if accept(&mut at, b".") {
            while accept(&mut at, digits) {}
        }
        if accept(&mut at, exponent) {
            accept(&mut at, b"+-");
            while accept(&mut at, b"0123456789_") {}
        }
        let rest = self.rest().get(at..).unwrap_or_default();
        let bad = match rest.chars().next() {
            // Complex numbers, which no function takes.
            Some('+' | '-') => Some(1),
            Some(char) if is_alphanumeric(char) => Some(char.len_utf8()),
            _ => None,
        };
        match bad {
            Some(length) => {
                let text = quote(self.rest().get(..at + length).unwrap_or_default().as_bytes());
                self.error(format!("bad number syntax: {text}"))
            }
            None => self.emit(Kind::Number, at),
        }
    }
}

/// Whether a left delimiter with this behind it trims the text before it.
fn trims_left(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-', space, ..] if is_space(*space))
}

/// Whether the text begins with a right delimiter, and whether that trims the text after it.
fn right_delimiter(text: &str) -> Option<bool> {
    match text.as_bytes() {
        [space, b'-', b'}', b'}', ..] if is_space(*space) => Some(true),
        [b'}', b'}', ..] => Some(false),
        _ => None,
    }
}

/// Whether a name may end before this text.
fn terminates(text: &str) -> bool {
    text.is_empty()
        || text.starts_with(SPACES)
        || text.starts_with(['.', ',', '|', ':', ')', '('])
        || text.starts_with("}}")
}

/// A character as Go's `%#U` prints it.
fn unicode(char: char) -> String {
    let code = char as u32;
    if crate::literal::is_printable(char) { format!("U+{code:04X} '{char}'") } else { format!("U+{code:04X}") }
}
