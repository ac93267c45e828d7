//! Numbers as go-yaml v2 reads them (`resolve.go`), then as JSON knows them.

use crate::Kind;

/// A plain scalar that begins like a number, if it is one. `None` means text.
///
/// Integers follow `strconv.ParseInt(text, 0, 64)` without underscores: `0x`, `0o`, `0b` and a leading `0` for octal. What is
/// too large for 64 bits becomes a floating-point number. Sexagesimal numbers and times are text.
pub(crate) fn resolve(text: &str) -> Option<Number> {
    let plain: String;
    let text = if text.contains('_') {
        plain = text.replace('_', "");
        &plain
    } else {
        text
    };
    integer(text).map(Number::Kind).or_else(|| float(text))
}

/// A number, or one that JSON does not have.
pub(crate) enum Number {
    /// A finite number.
    Kind(Kind),
    /// Infinity, or too large for 64 bits of floating point.
    NotFinite,
}

fn integer(text: &str) -> Option<Kind> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // Rust takes a sign here; the sign was taken already.
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(magnitude)) {
        (false, Ok(value)) => Some(Kind::Int(value)),
        (false, Err(_)) if text.starts_with('+') => None,
        (false, Err(_)) => Some(Kind::UInt(magnitude)),
        (true, Ok(value)) => Some(Kind::Int(-value)),
        (true, Err(_)) if magnitude == i64::MIN.unsigned_abs() => Some(Kind::Int(i64::MIN)),
        (true, Err(_)) => None,
    }
}

fn float(text: &str) -> Option<Number> {
    looks_like_float(text).then_some(())?;
    // The grammar above is a subset of Rust's.
    Some(of_float(text.parse().ok()?))
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`.
fn looks_like_float(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
        None => (rest, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa && exponent
}

/// A floating-point number as JSON writes it: without a fraction where it has none.
pub(crate) fn of_float(value: f64) -> Number {
    /// All whole numbers up to here are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        return Number::NotFinite;
    }
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
        return Number::Kind(Kind::Int(value as i64));
    }
    Number::Kind(Kind::Float(value))
}

/// A floating-point number as a key: `strconv.FormatFloat(value, 'g', -1, 32)` in `sigs.k8s.io/yaml`.
pub(crate) fn key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "keys have the precision that the reference gives them")]
    let value = value as f32;
    let exponent = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    if exponent < -4.0 || exponent >= 21.0 {
        let text = format!("{value:e}");
        // Go writes a sign and at least two digits of exponent.
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}
