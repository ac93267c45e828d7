//! The canonical form of resource quantities: `k8s.io/apimachinery/pkg/api/resource`.
//!
//! `1024Mi` and `1Gi` are the same quantity. The API server and every typed client write the second, so a release with
//! the first would differ from the cluster.

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub(crate) struct QuantityError;

/// The kind of suffix, which determines the output format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, ...
    Binary,
    /// None, `m`, `k`, `M`, ...
    Decimal,
    /// `e3`, `E-2`.
    Exponent,
}

/// Powers of ten that have a suffix, `(suffix, exponent)`.
const DECIMAL: &[(&str, i32)] =
    &[("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Powers of 1024 that have a suffix, `(suffix, power)`.
const BINARY: &[(&str, u32)] = &[("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

/// Values with more significant digits take Go's slow path, which caps values above [`LARGEST`].
const FAST_DIGITS: usize = 18;

/// The largest value that is exact: 2^63 - 1.
const LARGEST: i128 = i64::MAX as i128;

/// The smallest fraction: nano.
const FINEST: i32 = -9;

/// The canonical form of a quantity.
pub(crate) fn canonical(text: &str) -> Result<String, QuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError);
    }
    let (format, scale) = scale_of(suffix)?;
    let amount = Amount::new(whole, fraction.trim_end_matches('0'), scale);
    Ok(amount.write(format, negative))
}

/// The factor of a suffix.
#[derive(Clone, Copy)]
enum Scale {
    /// A power of ten.
    Ten(i32),
    /// A power of 1024.
    Kibi(u32),
}

fn scale_of(suffix: &str) -> Result<(Format, Scale), QuantityError> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::Decimal, Scale::Ten(*exponent)));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::Binary, Scale::Kibi(*power)));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError)?;
    // Larger values are all capped; the bound keeps the arithmetic below in range.
    Ok((Format::Exponent, Scale::Ten(exponent.clamp(-400, 400))))
}

/// `mantissa * 10^exponent`.
struct Amount {
    mantissa: i128,
    exponent: i32,
}

impl Amount {
    fn new(whole: &str, fraction: &str, scale: Scale) -> Self {
        let whole = whole.trim_start_matches('0');
        let digits = whole.len() + fraction.len();
        // Digits beyond an i128 only affect values that are capped anyway.
        let mut mantissa: i128 = 0;
        let mut dropped = 0_usize;
        for digit in whole.bytes().chain(fraction.bytes()) {
            match mantissa.checked_mul(10).and_then(|value| value.checked_add(i128::from(digit - b'0'))) {
                Some(value) if dropped == 0 && value < i128::MAX / 2048 => mantissa = value,
                _ => dropped += 1,
            }
        }
        let fraction = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
        let exponent = i32::try_from(dropped).unwrap_or(i32::MAX).saturating_sub(fraction);
        match scale {
            Scale::Ten(power) => {
                let amount = Self { mantissa, exponent: exponent.saturating_add(power) };
                let exact = digits <= FAST_DIGITS && power.saturating_sub(fraction) >= FINEST;
                if exact { amount } else { amount.rounded_up().cut() }
            }
            Scale::Kibi(power) => {
                let factor = 1024_i128.pow(power);
                match mantissa.checked_mul(factor) {
                    Some(mantissa) => Self { mantissa, exponent }.rounded_up().cut(),
                    None => Self { mantissa, exponent: exponent.saturating_add(30) }.cut(),
                }
            }
        }
    }

    /// Rounded away from zero to the next nano.
    fn rounded_up(self) -> Self {
        if self.exponent >= FINEST {
            return self;
        }
        let places = FINEST.saturating_sub(self.exponent).unsigned_abs();
        match 10_i128.checked_pow(places) {
            Some(divisor) => {
                let more = i128::from(self.mantissa % divisor != 0);
                Self { mantissa: self.mantissa / divisor + more, exponent: FINEST }
            }
            None => Self { mantissa: i128::from(self.mantissa != 0), exponent: FINEST },
        }
    }

    /// At most [`LARGEST`].
    fn cut(self) -> Self {
        let too_large = match u32::try_from(self.exponent) {
            Ok(places) => 10_i128
                .checked_pow(places)
                .and_then(|factor| self.mantissa.checked_mul(factor))
                .map_or(self.mantissa != 0, |value| value > LARGEST),
            Err(_) => self.mantissa / 10_i128.pow(self.exponent.unsigned_abs().min(38)) > LARGEST,
        };
        if too_large { Self { mantissa: LARGEST, exponent: 0 } } else { self }
    }

    /// The value if it is an integer.
    fn whole(&self) -> Option<i128> {
        let power = 10_i128.checked_pow(self.exponent.unsigned_abs())?;
        if self.exponent >= 0 {
            return self.mantissa.checked_mul(power);
        }
        (self.mantissa % power == 0).then(|| self.mantissa / power)
    }

    fn write(mut self, format: Format, negative: bool) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        let sign = if negative { "-" } else { "" };
        if format == Format::Binary
            && let Some(mut value) = self.whole().filter(|value| *value >= 1024)
        {
            let mut power = 0_usize;
            while value % 1024 == 0 && power < BINARY.len() {
                value /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).and_then(|index| BINARY.get(index)).map_or("", |(suffix, _)| suffix);
            return format!("{sign}{value}{suffix}");
        }
        while self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.exponent = self.exponent.saturating_add(1);
        }
        while self.exponent % 3 != 0 {
            self.mantissa = self.mantissa.saturating_mul(10);
            self.exponent = self.exponent.saturating_sub(1);
        }
        let Self { mantissa, exponent } = self;
        let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent);
        match (format, suffix) {
            (Format::Exponent, _) if exponent == 0 => format!("{sign}{mantissa}"),
            (Format::Exponent, _) | (_, None) => format!("{sign}{mantissa}e{exponent}"),
            (_, Some((suffix, _))) => format!("{sign}{mantissa}{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_forms() {
        // k8s.io/apimachinery/pkg/api/resource/quantity_test.go and the corpus of real bundles.
        let cases = [
            ("0", "0"),
            ("0.0Mi", "0"),
            ("-0", "0"),
            ("1024Mi", "1Gi"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("1023", "1023"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1000Ki", "1000Ki"),
            ("1025Ki", "1025Ki"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("12e-1", "1200e-3"),
            ("1e0", "1"),
            ("100E", "100E"),
            ("+5k", "5k"),
            ("-1.5", "-1500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("1.0000000001", "1000000001n"),
            ("0.0000000001", "1n"),
            ("9223372036854775807", "9223372036854775807"),
            ("92233720368547758079", "9223372036854775807"),
            ("16Ei", "9223372036854775807"),
            ("0.3Ki", "307200m"),
        ];
        for (text, want) in cases {
            assert_eq!(canonical(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn not_quantities() {
        for text in ["", "-", ".", "1.1.M", "1Kb", "1 Mi", "Mi", "1e", "1ee3", "--1", "0x10", "1mi", "\u{661}"] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_is_a_fixed_point(number in 0_u64..10_000_000, fraction in 0_u16..1000,
                                      suffix in "n|u|m||k|M|G|Ki|Mi|Gi|e2") {
            let once = canonical(&format!("{number}.{fraction:03}{suffix}")).unwrap();
            prop_assert_eq!(canonical(&once).unwrap(), once);
        }

        #[test]
        fn nothing_panics(text in "[-+]?[0-9.]{0,60}[a-zA-Z]{0,2}[-+]?[0-9]{0,12}") {
            let _ = canonical(&text);
        }
    }
}
