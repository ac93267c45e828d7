//! Kubernetes quantities: `<sign><digits>[.<digits>]<suffix>`.
//!
//! Source of the rules: the doc comment of `Quantity` in `k8s.io/apimachinery/pkg/api/resource`.

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub struct QuantityError;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    BinarySi,
    DecimalSi,
    DecimalExponent,
}

const DECIMAL: &[(&str, i32)] =
    &[("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: &[(&str, u32)] = &[("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// A quantity in nanos, exact for everything that Kubernetes accepts (up to 2^63-1 with nine decimals, rounded up).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub i128);

/// The value of a quantity.
///
/// # Errors
/// If the text is not a quantity.
pub fn parse(text: &str) -> Result<Nanos, QuantityError> {
    parse_with_format(text).map(|(nanos, _)| Nanos(nanos))
}

/// The canonical form: the largest suffix that leaves a whole number, no fraction, no leading zeros or plus sign.
///
/// # Errors
/// If the text is not a quantity.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    let (nanos, format) = parse_with_format(text)?;
    Ok(written(nanos, format))
}

/// The canonical form of a quantity, rounded up to thousandths as in lists of resources.
///
/// # Errors
/// If the text is not a quantity.
pub fn rounded_to_millis(text: &str) -> Result<String, QuantityError> {
    const MILLI: i128 = 1_000_000;
    let (nanos, format) = parse_with_format(text)?;
    let rest = nanos.rem_euclid(MILLI);
    // Away from zero.
    let rounded = match (rest, nanos < 0) {
        (0, _) => nanos,
        (_, true) => nanos - rest,
        (_, false) => nanos - rest + MILLI,
    };
    Ok(written(rounded, format))
}

fn written(nanos: i128, format: Format) -> String {
    let (sign, magnitude) = if nanos < 0 { ("-", nanos.unsigned_abs()) } else { ("", nanos.unsigned_abs()) };
    if magnitude == 0 {
        return "0".to_owned();
    }
    // Binary suffixes need at least 1024 and a whole number; kube-apiserver falls back to decimal ones otherwise.
    let whole = magnitude.is_multiple_of(NANO);
    if format == Format::BinarySi && whole && magnitude / NANO >= 1024 {
        let mut value = magnitude / NANO;
        let mut suffix = "";
        for (name, _) in BINARY {
            if !value.is_multiple_of(1024) {
                break;
            }
            value /= 1024;
            suffix = name;
        }
        return format!("{sign}{value}{suffix}");
    }
    let mut value = magnitude;
    let mut exponent = -9;
    while exponent < 18 && value.is_multiple_of(1000) {
        value /= 1000;
        exponent += 3;
    }
    if format == Format::DecimalExponent {
        return if exponent == 0 { format!("{sign}{value}") } else { format!("{sign}{value}e{exponent}") };
    }
    let suffix = DECIMAL.iter().find(|(_, known)| *known == exponent).map_or("", |(name, _)| name);
    format!("{sign}{value}{suffix}")
}

const NANO: u128 = 1_000_000_000;

fn parse_with_format(text: &str) -> Result<(i128, Format), QuantityError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let split = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError);
    }
    let (format, power, binary) = suffix_of(suffix)?;
    let magnitude = scale(whole, fraction, power, binary);
    let limit = (i64::MAX as u128) * NANO;
    let magnitude = i128::try_from(magnitude.min(limit)).map_err(|_| QuantityError)?;
    Ok((if negative { -magnitude } else { magnitude }, format))
}

fn suffix_of(suffix: &str) -> Result<(Format, i32, u32), QuantityError> {
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::BinarySi, 0, *shift));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::DecimalSi, *power, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError)?;
    Ok((Format::DecimalExponent, exponent, 0))
}

/// `whole.fraction * 10^power * 2^binary` in nanos, rounded up, saturating.
fn scale(whole: &str, fraction: &str, power: i32, binary: u32) -> u128 {
    // Beyond these many digits nothing changes but the rounding, which a sticky digit keeps.
    const MOST_DIGITS: usize = 30;
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // value = digits * 10^exponent nanos
    let mut exponent = i64::from(power) + 9 - i64::try_from(fraction.len()).unwrap_or(i64::MAX / 2);
    let kept = digits.get(..MOST_DIGITS).unwrap_or(digits);
    exponent += i64::try_from(digits.len() - kept.len()).unwrap_or(i64::MAX / 2);
    let sticky = digits.get(kept.len()..).is_some_and(|rest| rest.bytes().any(|digit| digit != b'0'));
    let mut value: u128 = kept.parse().unwrap_or(u128::MAX);
    let mut remainder = sticky;
    // Divide last so that a binary suffix does not lose digits that it could make whole.
    value = value.saturating_mul(1_u128.checked_shl(binary.min(60)).unwrap_or(1));
    while exponent > 0 && value != u128::MAX {
        value = value.saturating_mul(10);
        exponent -= 1;
    }
    while exponent < 0 && value != 0 {
        remainder |= !value.is_multiple_of(10);
        value /= 10;
        exponent += 1;
    }
    if remainder { value.saturating_add(1) } else { value }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_forms() {
        let cases = [
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1500", "1500"),
            ("1000", "1k"),
            ("12.0", "12"),
            ("0", "0"),
            ("0Mi", "0"),
            ("+5", "5"),
            ("-5m", "-5m"),
            ("0.1n", "1n"),
            ("1E", "1E"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1023Ki", "1023Ki"),
            (".5", "500m"),
            ("5.", "5"),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn resources_count_in_thousandths() {
        for (text, expected) in [("100n", "1m"), ("1", "1"), ("1500u", "2m"), ("-1u", "-1m"), ("0.5Mi", "512Ki")] {
            assert_eq!(rounded_to_millis(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_quantities() {
        for text in ["", "a", "1.2.3", "1Xi", "1e", "1 Gi", "--1", "Mi", ".", "1ki"] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_form_is_stable_and_keeps_the_value(number in 0_u64..1_000_000_000, decimals in 0_u8..4, suffix in "(|n|u|m|k|M|G|Ki|Mi|Gi|e3|e-2)") {
            let text = format!("{number}.{decimals}{suffix}");
            let once = canonical(&text).unwrap();
            prop_assert_eq!(&canonical(&once).unwrap(), &once);
            prop_assert_eq!(parse(&text).unwrap(), parse(&once).unwrap());
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = canonical(&text);
        }
    }
}
