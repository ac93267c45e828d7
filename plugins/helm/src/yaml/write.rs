//! Writing values as YAML, with the text that Helm gives: it feeds checksums.

use chandler_go_template::{Map, Value};

use crate::{
    json::{MOST_BYTES, MOST_DEEP},
    number,
};

use super::{
    emit::{Dialect, Emitter, Style},
    order, scalar,
};

/// A value as `toYaml` writes it, with a final line feed: `sigs.k8s.io/yaml`, which is JSON written by go-yaml v2.
///
/// # Errors
/// A value without a form in JSON or YAML: a number that is not finite, control characters, too many levels or bytes.
pub fn write(value: &Value) -> Result<String, String> {
    write_in(value, Dialect::V2)
}

/// A value as `toYamlPretty` writes it, with a final line feed: go-yaml v3, with sequences indented.
///
/// # Errors
/// As of [`write()`].
pub fn write_pretty(value: &Value) -> Result<String, String> {
    write_in(value, Dialect::V3)
}

fn write_in(value: &Value, dialect: Dialect) -> Result<String, String> {
    let mut writer = Writer { emitter: Emitter::new(dialect), dialect };
    writer.value(value, 0, false)?;
    Ok(writer.emitter.finish())
}

struct Writer {
    emitter: Emitter,
    dialect: Dialect,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize, in_mapping: bool) -> Result<(), String> {
        if depth > MOST_DEEP {
            return Err(format!("yaml: nested more than {MOST_DEEP} levels deep"));
        }
        if self.emitter.len() > MOST_BYTES {
            return Err(format!("yaml: the text has more than {MOST_BYTES} bytes"));
        }
        match value {
            Value::Nil => self.emitter.raw("null"),
            Value::Bool(value) => self.emitter.raw(if *value { "true" } else { "false" }),
            Value::Int(value, kind) => self.emitter.raw(&crate::integer(*value, *kind)),
            Value::Float(value) => {
                let text = self.float(*value)?;
                self.emitter.raw(&text);
            }
            Value::String(text) => {
                let text = self.text(&text.text())?;
                let style = self.style(&text);
                self.emitter.scalar(&text, style);
            }
            Value::List(list) => match list.as_bytes() {
                Some(bytes) if self.dialect == Dialect::V2 => {
                    use base64::Engine as _;
                    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                    let style = self.style(&text);
                    self.emitter.scalar(&text, style);
                }
                // The YAML of JSON, where a nil slice is null.
                _ if list.is_nil() && self.dialect == Dialect::V2 => self.emitter.raw("null"),
                _ if list.is_empty() => self.emitter.raw("[]"),
                _ => {
                    let outer = self.emitter.open_sequence(in_mapping);
                    for item in list.items() {
                        self.emitter.item();
                        self.value(item, depth + 1, false)?;
                    }
                    self.emitter.close(outer);
                }
            },
            Value::Map(map) => self.map(map, depth)?,
            Value::Object(object) => self.value(&object.data(), depth + 1, in_mapping)?,
        }
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), String> {
        if map.is_empty() {
            self.emitter.raw("{}");
            return Ok(());
        }
        let outer = self.emitter.open_mapping();
        for (key, value) in order::sort(map.entries(), &|(key, _)| &**key) {
            let key = self.text(&key)?;
            let style = self.style(&key);
            self.emitter.key(&key, style);
            self.value(&value, depth + 1, true)?;
        }
        self.emitter.close(outer);
        Ok(())
    }

    /// A number: JSON's form, as YAML reads it back.
    fn float(&self, value: f64) -> Result<String, String> {
        if self.dialect == Dialect::V3 {
            return Ok(match number::general(value).as_str() {
                "+Inf" => ".inf".to_owned(),
                "-Inf" => "-.inf".to_owned(),
                "NaN" => ".nan".to_owned(),
                text => text.to_owned(),
            });
        }
        let text = number::json(value).ok_or_else(|| format!("json: unsupported value: {}", number::general(value)))?;
        Ok(match text.as_str() {
            "-0" => "0".to_owned(),
            text if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() => text.to_owned(),
            _ => number::general(value),
        })
    }

    /// A text as it is after it went through JSON.
    fn text(&self, text: &str) -> Result<String, String> {
        if self.dialect == Dialect::V3 {
            return Ok(text.to_owned());
        }
        if text.contains(|c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')) {
            return Err("error converting JSON to YAML: yaml: control characters are not allowed".to_owned());
        }
        // YAML takes this character, which JSON does not escape, for a line break, and folds it.
        Ok(if text.contains('\u{85}') { text.replace('\u{85}', " ") } else { text.to_owned() })
    }

    fn style(&self, text: &str) -> Style {
        let is_text = if self.dialect == Dialect::V2 { scalar::is_text } else { scalar::is_text_v3 };
        if text.contains('\n') {
            Style::Literal
        } else if is_text(text) {
            Style::Plain
        } else {
            Style::Double
        }
    }
}
