//! Escaped text, and nouns with a count.

pub use chandler_core::text::{one_line, printable};

/// `1 object`, `2 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_is_plural_unless_the_count_is_one() {
        assert_eq!(
            [count(0, "object"), count(1, "object"), count(2, "object")],
            ["0 objects", "1 object", "2 objects"]
        );
    }
}
