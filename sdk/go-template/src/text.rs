//! Go's strings: bytes that need not be UTF-8.

use std::{borrow::Cow, cmp::Ordering, fmt, hash, rc::Rc};

/// A string as Go has it: bytes, which are UTF-8 most of the time.
///
/// Only bytes that are not UTF-8 are kept as bytes, so that two equal strings have one form.
#[derive(Clone)]
pub struct Str(Form);

#[derive(Clone)]
enum Form {
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
}

impl Str {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Text(text) => text.as_bytes(),
            Form::Bytes(bytes) => bytes,
        }
    }

    /// The text, if the bytes are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Form::Text(text) => Some(text),
            Form::Bytes(_) => None,
        }
    }

    /// The text; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Text(text) => Cow::Borrowed(text),
            Form::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// The text in shared form; bytes that are not UTF-8 become U+FFFD.
    pub fn shared(&self) -> Rc<str> {
        match &self.0 {
            Form::Text(text) => Rc::clone(text),
            Form::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<Cow<'_, str>> for Str {
    fn from(text: Cow<'_, str>) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<Rc<str>> for Str {
    fn from(text: Rc<str>) -> Self {
        Self(Form::Text(text))
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => Self(Form::Bytes(bytes.into())),
        }
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => Self(Form::Bytes(error.into_bytes().into())),
        }
    }
}

impl Default for Str {
    fn default() -> Self {
        "".into()
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl hash::Hash for Str {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), formatter)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}
