//! The patterns of a foreign schema, within one budget.
//!
//! A short pattern can take a megabyte (`.{800}N`), and a schema can hold thousands. So each is compiled by itself first and
//! dropped again, until the budget of the whole schema is used up: what a refused schema costs is bounded, whatever it
//! holds. How much a pattern takes is also how long it runs at most for each byte of a text.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use regex_automata::meta;
use serde_json::Value;

/// The memory that one compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// The memory that all compiled patterns of a schema may take together.
const TOTAL_BYTES: usize = 16 << 20;

/// What a pattern takes beside what is measured.
const FIXED_BYTES: usize = 4 << 10;

/// The least of a state of a pattern's automaton, each of which is visited at most once for a byte of the text.
const STATE_BYTES: usize = 32;

/// The patterns of a schema, with what each takes.
pub(super) struct Patterns(BTreeMap<String, usize>);

impl Patterns {
    /// Measures all patterns of a schema.
    ///
    /// # Errors
    /// When they take more than the budget, or longer than until `deadline`.
    pub(super) fn measure(schema: &Value, deadline: Instant) -> Result<Self, String> {
        let mut texts = BTreeSet::new();
        collect(schema, &mut texts);
        let mut measured = BTreeMap::new();
        let mut left = TOTAL_BYTES;
        for text in texts {
            if Instant::now() > deadline {
                return Err("takes longer to read than the provisioner may take".into());
            }
            let bytes = size(text, left)?.saturating_add(FIXED_BYTES);
            left = left.checked_sub(bytes).ok_or_else(too_much)?;
            measured.insert(text.to_owned(), bytes);
        }
        Ok(Self(measured))
    }

    /// What all of them take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().sum()
    }

    /// The steps that a pattern may take for each byte of a text.
    pub(super) fn steps(&self, pattern: &str) -> usize {
        self.0.get(pattern).copied().unwrap_or_default() / STATE_BYTES
    }

    /// The bytes that each pattern may use while it runs: the budget once more, in equal shares.
    pub(super) fn share(&self) -> usize {
        (TOTAL_BYTES / self.0.len().max(1)).min(PATTERN_BYTES)
    }
}

/// The limit for one pattern.
pub(super) const fn limit() -> usize {
    PATTERN_BYTES
}

fn too_much() -> String {
    format!("holds patterns that take more than {} MiB of memory", TOTAL_BYTES >> 20)
}

/// What a pattern takes; nothing where it is none, which the validator tells better.
fn size(pattern: &str, left: usize) -> Result<usize, String> {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(0) };
    let limit = left.min(PATTERN_BYTES);
    let config = meta::Config::new().nfa_size_limit(Some(limit)).onepass(false).dfa(false);
    match meta::Builder::new().configure(config).build(&translated) {
        Ok(regex) => Ok(regex.memory_usage()),
        Err(error) if error.size_limit().is_some() && left < PATTERN_BYTES => Err(too_much()),
        Err(error) if error.size_limit().is_some() => {
            let shown: String = pattern.chars().take(100).collect();
            Err(format!("holds the pattern {shown:?}, which takes more than {} MiB of memory", PATTERN_BYTES >> 20))
        }
        Err(_) => Ok(0),
    }
}

/// Whatever is a pattern where a schema may stand. What looks like one elsewhere counts, too.
fn collect<'a>(value: &'a Value, patterns: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, patterns)),
        Value::Object(fields) => {
            patterns.extend(of(value));
            fields.values().for_each(|field| collect(field, patterns));
        }
        _ => {}
    }
}

/// The patterns that stand in a schema itself, without what is below.
pub(super) fn of(schema: &Value) -> impl Iterator<Item = &str> {
    let one = schema.get("pattern").and_then(Value::as_str);
    let names = schema.get("patternProperties").and_then(Value::as_object);
    one.into_iter().chain(names.into_iter().flat_map(|names| names.keys().map(String::as_str)))
}
