//! Translates a pattern from the syntax of RE2 to the syntax of `regex`.

use super::{class::class, scanner::Scanner};

/// The maximum repeat count (`regexp/syntax`, maxRepeat).
const REPETITIONS: u32 = 1000;

/// A text is not a regular expression.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    /// Why a text is refused.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<regex::Error> for Invalid {
    fn from(error: regex::Error) -> Self {
        Self(error.to_string())
    }
}

/// The meaning of an escape sequence.
pub(crate) enum Escape {
    /// One character.
    Character(char),
    /// A character class with this notation.
    Class(String),
    /// An assertion with this notation.
    Place(&'static str),
}

/// Rewrites a pattern so that the crate `regex` interprets it as Go does. Errors that both detect may be left to `regex`.
///
/// # Errors
/// If Go refuses a pattern that `regex` would accept.
pub fn translate(pattern: &str) -> Result<String, Invalid> {
    let mut text = Scanner::new(pattern);
    let mut to = String::with_capacity(pattern.len() + 16);
    while let Some(character) = text.next() {
        match character {
            '[' => class(&mut text, &mut to)?,
            '{' if repetition(&mut text, &mut to)? => after_repetition(&mut text, &mut to)?,
            '{' => literal('{', &mut to),
            '*' | '+' | '?' => {
                to.push(character);
                after_repetition(&mut text, &mut to)?;
            }
            '(' => group(&mut text, &mut to)?,
            '\\' if text.take("Q") => {
                // Without an end it continues to the end of the pattern.
                let quoted = text.until(r"\E").unwrap_or_else(|| text.all());
                quoted.chars().for_each(|character| literal(character, &mut to));
            }
            '\\' => match escape(&mut text)? {
                Escape::Character(character) => literal(character, &mut to),
                Escape::Class(class) => to.push_str(&class),
                Escape::Place(place) => to.push_str(place),
            },
            character => to.push(character),
        }
    }
    Ok(to)
}

/// A literal character.
pub(crate) fn literal(character: char, to: &mut String) {
    to.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
}

/// Reads a repetition if a brace begins one; otherwise it is a literal brace.
fn repetition(text: &mut Scanner<'_>, to: &mut String) -> Result<bool, Invalid> {
    let mut ahead = *text;
    let is_digit = |character: char| character.is_ascii_digit();
    let least = ahead.run(usize::MAX, is_digit);
    let most = if ahead.take(",") { ahead.run(usize::MAX, is_digit) } else { least };
    let canonical = |number: &str| number == "0" || !number.starts_with('0');
    if least.is_empty() || !canonical(least) || !canonical(most) || !ahead.take("}") {
        return Ok(false);
    }
    if [least, most]
        .iter()
        .any(|number| !number.is_empty() && !number.parse().is_ok_and(|count: u32| count <= REPETITIONS))
    {
        return Err(Invalid::new(format!("invalid repeat count: `{{{least},{most}}}`: at most {REPETITIONS}")));
    }
    let length = text.rest().len() - ahead.rest().len();
    to.push('{');
    to.push_str(text.rest().get(..length).unwrap_or_default());
    *text = ahead;
    Ok(true)
}

/// Reads the suffix of a repetition: a question mark that makes it lazy, and no other repetition.
fn after_repetition(text: &mut Scanner<'_>, to: &mut String) -> Result<(), Invalid> {
    if text.take("?") {
        to.push('?');
    }
    let mut ahead = *text;
    let again = match ahead.next() {
        Some('*' | '+' | '?') => true,
        Some('{') => repetition(&mut ahead, &mut String::new())?,
        _ => false,
    };
    if again { Err(Invalid::new("invalid nested repetition operator")) } else { Ok(()) }
}

/// Reads the start of a group; flags and names have the same notation.
fn group(text: &mut Scanner<'_>, to: &mut String) -> Result<(), Invalid> {
    to.push('(');
    if !text.take("?") {
        return Ok(());
    }
    to.push('?');
    if matches!(text.peek(), Some('P' | '<')) {
        // A name needs no translation; `regex` refuses invalid ones.
        let name = text.until(">").ok_or_else(|| Invalid::new("invalid named capture"))?;
        to.push_str(name);
        to.push('>');
        return Ok(());
    }
    let flags = text.run(usize::MAX, |character| character.is_ascii_alphabetic() || character == '-');
    if flags.chars().any(|flag| !"imsU-".contains(flag)) {
        return Err(Invalid::new(format!("invalid or unsupported Perl syntax: `(?{flags}`")));
    }
    to.push_str(flags);
    Ok(())
}

/// Reads an escape sequence.
pub(crate) fn escape(text: &mut Scanner<'_>) -> Result<Escape, Invalid> {
    let class = |class: &str| Ok(Escape::Class(class.to_owned()));
    let Some(character) = text.next() else { return Err(Invalid::new("trailing backslash at end of expression")) };
    match character {
        'd' => class("[0-9]"),
        'D' => class("[^0-9]"),
        's' => class(r"[\t\n\f\r ]"),
        'S' => class(r"[^\t\n\f\r ]"),
        'w' => class("[0-9A-Za-z_]"),
        'W' => class("[^0-9A-Za-z_]"),
        'p' | 'P' => unicode(character == 'P', text),
        'b' => Ok(Escape::Place(r"(?-u:\b)")),
        // `regex` defines this one for all letters only.
        'B' => Ok(Escape::Place(r"(?:\B)")),
        'A' => Ok(Escape::Place(r"(?:\A)")),
        'z' => Ok(Escape::Place(r"(?:\z)")),
        'a' => Ok(Escape::Character('\u{7}')),
        'f' => Ok(Escape::Character('\u{c}')),
        't' => Ok(Escape::Character('\t')),
        'n' => Ok(Escape::Character('\n')),
        'r' => Ok(Escape::Character('\r')),
        'v' => Ok(Escape::Character('\u{b}')),
        'x' => hexadecimal(text),
        '0'..='7' => octal(character, text),
        character if character.is_ascii() && !character.is_ascii_alphanumeric() => Ok(Escape::Character(character)),
        character => Err(Invalid::new(format!(r"invalid escape sequence: `\{character}`"))),
    }
}

/// Reads a Unicode class: `\pL`, `\p{Greek}`, `\p{^Greek}`.
fn unicode(mut negated: bool, text: &mut Scanner<'_>) -> Result<Escape, Invalid> {
    let invalid = || Invalid::new("invalid character class range");
    let name = if text.take("{") {
        text.until("}").ok_or_else(invalid)?.to_owned()
    } else {
        text.next().ok_or_else(invalid)?.to_string()
    };
    let known = name.strip_prefix('^').inspect(|_| negated = !negated).unwrap_or(&name);
    if !known.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') {
        return Err(invalid());
    }
    Ok(Escape::Class(format!(r"\{}{{{known}}}", if negated { 'P' } else { 'p' })))
}

/// Reads `\x7F` and `\x{10FFFF}`.
fn hexadecimal(text: &mut Scanner<'_>) -> Result<Escape, Invalid> {
    let digits = if text.take("{") {
        text.until("}")
    } else {
        Some(text.run(2, |character| character.is_ascii_hexdigit())).filter(|digits| digits.len() == 2)
    };
    let is_number = |digits: &&str| digits.chars().all(|character| character.is_ascii_hexdigit());
    let code = digits.filter(is_number).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    code.and_then(char::from_u32).map(Escape::Character).ok_or_else(|| Invalid::new(r"invalid escape sequence: `\x`"))
}

/// Reads `\0`, `\12`, `\123`; a single digit other than zero would be a backreference, which does not exist.
fn octal(first: char, text: &mut Scanner<'_>) -> Result<Escape, Invalid> {
    let more = text.run(2, |character| ('0'..='7').contains(&character));
    if first != '0' && more.is_empty() {
        return Err(Invalid::new(format!(r"invalid escape sequence: `\{first}`")));
    }
    let code = u32::from_str_radix(&format!("{first}{more}"), 8).ok().and_then(char::from_u32);
    code.map(Escape::Character).ok_or_else(|| Invalid::new("invalid escape sequence"))
}

#[cfg(test)]
mod tests;
