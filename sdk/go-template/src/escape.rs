//! The escaping of `html`, `js` and `urlquery`.

use std::fmt::Write as _;

use crate::{Limit, Meter, Str, literal::is_printable};

/// `html`.
pub(crate) fn html(text: &Str, meter: &mut Meter) -> Result<Str, Limit> {
    meter.charge(text.len().saturating_mul(5))?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text.as_bytes() {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    Ok(out.into())
}

/// `js`.
pub(crate) fn javascript(text: &Str, meter: &mut Meter) -> Result<Str, Limit> {
    meter.charge(text.len().saturating_mul(6))?;
    let mut out = String::with_capacity(text.len());
    for char in text.text().chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' => out.push_str("\\u003C"),
            '>' => out.push_str("\\u003E"),
            '&' => out.push_str("\\u0026"),
            '=' => out.push_str("\\u003D"),
            _ if !is_printable(char) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", char as u32);
            }
            _ => out.push(char),
        }
    }
    Ok(out.into())
}

/// `urlquery`.
pub(crate) fn query(text: &Str, meter: &mut Meter) -> Result<Str, Limit> {
    meter.charge(text.len().saturating_mul(3))?;
    let mut out = String::with_capacity(text.len());
    for byte in text.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            b' ' => out.push('+'),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    Ok(out.into())
}
