//! Reading and writing TOML as BurntSushi/toml does, behind `fromToml` and `toToml`.

use chandler_go_template::{Element, List, Map, Value};

use crate::{
    json::{MOST_BYTES, MOST_DEEP},
    number,
};

/// A map as TOML; another value as it stands behind a key.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    match value {
        Value::Nil => return Err("toml: cannot encode a nil value".to_owned()),
        Value::Map(map) => table(map, &[], &mut out, 0)?,
        other => element(other, &mut out, 0)?,
    }
    Ok(out)
}

fn indentation(key: &[String]) -> String {
    "  ".repeat(key.len().saturating_sub(1))
}

fn line(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn is_table(value: &Value) -> bool {
    matches!(value, Value::Map(_))
}

fn is_array_of_tables(value: &Value) -> bool {
    matches!(value, Value::List(list) if !list.is_empty() && list.items().iter().all(is_table))
}

fn table(map: &Map, key: &[String], out: &mut String, depth: usize) -> Result<(), String> {
    if depth > MOST_DEEP || out.len() > MOST_BYTES {
        return Err("toml: too deep or too long".to_owned());
    }
    let entries = map.entries();
    let path = |name: &str| -> Vec<String> { key.iter().cloned().chain([quoted_key(name)]).collect() };
    for (name, value) in &entries {
        if !value.is_nil() && !is_table(value) && !is_array_of_tables(value) {
            let path = path(name);
            out.push_str(&indentation(&path));
            out.push_str(path.last().map_or("", String::as_str));
            out.push_str(" = ");
            element(value, out, depth + 1)?;
            out.push('\n');
        }
    }
    for (name, value) in &entries {
        let path = path(name);
        match value {
            Value::Map(map) => {
                if path.len() == 1 {
                    line(out);
                }
                crate::append(out, format_args!("{}[{}]\n", indentation(&path), path.join(".")));
                table(map, &path, out, depth + 1)?;
            }
            Value::List(list) if is_array_of_tables(value) => {
                for item in list.items() {
                    line(out);
                    crate::append(out, format_args!("{}[[{}]]\n", indentation(&path), path.join(".")));
                    if let Value::Map(map) = item {
                        table(map, &path, out, depth + 1)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn quoted_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{7f}' => crate::append(&mut out, format_args!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

fn element(value: &Value, out: &mut String, depth: usize) -> Result<(), String> {
    if depth > MOST_DEEP || out.len() > MOST_BYTES {
        return Err("toml: too deep or too long".to_owned());
    }
    match value {
        Value::Nil => return Err("toml: cannot encode array with nil element".to_owned()),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value, kind) => out.push_str(&crate::integer(*value, *kind)),
        Value::Float(value) => out.push_str(&float(*value)),
        Value::String(text) => out.push_str(&quoted(&text.text())),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items().iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                element(item, out, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            let entries = map.entries();
            let has_header = |value: &Value| is_table(value) || is_array_of_tables(value);
            let (tables, others): (Vec<_>, Vec<_>) =
                entries.iter().filter(|(_, value)| !value.is_nil()).partition(|(_, value)| has_header(value));
            for (at, (key, value)) in others.into_iter().chain(tables).enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quoted_key(key));
                out.push_str(" = ");
                element(value, out, depth + 1)?;
            }
            out.push('}');
        }
        Value::Object(object) => element(&object.data(), out, depth + 1)?,
    }
    Ok(())
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = number::general(value);
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

/// Why a text gives no value.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is not TOML.
    Invalid(String),
    /// It contains a date, which Go keeps in a type of its own.
    Date,
}

/// A text as a map. The parser limits how deep it may be nested.
pub(super) fn read(text: &str) -> Result<Map, Unread> {
    let table: ::toml::Table =
        text.parse().map_err(|error: ::toml::de::Error| Unread::Invalid(format!("toml: {}", error.message())))?;
    map(table)
}

fn map(table: ::toml::Table) -> Result<Map, Unread> {
    let map = Map::new();
    for (key, value) in table {
        map.insert(key, read_value(value)?);
    }
    Ok(map)
}

fn read_value(value: ::toml::Value) -> Result<Value, Unread> {
    use ::toml::Value as Toml;
    Ok(match value {
        Toml::String(text) => Value::from(text),
        Toml::Integer(value) => Value::int64(value),
        Toml::Float(value) => Value::Float(value),
        Toml::Boolean(value) => Value::Bool(value),
        Toml::Datetime(_) => return Err(Unread::Date),
        Toml::Table(table) => Value::Map(map(table)?),
        Toml::Array(items) => {
            let is_tables = !items.is_empty() && items.iter().all(Toml::is_table);
            let items = items.into_iter().map(read_value).collect::<Result<_, _>>()?;
            Value::List(List::of(if is_tables { Element::Map } else { Element::Any }, items))
        }
    })
}
