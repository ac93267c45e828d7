//! Bounds on a foreign schema, so that neither reading nor evaluating it takes the host's stack, memory or time.

use serde_json::Value;

use super::patterns::{self, Patterns};

/// The most values of a schema when its references are expanded.
const NODES: usize = 100_000;

/// How deep a schema may be when its references are expanded.
const DEPTH: usize = 64;

/// Keywords that would make the meaning of a reference depend on more than the schema's text, or lead out of it.
const REFUSED: &[&str] =
    &["$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$id", "$anchor", "$vocabulary"];

/// What a schema may cost when its references are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// How many parts it has.
    pub(super) parts: usize,
    /// How many steps its patterns may take for each byte of text.
    pub(super) steps: usize,
}

/// What a schema may cost when its references are expanded, or why it cannot be used.
pub(super) fn check(schema: &Value, patterns: &Patterns) -> Result<Cost, String> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err("is neither an object nor a boolean".into());
    }
    if let Some(dialect) = schema.get("$schema")
        && dialect
            .as_str()
            .is_none_or(|dialect| dialect.trim_end_matches('#') != "https://json-schema.org/draft/2020-12/schema")
    {
        return Err("names another dialect than https://json-schema.org/draft/2020-12/schema".into());
    }
    let mut walk = Walk { root: schema, patterns, nodes: 0, steps: 0 };
    walk.value(schema, 0)?;
    Ok(Cost { parts: walk.nodes, steps: walk.steps })
}

/// The bytes of all texts of a JSON value, names included.
pub(super) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + text_bytes(field)).sum(),
        _ => 0,
    }
}

/// How many values a JSON value holds, itself included.
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
    /// Visits a value and, where it is a reference, what it refers to. A recursive reference ends at the limit on depth.
    fn value(&mut self, value: &'a Value, depth: usize) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(format!("has more than {NODES} parts when its references are expanded"));
        }
        if depth > DEPTH {
            return Err(format!("is recursive, or more than {DEPTH} levels deep when its references are expanded"));
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
                    let target = target.ok_or_else(|| format!("refers to {reference:?}, which is not in it"))?;
                    let target = self
                        .root
                        .pointer(target)
                        .ok_or_else(|| format!("refers to {reference:?}, which is not in it"))?;
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
