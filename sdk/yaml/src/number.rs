//! Numbers as in go-yaml v2 (`resolve.go`), then as in JSON.

use crate::Kind;

/// A plain scalar that begins like a number, if it is one. `None` means text.
///
/// Integers follow `strconv.ParseInt(text, 0, 64)` without underscores: `0x`, `0o`, `0b` and a leading `0` for octal.
/// Decimal values beyond 64 bits become floating-point numbers, others text. Sexagesimal numbers and times are text.
///
/// Floats may have no fraction; [`value`] normalizes them.
pub(crate) fn resolve(text: &str) -> Option<Kind> {
    let plain: String;
    let text = if text.contains('_') {
        plain = text.replace('_', "");
        &plain
    } else {
        text
    };
    integer(text).or_else(|| float(text))
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
    // Rust accepts a sign here; it was already consumed.
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

/// A decimal number. One that is too large is text, as `strconv.ParseFloat` refuses it.
fn float(text: &str) -> Option<Kind> {
    looks_like_float(text).then_some(())?;
    // The grammar is a subset of Rust's.
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Kind::Float(value))
}

/// Whether a text has the form of a floating-point number in go-yaml v2 (`resolve.go`, yamlStyleFloat):
/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`.
pub fn looks_like_float(text: &str) -> bool {
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

/// A number as a value; other kinds unchanged.
pub(crate) fn value(kind: Kind) -> Kind {
    match kind {
        Kind::Float(value) => normalize(value),
        other => other,
    }
}

/// A number as in JSON: one without a fraction is an integer, if it fits.
///
/// Go formats a float with the fewest digits that identify it, and zeros after them; so does Rust.
fn normalize(value: f64) -> Kind {
    /// Larger values are not converted to integers; Go formats slightly larger ones with an exponent.
    const LARGE: f64 = 1e19;
    if value.fract() == 0.0 && value.abs() < LARGE {
        let text = value.to_string();
        // `-0` is the integer 0, too.
        if let Ok(integer) = text.parse() {
            return Kind::Int(integer);
        }
    }
    Kind::Float(value)
}

/// A float as a key: `strconv.FormatFloat(value, 'g', -1, 32)`, as in `sigs.k8s.io/yaml`.
pub(crate) fn key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "keys have the precision of sigs.k8s.io/yaml")]
    let value = value as f32;
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // The rule of `%g` for the shortest form: an exponent below 1e-4, and from 1e6 on.
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `strconv.FormatFloat(value, 'g', -1, 32)`.
    #[test]
    fn keys_are_printed_as_in_go() {
        for (value, text) in [
            (0.5, "0.5"),
            (1.0, "1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_500_000.0, "1.5e+06"),
            (1e10, "1e+10"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (1e300, ".inf"),
        ] {
            assert_eq!(key(value), text);
        }
    }

    #[test]
    fn floats_without_a_fraction_are_integers() {
        assert_eq!(normalize(1.0), Kind::Int(1));
        assert_eq!(normalize(-0.0), Kind::Int(0));
        assert_eq!(normalize(1e15), Kind::Int(1_000_000_000_000_000));
        // The digits that Go writes, not the exact value of the float.
        assert_eq!(normalize(1.234_567_890_123_456_7e18), Kind::Int(1_234_567_890_123_456_800));
        assert_eq!(normalize(1e19), Kind::Float(1e19));
        assert_eq!(normalize(0.5), Kind::Float(0.5));
    }
}
