//! An expression that [`evaluate`](fn@crate::evaluate) runs within a budget.

use cel::{
    IdedExpr, ParseErrors,
    common::ast::{Expr, LiteralValue},
    parser::Parser,
};

use crate::{
    compile::{self, CompileError},
    re2::Patterns,
    signs::collapsed,
    stack::{StackError, on_large_stack},
    tree::{self, children},
};

/// The functions whose last argument is a pattern.
pub(crate) const PATTERN_FUNCTIONS: [&str; 3] = ["matches", "find", "findAll"];

/// A text is not an expression that may be run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It exceeds the bounds, or is not valid in the language.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A literal pattern is not a regular expression, or too large.
    #[error("{0}")]
    Pattern(String),
    /// It could not be parsed.
    #[error(transparent)]
    Stack(#[from] StackError),
}

/// A parsed expression, with its literal patterns compiled unless they are not kept.
#[derive(Debug)]
pub struct Program {
    text: String,
    expression: IdedExpr,
    patterns: Option<Patterns>,
    depth: u32,
}

impl Program {
    /// Parses an expression, on a large stack of its own. Optional syntax (`a.?b`, `a[?b]`) is understood.
    ///
    /// # Errors
    /// If it exceeds the bounds of [`compile`], is not valid in the language, or has an invalid pattern.
    pub fn parse(text: &str) -> Result<Self, ProgramError> {
        compile::check_bounds(text)?;
        let parsed = on_large_stack(|| {
            let expression = Parser::new().enable_optional_syntax(true).parse(&collapsed(text))?;
            Ok::<_, ParseErrors>((tree::depth(&expression.expr), expression))
        })?;
        let (depth, expression) = parsed.map_err(CompileError::from)?;
        let patterns = Patterns::default();
        check_patterns(&expression, &patterns)?;
        Ok(Self { text: text.to_owned(), expression, patterns: Some(patterns), depth })
    }

    /// The program of an expression that the caller has parsed within bounds. Its patterns are compiled when it is evaluated.
    pub fn of(text: &str, expression: IdedExpr) -> Self {
        let depth = tree::depth(&expression.expr);
        Self { text: text.to_owned(), expression, patterns: None, depth }
    }

    /// Drops the compiled patterns, each of which may take a megabyte: every evaluation compiles them, and is charged for that.
    #[must_use]
    pub fn without_patterns(self) -> Self {
        Self { patterns: None, ..self }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    pub fn expression(&self) -> &IdedExpr {
        &self.expression
    }

    /// How deep the tree is: evaluating it recurses that deep.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The compiled literal patterns, if they are kept.
    pub(crate) fn patterns(&self) -> Option<&Patterns> {
        self.patterns.as_ref()
    }
}

/// The text of a literal.
pub(crate) fn literal_text(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn check_patterns(expression: &IdedExpr, patterns: &Patterns) -> Result<(), ProgramError> {
    let mut rest = vec![&expression.expr];
    while let Some(next) = rest.pop() {
        if let Expr::Call(call) = next
            && PATTERN_FUNCTIONS.contains(&call.func_name.as_str())
            && let Some(text) = call.args.first().and_then(literal_text)
        {
            patterns.get(text).map_err(|error| ProgramError::Pattern(error.to_string()))?;
        }
        rest.extend(children(next));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_patterns_are_checked() {
        assert!(Program::parse("a.matches('^[a-z]+$')").is_ok());
        let refused = Program::parse("a.matches('(')");
        assert!(matches!(refused, Err(ProgramError::Pattern(_))), "{refused:?}");
        assert!(Program::parse("a.matches(b)").is_ok(), "it is checked when it is known");
    }

    #[test]
    fn texts_are_bounded_and_must_be_valid() {
        assert!(Program::parse(&format!("{}1{}", "(".repeat(65), ")".repeat(65))).is_err());
        let refused = Program::parse("a >").unwrap_err().to_string();
        assert!(refused.starts_with("ERROR: <input>:1:4: "), "{refused}");
        assert!(Program::parse("a.?b.orValue('')").is_ok());
    }
}
