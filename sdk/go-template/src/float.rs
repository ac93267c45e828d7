//! Floating-point numbers as Go's strconv writes them.

/// `%v` and `%g`: the shortest digits that read back equal unless there is a precision; with an exponent below 1e-4, and from the precision on (6
/// for the shortest digits).
pub fn general(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let precision = precision.map(|precision| precision.max(1));
    let scientific = match precision {
        Some(precision) => format!("{value:.*e}", precision - 1),
        None => format!("{value:e}"),
    };
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let threshold = match precision {
        None => 6,
        Some(precision) => {
            let precision = i32::try_from(precision).unwrap_or(i32::MAX);
            if precision > significant && significant > power { significant } else { precision }
        }
    };
    if power < -4 || power >= threshold {
        return exponent_text(mantissa, power);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    place(sign, &digits, power)
}

/// Digits with the point behind the first `power + 1` of them.
fn place(sign: &str, digits: &str, power: i32) -> String {
    match usize::try_from(power) {
        Ok(power) => {
            let (whole, fraction) = digits.split_at_checked(power + 1).unwrap_or((digits, ""));
            let zeros = "0".repeat((power + 1).saturating_sub(whole.len()));
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{sign}{whole}{zeros}{point}{fraction}")
        }
        Err(_) => format!("{sign}0.{}{digits}", "0".repeat(power.unsigned_abs() as usize - 1)),
    }
}

fn exponent_text(mantissa: &str, power: i32) -> String {
    format!("{mantissa}e{}{:02}", if power < 0 { '-' } else { '+' }, power.unsigned_abs())
}

/// `%e`.
pub(crate) fn exponent(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return special(value);
    }
    let text = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    exponent_text(mantissa, power.parse().unwrap_or_default())
}

/// `%f`: never an exponent; the shortest digits that read back equal unless there is a precision.
pub fn fixed(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return special(value);
    }
    match precision {
        Some(precision) => format!("{value:.precision$}"),
        None => format!("{value}"),
    }
}

fn special(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value > 0.0 {
        "+Inf".into()
    } else {
        "-Inf".into()
    }
}
