//! Limits on an untrusted schema, so that neither compiling nor evaluating it exhausts the host's stack, memory or
//! time.

use serde_json::Value;

use super::patterns::{self, Patterns};

/// The most values of a schema after its references are expanded.
const NODES: usize = 100_000;

/// The deepest nesting of a schema after its references are expanded.
const DEPTH: usize = 64;

/// Keywords that change how references resolve, or point outside the schema.
const REFUSED: &[&str] =
    &["$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$id", "$anchor", "$vocabulary"];

/// The cost of a schema after its references are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// The number of its parts.
    pub(super) parts: usize,
    /// The most steps that its patterns may take for each byte of text.
    pub(super) steps: usize,
}

/// The cost of a schema after its references are expanded, or why it cannot be used.
pub(super) fn check(schema: &Value, patterns: &Patterns) -> Result<Cost, String> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err("is neither an object nor a boolean".into());
    }
    if let Some(dialect) = schema.get("$schema")
        && dialect
            .as_str()
            .is_none_or(|dialect| dialect.trim_end_matches('#') != "https://json-schema.org/draft/2020-12/schema")
    {
        return Err("uses a dialect other than https://json-schema.org/draft/2020-12/schema".into());
    }
    let mut walk = Walk { root: schema, patterns, nodes: 0, steps: 0 };
    walk.value(schema, 0)?;
    Ok(Cost { parts: walk.nodes, steps: walk.steps })
}

/// The bytes of all texts of a JSON value, including field names.
pub(super) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + text_bytes(field)).sum(),
        _ => 0,
    }
}

/// The number of values in a JSON value, including itself.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(fields) => fields.values().map(count).sum::<usize>() + 1,
        _ => 1,
    }
}

struct Walk<'a> {
    root: &'a Value,
    patterns: &'a Patterns,
    nodes: usize,
    steps: usize,
}

impl<'a> Walk<'a> {
    /// Visits a value and, if it is a reference, its target. A recursive reference ends at the depth limit.
    fn value(&mut self, value: &'a Value, depth: usize) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(format!("has more than {NODES} parts after its references are expanded"));
        }
        if depth > DEPTH {
            return Err(format!("is recursive, or more than {DEPTH} levels deep after its references are expanded"));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, depth + 1)),
            Value::Object(fields) => {
                let steps = patterns::of(value).map(|pattern| self.patterns.steps(pattern));
                self.steps = steps.fold(self.steps, usize::saturating_add);
                if let Some(keyword) =
                    REFUSED.iter().find(|keyword| fields.get(**keyword).is_some_and(Value::is_string))
                {
                    return Err(format!("uses {keyword}, which is not supported"));
                }
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let target =
                        reference.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
                    let target = target.ok_or_else(|| format!("refers to {reference:?}, which it does not contain"))?;
                    let target = self
                        .root
                        .pointer(target)
                        .ok_or_else(|| format!("refers to {reference:?}, which it does not contain"))?;
                    self.value(target, depth + 1)?;
                }
                fields
                    .iter()
                    .filter(|(name, _)| *name != "$defs")
                    .try_for_each(|(_, field)| self.value(field, depth + 1))
            }
            _ => Ok(()),
        }
    }
}
