//! An object as the text of a template: holes in its values become text of the template.

use serde_json::Value;

use crate::{ManifestsError, NAMESPACE, yaml::yaml};

/// What begins and ends the name of a hole. YAML reserves it, so that every hole that is a whole value is quoted.
const MARK: char = '@';
/// The name of the namespace's hole.
const RELEASE: &str = "@NAMESPACE@";

/// The text for a hole.
enum Hole {
    /// Replaces the value.
    Value(String),
    /// Replaces the line with the key of the value. The lines are indented like it.
    Lines(String),
}

/// The holes of an object.
#[derive(Default)]
pub(super) struct Holes(Vec<Hole>);

impl Holes {
    /// A value that the text replaces.
    pub(super) fn value(&mut self, text: impl Into<String>) -> Value {
        self.add(Hole::Value(text.into()))
    }

    /// A value that these lines replace, with its key.
    pub(super) fn lines(&mut self, text: impl Into<String>) -> Value {
        self.add(Hole::Lines(text.into()))
    }

    fn add(&mut self, hole: Hole) -> Value {
        self.0.push(hole);
        Value::String(format!("{MARK}{}{MARK}", self.0.len() - 1))
    }

    /// The text of an object with these holes. Text that looks like an action of a template is literal text.
    pub(super) fn text(&self, object: &Value) -> Result<String, ManifestsError> {
        let mut text = String::new();
        for line in yaml(object)?.lines() {
            match self.in_line(line) {
                None => text.push_str(&escaped(line)),
                Some((before, Hole::Value(value), after)) => {
                    text.extend([escaped(before).as_str(), value, &escaped(after)]);
                }
                Some((before, Hole::Lines(lines), _)) => text.push_str(&indented(before, lines)),
            }
            text.push('\n');
        }
        Ok(text.replace(RELEASE, "{{ .Release.Namespace }}"))
    }

    /// The hole in a line, with what is before and after it.
    fn in_line<'a>(&self, line: &'a str) -> Option<(&'a str, &Hole, &'a str)> {
        let (before, rest) = line.split_once(['\'', '"']).filter(|(_, rest)| rest.starts_with(MARK))?;
        let (name, after) = rest.get(1..)?.split_once(MARK)?;
        Some((before, self.0.get(name.parse::<usize>().ok()?)?, after.get(1..)?))
    }
}

/// Names the namespace of the release instead of the one in the files.
pub(super) fn of_release(object: &mut Value) {
    crate::adapt::rename(object, RELEASE);
}

/// Text that a template prints as it is.
pub(super) fn escaped(text: &str) -> String {
    text.replace("{{", "{{ `{{` }}")
}

/// Lines in place of a line that begins with this text. In a list, the first line begins the item.
fn indented(before: &str, lines: &str) -> String {
    let spaces = before.len() - before.trim_start().len();
    let (indent, is_item) = (" ".repeat(spaces), before.trim_start().starts_with("- "));
    let lines = lines.lines().enumerate().map(|(index, line)| match (is_item, index) {
        (true, 0) => format!("{indent}- {line}"),
        (true, _) => format!("{indent}  {line}"),
        (false, _) => format!("{indent}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether an object names the namespace of the controller as its own name.
pub(super) fn is_namespace(object: &Value) -> bool {
    let is = |pointer: &str, text: &str| object.pointer(pointer).and_then(Value::as_str) == Some(text);
    is("/kind", "Namespace") && is("/metadata/name", NAMESPACE)
}
