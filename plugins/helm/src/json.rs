//! JSON as Go's encoding/json reads and writes it.

use std::rc::Rc;

use base64::Engine as _;
use chandler_go_template::{List, Map, Value};

use crate::number;

/// Collections that are nested deeper are refused; the stack of a plugin is small.
pub(crate) const MOST_DEEP: usize = 250;

/// A longer text is not written.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// Writes a value: `indent` is what a level is indented by, or nothing for one line; `html` escapes `<`, `>` and `&`.
pub(crate) fn write(value: &Value, indent: Option<&str>, html: bool) -> Result<String, String> {
    let mut writer = Writer { out: String::new(), indent, html };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a> {
    out: String,
    indent: Option<&'a str>,
    html: bool,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MOST_DEEP {
            return Err(format!("json: unsupported value: nested more than {MOST_DEEP} levels deep"));
        }
        if self.out.len() > MOST_BYTES {
            return Err(format!("json: the text has more than {MOST_BYTES} bytes"));
        }
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value, kind) => self.out.push_str(&crate::integer(*value, *kind)),
            Value::Float(value) => {
                let text = number::json(*value)
                    .ok_or_else(|| format!("json: unsupported value: {}", number::general(*value)))?;
                self.out.push_str(&text);
            }
            Value::String(text) => quote(&text.text(), self.html, &mut self.out),
            Value::List(list) if list.is_nil() => self.out.push_str("null"),
            Value::List(list) => match list.as_bytes() {
                Some(bytes) => {
                    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                    quote(&text, self.html, &mut self.out);
                }
                None => self.list(list, depth)?,
            },
            Value::Map(map) => self.map(map, depth)?,
            Value::Object(object) => self.value(&object.data(), depth + 1)?,
        }
        Ok(())
    }

    fn list(&mut self, list: &List, depth: usize) -> Result<(), String> {
        self.out.push('[');
        for (at, item) in list.items().iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.line(depth + 1);
            self.value(item, depth + 1)?;
        }
        if !list.is_empty() {
            self.line(depth);
        }
        self.out.push(']');
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), String> {
        self.out.push('{');
        let entries = map.entries();
        for (at, (key, value)) in entries.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.line(depth + 1);
            quote(key, self.html, &mut self.out);
            self.out.push_str(if self.indent.is_some() { ": " } else { ":" });
            self.value(value, depth + 1)?;
        }
        if !entries.is_empty() {
            self.line(depth);
        }
        self.out.push('}');
        Ok(())
    }
}

/// Appends a string with quotes.
pub(crate) fn quote(text: &str, html: bool, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                crate::append(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            '<' | '>' | '&' if html => crate::append(out, format_args!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Reads one value. Numbers become `float64`.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(other) => Err(unexpected(other, "after top-level value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

fn unexpected(character: char, place: &str) -> String {
    let shown = match character {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        other => {
            let mut quoted = String::new();
            quote(&other.to_string(), false, &mut quoted);
            format!("'{}'", quoted.trim_matches('"'))
        }
    };
    format!("invalid character {shown} {place}")
}

const END: &str = "unexpected end of JSON input";

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn next(&mut self) -> Result<char, String> {
        let next = self.peek().ok_or(END)?;
        self.at += next.len_utf8();
        Ok(next)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MOST_DEEP {
            return Err("exceeded max depth".to_owned());
        }
        self.space();
        match self.peek().ok_or(END)? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' => Ok(Value::from(self.string()?)),
            't' => self.word("true", Value::Bool(true)),
            'f' => self.word("false", Value::Bool(false)),
            'n' => self.word("null", Value::Nil),
            '-' | '0'..='9' => self.number(),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for (at, expected) in word.chars().enumerate() {
            let found = self.next()?;
            if found != expected {
                return Err(unexpected(found, &format!("in literal {word} (expecting '{expected}')")))
                    .inspect_err(|_| self.at -= at);
            }
        }
        Ok(value)
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        let needs_digit = |reader: &Self, place: &str| match reader.peek() {
            None => END.to_owned(),
            Some(other) => unexpected(other, place),
        };
        if self.peek() == Some('-') {
            self.at += 1;
        }
        if self.peek() == Some('0') {
            self.at += 1;
        } else if self.digits() == 0 {
            return Err(needs_digit(self, "in numeric literal"));
        }
        if self.peek() == Some('.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(needs_digit(self, "after decimal point in numeric literal"));
            }
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(needs_digit(self, "in exponent of numeric literal"));
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => Err(format!("json: cannot unmarshal number {text} into Go value of type float64")),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let run = rest.find(|c: char| matches!(c, '"' | '\\') || c < ' ').ok_or(END)?;
            out.push_str(rest.get(..run).unwrap_or_default());
            self.at += run;
            match self.next()? {
                '"' => return Ok(out),
                '\\' => self.escape(&mut out)?,
                other => return Err(unexpected(other, "in string literal")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), String> {
        out.push(match self.next()? {
            '"' => '"',
            '\\' => '\\',
            '/' => '/',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.hex()?;
                if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
                    let before = self.at;
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xdc00..0xe000).contains(&second) {
                        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        return Ok(());
                    }
                    self.at = before;
                }
                char::from_u32(first).unwrap_or('\u{fffd}')
            }
            other => return Err(unexpected(other, "in string escape code")),
        });
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let next = self.next()?;
            let digit = next.to_digit(16).ok_or_else(|| unexpected(next, "in \\u hexadecimal character escape"))?;
            code = code * 16 + digit;
        }
        Ok(code)
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.next()? {
                ',' => {}
                ']' => return Ok(Value::list(items)),
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let map = Map::new();
        self.space();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::Map(map));
        }
        loop {
            self.space();
            match self.peek().ok_or(END)? {
                '"' => {}
                other if map.is_empty() => {
                    return Err(unexpected(other, "looking for beginning of object key string"));
                }
                other => return Err(unexpected(other, "looking for beginning of object key string")),
            }
            let key: Rc<str> = self.string()?.into();
            self.space();
            match self.next()? {
                ':' => {}
                other => return Err(unexpected(other, "after object key")),
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.space();
            match self.next()? {
                ',' => {}
                '}' => return Ok(Value::Map(map)),
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }
}
