//! The expressions of a policy, compiled once.

use std::collections::BTreeMap;

use cel::common::ast::Expr;
use chandler_expression::{
    Program,
    check::{Type, check},
    tree::children,
};

use crate::policies::{environment::Environment, limits, model::PolicySpec};

/// An expression of a policy.
#[derive(Debug)]
pub struct Expression {
    /// The text.
    pub text: String,
    /// The program, or why there is none.
    pub program: Result<Program, String>,
}

/// A validation of a policy.
#[derive(Debug)]
pub struct CompiledValidation {
    /// What must hold.
    pub expression: Expression,
    /// The expression for the message.
    pub message_expression: Option<Expression>,
    /// The message.
    pub message: String,
    /// The reason in the response.
    pub reason: String,
}

/// The expressions of a policy.
#[derive(Debug)]
pub struct Compiled {
    /// The match conditions.
    pub conditions: Vec<Expression>,
    /// The composed variables by name.
    pub variables: Vec<(String, Expression)>,
    /// The validations.
    pub validations: Vec<CompiledValidation>,
    /// The annotations of the audit log.
    pub annotations: Vec<Expression>,
    /// How deep evaluation recurses at most.
    pub depth: u32,
}

/// The types that expressions may have.
const CONDITION: &[Type] = &[Type::Bool];
const MESSAGE: &[Type] = &[Type::String];
const ANNOTATION: &[Type] = &[Type::String, Type::Null];

/// Compiles the expressions of a policy. Those that do not compile fail when they are evaluated.
pub fn compile(spec: &PolicySpec) -> Compiled {
    let mut compiler =
        Compiler { params: spec.param_kind.is_some(), variables: Vec::new(), depths: BTreeMap::new(), deepest: 0 };
    let conditions = spec.match_conditions.iter().map(|condition| {
        let environment = Environment { params: compiler.params, authorizer: true, variables: None };
        compiler.expression(condition.expression.trim(), environment, Some(CONDITION)).0
    });
    let conditions = conditions.collect();
    let mut variables = Vec::with_capacity(spec.variables.len());
    for variable in &spec.variables {
        variables.push((variable.name.clone(), compiler.variable(&variable.name, &variable.expression)));
    }
    let validations = spec.validations.iter().map(|validation| {
        let message = (!validation.message_expression.is_empty())
            .then(|| compiler.composed(&validation.message_expression, false, MESSAGE));
        CompiledValidation {
            expression: compiler.composed(&validation.expression, true, CONDITION),
            message_expression: message,
            message: validation.message.trim().to_owned(),
            reason: validation.reason.clone().unwrap_or_else(|| "Invalid".to_owned()),
        }
    });
    let validations = validations.collect();
    let annotations = spec.audit_annotations.iter();
    let annotations =
        annotations.map(|annotation| compiler.composed(annotation.value_expression.trim(), true, ANNOTATION)).collect();
    Compiled { conditions, variables, validations, annotations, depth: compiler.deepest }
}

struct Compiler {
    params: bool,
    variables: Vec<(String, Type)>,
    /// How deep evaluating a variable recurses.
    depths: BTreeMap<String, u32>,
    deepest: u32,
}

impl Compiler {
    fn variable(&mut self, name: &str, text: &str) -> Expression {
        let known = self.variables.clone();
        let environment = Environment { params: self.params, authorizer: true, variables: Some(&known) };
        let (expression, found, depth) = self.expression(text, environment, None);
        self.variables.push((name.to_owned(), found));
        self.depths.insert(name.to_owned(), depth);
        expression
    }

    /// An expression that may use composed variables.
    fn composed(&mut self, text: &str, authorizer: bool, expected: &[Type]) -> Expression {
        let known = std::mem::take(&mut self.variables);
        let variables = (!known.is_empty()).then_some(known.as_slice());
        let environment = Environment { params: self.params, authorizer, variables };
        let (expression, ..) = self.expression(text, environment, Some(expected));
        self.variables = known;
        expression
    }

    /// The expression, its type and its depth.
    fn expression(
        &mut self,
        text: &str,
        environment: Environment<'_>,
        expected: Option<&[Type]>,
    ) -> (Expression, Type, u32) {
        match self.program(text, environment, expected) {
            Ok((program, found, depth)) => {
                self.deepest = self.deepest.max(depth);
                (Expression { text: text.to_owned(), program: Ok(program) }, found, depth)
            }
            Err(error) => (Expression { text: text.to_owned(), program: Err(error) }, Type::Dynamic, 0),
        }
    }

    fn program(
        &self,
        text: &str,
        environment: Environment<'_>,
        expected: Option<&[Type]>,
    ) -> Result<(Program, Type, u32), String> {
        let program = Program::parse(text).map_err(|error| format!("compilation failed: {error}"))?;
        let found = check(program.expression(), &environment);
        let found = found.map_err(|error| format!("compilation failed: ERROR: <input>: {error}"))?;
        if let Some(expected) = expected
            && found != Type::Unknown
            && !expected.contains(&found)
        {
            return Err(match expected {
                [only] => format!("must evaluate to {only} but got {found}"),
                several => {
                    let several: Vec<String> = several.iter().map(ToString::to_string).collect();
                    format!("must evaluate to one of [{}] but got {found}", several.join(" "))
                }
            });
        }
        let depth = program.depth().saturating_add(self.depth_of_variables(&program));
        if depth > limits::DEPTH {
            return Err(format!(
                "compilation failed: with its variables, the expression nests deeper than {}",
                limits::DEPTH
            ));
        }
        Ok((program, found, depth))
    }

    /// How deep the variables of an expression recurse.
    fn depth_of_variables(&self, program: &Program) -> u32 {
        let (mut deepest, mut rest) = (0, vec![&program.expression().expr]);
        while let Some(next) = rest.pop() {
            if let Expr::Select(select) = next
                && matches!(&select.operand.expr, Expr::Ident(name) if name == "variables")
            {
                deepest = deepest.max(self.depths.get(&select.field).copied().unwrap_or(0));
            }
            rest.extend(children(next));
        }
        deepest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policies::model::read_spec;

    fn compiled(spec: serde_json::Value) -> Compiled {
        compile(&read_spec(&json!({"spec": spec})).unwrap())
    }

    fn error(expression: &Expression) -> &str {
        expression.program.as_ref().err().map_or("", String::as_str)
    }

    #[test]
    fn variables_know_those_before_them() {
        let compiled = compiled(json!({
            "variables": [
                {"name": "a", "expression": "object.a"}, {"name": "b", "expression": "variables.a + variables.c"},
                {"name": "c", "expression": "variables.a + 1"},
            ],
            "validations": [{"expression": "variables.c == 1", "messageExpression": "'c is ' + string(variables.c)"}],
        }));
        let errors: Vec<&str> = compiled.variables.iter().map(|(_, variable)| error(variable)).collect();
        assert_eq!(errors, ["", "compilation failed: ERROR: <input>: undefined field 'c'", ""]);
        let [validation] = compiled.validations.as_slice() else { panic!("{compiled:?}") };
        assert_eq!(error(&validation.expression), "");
        assert_eq!(error(validation.message_expression.as_ref().unwrap()), "");
        assert!(compiled.depth > validation.expression.program.as_ref().unwrap().depth());
    }

    #[test]
    fn expressions_use_what_they_may() {
        for (spec, expected) in [
            (json!({"validations": [{"expression": "params.a == 1"}]}), "undeclared reference to 'params'"),
            (json!({"paramKind": {"kind": "K"}, "validations": [{"expression": "params.a == 1"}]}), ""),
            (json!({"validations": [{"expression": "variables.a == 1"}]}), "undeclared reference to 'variables'"),
            (json!({"validations": [{"expression": "object.a"}]}), "must evaluate to bool but got dyn"),
            (json!({"validations": [{"expression": "'a'"}]}), "must evaluate to bool but got string"),
            (json!({"validations": [{"expression": "authorizer.group('').resource('a').check('b').allowed()"}]}), ""),
            (json!({"validations": [{"expression": "authorizer.requestResource.check('b').allowed()"}]}), ""),
            (json!({"validations": [{"expression": "request.user == 'a'"}]}), "undefined field 'user'"),
            (json!({"validations": [{"expression": "namespaceObject.data == {}"}]}), "undefined field 'data'"),
            (json!({"validations": [{"expression": "object.a >"}]}), "ERROR: <input>:1:11: "),
        ] {
            let compiled = compiled(spec.clone());
            let found = error(&compiled.validations[0].expression);
            assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{spec}: {found}");
        }
        let compiled = compiled(json!({
            "matchConditions": [{"name": "a", "expression": "variables.a == 1"}, {"name": "b", "expression": "1"}],
            "variables": [{"name": "a", "expression": "1"}],
            "validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "null"}, {"key": "l", "valueExpression": "1"}],
        }));
        assert!(error(&compiled.conditions[0]).contains("undeclared reference to 'variables'"));
        assert_eq!(error(&compiled.conditions[1]), "must evaluate to bool but got int");
        let message = compiled.validations[0].message_expression.as_ref().unwrap();
        assert!(error(message).contains("undeclared reference to 'authorizer'"));
        assert_eq!(error(&compiled.annotations[0]), "");
        assert_eq!(error(&compiled.annotations[1]), "must evaluate to one of [string null_type] but got int");
    }

    #[test]
    fn variables_cannot_nest_without_end() {
        let deep = format!("{}1 > 0", "1 + ".repeat(400));
        let variables: Vec<_> = (0..40)
            .map(|index| {
                let before = if index == 0 { "1".to_owned() } else { format!("variables.v{}", index - 1) };
                json!({"name": format!("v{index}"), "expression": format!("{}{before}", "1 + ".repeat(400))})
            })
            .collect();
        let compiled = compiled(json!({"variables": variables, "validations": [{"expression": deep}]}));
        assert!(compiled.depth <= limits::DEPTH);
        assert!(compiled.variables.iter().any(|(_, variable)| error(variable).contains("nests deeper")));
    }
}
