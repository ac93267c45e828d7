//! Literals as Go writes them: numbers and quoted strings.

use std::fmt::Write as _;

/// A number of a template, in all the types that it can have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    /// Whether it was written with a fraction, an exponent, and so has the type `float64` where no type is asked for.
    pub(crate) is_float: bool,
}

/// Reads a number.
pub(crate) fn number(text: &str) -> Result<Number, String> {
    let mut number = Number { int: integer(text), ..Number::default() };
    number.uint = unsigned(text);
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    let pointed = text.contains(['.', 'e', 'E', 'p', 'P']);
    let hex = text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X"));
    let hex_integer = hex && !text.contains(['p', 'P']);
    #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(float) = float(text) {
        if !pointed {
            return Err(format!("integer overflow: {}", quote(text.as_bytes())));
        }
        number.float = Some(float);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::float_cmp,
            reason = "exact values only"
        )]
        {
            if (float as i64) as f64 == float {
                number.int = Some(float as i64);
            }
            if (float as u64) as f64 == float {
                number.uint = Some(float as u64);
            }
        }
    }
    number.is_float = number.float.is_some() && !hex_integer && pointed;
    if number.float.is_none() {
        return Err(format!("illegal number syntax: {}", quote(text.as_bytes())));
    }
    Ok(number)
}

/// Reads a character constant with its quotes.
pub(crate) fn character(text: &str) -> Result<Number, String> {
    let body = text.get(1..).unwrap_or_default().as_bytes();
    let mut rest = body;
    let value = if rest.first() == Some(&b'\'') { None } else { unquote_char(&mut rest, b'\'') };
    let value = value.ok_or("invalid syntax")?;
    if rest != b"'" {
        return Err(format!("malformed character constant: {text}"));
    }
    let code = match value {
        Unquoted::Char(char) => char as u32,
        Unquoted::Byte(byte) => u32::from(byte),
    };
    Ok(Number {
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        is_float: false,
    })
}

/// An integer with Go's prefixes and underscores: what `strconv.ParseInt(text, 0, 64)` reads.
pub fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let magnitude = i128::from(unsigned(digits)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// An integer without a sign, with Go's prefixes and underscores: what `strconv.ParseUint(text, 0, 64)` reads.
pub fn unsigned(text: &str) -> Option<u64> {
    let lower = text.get(..2).map(str::to_ascii_lowercase);
    let (base, digits) = match lower.as_deref() {
        Some("0x") => (16, text.get(2..)?),
        Some("0o") => (8, text.get(2..)?),
        Some("0b") => (2, text.get(2..)?),
        _ if text.len() > 1 && text.starts_with('0') => (8, text.get(1..)?),
        _ => (10, text),
    };
    if digits.contains('_') && !underscores_are_between_digits(text) {
        return None;
    }
    let digits: String = digits.chars().filter(|char| *char != '_').collect();
    if digits.is_empty() || !digits.chars().all(|char| char.is_digit(base)) {
        return None;
    }
    u64::from_str_radix(&digits, base).ok()
}

/// A floating-point number: what `strconv.ParseFloat(text, 64)` reads, apart from overflow, which is an error in Go and here.
pub fn float(text: &str) -> Option<f64> {
    if text.contains('_') && !underscores_are_between_digits(text) {
        return None;
    }
    let text: String = text.chars().filter(|char| *char != '_').collect();
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text.as_str()),
    };
    let lower = digits.to_ascii_lowercase();
    let value = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ if lower.starts_with("0x") => hexadecimal(lower.get(2..)?)?,
        _ if lower.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-')) => {
            let value: f64 = lower.parse().ok()?;
            if value.is_infinite() {
                return None;
            }
            value
        }
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 13 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 52 bits")]
    let value = u64::from_str_radix(&digits, 16).ok()? as f64;
    let exponent: i32 = exponent.parse().ok()?;
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let value = value * 2f64.powi(shift);
    value.is_finite().then_some(value)
}

fn underscores_are_between_digits(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']);
    let (text, mut last) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x" | "0o" | "0b") => (text.get(2..).unwrap_or_default(), '0'),
        _ => (text, '^'),
    };
    for char in text.chars() {
        let kind = match char {
            '_' => '_',
            char if char.is_ascii_hexdigit() => '0',
            _ => '!',
        };
        if (kind == '_' && last != '0') || (kind != '0' && kind != '_' && last == '_') {
            return false;
        }
        last = kind;
    }
    last != '_'
}

/// What one character of a quoted string stands for.
enum Unquoted {
    Char(char),
    Byte(u8),
}

/// The content of a string with its quotes (`"` or a backtick): what `strconv.Unquote` gives.
pub fn unquote(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let (first, last) = (*bytes.first()?, *bytes.last()?);
    if bytes.len() < 2 || first != last {
        return None;
    }
    let inner = bytes.get(1..bytes.len() - 1)?;
    match first {
        b'`' => (!inner.contains(&b'`')).then(|| inner.iter().copied().filter(|byte| *byte != b'\r').collect()),
        b'"' => {
            let mut rest = inner;
            let mut out = Vec::with_capacity(inner.len());
            while let Some(next) = rest.first() {
                if matches!(next, b'"' | b'\n') {
                    return None;
                }
                match unquote_char(&mut rest, b'"')? {
                    Unquoted::Char(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
                    Unquoted::Byte(byte) => out.push(byte),
                }
            }
            Some(out)
        }
        _ => None,
    }
}

fn unquote_char(rest: &mut &[u8], quote: u8) -> Option<Unquoted> {
    let (first, tail) = rest.split_first()?;
    if *first != b'\\' {
        let length = match first {
            0..=0x7f => 1,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        let (char, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        return Some(Unquoted::Char(std::str::from_utf8(char).ok()?.chars().next()?));
    }
    let (escape, tail) = tail.split_first()?;
    *rest = tail;
    let simple = match escape {
        b'a' => '\x07',
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'v' => '\x0b',
        b'\\' => '\\',
        b'\'' | b'"' if *escape == quote => char::from(quote),
        b'x' => return Some(Unquoted::Byte(u8::try_from(digits(rest, 2, 16)?).ok()?)),
        b'u' => char::from_u32(digits(rest, 4, 16)?)?,
        b'U' => char::from_u32(digits(rest, 8, 16)?)?,
        b'0'..=b'7' => {
            let value = u32::from(escape - b'0') * 64 + digits(rest, 2, 8)?;
            return Some(Unquoted::Byte(u8::try_from(value).ok()?));
        }
        _ => return None,
    };
    Some(Unquoted::Char(simple))
}

fn digits(rest: &mut &[u8], count: usize, base: u32) -> Option<u32> {
    let (digits, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    let mut value = 0u32;
    for digit in digits {
        value = value.checked_mul(base)?.checked_add(char::from(*digit).to_digit(base)?)?;
    }
    Some(value)
}

/// A string in double quotes, with what cannot be printed escaped: what `strconv.Quote` gives.
pub fn quote(bytes: &[u8]) -> String {
    quote_with(bytes, '"', false)
}

/// As [`quote`], with another quote, and only ASCII if asked for.
pub(crate) fn quote_with(bytes: &[u8], mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(mark);
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            quote_char(&mut out, char, mark, ascii);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push(mark);
    out
}

fn quote_char(out: &mut String, char: char, mark: char, ascii: bool) {
    match char {
        '\\' => out.push_str("\\\\"),
        _ if char == mark => {
            out.push('\\');
            out.push(char);
        }
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if (char.is_ascii() || !ascii) && is_printable(char) => out.push(char),
        '\0'..='\x1f' | '\x7f' => {
            let _ = write!(out, "\\x{:02x}", char as u32);
        }
        _ if (char as u32) < 0x1_0000 => {
            let _ = write!(out, "\\u{:04x}", char as u32);
        }
        _ => {
            let _ = write!(out, "\\U{:08x}", char as u32);
        }
    }
}

/// Whether Go's `strconv.IsPrint` says that a character can be printed: letters, marks, numbers, punctuation, symbols and the ASCII space. Rust's
/// table for its debug format agrees, but leaves out characters that extend others; most of these are marks.
pub(crate) fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        _ if char.is_whitespace() => false,
        _ if char.is_alphanumeric() => true,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{1ab0}'..='\u{1ace}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20f0}'
        | '\u{302a}'..='\u{302f}'
        | '\u{3099}'..='\u{309a}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}' => true,
        _ => char.escape_debug().len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_types_of_go() {
        for (text, int, is_float) in [
            ("1", Some(1), false),
            ("010", Some(8), false),
            ("0x1F", Some(31), false),
            ("0b11", Some(3), false),
            ("1_000", Some(1000), false),
            ("1.0", Some(1), true),
            ("1e3", Some(1000), true),
            ("1.5", None, true),
            ("0x1p4", Some(16), true),
            ("-5", Some(-5), false),
            ("0x1E", Some(30), false),
        ] {
            let number = number(text).unwrap();
            assert_eq!((number.int, number.is_float), (int, is_float), "{text}");
        }
        for text in ["08", "1__0", "0x", "99999999999999999999", "1e", "_1"] {
            number(text).unwrap_err();
        }
        assert_eq!(character("'a'").unwrap().int, Some(97));
        assert_eq!(character(r"'\n'").unwrap().int, Some(10));
        character("'ab'").unwrap_err();
        character("''").unwrap_err();
    }

    #[test]
    fn strings_are_quoted_and_unquoted() {
        for text in ["", "a\"b", "\n\t\\", "é", "\u{1}", "\u{202e}", "\u{1f600}"] {
            assert_eq!(unquote(&quote(text.as_bytes())).as_deref(), Some(text.as_bytes()), "{text:?}");
        }
        assert_eq!(quote(b"\xff\x01\x7f"), r#""\xff\x01\x7f""#);
        assert_eq!(quote("\u{ad}\u{a0}e\u{301}".as_bytes()), "\"\\u00ad\\u00a0e\u{301}\"");
        assert_eq!(unquote("`a\\\r\n`").unwrap(), b"a\\\n");
        assert_eq!(unquote(r#""\x41\101\u00e9""#).unwrap(), "AAé".as_bytes());
        assert_eq!(unquote(r#""\'""#), None);
        assert_eq!(unquote("\""), None);
    }
}
