//! The regular expressions of an untrusted schema, within one memory budget.
//!
//! A short pattern can take a megabyte (`.{800}N`), and a schema can contain thousands. Each pattern is therefore
//! compiled on its own and dropped again until the budget of the schema is used up, which bounds the cost of a rejected
//! schema. The size of a pattern also bounds its matching time per byte of text.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use regex_automata::meta;
use serde_json::Value;

/// The memory limit of one compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

/// The memory limit of all compiled patterns of a schema.
const TOTAL_BYTES: usize = 16 << 20;

/// The memory of a pattern beyond what is measured.
const FIXED_BYTES: usize = 4 << 10;

/// The smallest size of a state in a pattern's automaton. Each state is visited at most once per byte of text.
const STATE_BYTES: usize = 32;

/// The patterns of a schema with their sizes.
pub(super) struct Patterns(BTreeMap<String, usize>);

impl Patterns {
    /// Measures all patterns of a schema.
    ///
    /// # Errors
    /// If they exceed the budget, or `deadline` passes.
    pub(super) fn measure(schema: &Value, deadline: Instant) -> Result<Self, String> {
        let mut texts = BTreeSet::new();
        collect(schema, &mut texts);
        let mut measured = BTreeMap::new();
        let mut left = TOTAL_BYTES;
        for text in texts {
            if Instant::now() > deadline {
                return Err("takes longer to compile than the time limit of the provisioner".into());
            }
            let bytes = size(text, left)?.saturating_add(FIXED_BYTES);
            left = left.checked_sub(bytes).ok_or_else(too_much)?;
            measured.insert(text.to_owned(), bytes);
        }
        Ok(Self(measured))
    }

    /// The total size, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().sum()
    }

    /// The most steps of a pattern per byte of text.
    pub(super) fn steps(&self, pattern: &str) -> usize {
        self.0.get(pattern).copied().unwrap_or_default() / STATE_BYTES
    }

    /// The bytes that each pattern may use while it runs: the budget again, in equal shares.
    pub(super) fn share(&self) -> usize {
        (TOTAL_BYTES / self.0.len().max(1)).min(PATTERN_BYTES)
    }
}

/// The size limit of one pattern.
pub(super) const fn limit() -> usize {
    PATTERN_BYTES
}

fn too_much() -> String {
    format!("contains patterns that take more than {} MiB of memory", TOTAL_BYTES >> 20)
}

/// The size of a pattern; zero if it is invalid, which the validator reports with a better message.
fn size(pattern: &str, left: usize) -> Result<usize, String> {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(0) };
    let limit = left.min(PATTERN_BYTES);
    let config = meta::Config::new().nfa_size_limit(Some(limit)).onepass(false).dfa(false);
    match meta::Builder::new().configure(config).build(&translated) {
        Ok(regex) => Ok(regex.memory_usage()),
        Err(error) if error.size_limit().is_some() && left < PATTERN_BYTES => Err(too_much()),
        Err(error) if error.size_limit().is_some() => {
            let shown: String = pattern.chars().take(100).collect();
            Err(format!("contains the pattern {shown:?}, which takes more than {} MiB of memory", PATTERN_BYTES >> 20))
        }
        Err(_) => Ok(0),
    }
}

/// Collects every pattern in a place where a schema may be. Values that only look like patterns count too.
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

/// The patterns of a schema itself, without its subschemas.
pub(super) fn of(schema: &Value) -> impl Iterator<Item = &str> {
    let one = schema.get("pattern").and_then(Value::as_str);
    let names = schema.get("patternProperties").and_then(Value::as_object);
    one.into_iter().chain(names.into_iter().flat_map(|names| names.keys().map(String::as_str)))
}
