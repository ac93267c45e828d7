//! Formats numbers as Go does.

use std::fmt::Write as _;

/// Appends a double as Go's `encoding/json` does: plain digits for exponents from -6 to 20, otherwise with an exponent.
/// A value that JSON cannot represent becomes `null`.
pub(crate) fn write_float(value: f64, out: &mut String) {
    let magnitude = value.abs();
    let result = if !value.is_finite() {
        out.push_str("null");
        Ok(())
    } else if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // Rust formats `1e21`, Go `1e+21`; the shortest digits are the same.
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => write!(out, "{digits}e+{exponent}"),
            _ => write!(out, "{text}"),
        }
    } else {
        write!(out, "{value}")
    };
    debug_assert!(result.is_ok(), "writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_formatted_as_in_go() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            // The shortest digits that identify the double, padded.
            (9_223_372_036_854_775_807.0, "9223372036854776000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (0.000_001, "0.000001"),
            (f64::NAN, "null"),
        ];
        for (value, want) in cases {
            let mut text = String::new();
            write_float(value, &mut text);
            assert_eq!(text, want);
        }
    }
}
