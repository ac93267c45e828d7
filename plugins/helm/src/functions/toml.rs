//! Writing TOML as BurntSushi/toml does, behind `toToml`.

use chandler_go_template::{Map, Value};

use crate::{
    json::{MOST_BYTES, MOST_DEEP},
    number,
};

/// A map as TOML.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let Value::Map(map) = value else {
        return Err(match value {
            Value::Nil => "toml: cannot encode a nil value".to_owned(),
            other => format!("toml: top-level values must be Go maps or structs: got {}", other.type_name()),
        });
    };
    let mut out = String::new();
    table(map, &[], &mut out, 0)?;
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
            for (at, (key, value)) in map.entries().iter().filter(|(_, value)| !value.is_nil()).enumerate() {
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
