//! Floating-point numbers as Go writes them.

/// The shortest decimal form that reads back equal: whether it is negative, its digits, and the exponent of the first one.
fn shortest(value: f64) -> (bool, String, i32) {
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (value.is_sign_negative(), mantissa.replace('.', ""), exponent.parse().unwrap_or_default())
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

fn exponential(negative: bool, digits: &str, exponent: i32, exponent_digits: usize) -> String {
    let (first, rest) = digits.split_at(digits.len().min(1));
    let sign = if negative { "-" } else { "" };
    let dot = if rest.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{dot}{rest}e{exponent_sign}{:0exponent_digits$}", exponent.abs())
}

/// From this exponent on `%v` writes one, however many digits there are.
const LARGE: i32 = 6;

/// `strconv.FormatFloat(value, 'g', -1, 64)`, which is `%v`: with an exponent below 1e-04 and from 1e+06 on.
pub(crate) fn general(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let (negative, digits, exponent) = shortest(value);
    if (-4..LARGE).contains(&exponent) { plain(value) } else { exponential(negative, &digits, exponent, 2) }
}

/// `strconv.FormatFloat(value, 'f', -1, 64)`: never an exponent.
pub(crate) fn plain(value: f64) -> String {
    special(value).map_or_else(|| format!("{value}"), str::to_owned)
}

/// A number in JSON as encoding/json writes it; nothing for what JSON cannot express.
pub(crate) fn json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let (negative, digits, exponent) = shortest(value);
        return Some(exponential(negative, &digits, exponent, 1));
    }
    Some(plain(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_in_go() {
        for (value, text, in_json) in [
            (1e6, "1e+06", "1000000"),
            (12_345_678.0, "1.2345678e+07", "12345678"),
            (1.5, "1.5", "1.5"),
            (100_000.0, "100000", "100000"),
            (-0.0, "-0", "-0"),
            (1e-5, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (1.25e21, "1.25e+21", "1.25e+21"),
            (1e20, "1e+20", "100000000000000000000"),
        ] {
            assert_eq!((general(value), json(value)), (text.to_owned(), Some(in_json.to_owned())));
        }
        assert_eq!(
            (general(f64::NAN), general(f64::NEG_INFINITY), json(f64::INFINITY)),
            ("NaN".into(), "-Inf".into(), None)
        );
    }
}
