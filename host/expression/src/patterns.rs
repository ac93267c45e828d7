//! The cost of the regular expressions of an expression: the interpreter compiles a pattern on every call.

use std::collections::BTreeMap;

use cel::common::ast::{CallExpr, Expr};

use crate::{
    program::{PATTERN_FUNCTIONS, literal_text},
    re2::Patterns as Compiled,
    tree::children,
};

/// The cost of a pattern that is not known before, or too large for the budget, in bytes.
pub const UNKNOWN: usize = 10 << 20;

/// The memory of each compiled pattern of an expression, in bytes.
#[derive(Clone, Debug, Default)]
pub struct Patterns(BTreeMap<String, usize>);

impl Patterns {
    /// Compiles each literal pattern of the expression once.
    pub fn of(expression: &Expr) -> Self {
        let (mut found, compiled) = (Self::default(), Compiled::default());
        found.add(expression, &compiled);
        found
    }

    /// The cost of compiling the pattern of this call, in bytes; zero if the call takes no pattern.
    pub fn bytes(&self, call: &CallExpr) -> usize {
        if !PATTERN_FUNCTIONS.contains(&call.func_name.as_str()) {
            return 0;
        }
        literal(call).and_then(|text| self.0.get(text)).copied().unwrap_or(UNKNOWN)
    }

    /// The cost of all calls, each made once.
    pub fn total(&self, expression: &Expr) -> usize {
        let own = if let Expr::Call(call) = expression { self.bytes(call) } else { 0 };
        children(expression).into_iter().map(|child| self.total(child)).fold(own, usize::saturating_add)
    }

    fn add(&mut self, expression: &Expr, compiled: &Compiled) {
        if let Expr::Call(call) = expression
            && PATTERN_FUNCTIONS.contains(&call.func_name.as_str())
            && let Some(text) = literal(call)
            && !self.0.contains_key(text)
        {
            let bytes = compiled.get(text).map_or(UNKNOWN, |pattern| pattern.bytes());
            self.0.insert(text.to_owned(), bytes);
        }
        for child in children(expression) {
            self.add(child, compiled);
        }
    }
}

/// The pattern of a call, if it is a literal.
fn literal(call: &CallExpr) -> Option<&str> {
    literal_text(call.args.last()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(text: &str) -> usize {
        let tree = cel::parser::Parser::new().parse(text).unwrap().expr;
        Patterns::of(&tree).total(&tree)
    }

    #[test]
    fn patterns_cost_their_compiled_size() {
        assert_eq!(total("self.a == '.{800}'"), 0);
        let small = total("self.a.matches('^[a-z]+$')");
        assert!((1..20_000).contains(&small), "{small}");
        assert_eq!(total("self.all(a, a.matches('^[a-z]+$') || a.matches('^[a-z]+$'))"), 2 * small);
        assert!(total("self.a.matches('.{800}N')") > 500_000);
        assert_eq!(total("self.a.matches(self.b)"), UNKNOWN, "it may be any pattern");
        assert_eq!(total("self.a.find('(.{1000}){1000}')"), UNKNOWN);
    }
}
