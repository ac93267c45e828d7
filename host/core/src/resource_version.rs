//! The order of resource versions.

use std::cmp::Ordering;

/// The order of two resource versions of the same resource, which are decimal numbers of any length
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>). None where one is not such a number: then
/// nothing is known about their order, unless they are equal.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    if a == b && !a.is_empty() {
        return Some(Ordering::Equal);
    }
    let is_number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(a) && is_number(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_ordered_and_nothing_else() {
        for (a, b, expected) in [
            ("9", "10", Some(Ordering::Less)),
            ("11", "10", Some(Ordering::Greater)),
            ("10", "10", Some(Ordering::Equal)),
            ("184467440737095516159", "184467440737095516160", Some(Ordering::Less)),
            ("a", "a", Some(Ordering::Equal)),
            ("a", "b", None),
            ("010", "10", None),
            ("", "", None),
            ("1", "", None),
        ] {
            assert_eq!(compare(a, b), expected, "{a} {b}");
            assert_eq!(compare(b, a), expected.map(Ordering::reverse), "{b} {a}");
        }
    }
}
