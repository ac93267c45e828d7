//! All patterns of one document, within one budget.
//!
//! A pattern of a few bytes, such as `.{800}`, compiles to most of a megabyte, and a document may contain thousands of them. So
//! all compiled patterns of a document share a budget, like `max_mem` in RE2. A pattern is compiled when it is first needed,
//! once per text, and all are dropped with the document. Memory that a search needs besides the program is not kept.

use std::{collections::HashMap, sync::Arc};

use chandler_re2::{Invalid, translate};
use parking_lot::Mutex;
use regex_automata::{Input, meta, nfa::thompson::WhichCaptures};

/// The maximum size of all compiled patterns of a document, in bytes.
pub const DOCUMENT_BYTES: usize = 16 << 20;
/// The maximum size of one compiled pattern, in bytes.
pub const PATTERN_BYTES: usize = 1 << 20;
/// The maximum memory for states that a search builds, in bytes.
const SEARCH_BYTES: usize = 256 << 10;
/// The memory for parsing a Unicode class, in bytes: as much as `\pL` needs, plus case folding.
const CLASS_BYTES: usize = 16 << 10;
/// The memory for parsing any other character, in bytes.
const CHARACTER_BYTES: usize = 128;

/// A pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It is not a regular expression, or too large by itself.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The document exceeds its budget.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The patterns of a document exceed their budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compiled, the regular expressions of the document take more than {} MiB", .limit >> 20)]
pub struct Exhausted {
    /// The budget in bytes.
    pub limit: usize,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    program: meta::Regex,
    bytes: usize,
}

impl Pattern {
    /// Whether it matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        // The expression's own pool would keep the memory of the largest search for each pattern.
        self.program.search_half_with(&mut self.program.create_cache(), &Input::new(text).earliest(true)).is_some()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The maximum number of steps of a search: each character may be compared with each state.
    pub fn steps(&self, text: &str) -> u64 {
        /// The size of a state in bytes.
        const STATE: usize = 64;
        let steps = (text.len() + 1).saturating_mul(1 + self.bytes / STATE);
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}

/// The compiled patterns of a document.
#[derive(Debug)]
pub struct Patterns {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    compiled: HashMap<String, Arc<Pattern>>,
    /// The charged bytes, for patterns that are kept and for those that failed.
    charged: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        Self::new(DOCUMENT_BYTES)
    }
}

impl Patterns {
    /// No patterns yet, with this budget in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// Returns a compiled pattern, and compiles it if necessary.
    ///
    /// # Errors
    /// If it is not valid in RE2, is too large, or exceeds the budget of the document.
    pub fn get(&self, pattern: &str) -> Result<Arc<Pattern>, PatternError> {
        let mut state = self.state.lock();
        if let Some(known) = state.compiled.get(pattern) {
            return Ok(Arc::clone(known));
        }
        let exhausted = Exhausted { limit: self.limit };
        let left = self.limit.checked_sub(state.charged).ok_or(exhausted)?;
        let translated = translate(pattern)?;
        if reading(&translated) > left {
            state.charged = self.limit.saturating_add(1);
            return Err(exhausted.into());
        }
        let compiled = compile(&translated);
        // A failure is charged its maximum cost. Otherwise many failures would be free.
        let bytes = compiled.as_ref().map_or(PATTERN_BYTES, Pattern::bytes);
        state.charged = state.charged.saturating_add(bytes.max(reading(&translated) / 16));
        if state.charged > self.limit {
            return Err(exhausted.into());
        }
        let compiled = Arc::new(compiled?);
        state.compiled.insert(pattern.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }

    /// The bytes that were charged to the budget.
    pub fn charged(&self) -> usize {
        self.state.lock().charged
    }
}

/// The maximum memory for parsing a pattern, before it is compiled.
fn reading(translated: &str) -> usize {
    let ignores_case = translated.contains("(?") && translated.contains('i');
    let large = |byte: &u8| *byte == b'p' || *byte == b'P' || (ignores_case && *byte == b'[');
    let classes = translated.bytes().filter(large).count();
    let classes = if translated.contains(r"\p") || translated.contains(r"\P") || ignores_case { classes } else { 0 };
    classes.saturating_mul(CLASS_BYTES).saturating_add(translated.len().saturating_mul(CHARACTER_BYTES))
}

fn compile(translated: &str) -> Result<Pattern, Invalid> {
    let config = meta::Config::new()
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(Some(PATTERN_BYTES))
        .onepass(false)
        .dfa(false)
        .hybrid_cache_capacity(SEARCH_BYTES);
    let built = meta::Builder::new().configure(config).build(translated);
    let program = built.map_err(|error| Invalid::new(error.to_string()))?;
    // Forward and backward searches have a program each, of which only one is counted here.
    let bytes = program.memory_usage().saturating_mul(2).saturating_add(translated.len()).saturating_add(1024);
    Ok(Pattern { program, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_compiled_once() {
        let patterns = Patterns::default();
        let first = patterns.get("^[a-z]+$").unwrap();
        let charged = patterns.charged();
        let again = patterns.get("^[a-z]+$").unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(patterns.charged(), charged);
        assert_eq!((first.is_match("abc"), first.is_match("a1")), (true, false));
    }

    #[test]
    fn all_patterns_share_one_budget() {
        let patterns = Patterns::default();
        let fit = (0..4000).take_while(|number| patterns.get(&format!(".{{800}}{number}")).is_ok()).count();
        assert!((5..100).contains(&fit), "{fit} patterns fit");
        let refused = patterns.get("^another$");
        assert!(matches!(refused, Err(PatternError::Exhausted(_))), "{refused:?}");
        insta::assert_snapshot!(refused.unwrap_err(), @"compiled, the regular expressions of the document take more than 16 MiB");
    }

    #[test]
    fn failures_are_charged() {
        let patterns = Patterns::default();
        let tried = (0..4000)
            .take_while(|number| {
                matches!(patterns.get(&format!("(.{{1000}}){{1000}}{number}")), Err(PatternError::Invalid(_)))
            })
            .count();
        assert!(tried <= DOCUMENT_BYTES / PATTERN_BYTES, "{tried}");
    }

    #[test]
    fn patterns_that_are_expensive_to_parse_are_refused() {
        let patterns = Patterns::default();
        for hostile in
            [r"\pL".repeat(100_000), format!("(?i){}", "[a-\u{10FFFF}]".repeat(100_000)), "a".repeat(1 << 20)]
        {
            let refused = Patterns::default().get(&hostile);
            assert!(matches!(refused, Err(PatternError::Exhausted(_))), "{hostile:.20}: {refused:?}");
        }
        assert!(patterns.get(r"^\pL+$").unwrap().is_match("Ä"));
    }

    #[test]
    fn hundreds_of_ordinary_patterns_fit() {
        let patterns = Patterns::default();
        for number in 0..500 {
            let label = format!("^[a-z0-9]([-a-z0-9]{{0,61}}[a-z0-9])?(\\.{number})*$");
            assert!(patterns.get(&label).is_ok(), "{number}: {} bytes are charged", patterns.charged());
        }
    }
}
