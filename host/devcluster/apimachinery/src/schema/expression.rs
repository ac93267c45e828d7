//! Expressions in the Common Expression Language, compiled within limits.

use chandler_expression::{Program, evaluate::is_transition};

/// A rule, ready to run.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    /// The rule.
    pub(crate) program: Program,
    /// The expression for the message.
    pub(crate) message: Option<Program>,
    /// Whether it refers to the stored object.
    pub(crate) uses_old_self: bool,
}

/// Compiles the expressions of a rule: the one that must hold, and the one that yields the message.
pub(crate) fn compile(rule: &str, message: Option<&str>) -> Result<CompiledRule, String> {
    let program = expression(rule)?;
    let message = message.map(expression).transpose()?;
    let uses_old_self = is_transition(&program);
    Ok(CompiledRule { program, message, uses_old_self })
}

fn expression(text: &str) -> Result<Program, String> {
    // A schema has many rules, and the patterns of each take memory.
    Ok(Program::parse(text).map_err(|error| error.to_string())?.without_patterns())
}

#[cfg(test)]
mod tests {
    use chandler_expression::compile::BRACKETS;

    use super::*;

    #[test]
    fn brackets_take_no_stack_of_ours() {
        let brackets = |count: usize| format!("{}1{} == 1", "(".repeat(count), ")".repeat(count));
        assert!(compile(&brackets(BRACKETS), None).is_ok());
        let refused = compile(&brackets(BRACKETS + 1), None).unwrap_err();
        assert!(refused.contains("brackets nested 64 deep"), "{refused}");
    }
}
