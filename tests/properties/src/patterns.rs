//! Regular expressions of a document stay within the budget, and match as they do without one.

use std::sync::Arc;

use chandler_expression::re2::{Exhausted, Pattern, PatternError, Patterns, compile};

use crate::memory;

/// Memory beyond the charged amount: the table of patterns, and one-time allocations.
const HELD: usize = 1 << 20;
/// Budgets below a document's, since exhausting that takes a second.
const LIMITS: [usize; 2] = [2 << 20, 256 << 10];
/// The memory that a document with such a budget may take while its patterns are compiled.
const PEAK: usize = 50 << 20;
/// The maximum number of patterns of one input; more would test nothing new.
const MOST: usize = 400;

pub(crate) fn holds(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.lines().take(MOST).collect();
    for limit in LIMITS {
        let (kept, peak) = memory::measured(|| document(&lines, limit));
        assert!(peak <= PEAK, "{peak} bytes at a time, {PEAK} are allowed");
        matches_alike(&lines, &kept);
    }
}

/// Compiles each of them, as the parser of a document does.
fn document(lines: &[&str], limit: usize) -> Patterns {
    let patterns = Patterns::new(limit);
    let (outcomes, held) = memory::held(|| lines.iter().map(|line| patterns.get(line)).collect::<Vec<_>>());
    let entries: usize = lines.iter().map(|line| 4 * line.len() + 1024).sum();
    assert!(held <= limit + entries + HELD, "{held} bytes are held of {limit}");
    assert!(held <= patterns.charged() + entries + HELD, "{held} bytes are held, {} charged", patterns.charged());
    let mut seen: Vec<(&str, &Arc<Pattern>)> = Vec::new();
    let mut is_exhausted = false;
    for (line, outcome) in lines.iter().zip(&outcomes) {
        match outcome {
            Ok(pattern) => {
                let before = seen.iter().find(|(known, _)| known == line);
                assert!(before.is_some() || !is_exhausted, "{line:?} is compiled though nothing is left");
                assert!(before.is_none_or(|(_, known)| Arc::ptr_eq(known, pattern)), "{line:?} is compiled twice");
                seen.push((line, pattern));
            }
            Err(PatternError::Exhausted(exhausted)) => {
                assert_eq!(*exhausted, Exhausted { limit });
                is_exhausted = true;
            }
            Err(PatternError::Invalid(error)) => {
                assert!(!is_exhausted, "{line:?} is read though nothing is left");
                assert!(!error.to_string().trim().is_empty(), "an error without a message");
            }
        }
    }
    let charged = patterns.charged();
    assert!(is_exhausted == (charged > limit), "{charged} bytes of {limit} are charged");
    drop(outcomes);
    patterns
}

/// Asserts that cached patterns match like the same expressions on their own.
fn matches_alike(lines: &[&str], patterns: &Patterns) {
    let short = |text: &&str| text.len() <= 64;
    let texts: Vec<&str> = lines.iter().copied().filter(short).take(6).chain(["", "a", "Ä\n"]).collect();
    for line in lines.iter().copied().filter(short).take(12) {
        let Ok(pattern) = patterns.get(line) else { continue };
        let Ok(alone) = compile(line, 2 << 20) else { continue };
        for text in &texts {
            assert_eq!(pattern.is_match(text), alone.is_match(text), "{line:?} in {text:?}");
        }
    }
}
