//! Bounds on a foreign schema, so that neither reading nor evaluating it takes the host's stack, memory or time.

use serde_json::Value;

/// The most values of a schema when its references are expanded.
const NODES: usize = 100_000;

/// How deep a schema may be when its references are expanded.
const DEPTH: usize = 64;

/// Keywords that would make the meaning of a reference depend on more than the schema's text, or lead out of it.
const REFUSED: &[&str] =
    &["$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$id", "$anchor", "$vocabulary"];

/// How many parts a schema has when its references are expanded, or why it cannot be used.
pub(super) fn check(schema: &Value) -> Result<usize, String> {
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
    let mut walk = Walk { root: schema, nodes: 0 };
    walk.value(schema, 0)?;
    Ok(walk.nodes)
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
    nodes: usize,
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
