//! Values that were hidden where they are, to hide them in other files too.

use std::collections::BTreeSet;

use super::vocabulary::Vocabulary;

/// The least length in bytes of a value that is remembered. A shorter one occurs in any text.
const SHORTEST: usize = 8;
/// The least length in bytes of a remembered value that is a single word of letters, or a number: shorter ones are in any log.
const SHORTEST_WORD: usize = 12;

/// How much is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The number of different values.
    pub values: usize,
    /// The length of one value, in bytes.
    pub value: usize,
    /// Their lengths together, in bytes.
    pub sum: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { values: 20_000, value: 512 << 10, sum: 4 << 20 }
    }
}

/// The values, within limits.
#[derive(Debug, Default)]
pub(super) struct Memory {
    limits: MemoryLimits,
    vocabulary: Vocabulary,
    values: BTreeSet<String>,
    sum: usize,
    is_full: bool,
}

impl Memory {
    pub(super) fn new(vocabulary: Vocabulary, limits: MemoryLimits) -> Self {
        Self { limits, vocabulary, ..Self::default() }
    }

    /// Remembers a value that is distinct enough.
    pub(super) fn add(&mut self, text: &str) {
        let text = text.trim();
        if !is_distinct(text) || self.vocabulary.contains(text) || self.values.contains(text) {
            return;
        }
        let is_within = self.values.len() < self.limits.values
            && text.len() <= self.limits.value
            && self.sum.saturating_add(text.len()) <= self.limits.sum;
        if is_within {
            self.sum += text.len();
            self.values.insert(text.to_owned());
        } else {
            self.is_full = true;
        }
    }

    pub(super) fn values(&self) -> &BTreeSet<String> {
        &self.values
    }

    /// Whether there were more values than the limits allow.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

/// Whether a value is long or unusual enough that it does not occur in other texts by chance.
pub(super) fn is_distinct(text: &str) -> bool {
    let letters = text.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(text);
    let is_word = letters.bytes().all(|byte| byte.is_ascii_lowercase())
        || text.bytes().all(|byte| byte.is_ascii_uppercase())
        || text.bytes().all(|byte| byte.is_ascii_digit());
    text.len() >= if is_word { SHORTEST_WORD } else { SHORTEST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_short_values_are_not_remembered() {
        for text in ["hunter2", "database", "Database", "DATABASE", "20260101", "true", "Ready", ""] {
            assert!(!is_distinct(text), "{text}");
        }
        for text in ["hunter22", "dataBase", "correcthorse", "a greeting", "202601011200", "pass-word"] {
            assert!(is_distinct(text), "{text}");
        }
    }

    #[test]
    fn the_number_the_length_and_the_sum_are_limited() {
        let limits = MemoryLimits { values: 2, value: 20, sum: 25 };
        for (texts, is_full) in [
            (&["value-01", "value-01", "value-02"][..], false),
            (&["value-01", "value-02", "value-03"], true),
            (&["a-value-that-is-too-long"], true),
            (&["value-0123456", "value-1234567"], true),
        ] {
            let mut memory = Memory::new(Vocabulary::default(), limits);
            for text in texts {
                memory.add(text);
            }
            assert_eq!(memory.is_full(), is_full, "{texts:?}");
            assert!(memory.values().len() <= 2);
        }
    }
}
