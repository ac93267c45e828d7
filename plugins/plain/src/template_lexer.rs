//! The tokens of an action in a template.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// White space between two others.
    Space,
    /// `.Name`, without the dot.
    Field(&'a str),
    /// A function or a keyword.
    Word(&'a str),
    /// A string, without quotes and escapes.
    Text(String),
}

/// The tokens of the action at the beginning of a text, without white space at its ends, and the number of its bytes with both delimiters.
///
/// # Errors
/// What it contains that no supported action contains; its end is not known then.
pub(crate) fn action(text: &str) -> Result<(Vec<Token<'_>>, usize), String> {
    let refused = |what: &str| Err(what.to_owned());
    let mut rest = text.strip_prefix("{{").unwrap_or(text);
    if rest.starts_with("/*") {
        return refused("a comment");
    }
    if rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_whitespace)) {
        return refused("the removal of white space (-)");
    }
    let mut tokens = Vec::new();
    loop {
        if let Some(behind) = rest.strip_prefix("}}") {
            if tokens.last() == Some(&Token::Space) {
                tokens.pop();
            }
            return Ok((tokens, text.len() - behind.len()));
        }
        let Some(first) = rest.chars().next() else { return refused("an action without an end") };
        let token_length = match first {
            ' ' | '\t' => {
                let length = rest.find(|c| !matches!(c, ' ' | '\t')).unwrap_or(rest.len());
                if !tokens.is_empty() {
                    tokens.push(Token::Space);
                }
                length
            }
            '"' => {
                let (content, length) = string(rest)?;
                tokens.push(Token::Text(content));
                length
            }
            '.' => {
                let name = word(rest.get(1..).unwrap_or_default());
                if name.is_empty() {
                    return refused("a dot without a field");
                }
                tokens.push(Token::Field(name));
                1 + name.len()
            }
            c if is_part_of_word(c) && !c.is_ascii_digit() => {
                let name = word(rest);
                tokens.push(Token::Word(name));
                name.len()
            }
            '\n' | '\r' => return refused("an action of several lines"),
            '`' => return refused("a raw string"),
            '|' => return refused("a pipeline"),
            '$' => return refused("a variable"),
            '-' if rest.starts_with("-}}") => return refused("the removal of white space (-)"),
            other => return Err(format!("the character {other:?}")),
        };
        rest = rest.get(token_length..).unwrap_or_default();
    }
}

/// The content of the string at the beginning of a text, and the number of its bytes with both quotes.
fn string(text: &str) -> Result<(String, usize), String> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((content, at + 1)),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => content.push(escaped),
                Some((_, other)) => return Err(format!("the escape {:?} in a string", format!("\\{other}"))),
                None => break,
            },
            '\n' | '\r' => return Err("a string of several lines".to_owned()),
            control if control.is_control() && control != '\t' => {
                return Err("a control character in a string".to_owned());
            }
            other => content.push(other),
        }
    }
    Err("a string without an end".to_owned())
}

/// The word at the beginning of a text.
fn word(text: &str) -> &str {
    text.get(..text.find(|c| !is_part_of_word(c)).unwrap_or(text.len())).unwrap_or_default()
}

fn is_part_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
