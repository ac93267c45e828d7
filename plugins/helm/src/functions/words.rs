//! Words: their case, their initials, and lines of a length.

use chandler_go_template::{Function, Type, Value};

use super::{
    Result, bytes, int, made,
    strings::{lower, upper},
    text,
};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Int, String};
    Some(match name {
        "title" => Function::new(&[String], |call, a| made(call, title(&text(a, 0)))),
        "untitle" => Function::new(&[String], |call, a| {
            let text = text(a, 0);
            made(call, each_word(&text, |c, first| if first { lower(c) } else { c }))
        }),
        "swapcase" => Function::new(&[String], |call, a| {
            let text = text(a, 0);
            made(call, each_word(&text, |c, _| if c.is_uppercase() { lower(c) } else { upper(c) }))
        }),
        "initials" => Function::new(&[String], |call, a| {
            // Sprig takes each byte as a character.
            let characters: std::string::String = bytes(a, 0).iter().map(|byte| char::from(*byte)).collect();
            let initials: std::string::String =
                characters.split_whitespace().filter_map(|word| word.chars().next()).collect();
            made(call, initials)
        }),
        "snakecase" => Function::new(&[String], |call, a| made(call, separated(&text(a, 0), '_'))),
        "kebabcase" => Function::new(&[String], |call, a| made(call, separated(&text(a, 0), '-'))),
        "camelcase" => Function::new(&[String], |call, a| made(call, pascal(&text(a, 0)))),
        "abbrev" => Function::new(&[Int, String], |call, a| {
            let (width, from) = (int(a, 0), text(a, 1));
            made(call, if width < 4 { from.into_owned() } else { abbreviate(&from, 0, width) })
        }),
        "abbrevboth" => Function::new(&[Int, Int, String], |call, a| {
            let (left, right, from) = (int(a, 0), int(a, 1), text(a, 2));
            let keep = right < 4 || (left > 0 && right < 7);
            made(call, if keep { from.into_owned() } else { abbreviate(&from, left, right) })
        }),
        "wrap" => Function::new(&[Int, String], |call, a| wrap(call, int(a, 0), &text(a, 1), "\n", false)),
        "wrapWith" => {
            Function::new(&[Int, String, String], |call, a| wrap(call, int(a, 0), &text(a, 2), &text(a, 1), true))
        }
        _ => return None,
    })
}

/// `strings.Title`: the first letter of each word in upper case.
fn title(text: &str) -> String {
    let mut previous = ' ';
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let separator = if previous.is_ascii() {
            !(previous.is_ascii_alphanumeric() || previous == '_')
        } else {
            !previous.is_alphanumeric() && previous.is_whitespace()
        };
        out.push(if separator { upper(character) } else { character });
        previous = character;
    }
    out
}

fn each_word(text: &str, change: impl Fn(char, bool) -> char) -> String {
    let mut first = true;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        out.push(change(character, first));
        first = character.is_whitespace();
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic()
}

/// Go's Unicode category P, as far as ASCII and the common blocks go.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{3001}'..='\u{3003}')
}

fn next_word(text: &str) -> (Kind, &str, &str) {
    let Some(first) = text.chars().next() else { return (Kind::None, "", "") };
    let after = |is: &dyn Fn(char) -> bool| -> usize {
        let start = first.len_utf8();
        let rest = text.get(start..).unwrap_or_default();
        start + rest.find(|c| !is(c)).unwrap_or(rest.len())
    };
    let lower = |c: char| is_letter(c) && !c.is_uppercase();
    let (kind, end) = if is_connector(first) {
        (Kind::Connector, after(&is_connector))
    } else if is_punctuation(first) {
        (Kind::Punctuation, after(&is_punctuation))
    } else if first.is_uppercase() {
        let capitals = after(&|c| c.is_uppercase());
        let rest = text.get(capitals..).unwrap_or_default();
        let end = if capitals > first.len_utf8() {
            // The last capital begins the next word, if small letters follow.
            let last = text.get(..capitals).and_then(|capitals| capitals.chars().next_back()).map_or(0, char::len_utf8);
            if rest.starts_with(is_letter) { capitals - last } else { capitals }
        } else {
            after(&lower)
        };
        (Kind::Upper, end)
    } else if is_letter(first) {
        (Kind::Alphabet, after(&lower))
    } else if first.is_numeric() {
        (Kind::Number, after(&char::is_numeric))
    } else {
        (Kind::Other, after(&|c| !(is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c))))
    };
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (kind, word, rest)
}

fn write_word(out: &mut String, kind: Kind, word: &str, connector: char) {
    match kind {
        Kind::Upper => out.extend(word.chars().map(lower)),
        Kind::Connector => out.extend(word.chars().map(|_| connector)),
        _ => out.push_str(word),
    }
}

/// The words of a text in lower case, with a character between them: xstrings' `ToSnakeCase` and `ToKebabCase`.
fn separated(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(text);
    let joins = |kind: Kind| matches!(kind, Kind::Connector | Kind::Punctuation);
    while !rest.is_empty() {
        if kind != Kind::Connector {
            write_word(&mut out, kind, word, connector);
        }
        let (previous, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous {
            Kind::Number => {
                while matches!(kind, Kind::Alphabet | Kind::Number) {
                    write_word(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Kind::None && !joins(kind) {
                    out.push(connector);
                }
            }
            Kind::Connector => write_word(&mut out, previous, last, connector),
            Kind::Punctuation => {}
            _ if kind != Kind::Number => {
                if !joins(kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind == Kind::Alphabet {
                    out.push(connector);
                    write_word(&mut out, Kind::Number, number, connector);
                    while matches!(kind, Kind::Alphabet | Kind::Number) {
                        write_word(&mut out, kind, word, connector);
                        (kind, word, rest) = next_word(rest);
                    }
                    if kind != Kind::None && !joins(kind) {
                        out.push(connector);
                    }
                } else {
                    write_word(&mut out, Kind::Number, number, connector);
                    if !joins(kind) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    write_word(&mut out, kind, word, connector);
    out
}

/// xstrings' `ToPascalCase`.
fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    let mut current = None;
    let mut first_upper = false;
    for character in characters.by_ref() {
        if !is_connector(character) {
            first_upper = character.is_uppercase();
            current = Some(upper(character));
            break;
        }
        out.push(character);
    }
    let Some(mut current) = current else { return out };
    for character in characters {
        let previous = current;
        current = character;
        if is_connector(current) && is_connector(previous) {
            out.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_upper = current.is_uppercase();
            current = upper(current);
        } else {
            if first_upper {
                if current.is_uppercase() {
                    current = lower(current);
                } else {
                    first_upper = false;
                }
            }
            out.push(previous);
        }
    }
    out.push(current);
    out
}

/// A text of at most `width` bytes, with dots where it was cut.
fn abbreviate(text: &str, offset: i64, width: i64) -> String {
    let part = |from: i64, to: i64| {
        let at = |place: i64| usize::try_from(place.max(0)).unwrap_or(usize::MAX).min(text.len());
        let (from, to) = (at(from), at(to));
        String::from_utf8_lossy(text.as_bytes().get(from..to).unwrap_or_default()).into_owned()
    };
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if length <= width {
        return text.to_owned();
    }
    let offset = offset.min(length);
    let offset = if length - offset < width - 3 { length - (width - 3) } else { offset };
    if offset <= 4 {
        return part(0, width - 3) + "...";
    }
    if offset + width - 3 < length {
        return format!("...{}", abbreviate(&part(offset, length), 0, width - 3));
    }
    format!("...{}", part(length - (width - 3), length))
}

fn wrap(call: &mut chandler_go_template::Call<'_>, width: i64, text: &str, line: &str, long: bool) -> Result<Value> {
    let line = if line.is_empty() { "\n" } else { line };
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut offset = 0;
    let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    while bytes.len() - offset > width {
        if bytes.get(offset) == Some(&b' ') {
            offset += 1;
            continue;
        }
        call.charge(line.len())?;
        let (cut, next) = match part(offset, offset + width + 1).iter().rposition(|byte| *byte == b' ') {
            Some(space) => (offset + space, offset + space + 1),
            None if long => (offset + width, offset + width),
            None => match part(offset + width, bytes.len()).iter().position(|byte| *byte == b' ') {
                Some(space) => (offset + width + space, offset + width + space + 1),
                None => break,
            },
        };
        out.extend_from_slice(part(offset, cut));
        out.extend_from_slice(line.as_bytes());
        offset = next;
    }
    out.extend_from_slice(part(offset, bytes.len()));
    made(call, out)
}
