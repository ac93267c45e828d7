//! Repairs text that go-yaml accepts and the scanner of this crate does not.
//!
//! The scanner implements YAML 1.2. go-yaml descends from libyaml, which is laxer about the white space between tokens:
//! inside quotes and brackets it ignores indentation, a tab may follow a colon, and a comment may directly follow a
//! bracket or a quote. In all these places white space has no meaning, so adding some changes no value. A text is
//! repaired where the scanner stopped, one place at a time; other texts cost nothing.
//!
//! go-yaml also accepts the head of a block scalar (`|`, `>`) in a line of its own that is indented no further than the key it belongs to.
//!
//! Between brackets, go-yaml also reads `fd00::` and `-` as text where a bracket or a comma follows. For YAML 1.2, a colon there ends
//! a key, without any error. These scalars get quotes.

use std::{collections::BTreeMap, str::Chars};

use saphyr_parser::{Marker, ScanError, Span};

/// The spaces and quotes added to a text, to map positions back to the original text.
#[derive(Default)]
pub(crate) struct Added(BTreeMap<usize, Vec<Addition>>);

/// An addition to a line, at a column of the repaired text that is counted from 0.
struct Addition {
    column: usize,
    /// The characters that were added to the line up to and including this addition.
    total: usize,
}

impl Added {
    /// The column, counted from 0, in the original text.
    pub(crate) fn original_column(&self, line: usize, column: usize) -> usize {
        let Some(additions) = self.0.get(&line) else { return column };
        let before = additions.partition_point(|addition| addition.column < column);
        column.saturating_sub(total(additions, before))
    }

    /// Adds characters at a column of the text that has all earlier additions.
    fn add(&mut self, line: usize, column: usize, width: usize) {
        let additions = self.0.entry(line).or_default();
        let at = additions.partition_point(|addition| addition.column <= column);
        let total = total(additions, at) + width;
        additions.insert(at, Addition { column, total });
        for later in additions.iter_mut().skip(at + 1) {
            later.column += width;
            later.total += width;
        }
    }
}

/// The characters of the first additions to a line.
fn total(additions: &[Addition], count: usize) -> usize {
    count.checked_sub(1).and_then(|last| additions.get(last)).map_or(0, |addition| addition.total)
}

/// Where and why the scanner stopped.
pub(crate) struct Stop {
    pub(crate) error: ScanError,
    /// The place of the last event that is not the start of a sequence.
    pub(crate) read: Span,
}

/// The text with one more repair, or `None` if go-yaml refuses it as well, or if the text would grow by more than `room`
/// bytes.
pub(crate) fn repair(text: &str, stop: &Stop, added: &mut Added, room: usize) -> Option<String> {
    let Stop { error, read } = stop;
    let at = error.marker();
    let place = Place::of(text, at)?;
    match error.info() {
        "invalid indentation in quoted scalar" => indent_quoted(text, &place, added, room),
        "invalid indentation" | "invalid indentation in flow construct" | "tab cannot be used as indentation" => {
            indent_line(text, &place, added)
        }
        "':' must be followed by a valid YAML whitespace" => spaces_for_tabs(text, &place),
        "comments must be separated from other tokens by whitespace" => {
            Some(insert(text, &[(place.byte, place.line, place.column)], 1, added))
        }
        "plain scalar cannot start with '-' followed by ,[]{}" => quote_dash(text, &place, added),
        "simple key expect ':'" | "simple key expected" => indent_head(text, read, added),
        _ => None,
    }
}

/// A plain scalar between brackets that ends in a colon.
pub(crate) struct Scalar {
    /// Its first character.
    pub(crate) start: Marker,
    /// The colon.
    pub(crate) end: Marker,
}

/// Finds the colons before a comma or a closing bracket, in the order of the text.
pub(crate) struct Colons<'a> {
    text: &'a str,
    rest: Chars<'a>,
    index: usize,
}

impl<'a> Colons<'a> {
    /// Nothing if the text has no such colon.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        memchr::memchr_iter(b':', text.as_bytes())
            .any(|at| is_colon(text.as_bytes().get(at..).unwrap_or_default()))
            .then(|| Self { text, rest: text.chars(), index: 0 })
    }

    /// The plain scalar of a span that ends before such a colon; `None` if another character follows, or if the scalar is empty. With an anchor or a
    /// tag, the span begins there. Spans must come in the order of the text.
    pub(crate) fn cut(&mut self, span: &Span, has_properties: bool) -> Option<Scalar> {
        let (start, end) = (span.start, span.end);
        if start.index() >= end.index() || !self.contain(end.index()) {
            return None;
        }
        let start = if has_properties { self.behind_properties(span)? } else { start };
        Some(Scalar { start, end })
    }

    /// The first character of a span, which ends here, that is not part of an anchor, a tag, a comment or white space.
    fn behind_properties(&self, span: &Span) -> Option<Marker> {
        let before = self.text.get(..self.text.len() - self.rest.as_str().len())?;
        let length = span.end.index() - span.start.index();
        let (first, _) = before.char_indices().rev().nth(length.checked_sub(1)?)?;
        let (mut line, mut column) = (span.start.line(), span.start.col());
        let (mut in_property, mut in_comment) = (false, false);
        let mut characters = before.get(first..)?.chars().enumerate().peekable();
        while let Some((ahead, character)) = characters.next() {
            match character {
                ' ' | '\t' | '\r' | '\n' => {
                    in_property = false;
                    in_comment = in_comment && matches!(character, ' ' | '\t');
                }
                _ if in_property || in_comment => {}
                '!' | '&' => in_property = true,
                '#' => in_comment = true,
                _ => return Some(Marker::new(span.start.index() + ahead, line, column)),
            }
            let is_break = character == '\n'
                || (character == '\r' && characters.peek().is_none_or(|(_, following)| *following != '\n'));
            (line, column) = if is_break { (line + 1, 0) } else { (line, column + 1) };
        }
        None
    }

    /// Whether such a colon is at this character, counted from 0. Characters before the last one in question are not found.
    fn contain(&mut self, index: usize) -> bool {
        let Some(ahead) = index.checked_sub(self.index) else { return false };
        if let Some(last) = ahead.checked_sub(1) {
            self.rest.nth(last);
            self.index = index;
        }
        is_colon(self.rest.as_str().as_bytes())
    }
}

fn is_colon(text: &[u8]) -> bool {
    matches!(text, [b':', b',' | b']' | b'}', ..])
}

/// The text with quotes around these scalars, which are in ascending order, and their colons.
pub(crate) fn quote(text: &str, scalars: &[Scalar], added: &mut Added) -> String {
    let mut quoted = String::with_capacity(text.len() + 2 * scalars.len());
    let mut rest = text.chars();
    let mut index = 0;
    // The line of the last quote, and the number of quotes that were added to it.
    let mut current = (0, 0);
    let mut note = |line: usize, column: usize| {
        if current.0 != line {
            current = (line, 0);
        }
        added.add(line, column + current.1, 1);
        current.1 += 1;
    };
    for Scalar { start, end } in scalars {
        let before = start.index().saturating_sub(index);
        quoted.extend(rest.by_ref().take(before));
        quoted.push('\'');
        note(start.line(), start.col());
        let (mut line, mut column) = (start.line(), start.col());
        for character in rest.by_ref().take((end.index() + 1).saturating_sub(start.index())) {
            quoted.push(character);
            if character == '\'' {
                quoted.push(character);
                note(line, column);
            }
            (line, column) = if character == '\n' { (line + 1, 0) } else { (line, column + 1) };
        }
        quoted.push('\'');
        note(end.line(), end.col() + 1);
        index = end.index() + 1;
    }
    quoted.push_str(rest.as_str());
    quoted
}

/// A dash between brackets that is the whole scalar.
fn quote_dash(text: &str, dash: &Place, added: &mut Added) -> Option<String> {
    let (before, rest) = text.split_at_checked(dash.byte)?;
    let after = rest.strip_prefix('-').filter(|after| after.starts_with([',', ']', '}']))?;
    let is_whole = before.trim_end().ends_with(['[', '{', ',', ':', '?']);
    let text = is_whole.then(|| [before, "'-'", after].concat())?;
    for column in [dash.column, dash.column + 2] {
        added.add(dash.line, column, 1);
    }
    Some(text)
}

/// The head of a block scalar that is alone in a line, in the column of the key or dash that it belongs to, where the scanner expects a key. After
/// anything else, a space would make it a part of another value.
fn indent_head(text: &str, read: &Span, added: &mut Added) -> Option<String> {
    let from = Place::of(text, &read.end)?;
    let mut owner = None;
    for (number, (start, line)) in lines(text.get(from.byte..)?).enumerate() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        for (position, word) in line.split_ascii_whitespace().enumerate() {
            match word.as_bytes() {
                [b'#', ..] => break,
                // A tag or an anchor.
                [b'!' | b'&', ..] => {}
                b":" if (number, position) == (0, 0) => owner = Some(read.start.col()),
                b"-" if position == 0 => owner = Some(indent + if number == 0 { from.column } else { 0 }),
                [b'|' | b'>', ..] if number > 0 && position == 0 && owner == Some(indent) => {
                    return Some(insert(text, &[(from.byte + start, from.line + number, 0)], 1, added));
                }
                _ => return None,
            }
        }
    }
    None
}

/// The position of a marker.
struct Place {
    byte: usize,
    /// Counted from 1.
    line: usize,
    /// Counted from 0.
    column: usize,
}

impl Place {
    fn of(text: &str, marker: &Marker) -> Option<Self> {
        let ends = std::iter::once(text.len());
        let byte = text.char_indices().map(|(byte, _)| byte).chain(ends).nth(marker.index())?;
        Some(Self { byte, line: marker.line(), column: marker.col() })
    }
}

/// The text with this many spaces inserted at each of some places: byte, line and column, in ascending order.
fn insert(text: &str, places: &[(usize, usize, usize)], width: usize, added: &mut Added) -> String {
    let mut repaired = String::with_capacity(text.len() + places.len() * width);
    let mut from = 0;
    for (byte, line, column) in places {
        repaired.push_str(text.get(from..*byte).unwrap_or_default());
        repaired.extend(std::iter::repeat_n(' ', width));
        added.add(*line, *column, width);
        from = *byte;
    }
    repaired.push_str(text.get(from..).unwrap_or_default());
    repaired
}

/// Indents every further line of a quoted scalar, whose leading blanks are folded.
fn indent_quoted(text: &str, quote: &Place, added: &mut Added, room: usize) -> Option<String> {
    let scalar = text.get(quote.byte..)?;
    let inside = scalar.get(..quoted_length(scalar)?)?;
    let mut places = Vec::new();
    for (number, (start, line)) in lines(inside).enumerate().skip(1) {
        if !line.trim_ascii().is_empty() {
            places.push((quote.byte + start, quote.line + number, 0));
        }
    }
    // One more than the column: a repaired place is never found again.
    let width = quote.column + 1;
    // A quote far to the right of many lines would turn kilobytes into megabytes.
    (places.len().saturating_mul(width) <= room).then(|| insert(text, &places, width, added))
}

/// The bytes of a quoted scalar, including its quotes.
fn quoted_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    let (_, quote) = characters.next()?;
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote == '"' {
            characters.next();
        } else if character == quote {
            if quote == '\'' && text.get(at + 1..)?.starts_with('\'') {
                characters.next();
                continue;
            }
            return Some(at + 1);
        }
    }
    None
}

/// Indents a line inside brackets beyond the enclosing block.
fn indent_line(text: &str, place: &Place, added: &mut Added) -> Option<String> {
    let before = text.get(..place.byte)?;
    let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let indents = lines(before).map(|(_, line)| line.bytes().take_while(|byte| b" -?".contains(byte)).count());
    let width = indents.max()? + 1;
    if text.get(start..place.byte)?.trim_ascii() != "" || place.column >= width {
        return None;
    }
    Some(insert(text, &[(start, place.line, 0)], width, added))
}

/// The tabs between a colon and its value.
fn spaces_for_tabs(text: &str, value: &Place) -> Option<String> {
    let before = text.get(..value.byte)?;
    let key = before.trim_end_matches([' ', '\t']);
    let blanks = before.get(key.len()..)?;
    if !key.ends_with(':') || !blanks.contains('\t') {
        return None;
    }
    Some([key, &" ".repeat(blanks.len()), text.get(value.byte..)?].concat())
}

/// Lines as the scanner counts them, each with the byte at which it begins.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = Some((0, text));
    std::iter::from_fn(move || {
        let (start, text) = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some((start, text));
        };
        let (line, after) = text.split_at_checked(end)?;
        let length = if after.starts_with("\r\n") { 2 } else { 1 };
        rest = after.get(length..).map(|after| (start + end + length, after));
        Some((start, line))
    })
}
