//! All patterns of one document, within one budget.
//!
//! A pattern of a few bytes, such as `.{800}`, compiles to most of a megabyte, and a document may hold thousands of them. So
//! the compiled patterns of a document have a budget together, as those of RE2 have `max_mem`. Each is compiled when it is
//! asked for, the same text once, and all go with the document. What a search needs beside the program is not kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use regex_automata::{Input, meta, nfa::thompson::WhichCaptures};

use crate::translate::{Invalid, translate};

/// The bytes that all compiled patterns of a document may take.
pub const DOCUMENT_BYTES: usize = 16 << 20;
/// The bytes that one compiled pattern may take.
pub const PATTERN_BYTES: usize = 1 << 20;
/// The bytes that a search may take for states that it builds as it goes.
const SEARCH_BYTES: usize = 256 << 10;
/// What a class of Unicode takes while it is read, in bytes: those of `\pL` by themselves, and what ignoring case adds.
const CLASS_BYTES: usize = 16 << 10;
/// What any other character takes while it is read, in bytes.
const CHARACTER_BYTES: usize = 128;

/// Why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It is no regular expression, or too large by itself.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The document holds more than may be compiled.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The patterns of a document take more memory than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compiled, the regular expressions of the document take more than {} MiB", .limit >> 20)]
pub struct Exhausted {
    /// The bytes that they may take.
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
        // The pool of the expression would keep for each pattern what the largest search took.
        self.program.search_half_with(&mut self.program.create_cache(), &Input::new(text).earliest(true)).is_some()
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many steps a search takes at most: each character may be held against each state.
    pub fn steps(&self, text: &str) -> u64 {
        /// What a state takes, in bytes.
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
    /// The bytes that were charged: for what is kept, and for what came to nothing.
    charged: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        Self::new(DOCUMENT_BYTES)
    }
}

impl Patterns {
    /// None yet; all together may take so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// A pattern, compiled now unless it was before.
    ///
    /// # Errors
    /// Where it is none in the syntax of RE2, is too large, or the budget of the document is used up.
    pub fn get(&self, pattern: &str) -> Result<Arc<Pattern>, PatternError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
        // A failure costs what it may have taken, or else many that fail would cost nothing.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner).charged
    }
}

/// The memory that reading a pattern takes at most, before anything is compiled.
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
    // Searches forwards and backwards have a program each, of which only one is counted here.
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
    fn the_budget_is_that_of_all_patterns() {
        let patterns = Patterns::default();
        let fit = (0..4000).take_while(|number| patterns.get(&format!(".{{800}}{number}")).is_ok()).count();
        assert!((5..100).contains(&fit), "{fit} patterns fit");
        let refused = patterns.get("^another$");
        assert!(matches!(refused, Err(PatternError::Exhausted(_))), "{refused:?}");
        insta::assert_snapshot!(refused.unwrap_err(), @"compiled, the regular expressions of the document take more than 16 MiB");
    }

    #[test]
    fn what_compiles_to_nothing_is_charged_too() {
        let patterns = Patterns::default();
        let tried = (0..4000)
            .take_while(|number| {
                matches!(patterns.get(&format!("(.{{1000}}){{1000}}{number}")), Err(PatternError::Invalid(_)))
            })
            .count();
        assert!(tried <= DOCUMENT_BYTES / PATTERN_BYTES, "{tried}");
    }

    #[test]
    fn what_takes_much_to_read_is_not_read() {
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
