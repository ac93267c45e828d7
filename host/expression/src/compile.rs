//! The bounds of a text, and why it is not an expression.

use cel::ParseErrors;

/// The longest expression, in bytes.
pub const BYTES: usize = 16 * 1024;
/// The deepest nesting of brackets, over which the parser recurses.
pub const BRACKETS: usize = 64;
/// The most operators, over which the interpreter recurses.
pub const OPERATORS: usize = 500;

/// A text is not an expression that may be run.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It is too long or nests too deeply.
    #[error("expressions may have {BYTES} bytes, {OPERATORS} operators, and brackets nested {BRACKETS} deep")]
    TooLarge,
    /// It is not valid in the language.
    #[error(transparent)]
    Syntax(#[from] ParseErrors),
}

/// Checks the bounds of a text.
pub(crate) fn check_bounds(text: &str) -> Result<(), CompileError> {
    let operators = text.bytes().filter(|byte| b"+-*/%?:!<>=&|.".contains(byte)).count();
    if text.len() > BYTES || brackets(text) > BRACKETS || operators > OPERATORS {
        return Err(CompileError::TooLarge);
    }
    Ok(())
}

/// The nesting of brackets in a text, including those in its strings.
pub fn brackets(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    for character in text.chars() {
        match character {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    #[test]
    fn expressions_are_bounded() {
        let brackets = |count: usize| format!("{}1{} == 1", "(".repeat(count), ")".repeat(count));
        let sum = |count: usize| vec!["1"; count + 1].join("+");
        for (text, fits) in [
            (brackets(BRACKETS), true),
            (brackets(BRACKETS + 1), false),
            (sum(OPERATORS), true),
            (sum(OPERATORS + 1), false),
            (format!("'{}'", "a".repeat(BYTES - 2)), true),
            (format!("'{}'", "a".repeat(BYTES - 1)), false),
        ] {
            let compiled = Program::parse(&text);
            assert_eq!(compiled.is_ok(), fits, "{compiled:?} {}", text.len());
        }
    }

    #[test]
    fn unmatched_closing_brackets_do_not_count() {
        assert_eq!(brackets("(a[0])"), 2);
        assert_eq!(brackets(")))(a"), 1);
    }
}
