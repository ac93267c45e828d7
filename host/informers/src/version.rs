//! Resource versions.

use std::cmp::Ordering;

/// Compares two resource versions: decimal numbers of any length (KEP-5504). None if one of them is something else, as an
/// aggregated API may return.
pub(crate) fn compare(a: &str, b: &str) -> Option<Ordering> {
    if a == b {
        return Some(Ordering::Equal);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(a) || !digits(b) {
        return None;
    }
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_of_any_length() {
        for (a, b, expected) in [
            ("9", "10", Some(Ordering::Less)),
            ("10", "9", Some(Ordering::Greater)),
            ("7", "07", Some(Ordering::Equal)),
            (
                "340282366920938463463374607431768211456",
                "340282366920938463463374607431768211457",
                Some(Ordering::Less),
            ),
            ("a", "a", Some(Ordering::Equal)),
            ("a", "b", None),
            ("1", "", None),
            ("1", "-1", None),
        ] {
            assert_eq!(compare(a, b), expected, "{a} {b}");
        }
    }
}
