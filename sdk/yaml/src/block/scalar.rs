//! Scalars, in one line or in several.

use std::borrow::Cow;

use saphyr_parser::ScalarStyle;

use super::lines::{Line, Lines};

/// A scalar.
pub(super) struct Scalar<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) style: ScalarStyle,
    /// The first line of a block scalar, which is where it begins for the scanner, and its indentation.
    pub(super) first: Option<(u32, usize)>,
}

impl<'a> Scalar<'a> {
    /// A scalar that begins where its text does.
    fn here(text: Cow<'a, str>, style: ScalarStyle) -> Self {
        Self { text, style, first: None }
    }

    fn block(text: String, style: ScalarStyle, first: Line<'a>) -> Self {
        Self { text: text.into(), style, first: Some((first.number, first.indent)) }
    }
}

/// Reads the scalar that begins with this text; its further lines are indented more than its parent.
pub(super) fn read<'a>(text: &'a str, lines: &mut Lines<'a>, parent: usize) -> Option<Scalar<'a>> {
    match text.as_bytes() {
        b"|" => literal(lines, parent, true),
        b"|-" => literal(lines, parent, false),
        b">" => folded(lines, parent, true),
        b">-" => folded(lines, parent, false),
        [b'"', ..] => quoted(text, lines, parent, Quotes::Double),
        [b'\'', ..] => quoted(text, lines, parent, Quotes::Single),
        _ => plain(text, lines, parent),
    }
}

/// Whether a plain scalar may begin with this text.
fn begins_plain(text: &str) -> bool {
    match text.as_bytes() {
        [] | [b'-'] | [b'-', b' ', ..] => false,
        [first, ..] => !b"?:,[]{}#&*!|>'\"%@`".contains(first),
    }
}

/// Whether nothing in a line of a plain scalar ends it: no colon or number sign with a space on its side.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).is_some_and(|byte| *byte != b' ');
    memchr::memchr2_iter(b':', b'#', bytes).all(|index| match bytes.get(index) {
        Some(b':') => at(index + 1),
        _ => index.checked_sub(1).is_some_and(at),
    })
}

fn plain<'a>(text: &'a str, lines: &mut Lines<'a>, parent: usize) -> Option<Scalar<'a>> {
    if !begins_plain(text) || !is_plain(text) {
        return None;
    }
    let mut whole = Cow::Borrowed(text);
    let mut breaks = 1;
    while let Some(line) = lines.next_if(|line| line.is_blank() || continues(line, parent)) {
        if line.is_blank() {
            breaks += 1;
            continue;
        }
        if !is_plain(line.text) {
            return None;
        }
        fold(whole.to_mut(), breaks);
        breaks = 1;
        whole.to_mut().push_str(line.text);
    }
    Some(Scalar::here(whole, ScalarStyle::Plain))
}

fn continues(line: &Line<'_>, parent: usize) -> bool {
    line.indent > parent && !line.text.starts_with('#')
}

/// Adds what so many breaks between two lines mean.
fn fold(text: &mut String, breaks: usize) {
    if breaks == 1 {
        text.push(' ');
    } else {
        text.extend(std::iter::repeat_n('\n', breaks - 1));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    Single,
    Double,
}

fn quoted<'a>(text: &'a str, lines: &mut Lines<'a>, parent: usize, quotes: Quotes) -> Option<Scalar<'a>> {
    let style = if quotes == Quotes::Single { ScalarStyle::SingleQuoted } else { ScalarStyle::DoubleQuoted };
    let (mut whole, mut end) = segment(text.get(1..)?, quotes)?;
    // Spaces at the end of a line are not part of its text, unless the last one is escaped.
    while end != End::Quote {
        if end == End::Escaped && lines.ended_with_space() {
            return None;
        }
        let mut breaks = 1;
        let line = loop {
            let line = lines.next()?;
            if !line.is_blank() {
                break line;
            }
            breaks += 1;
        };
        if line.indent <= parent || (end == End::Escaped && breaks > 1) {
            return None;
        }
        if end == End::Break {
            fold(whole.to_mut(), breaks);
        }
        let (text, next) = segment(line.text, quotes)?;
        whole.to_mut().push_str(&text);
        end = next;
    }
    Some(Scalar::here(whole, style))
}

/// How the part of a quoted scalar in one line ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// With the scalar.
    Quote,
    /// With the line.
    Break,
    /// With the line, and an escaped break.
    Escaped,
}

/// The part of a quoted scalar in one line, and how it ends.
fn segment(text: &str, quotes: Quotes) -> Option<(Cow<'_, str>, End)> {
    let mut whole = String::new();
    let mut rest = text;
    loop {
        let at = match quotes {
            Quotes::Single => memchr::memchr(b'\'', rest.as_bytes()),
            Quotes::Double => memchr::memchr2(b'"', b'\\', rest.as_bytes()),
        };
        let Some(at) = at else { return Some((joined(whole, rest), End::Break)) };
        let (before, special) = rest.split_at_checked(at)?;
        let (added, length) = match (quotes, special.as_bytes()) {
            // Something else in the line.
            (_, [b'\'' | b'"']) => return Some((joined(whole, before), End::Quote)),
            (_, [b'\\']) => return Some((joined(whole, before), End::Escaped)),
            (Quotes::Single, [_, b'\'', ..]) => ('\'', 2),
            (Quotes::Double, [b'\\', b'n', ..]) => ('\n', 2),
            (Quotes::Double, [b'\\', b't', ..]) => ('\t', 2),
            (Quotes::Double, [b'\\', same @ (b'"' | b'\\' | b' '), ..]) => (char::from(*same), 2),
            _ => return None,
        };
        whole.push_str(before);
        whole.push(added);
        rest = special.get(length..)?;
    }
}

fn joined(mut whole: String, last: &str) -> Cow<'_, str> {
    if whole.is_empty() {
        return Cow::Borrowed(last);
    }
    whole.push_str(last);
    Cow::Owned(whole)
}

/// The first line of a block scalar, and the breaks before it.
fn first<'a>(lines: &mut Lines<'a>, parent: usize) -> Option<(Line<'a>, usize)> {
    let (mut breaks, mut most) = (0, 0);
    loop {
        let line = lines.next()?;
        if !line.is_blank() {
            return (line.indent > parent && line.indent >= most && line.complete).then_some((line, breaks));
        }
        most = most.max(line.indent);
        breaks += 1;
    }
}

fn literal<'a>(lines: &mut Lines<'a>, parent: usize, clip: bool) -> Option<Scalar<'a>> {
    let (first, before) = first(lines, parent)?;
    let indent = first.indent;
    let mut whole = String::new();
    whole.extend(std::iter::repeat_n('\n', before));
    whole.push_str(first.raw.get(indent..)?);
    let mut breaks = 1;
    while let Some(line) = lines.next_if(|line| line.is_blank() || line.indent >= indent) {
        if !line.complete {
            return None;
        }
        let Some(text) = line.raw.get(indent..).filter(|text| !text.is_empty()) else {
            breaks += 1;
            continue;
        };
        whole.extend(std::iter::repeat_n('\n', breaks));
        breaks = 1;
        whole.push_str(text);
    }
    if clip {
        whole.push('\n');
    }
    Some(Scalar::block(whole, ScalarStyle::Literal, first))
}

fn folded<'a>(lines: &mut Lines<'a>, parent: usize, clip: bool) -> Option<Scalar<'a>> {
    let (first, before) = first(lines, parent)?;
    let indent = first.indent;
    let mut whole = String::new();
    whole.extend(std::iter::repeat_n('\n', before));
    whole.push_str(first.raw.get(indent..)?);
    let mut breaks = 1;
    while let Some(line) = lines.next_if(|line| line.is_blank() || line.indent >= indent) {
        let text = line.raw.get(indent..).unwrap_or_default();
        // Lines that begin with a space are not folded.
        if !line.complete || text.starts_with(' ') {
            return None;
        }
        if text.is_empty() {
            breaks += 1;
            continue;
        }
        fold(&mut whole, breaks);
        breaks = 1;
        whole.push_str(text);
    }
    if clip {
        whole.push('\n');
    }
    Some(Scalar::block(whole, ScalarStyle::Folded, first))
}
