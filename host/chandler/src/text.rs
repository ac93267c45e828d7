//! Text of others on a terminal, and nouns with numbers.

pub use chandler_core::text::{one_line, printable};

/// `1 object`, `2 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_counted() {
        assert_eq!(
            [count(0, "object"), count(1, "object"), count(2, "object")],
            ["0 objects", "1 object", "2 objects"]
        );
    }
}
