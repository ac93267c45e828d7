//! The simple JSON paths of printer columns: fields, indices, wildcards and equality filters.

use serde_json::Value;

/// The values at a path such as `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels.a\.b`.
///
/// A path that cannot be read yields nothing, as a column whose path finds nothing.
pub(super) fn find<'a>(path: &str, object: &'a Value) -> Vec<&'a Value> {
    let Some(steps) = parse(path) else { return Vec::new() };
    steps.iter().fold(vec![object], |found, step| found.into_iter().flat_map(|value| step.apply(value)).collect())
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter { path: String, equal: bool, value: String },
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { length + index } else { *index };
                usize::try_from(index).ok().and_then(|index| items.get(index)).into_iter().collect()
            }
            Self::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Self::Filter { path, equal, value: wanted } => {
                let items = value.as_array().into_iter().flatten();
                let text = |item: &Value| find(path, item).first().map(|found| plain(found));
                items.filter(|item| text(item).is_some_and(|text| (text == *wanted) == *equal)).collect()
            }
        }
    }
}

/// A value as text, without quotes around strings.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let mut rest =
        path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$').trim_start_matches('@');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after)?;
            steps.push(bracket(after.get(..end)?.trim())?);
            rest = after.get(end + 1..)?;
        } else {
            let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest));
            if name == "*" {
                steps.push(Step::All);
            } else if !name.is_empty() {
                steps.push(Step::Field(name));
            } else if after.len() == rest.len() || after.starts_with('.') {
                return None;
            }
            rest = after;
        }
    }
    Some(steps)
}

/// A field's name up to the next unescaped `.` or `[`.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\\' if !escaped => escaped = true,
            '.' | '[' if !escaped => return (name, text.get(at..).unwrap_or_default()),
            _ => {
                escaped = false;
                name.push(character);
            }
        }
    }
    (name, "")
}

/// The position of the bracket that closes, outside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, ']') => return Some(at),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let (path, equal, value) = match filter.split_once("==") {
            Some((path, value)) => (path, true, value),
            None => filter.split_once("!=").map(|(path, value)| (path, false, value))?,
        };
        return Some(Step::Filter { path: path.trim().to_owned(), equal, value: unquote(value.trim()).to_owned() });
    }
    if text.starts_with(['"', '\'']) {
        return Some(Step::Field(unquote(text).to_owned()));
    }
    text.parse().ok().map(Step::Index)
}

fn unquote(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_values() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "dotted"}},
            "spec": {"replicas": 3, "list": [1, 2, 3]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
        });
        let cases = [
            (".spec.replicas", vec!["3"]),
            ("{.spec.replicas}", vec!["3"]),
            (".spec.list[0]", vec!["1"]),
            (".spec.list[-1]", vec!["3"]),
            (".spec.list[*]", vec!["1", "2", "3"]),
            (".spec.list[9]", vec![]),
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec!["True"]),
            (".status.conditions[?(@.type=='Synced')].status", vec!["False"]),
            (r#".status.conditions[?(@.type!="Ready")].status"#, vec!["False"]),
            (".status.conditions[*].type", vec!["Ready", "Synced"]),
            (r".metadata.labels.a\.b/c", vec!["dotted"]),
            (".metadata.labels['a.b/c']", vec!["dotted"]),
            (".missing.thing", vec![]),
            (".spec[", vec![]),
            ("..", vec![]),
            (".spec.list[?(broken)]", vec![]),
        ];
        for (path, expected) in cases {
            let found: Vec<String> = find(path, &object).into_iter().map(plain).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
