//! The kinds of generated values.

use std::{fmt::Write as _, io, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The minimum, default and maximum length of a password, in characters.
const PASSWORD: (u16, u16, u16) = (12, 32, 1024);
/// The minimum, default and maximum number of random bytes in `hex` and `base64`.
const BYTES: (u16, u16, u16) = (16, 32, 1024);

/// The characters of a password; none needs quoting in any program.
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The kind of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This many letters and digits.
    Password(u16),
    /// This many random bytes in hexadecimal.
    Hex(u16),
    /// This many random bytes in base64: the value itself is text, which the Secret encodes in base64 again.
    Base64(u16),
    /// A version 4 UUID.
    Uuid,
}

/// Why a text is not a valid kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// The kind is unknown.
    #[error("unknown kind; it must be password, hex, base64 or uuid")]
    Unknown,
    /// The length is not a number or out of bounds.
    #[error("the length must be a number from {0} to {1}")]
    Length(u16, u16),
    /// A length was given for a UUID.
    #[error("a uuid takes no length")]
    NoLength,
}

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let (kind, length) = text.split_once(':').map_or((text, None), |(kind, length)| (kind, Some(length)));
        let within = |(least, default, most): (u16, u16, u16)| match length {
            None => Ok(default),
            Some(length) => {
                let number = length.parse().ok().filter(|number| (least..=most).contains(number));
                number.ok_or(KindError::Length(least, most))
            }
        };
        match kind {
            "password" => within(PASSWORD).map(Self::Password),
            "hex" => within(BYTES).map(Self::Hex),
            "base64" => within(BYTES).map(Self::Base64),
            "uuid" if length.is_none() => Ok(Self::Uuid),
            "uuid" => Err(KindError::NoLength),
            _ => Err(KindError::Unknown),
        }
    }
}

impl Kind {
    /// Generates a value.
    pub(super) fn make(self, random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<Vec<u8>> {
        let mut bytes = |count: u16| {
            let mut bytes = vec![0; usize::from(count)];
            random(&mut bytes).map(|()| bytes)
        };
        match self {
            Self::Password(length) => password(length, random),
            Self::Hex(count) => Ok(hex::encode(bytes(count)?).into_bytes()),
            Self::Base64(count) => Ok(STANDARD.encode(bytes(count)?).into_bytes()),
            Self::Uuid => Ok(uuid(&bytes(16)?).into_bytes()),
        }
    }
}

/// Random letters, all equally likely: bytes that would favour some letters are discarded.
fn password(length: u16, random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let fair = u8::MAX - u8::MAX % 62;
    let mut password = Vec::with_capacity(usize::from(length));
    while password.len() < usize::from(length) {
        let mut bytes = [0; 64];
        random(&mut bytes)?;
        let letters = bytes.iter().filter(|byte| **byte < fair).filter_map(|byte| LETTERS.get(usize::from(byte % 62)));
        let missing = usize::from(length) - password.len();
        password.extend(letters.take(missing));
    }
    Ok(password)
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let byte = match index {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        let _ = write!(text, "{byte:02x}");
    }
    text
}
