//! Translates character classes.

use super::{
    scanner::Scanner,
    translate::{Escape, Invalid, escape, literal},
};

/// The names of classes (POSIX, and `word`).
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Translates a class, whose opening bracket has been read.
pub(crate) fn class(text: &mut Scanner<'_>, to: &mut String) -> Result<(), Invalid> {
    to.push('[');
    if text.take("^") {
        to.push('^');
    }
    let mut first = true;
    // A closing bracket in the first place is a character.
    while first || text.peek() != Some(']') {
        first = false;
        if named(text, to)? {
            continue;
        }
        let low = match member(text)? {
            Member::Class(class) => {
                to.push_str(&class);
                continue;
            }
            Member::Character(low) => low,
        };
        literal(low, to);
        if range(text) {
            let Member::Character(high) = member(text)? else {
                return Err(Invalid::new("invalid character class range"));
            };
            to.push('-');
            literal(high, to);
        }
    }
    text.next();
    to.push(']');
    Ok(())
}

/// A named class such as `[:alpha:]`, if one comes next.
fn named(text: &mut Scanner<'_>, to: &mut String) -> Result<bool, Invalid> {
    let mut ahead = *text;
    if !ahead.take("[:") {
        return Ok(false);
    }
    // Without an end it is a bracket and a colon.
    let Some(name) = ahead.name() else { return Ok(false) };
    if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(Invalid::new("invalid character class range"));
    }
    to.push_str("[:");
    to.push_str(name);
    to.push_str(":]");
    *text = ahead;
    Ok(true)
}

/// Reads a hyphen that is followed by the end of a range; returns whether there is one.
fn range(text: &mut Scanner<'_>) -> bool {
    let mut ahead = *text;
    let is_range = ahead.take("-") && ahead.peek().is_some_and(|after| after != ']');
    if is_range {
        *text = ahead;
    }
    is_range
}

/// An element of a class.
enum Member {
    Character(char),
    /// A class with this notation.
    Class(String),
}

fn member(text: &mut Scanner<'_>) -> Result<Member, Invalid> {
    match text.next() {
        None => Err(Invalid::new("missing closing ]")),
        Some('\\') => match escape(text)? {
            Escape::Class(class) => Ok(Member::Class(class)),
            Escape::Character(character) => Ok(Member::Character(character)),
            Escape::Place(_) => Err(Invalid::new("invalid escape sequence in a class")),
        },
        Some(character) => Ok(Member::Character(character)),
    }
}
