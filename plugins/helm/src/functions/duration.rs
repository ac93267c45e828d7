//! Durations as Go writes and reads them.

/// A duration in nanoseconds as Go prints it: `1h35m0s`.
pub(super) fn display(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    if size == 0 {
        return "0s".to_owned();
    }
    let decimal = |value: u64, unit: u64, width: usize| {
        let (whole, part) = (value / unit, value % unit);
        if part == 0 {
            return whole.to_string();
        }
        let digits = format!("{part:0width$}");
        format!("{whole}.{}", digits.trim_end_matches('0'))
    };
    if size < 1_000 {
        return format!("{sign}{size}ns");
    }
    if size < 1_000_000 {
        return format!("{sign}{}µs", decimal(size, 1_000, 3));
    }
    if size < 1_000_000_000 {
        return format!("{sign}{}ms", decimal(size, 1_000_000, 6));
    }
    let minutes = size / 60_000_000_000;
    let seconds = decimal(size % 60_000_000_000, 1_000_000_000, 9);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Reads a duration, `-1.5h`, in nanoseconds.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, behind) = rest.split_at(end);
        let length = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(length);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let kept: String = part.chars().take(15).collect();
        if !kept.is_empty() {
            let scale = 10_i128.pow(u32::try_from(kept.len()).ok()?);
            total = total.checked_add(kept.parse::<i128>().ok()?.checked_mul(unit)? / scale)?;
        }
        rest = behind;
    }
    i64::try_from(if sign < 0.0 { -total } else { total }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for text in ["1h35m0s", "95s", "1.5s", "2ms", "1.5µs", "-3h0m0s"] {
            let nanos = parse(text).unwrap();
            assert_eq!(parse(&display(nanos)), Some(nanos), "{text}");
        }
        assert_eq!(display(5_700_000_000_000), "1h35m0s");
        assert_eq!(parse("1x"), None);
    }
}
