//! The kinds of generated values.

use std::{fmt::Write as _, io, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The minimum, default and maximum length of a password, in characters. Eight letters and digits have 47 bits.
const PASSWORD: (u16, u16, u16) = (8, 32, 1024);
/// The minimum, default and maximum number of digits. Sixteen have 53 bits.
const DIGITS: (u16, u16, u16) = (16, 32, 1024);
/// The minimum, default and maximum number of random bytes in `hex` and `base64`.
const BYTES: (u16, u16, u16) = (16, 32, 1024);

/// Letters, digits, and the symbols of [`Kind::Strong`]. No character needs quoting in any program; without the symbols, these are the characters of a password.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@";
/// Where the upper case, the lower case, the digits and the symbols begin and end in [`CHARACTERS`].
const CLASSES: [(usize, usize); 4] = [(0, 26), (26, 52), (52, 62), (62, 64)];

/// The kind of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This many letters and digits.
    Password(u16),
    /// This many letters.
    Letters(u16),
    /// This many digits.
    Digits(u16),
    /// This many printable characters of ASCII, without the space.
    Ascii(u16),
    /// This many letters, digits and symbols (`_` and `@`), with at least one upper-case letter, lower-case letter, digit and symbol.
    Strong(u16),
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
    #[error("unknown kind; it must be password, letters, digits, ascii, strong, hex, base64 or uuid")]
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
            "letters" => within(PASSWORD).map(Self::Letters),
            "digits" => within(DIGITS).map(Self::Digits),
            "ascii" => within(PASSWORD).map(Self::Ascii),
            "strong" => within(PASSWORD).map(Self::Strong),
            "hex" => within(BYTES).map(Self::Hex),
            "base64" => within(BYTES).map(Self::Base64),
            "uuid" if length.is_none() => Ok(Self::Uuid),
            "uuid" => Err(KindError::NoLength),
            _ => Err(KindError::Unknown),
        }
    }
}

/// A source of random bytes.
type Random<'a> = &'a mut dyn FnMut(&mut [u8]) -> io::Result<()>;

impl Kind {
    /// Generates a value.
    pub(super) fn make(self, random: Random<'_>) -> io::Result<Vec<u8>> {
        let letters = |begin: usize, end: usize| CHARACTERS.get(begin..end).unwrap_or_default();
        match self {
            Self::Password(length) => characters(letters(0, 62), length, random),
            Self::Letters(length) => characters(letters(0, 52), length, random),
            Self::Digits(length) => characters(letters(52, 62), length, random),
            Self::Ascii(length) => characters(&(b'!'..=b'~').collect::<Vec<u8>>(), length, random),
            Self::Strong(length) => strong(length, random),
            Self::Hex(count) => Ok(hex::encode(bytes(count, random)?).into_bytes()),
            Self::Base64(count) => Ok(STANDARD.encode(bytes(count, random)?).into_bytes()),
            Self::Uuid => Ok(uuid(&bytes(16, random)?).into_bytes()),
        }
    }
}

fn bytes(count: u16, random: Random<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(count)];
    random(&mut bytes)?;
    Ok(bytes)
}

/// Random characters of a set, all equally likely: bytes that would favour some are discarded.
fn characters(set: &[u8], length: u16, random: Random<'_>) -> io::Result<Vec<u8>> {
    let fair = 256 - 256_usize.checked_rem(set.len()).unwrap_or_default();
    let mut all = Vec::with_capacity(usize::from(length));
    while all.len() < usize::from(length) {
        let mut bytes = [0; 64];
        random(&mut bytes)?;
        let fair = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < fair);
        let found = fair.filter_map(|byte| set.get(byte.checked_rem(set.len())?));
        let missing = usize::from(length) - all.len();
        all.extend(found.take(missing));
    }
    Ok(all)
}

/// One character of each class, the others of any, in a random order.
fn strong(length: u16, random: Random<'_>) -> io::Result<Vec<u8>> {
    let mut all = Vec::with_capacity(usize::from(length));
    for (begin, end) in CLASSES {
        all.extend(characters(CHARACTERS.get(begin..end).unwrap_or_default(), 1, random)?);
    }
    all.extend(characters(CHARACTERS, length.saturating_sub(4), random)?);
    for last in (1..all.len()).rev() {
        let mut bytes = [0; 8];
        random(&mut bytes)?;
        // With 64 bits, no place is noticeably more likely.
        let other = u64::from_be_bytes(bytes) % (last as u64 + 1);
        all.swap(last, usize::try_from(other).unwrap_or_default());
    }
    Ok(all)
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
