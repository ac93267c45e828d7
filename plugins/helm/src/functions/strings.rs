//! Text.

use chandler_go_template::{Call, Function, Map, Str, Type, Value};

use super::{Result, any, bytes, error, int, items, made, text, values::display};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Int, String};
    Some(match name {
        "trim" => Function::new(&[String], |call, a| made(call, text(a, 0).trim())),
        "trimAll" | "trimall" => Function::new(&[String, String], |call, a| {
            let cut: Vec<char> = text(a, 0).chars().collect();
            made(call, text(a, 1).trim_matches(&*cut))
        }),
        "trimSuffix" => Function::new(&[String, String], |call, a| {
            let (suffix, from) = (bytes(a, 0), bytes(a, 1));
            made(call, from.strip_suffix(suffix).unwrap_or(from))
        }),
        "trimPrefix" => Function::new(&[String, String], |call, a| {
            let (prefix, from) = (bytes(a, 0), bytes(a, 1));
            made(call, from.strip_prefix(prefix).unwrap_or(from))
        }),
        "upper" => Function::new(&[String], |call, a| {
            let upper: std::string::String = text(a, 0).chars().map(upper).collect();
            made(call, upper)
        }),
        "lower" => Function::new(&[String], |call, a| {
            let lower: std::string::String = text(a, 0).chars().map(lower).collect();
            made(call, lower)
        }),
        "trunc" => Function::new(&[Int, String], trunc),
        "substr" => Function::new(&[Int, Int, String], substr),
        "repeat" => Function::new(&[Int, String], repeat),
        "nospace" => Function::new(&[String], |call, a| {
            // Sprig takes each byte as a character.
            let kept: std::string::String =
                bytes(a, 0).iter().map(|byte| char::from(*byte)).filter(|c| !c.is_whitespace()).collect();
            made(call, kept)
        }),
        "contains" => {
            Function::new(&[String, String], |_, a| Ok(Value::Bool(find_bytes(bytes(a, 1), bytes(a, 0)).is_some())))
        }
        "hasPrefix" => Function::new(&[String, String], |_, a| Ok(Value::Bool(bytes(a, 1).starts_with(bytes(a, 0))))),
        "hasSuffix" => Function::new(&[String, String], |_, a| Ok(Value::Bool(bytes(a, 1).ends_with(bytes(a, 0))))),
        "quote" => Function::variadic(&[], Any, |call, a| {
            let quoted: Vec<_> =
                a.iter().filter(|value| !value.is_nil()).map(|value| quoted(&display(value))).collect();
            made(call, quoted.join(" "))
        }),
        "squote" => Function::variadic(&[], Any, |call, a| {
            let mut out = Vec::new();
            for value in a.iter().filter(|value| !value.is_nil()) {
                if !out.is_empty() {
                    out.push(b' ');
                }
                out.push(b'\'');
                out.extend_from_slice(display(value).as_bytes());
                out.push(b'\'');
            }
            made(call, out)
        }),
        "cat" => Function::variadic(&[], Any, |call, a| {
            let mut out = Vec::new();
            for value in a.iter().filter(|value| !value.is_nil()) {
                if !out.is_empty() {
                    out.push(b' ');
                }
                out.extend_from_slice(display(value).as_bytes());
            }
            made(call, out)
        }),
        "indent" => Function::new(&[Int, String], |call, a| indent(call, a, "")),
        "nindent" => Function::new(&[Int, String], |call, a| indent(call, a, "\n")),
        "replace" => Function::new(&[String, String, String], replace),
        "plural" => Function::new(&[String, String, Int], |_, a| Ok(any(a, usize::from(int(a, 2) != 1)))),
        "toString" => Function::new(&[Any], |call, a| {
            let text = display(&any(a, 0));
            made(call, text)
        }),
        "split" => Function::new(&[String, String], |call, a| split(call, a, None)),
        "splitn" => Function::new(&[String, Int, String], |call, a| {
            let parts = [any(a, 0), any(a, 2)];
            split(call, &parts, Some(int(a, 1)))
        }),
        "splitList" => Function::new(&[String, String], |call, a| {
            let parts = pieces(bytes(a, 1), bytes(a, 0), -1);
            call.charge(bytes(a, 1).len() + parts.len() * 32)?;
            Ok(Value::strings(parts))
        }),
        "toStrings" => Function::new(&[Any], |call, a| strings(call, &any(a, 0)).map(Value::strings)),
        "join" => Function::new(&[String, Any], |call, a| {
            let parts = strings(call, &any(a, 1))?;
            let length: usize = parts.iter().map(|part| part.len() + bytes(a, 0).len()).sum();
            call.charge(length)?;
            let parts: Vec<&[u8]> = parts.iter().map(Str::as_bytes).collect();
            Ok(Value::String(parts.join(bytes(a, 0)).into()))
        }),
        "sortAlpha" => Function::new(&[Any], |call, a| {
            let value = any(a, 0);
            if items(&value).is_none() {
                return Ok(Value::strings([display(&value)]));
            }
            let mut sorted = strings(call, &value)?;
            sorted.sort();
            Ok(Value::strings(sorted))
        }),
        "fail" => Function::new(&[String], |_, a| error(text(a, 0))),
        "hello" => Function::new(&[], |_, _| Ok(Value::from("Hello!"))),
        _ => return None,
    })
}

/// Go changes the case of single characters; what would become several stays.
pub(super) fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}

/// As of [`upper`].
pub(super) fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => {
            if character == 'İ' {
                'i'
            } else {
                character
            }
        }
    }
}

fn trunc(call: &mut Call<'_>, a: &[Value]) -> Result {
    let (count, from) = (int(a, 0), bytes(a, 1));
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let kept =
        if count < 0 { from.len().checked_sub(size).and_then(|start| from.get(start..)) } else { from.get(..size) };
    match (kept, a.get(1)) {
        (Some(kept), _) if kept.len() < from.len() => made(call, kept),
        (_, Some(whole)) => Ok(whole.clone()),
        (_, None) => Ok(Value::from("")),
    }
}

fn substr(call: &mut Call<'_>, a: &[Value]) -> Result {
    let (start, end, from) = (int(a, 0), int(a, 1), bytes(a, 2));
    let length = i64::try_from(from.len()).unwrap_or(i64::MAX);
    let (start, end) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| from.get(start..end)) {
        Some(part) => made(call, part),
        None if end < 0 || end > length => {
            error(format!("runtime error: slice bounds out of range [:{end}] with length {length}"))
        }
        None => error(format!("runtime error: slice bounds out of range [{start}:{end}]")),
    }
}

fn repeat(call: &mut Call<'_>, a: &[Value]) -> Result {
    let Ok(count) = usize::try_from(int(a, 0)) else { return error("strings: negative Repeat count") };
    let from = bytes(a, 1);
    call.charge(from.len().saturating_mul(count))?;
    Ok(Value::String(from.repeat(count).into()))
}

fn indent(call: &mut Call<'_>, a: &[Value], before: &str) -> Result {
    let Ok(spaces) = usize::try_from(int(a, 0)) else { return error("strings: negative Repeat count") };
    let from = bytes(a, 1);
    let lines = memchr::memchr_iter(b'\n', from).count() + 1;
    let length = before.len().saturating_add(from.len()).saturating_add(spaces.saturating_mul(lines));
    call.charge(length)?;
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(before.as_bytes());
    for (at, line) in from.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.push(b'\n');
        }
        out.resize(out.len() + spaces, b' ');
        out.extend_from_slice(line);
    }
    Ok(Value::String(out.into()))
}

fn replace(call: &mut Call<'_>, a: &[Value]) -> Result {
    let (old, new, from) = (text(a, 0), text(a, 1), text(a, 2));
    let matches = if old.is_empty() { from.chars().count() + 1 } else { from.matches(&*old).count() };
    if matches == 0 {
        return Ok(any(a, 2));
    }
    call.charge(from.len().saturating_add(matches.saturating_mul(new.len())))?;
    Ok(Value::from(from.replace(&*old, &new)))
}

fn split(call: &mut Call<'_>, a: &[Value], most: Option<i64>) -> Result {
    let parts = pieces(bytes(a, 1), bytes(a, 0), most.unwrap_or(-1));
    call.charge(bytes(a, 1).len() + parts.len() * 48)?;
    let map = Map::of(chandler_go_template::Element::String);
    for (at, part) in parts.into_iter().enumerate() {
        map.insert(format!("_{at}"), Value::String(part));
    }
    Ok(Value::Map(map))
}

pub(super) fn find_bytes(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// `strings.SplitN`: a negative number splits everywhere.
pub(super) fn pieces(from: &[u8], separator: &[u8], most: i64) -> Vec<Str> {
    if most == 0 {
        return Vec::new();
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    if separator.is_empty() {
        let whole = String::from_utf8_lossy(from);
        let mut rest: &str = &whole;
        while let Some(character) = rest.chars().next() {
            if parts.len() + 1 == most {
                break;
            }
            let (one, after) = rest.split_at(character.len_utf8());
            parts.push(Str::from(one));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Str::from(rest));
        }
        return parts;
    }
    let mut rest = from;
    while parts.len() + 1 < most
        && let Some(at) = find_bytes(rest, separator)
    {
        let (part, after) = rest.split_at(at);
        parts.push(Str::from(part));
        rest = after.get(separator.len()..).unwrap_or_default();
    }
    parts.push(Str::from(rest));
    parts
}

/// The items of a list as text, without nils; another value is a list of one, and nil is an empty one.
pub(super) fn strings(call: &mut Call<'_>, value: &Value) -> Result<Vec<Str>> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let Some(items) = items(value) else { return Ok(vec![display(value)]) };
    let mut out = Vec::with_capacity(items.len());
    for item in items.iter().filter(|item| !item.is_nil()) {
        let text = display(item);
        call.charge(text.len() + 32)?;
        out.push(text);
    }
    Ok(out)
}

/// `strconv.Quote`.
pub(super) fn quoted(text: &Str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{7}' => out.push_str("\\a"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                ' '..='~' => out.push(character),
                _ if is_printable(character) => out.push(character),
                _ => {
                    let code = u32::from(character);
                    let escaped = match code {
                        0..=0x7f => format!("\\x{code:02x}"),
                        0x80..=0xffff => format!("\\u{code:04x}"),
                        _ => format!("\\U{code:08x}"),
                    };
                    out.push_str(&escaped);
                }
            }
        }
        for byte in chunk.invalid() {
            crate::append(&mut out, format_args!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

/// Whether Go prints a character beyond ASCII as itself: neither control nor format character, space, or of private use.
fn is_printable(character: char) -> bool {
    let format = matches!(
        character,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{10ffff}'
    );
    !character.is_control() && !character.is_whitespace() && !format
}
