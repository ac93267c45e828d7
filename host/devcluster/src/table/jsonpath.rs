//! The JSON paths of printer columns (`k8s.io/client-go/util/jsonpath`): fields, indices, slices, unions, wildcards, descent and
//! filters.

use std::cmp::Ordering;

use serde_json::Value;

/// Most values that one path may yield; descent finds many.
const MOST_FOUND: usize = 10_000;

/// A path such as `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels.a\.b`.
#[derive(Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Slice(Slice),
    Union(Vec<Path>),
    All,
    Descend,
    Filter { path: Path, condition: Option<(Comparison, Literal)> },
}

/// `[start:end:step]`; an index is a slice of one.
#[derive(Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, PartialEq)]
enum Literal {
    Text(String),
    Number(f64),
    Boolean(bool),
    Path(Path),
}

impl Path {
    /// Reads a path, with or without braces around it; `None` when it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut rest = text.trim_start_matches(['$', '@']);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Descend);
                rest = after;
                if rest.is_empty() {
                    return None;
                }
                if !rest.starts_with('[') {
                    rest = step(rest, &mut steps)?;
                }
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                bracket(after.get(..end)?.trim(), &mut steps)?;
                rest = after.get(end + 1..)?;
            } else {
                let after = rest.strip_prefix('.')?;
                // A lone point is the object itself; one before a bracket has no meaning.
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                } else {
                    rest = step(after, &mut steps)?;
                }
            }
        }
        Some(Self(steps))
    }

    /// The values at the path.
    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.0.iter().fold(vec![object], |found, step| {
            let mut next = Vec::new();
            for value in found {
                step.apply(value, &mut next);
            }
            next.truncate(MOST_FOUND);
            next
        })
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match self {
            Self::Field(name) => found.extend(value.get(name)),
            Self::All => found.extend(children(value)),
            Self::Slice(slice) => found.extend(value.as_array().into_iter().flat_map(|items| slice.of(items))),
            Self::Union(paths) => found.extend(paths.iter().flat_map(|path| path.find(value))),
            Self::Descend => descend(value, found),
            Self::Filter { path, condition } => {
                let items = value.as_array().into_iter().flatten();
                found.extend(items.filter(|item| match (path.find(item).first(), condition) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(left), Some((comparison, right))) => right.compares(*comparison, left, item),
                }));
            }
        }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// A value and all that is in it.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    if found.len() < MOST_FOUND {
        found.push(value);
        children(value).for_each(|child| descend(child, found));
    }
}

impl Slice {
    fn of<'a>(&self, items: &'a [Value]) -> impl Iterator<Item = &'a Value> + use<'a> {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let position = |at: i64| {
            let at = if at < 0 { length.saturating_add(at) } else { at };
            usize::try_from(at.clamp(0, length)).unwrap_or_default()
        };
        let start = self.start.map_or(0, position);
        let end = self.end.map_or(items.len(), position);
        items.get(start..end.max(start)).unwrap_or_default().iter().step_by(self.step)
    }
}

impl Literal {
    fn compares(&self, comparison: Comparison, left: &Value, item: &Value) -> bool {
        let ordering = match self {
            Self::Text(right) => left.as_str().map(|left| left.cmp(right)),
            Self::Boolean(right) => left.as_bool().map(|left| left.cmp(right)),
            Self::Number(right) => left.as_f64().and_then(|left| left.partial_cmp(right)),
            Self::Path(path) => match (left, path.find(item).first().copied()) {
                (Value::String(left), Some(Value::String(right))) => Some(left.cmp(right)),
                (left, Some(right)) => {
                    left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
                }
                (_, None) => None,
            },
        };
        let Some(ordering) = ordering else { return comparison == Comparison::NotEqual };
        match comparison {
            Comparison::Equal => ordering == Ordering::Equal,
            Comparison::NotEqual => ordering != Ordering::Equal,
            Comparison::Less => ordering == Ordering::Less,
            Comparison::LessOrEqual => ordering != Ordering::Greater,
            Comparison::Greater => ordering == Ordering::Greater,
            Comparison::GreaterOrEqual => ordering != Ordering::Less,
        }
    }
}

/// Reads a field's name or a wildcard; returns what follows.
fn step<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let (name, rest) = field(text);
    match name.as_str() {
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(name)),
    }
    Some(rest)
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

/// The position of the bracket that closes, outside of quotes and other brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut open) = (None, 0_usize);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, ']') if open == 0 => return Some(at),
            (None, ']') => open -= 1,
            (None, '[') => open += 1,
            (None, '"' | '\'') => quote = Some(character),
            (Some(opened), character) if opened == character => quote = None,
            _ => {}
        }
    }
    None
}

fn bracket(text: &str, steps: &mut Vec<Step>) -> Option<()> {
    if text == "*" {
        steps.push(Step::All);
    } else if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        steps.push(filter_step(filter)?);
    } else if let Some(key) =
        text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).filter(|key| !key.contains('\''))
    {
        // Read as a path of its own: points in the key need a backslash, too.
        steps.extend(Path::parse(&format!(".{key}"))?.0);
    } else if text.contains(',') {
        let paths = text.split(',').map(|part| Path::parse(&format!("[{}]", part.trim())));
        steps.push(Step::Union(paths.collect::<Option<_>>()?));
    } else {
        steps.push(Step::Slice(slice(text)?));
    }
    Some(())
}

fn slice(text: &str) -> Option<Slice> {
    let number = |part: &str| match part.trim() {
        "" => Some(None),
        part => part.parse::<i64>().ok().map(Some),
    };
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [index] => {
            let start = number(index)??;
            let end = if start == -1 { None } else { Some(start + 1) };
            Some(Slice { start: Some(start), end, step: 1 })
        }
        [start, end] => Some(Slice { start: number(start)?, end: number(end)?, step: 1 }),
        [start, end, step] => {
            let step = usize::try_from(number(step)?.unwrap_or(1)).ok().filter(|step| *step > 0)?;
            Some(Slice { start: number(start)?, end: number(end)?, step })
        }
        _ => None,
    }
}

fn filter_step(text: &str) -> Option<Step> {
    const OPERATORS: [(&str, Comparison); 6] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let found =
        OPERATORS.iter().filter_map(|(operator, comparison)| Some((text.find(operator)?, operator, *comparison)));
    // The first operator; of two at the same place the longer one.
    let Some((at, operator, comparison)) = found.min_by_key(|(at, operator, _)| (*at, usize::MAX - operator.len()))
    else {
        return Some(Step::Filter { path: Path::parse(text)?, condition: None });
    };
    let path = Path::parse(text.get(..at)?.trim())?;
    let right = literal(text.get(at + operator.len()..)?.trim())?;
    Some(Step::Filter { path, condition: Some((comparison, right)) })
}

fn literal(text: &str) -> Option<Literal> {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    if let Some(text) = quoted('"').or_else(|| quoted('\'')) {
        return Some(Literal::Text(text.to_owned()));
    }
    match text {
        "true" => Some(Literal::Boolean(true)),
        "false" => Some(Literal::Boolean(false)),
        text if text.starts_with(['@', '$']) => Path::parse(text).map(Literal::Path),
        text => text.parse().ok().map(Literal::Number),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn find(path: &str, object: &Value) -> Option<Vec<String>> {
        let plain = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Path::parse(path).map(|path| path.find(object).iter().map(plain).collect())
    }

    #[test]
    fn paths_find_values() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "dotted"}},
            "spec": {"replicas": 3, "list": [1, 2, 3]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "count": 1}, {"type": "Synced", "status": "False", "count": 5, "reason": "r"},
            ]},
        });
        let cases = [
            (".spec.replicas", vec!["3"]),
            ("{.spec.replicas}", vec!["3"]),
            (".spec.list[0]", vec!["1"]),
            (".spec.list[-1]", vec!["3"]),
            (".spec.list[*]", vec!["1", "2", "3"]),
            (".spec.list[1:]", vec!["2", "3"]),
            (".spec.list[:-1]", vec!["1", "2"]),
            (".spec.list[0:3:2]", vec!["1", "3"]),
            (".spec.list[2,0]", vec!["3", "1"]),
            (".spec.list[9]", vec![]),
            (".spec['replicas']", vec!["3"]),
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec!["True"]),
            (".status.conditions[?(@.type == 'Synced')].status", vec!["False"]),
            (r#".status.conditions[?(@.type!="Ready")].status"#, vec!["False"]),
            (".status.conditions[?(@.reason)].type", vec!["Synced"]),
            (".status.conditions[?(@.count<3)].type", vec!["Ready"]),
            (".status.conditions[?(@.count >= 5)].type", vec!["Synced"]),
            (".status.conditions[?(@.count == 5)].type", vec!["Synced"]),
            (".status.conditions[*].type", vec!["Ready", "Synced"]),
            (".status..type", vec!["Ready", "Synced"]),
            (r".metadata.labels.a\.b/c", vec!["dotted"]),
            (r".metadata.labels['a\.b/c']", vec!["dotted"]),
            (".metadata.labels['a.b/c']", vec![]),
            (".missing.thing", vec![]),
        ];
        for (path, expected) in cases {
            assert_eq!(find(path, &object).unwrap(), expected, "{path}");
        }
        for broken in [".spec[", "..", ".spec.list[?(broken)]", ".spec.list[x]", "spec", ".a[1:2:0]", ".a[?(@.b==)]"] {
            assert_eq!(find(broken, &object), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn no_path_makes_it_panic(path in r"[.\[\]*?()@'a-c0-9:,=<!\\$ -]{0,24}") {
            let object = json!({"a": [{"b": 1}, [2, {"c": "x"}]], "b": {"a": null}});
            let _ = find(&path, &object);
        }
    }
}
