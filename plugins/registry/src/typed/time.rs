//! `metav1.Time`: the accepted strings (`time.Parse` with `time.RFC3339`).

/// Whether a string is a time, such as `2006-01-02T15:04:05Z` or `2006-01-02T15:04:05.5+07:00`.
pub(crate) fn is_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    let Some(rest) = rest.strip_prefix('T') else { return false };
    // Go accepts one digit here.
    let seconds = if rest.as_bytes().get(1) == Some(&b':') { 7 } else { 8 };
    let Some((clock, rest)) = rest.split_at_checked(seconds) else { return false };
    is_date(date) && is_clock(clock) && is_zone(after_fraction(rest))
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = numbers(text, '-', [4, 2, 2]);
    let days = match month {
        Some(2) => 28 + u32::from(year.is_some_and(|year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))),
        Some(4 | 6 | 9 | 11) => 30,
        Some(1..=12) => 31,
        _ => return false,
    };
    year.is_some() && day.is_some_and(|day| (1..=days).contains(&day))
}

fn is_clock(text: &str) -> bool {
    let hour = text.find(':').unwrap_or_default();
    matches!(numbers(text, ':', [hour, 2, 2]), [Some(0..24), Some(0..60), Some(0..60)])
}

fn is_zone(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']);
    text == "Z" || offset.is_some_and(|offset| matches!(numbers(offset, ':', [2, 2]), [Some(0..=24), Some(0..=60)]))
}

fn after_fraction(text: &str) -> &str {
    let digits = text.strip_prefix(['.', ',']).filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    digits.map_or(text, |digits| digits.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The numbers of a string, each with this many digits, or `None` for all of them if it has any other content.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> [Option<u32>; N] {
    let mut parts = text.split(separator);
    let numbers = digits.map(|digits| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        part.parse().ok()
    });
    if parts.next().is_none() { numbers } else { [None; N] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go's result for each.
    #[test]
    fn times_are_parsed_as_in_go() {
        for text in [
            "2021-01-01T00:00:00Z",
            "2024-02-29T23:59:59Z",
            "2000-02-29T23:59:59.123456789Z",
            "2021-12-31T12:00:00,5+02:00",
            "2021-12-31T12:00:00-24:00",
            "2021-01-01T0:00:00Z",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "",
            "null",
            "2021-01-01",
            "2021-01-01 00:00:00Z",
            "2021-01-01t00:00:00Z",
            "2021-01-01T00:00:00",
            "2021-01-01T00:00:00z",
            "2021-01-01T:00:00Z",
            "2021-01-01T24:00:00Z",
            "2021-01-01T00:60:00Z",
            "2021-01-01T00:00:60Z",
            "2021-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2021-04-31T00:00:00Z",
            "2021-00-01T00:00:00Z",
            "2021-01-00T00:00:00Z",
            "2021-01-01T00:00:00.Z",
            "2021-01-01T00:00:00+0200",
            "2021-01-01T00:00:00+25:00",
            "2021-01-01T00:00:00Z ",
            "2021-01-01-01T00:00:00Z",
            "äääää",
        ] {
            assert!(!is_time(text), "{text}");
        }
    }
}
