//! Which plain scalars go-yaml takes for something else than text, so that text of that form is written with quotes.

use chandler_yaml::looks_like_float;

/// Whether go-yaml v2 reads a plain scalar as text.
pub(super) fn is_text(text: &str) -> bool {
    match text.as_bytes().first() {
        None => false,
        Some(b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => !is_word(text),
        Some(b'.') => !is_word(text) && !is_number(text),
        Some(b'0'..=b'9' | b'+' | b'-') => {
            !is_word(text) && !is_integer(text) && !is_float(text) && !is_time(text) && !is_sexagesimal(text)
        }
        Some(_) => true,
    }
}

/// Whether go-yaml v3, which reads YAML 1.2 but is careful of readers of YAML 1.1, writes text without quotes.
pub(super) fn is_text_v3(text: &str) -> bool {
    is_text(text) && text != "<<"
}

fn is_word(text: &str) -> bool {
    matches!(
        text,
        "~" | "null"
            | "Null"
            | "NULL"
            | "y"
            | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "true"
            | "True"
            | "TRUE"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "false"
            | "False"
            | "FALSE"
            | "off"
            | "Off"
            | "OFF"
            | ".nan"
            | ".NaN"
            | ".NAN"
            | ".inf"
            | ".Inf"
            | ".INF"
            | "+.inf"
            | "+.Inf"
            | "+.INF"
            | "-.inf"
            | "-.Inf"
            | "-.INF"
    )
}

/// `strconv.ParseFloat` of a text that begins with a dot.
fn is_number(text: &str) -> bool {
    looks_like_float(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `strconv.ParseInt(text, 0, 64)` or `ParseUint`, without underscores.
fn is_integer(text: &str) -> bool {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, lower.get(1..).unwrap_or_default())
    } else {
        (10, lower.as_str())
    };
    if digits.starts_with(['+', '-']) {
        return false;
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) if negative => value <= i64::MIN.unsigned_abs(),
        Ok(value) => !plain.starts_with('+') || i64::try_from(value).is_ok(),
        Err(_) => false,
    }
}

fn is_float(text: &str) -> bool {
    let plain = text.replace('_', "");
    looks_like_float(&plain) && plain.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`.
fn is_sexagesimal(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((whole, rest)) = rest.split_once(':') else { return false };
    let underscored = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (parts, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let part = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
        _ => false,
    };
    whole.starts_with(|c: char| c.is_ascii_digit())
        && underscored(whole)
        && underscored(fraction)
        && parts.split(':').all(part)
}

/// The forms of times that go-yaml knows: a date, or a date and time with `T` and a zone or with a space and none.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !(bytes.len() > 4 && bytes.iter().take(4).all(u8::is_ascii_digit) && bytes.get(4) == Some(&b'-')) {
        return false;
    }
    ["2006-1-2T15:4:5.999999999Z07:00", "2006-1-2t15:4:5.999999999Z07:00", "2006-1-2 15:4:5.999999999", "2006-1-2"]
        .iter()
        .any(|layout| crate::functions::time::parse(layout, text).is_ok())
}
