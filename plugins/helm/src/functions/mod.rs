//! The functions of templates: Sprig's, and Helm's own except those that render (`include`, `tpl`, `required`, `lookup`).
//!
//! | module | holds |
//! |---|---|
//! | `strings`, `words` | text |
//! | `numbers` | arithmetic and conversion to numbers |
//! | `lists`, `maps` | collections |
//! | `values` | kinds, defaults, equality |
//! | `encodings` | base64, digests, JSON, YAML |
//! | `toml` | reading and writing TOML |
//! | `regexes`, `pattern` | regular expressions in Go's syntax |
//! | `versions`, `version` | semantic versions |
//! | `dates`, `time` | times in Go's layouts |
//! | `urls` | URLs and paths |
//! | `generated` | what a renderer cannot know: random values, certificates, the time |

use std::borrow::Cow;

use chandler_go_template::{Call, Function, FunctionError, IntKind, List, Map, Value};

mod dates;
mod duration;
mod encodings;
pub mod generated;
mod lists;
mod maps;
mod numbers;
mod pattern;
mod regexes;
mod strings;
pub mod time;
mod toml;
mod urls;
mod values;
mod versions;
mod words;

pub use generated::{Certificate, Entropy, Environment};
pub(crate) use pattern::compile_default as compile_pattern;
pub(crate) use urls::clean as clean_path;
pub use values::display;

/// What a function gives.
type Result<T = Value> = std::result::Result<T, FunctionError>;

/// A function of Sprig or Helm by its name.
pub fn find(name: &str) -> Option<Function> {
    [
        strings::find,
        words::find,
        numbers::find,
        lists::find,
        maps::find,
        values::find,
        encodings::find,
        regexes::find,
        versions::find,
        dates::find,
        urls::find,
        generated::find,
    ]
    .iter()
    .find_map(|find| find(name))
}

/// An error with a text.
fn error<T>(message: impl Into<String>) -> Result<T> {
    Err(FunctionError::new(message))
}

/// What Go says when a function uses a value of another type than it expects, at run time.
fn nil_pointer<T>() -> Result<T> {
    error("runtime error: invalid memory address or nil pointer dereference")
}

/// An argument of any type.
fn any(arguments: &[Value], at: usize) -> Value {
    arguments.get(at).cloned().unwrap_or_default()
}

/// An argument that is declared as a string.
fn text(arguments: &[Value], at: usize) -> Cow<'_, str> {
    match arguments.get(at) {
        Some(Value::String(text)) => text.text(),
        _ => Cow::Borrowed(""),
    }
}

/// The bytes of an argument that is declared as a string.
fn bytes(arguments: &[Value], at: usize) -> &[u8] {
    match arguments.get(at) {
        Some(Value::String(text)) => text.as_bytes(),
        _ => &[],
    }
}

/// An argument that is declared as an integer.
fn int(arguments: &[Value], at: usize) -> i64 {
    match arguments.get(at) {
        Some(Value::Int(value, _)) => *value,
        _ => 0,
    }
}

/// An argument that is declared as a map; nothing for nil.
fn map(arguments: &[Value], at: usize) -> Option<&Map> {
    arguments.get(at).and_then(Value::as_map)
}

/// The items of a list of any type; nothing for another value.
fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.items().to_vec()),
        Value::Object(object) if object.kind() == "slice" => match object.data() {
            Value::List(list) => Some(list.items().to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// A list of `int`.
fn ints(values: impl Iterator<Item = i64>) -> Value {
    Value::List(List::of(chandler_go_template::Element::Int(IntKind::Int), values.map(Value::int).collect()))
}

/// Counts the bytes of a text that a function made, and gives it.
fn made(call: &mut Call<'_>, text: impl Into<chandler_go_template::Str>) -> Result {
    let text = text.into();
    call.charge(text.len())?;
    Ok(Value::String(text))
}

#[cfg(test)]
mod tests;
