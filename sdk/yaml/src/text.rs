//! Decodes bytes to text: encodings, and the characters that YAML forbids.

use crate::ParseError;

/// The text, without a byte order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, ParseError> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(ParseError { line: 1, column: 1, message: "not UTF-8 but UTF-16".to_owned() });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok());
        let (line, column) = end(valid.unwrap_or_default());
        ParseError { line, column, message: "not UTF-8".to_owned() }
    })
}

/// Refuses the characters that libyaml and go-yaml refuse. Among them is NUL, which the scanner would treat as the end
/// of the text, silently dropping the rest.
pub(crate) fn check_characters(text: &str) -> Result<(), ParseError> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = bytes.get(from..).and_then(|rest| rest.iter().position(|byte| may_be_forbidden(*byte))) {
        let at = from + at;
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if is_forbidden(character) {
            let (line, column) = end(text.get(..at).unwrap_or_default());
            let message = format!("control characters are not allowed, and this is U+{:04X}", u32::from(character));
            return Err(ParseError { line, column, message });
        }
        from = at + character.len_utf8();
    }
    Ok(())
}

/// Whether a forbidden character may begin with this byte.
fn may_be_forbidden(byte: u8) -> bool {
    match byte {
        b'\t' | b'\n' | b'\r' => false,
        0..=0x1f | 0x7f | 0xc2 | 0xef => true,
        _ => false,
    }
}

fn is_forbidden(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => false,
    }
}

/// The position behind a text, counted from 1.
fn end(text: &str) -> (u32, u32) {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    let last = text.rsplit('\n').next().unwrap_or_default();
    (count(lines + 1), count(last.chars().count() + 1))
}

/// A line or column as u32; texts are shorter than 4 GiB.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
