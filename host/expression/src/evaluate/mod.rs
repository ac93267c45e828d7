//! Evaluates expressions within a budget.
//!
//! The interpreter of the library cannot be interrupted, copies lists with each of their items, and treats a field of a value that is not a
//! map as `false`. This one walks the same trees and leaves values, arithmetic and functions to the library. Whatever takes time or memory
//! is charged before it happens; errors in `&&`, `||`, `all` and `exists` give way to a result that does not depend on them, as the
//! language defines it.
//!
//! | module | holds |
//! |---|---|
//! | `error` | why an expression has no value |
//! | `meter` | the budget |
//! | `select` | fields, indexes, presence, optionals |
//! | `operators` | operators on values |
//! | `comprehension` | `all`, `exists`, `exists_one`, `map`, `filter` |
//! | `functions` | functions of our own, and which there are |
//! | `library` | functions of the library, and what they cost |

mod comprehension;
mod error;
pub(crate) mod functions;
pub(crate) mod library;
mod meter;
mod operators;
mod select;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use cel::{
    IdedExpr, Value,
    common::ast::{CallExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, operators as named},
    objects::{Key, Map},
};

pub use error::EvaluationError;
pub use functions::member;
pub use meter::{MEMORY, Meter};

use crate::{program::Program, re2::Patterns, stack::on_large_stack, tree::children};

/// What evaluating a part of an expression comes to.
pub type Outcome = Result<Value, EvaluationError>;

/// The variables and functions that an expression may use besides the language's own.
pub trait Names {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Outcome>;

    /// The value of a field of a variable, where the two are one name: `authorizer.requestResource`.
    fn field(&self, _variable: &str, _field: &str) -> Option<Outcome> {
        None
    }

    /// Calls a function on a value; `None` if it is not one of these functions or values.
    fn call(&self, _function: &str, _target: &Value, _arguments: &[Value], _meter: &Meter) -> Option<Outcome> {
        None
    }

    /// Calls a function without a target; `None` if it is not one of these functions.
    fn function(&self, _function: &str, _arguments: &[Value], _meter: &Meter) -> Option<Outcome> {
        None
    }
}

/// The variable with the stored value.
const OLD_SELF: &str = "oldSelf";

/// The variables of a rule of a CustomResourceDefinition (`x-kubernetes-validations`).
#[derive(Clone, Debug)]
pub struct RuleVariables {
    /// `self`.
    pub this: Value,
    /// `oldSelf`, where the rule has one.
    pub old: Option<Value>,
}

impl Names for RuleVariables {
    fn variable(&self, name: &str) -> Option<Outcome> {
        match name {
            "self" => Some(Ok(self.this.clone())),
            OLD_SELF => self.old.clone().map(Ok),
            _ => None,
        }
    }
}

/// Whether a rule of a CustomResourceDefinition refers to the stored object: it is then about a change.
pub fn is_transition(program: &Program) -> bool {
    let mut rest = vec![&program.expression().expr];
    while let Some(next) = rest.pop() {
        if matches!(next, Expr::Ident(name) if name == OLD_SELF) {
            return true;
        }
        rest.extend(children(next));
    }
    false
}

/// Evaluates an expression. Recursion is as deep as [`Program::depth`].
///
/// # Errors
/// If the expression has no value, or costs more than the meter has left.
pub fn evaluate(program: &Program, names: &dyn Names, meter: &Meter) -> Outcome {
    let mut evaluator = Evaluator { names, meter, program, dynamic: Patterns::default(), bound: Vec::new() };
    let outcome = evaluator.evaluate(program.expression());
    // An operator that ignores the errors of its operands does not ignore this one.
    meter.charge(0).and(outcome)
}

/// Evaluates an expression within so many steps, and returns also how many it took. A deep one gets a large stack of its own.
pub fn run(program: &Program, names: &(dyn Names + Sync), limit: u64) -> (Outcome, u64) {
    /// How deep evaluation may recurse on the caller's stack.
    const SHALLOW: u32 = 64;
    /// What a stack costs.
    const STACK: u64 = 1_000;
    let here = || {
        let meter = Meter::new(limit);
        let outcome = evaluate(program, names, &meter);
        (outcome, meter.used())
    };
    if program.depth() <= SHALLOW {
        return here();
    }
    let (outcome, used) =
        on_large_stack(here).unwrap_or_else(|error| (Err(EvaluationError::other(error.to_string())), 0));
    (outcome, used.saturating_add(STACK))
}

struct Evaluator<'a> {
    names: &'a dyn Names,
    meter: &'a Meter,
    program: &'a Program,
    /// Patterns that the program does not keep.
    dynamic: Patterns,
    /// The variables of the loops around, the innermost last.
    bound: Vec<(&'a str, Outcome)>,
}

impl<'a> Evaluator<'a> {
    fn evaluate(&mut self, expression: &'a IdedExpr) -> Outcome {
        self.meter.charge(1)?;
        let before = self.meter.memory();
        let outcome = self.value(expression);
        // Nothing is left of the values in between: a loop keeps nothing but its result, and that is charged where the loop is.
        if outcome.as_ref().map_or(true, meter::is_scalar) {
            self.meter.give_back(before);
        }
        outcome
    }

    fn value(&mut self, expression: &'a IdedExpr) -> Outcome {
        match &expression.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Err(EvaluationError::other("messages are not supported")),
        }
    }

    fn literal(&self, literal: &LiteralValue) -> Outcome {
        Ok(match literal {
            LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
            LiteralValue::Int(value) => Value::Int(*value.inner()),
            LiteralValue::UInt(value) => Value::UInt(*value.inner()),
            LiteralValue::Double(value) => Value::Float(*value.inner()),
            LiteralValue::Null => Value::Null,
            LiteralValue::String(text) => {
                self.meter.charge_text(text.inner().len())?;
                self.meter.take(text.inner().len() + meter::HEAD)?;
                Value::String(Arc::new(text.inner().to_owned()))
            }
            LiteralValue::Bytes(bytes) => {
                self.meter.charge_text(bytes.inner().len())?;
                self.meter.take(bytes.inner().len() + meter::HEAD)?;
                Value::Bytes(Arc::new(bytes.inner().to_vec()))
            }
        })
    }

    fn variable(&self, name: &str) -> Outcome {
        if let Some((_, value)) = self.bound.iter().rev().find(|(bound, _)| *bound == name) {
            return value.clone();
        }
        let found = self.names.variable(name).or_else(|| functions::type_named(name).map(Ok));
        found.unwrap_or_else(|| Err(EvaluationError::NoSuchAttribute(name.to_owned())))
    }

    /// Whether a name is a loop variable.
    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|(bound, _)| *bound == name)
    }

    fn all(&mut self, expressions: &'a [IdedExpr]) -> Result<Vec<Value>, EvaluationError> {
        expressions.iter().map(|expression| self.evaluate(expression)).collect()
    }

    fn call(&mut self, call: &'a CallExpr) -> Outcome {
        if let Some(target) = &call.target {
            return self.member_call(call, target);
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (named::CONDITIONAL, [condition, yes, no]) => match self.evaluate(condition)? {
                Value::Bool(true) => self.evaluate(yes),
                Value::Bool(false) => self.evaluate(no),
                _ => Err(EvaluationError::NoSuchOverload),
            },
            (named::LOGICAL_AND, [left, right]) => self.logical(left, right, false),
            (named::LOGICAL_OR, [left, right]) => self.logical(left, right, true),
            (named::NOT_STRICTLY_FALSE, [condition]) => {
                let condition = self.evaluate(condition);
                if let Err(exceeded) = &condition
                    && exceeded.is_final()
                {
                    return condition;
                }
                Ok(Value::Bool(!matches!(condition, Ok(Value::Bool(false)))))
            }
            (named::OPT_SELECT | named::OPT_INDEX, [operand, key]) => {
                self.meter.take(meter::HEAD)?;
                let (operand, key) = (self.evaluate(operand)?, self.evaluate(key)?);
                select::optional_index(&operand, &key)
            }
            (named::INDEX, [operand, key]) => {
                let (operand, key) = (self.evaluate(operand)?, self.evaluate(key)?);
                select::index(&operand, &key)
            }
            (operator, [operand]) if operators::is_unary(operator) => {
                let operand = self.evaluate(operand)?;
                operators::unary(operator, operand)
            }
            (operator, [left, right]) if operators::is_binary(operator) => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                operators::binary(operator, left, right, self.meter)
            }
            (function, arguments) => {
                let literal = call.args.first().and_then(crate::program::literal_text).is_some();
                let arguments = self.all(arguments)?;
                if let Some(outcome) = self.names.function(function, &arguments, self.meter) {
                    return outcome;
                }
                self.function(function, None, &arguments, literal)
            }
        }
    }

    /// `&&` and `||`: `decisive` decides, whatever the other operand is.
    fn logical(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decisive: bool) -> Outcome {
        let mut error = None;
        for operand in [left, right] {
            match self.evaluate(operand) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or(Some(EvaluationError::NoSuchOverload)),
                Err(exceeded) if exceeded.is_final() => return Err(exceeded),
                Err(other) => error = error.or(Some(other)),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn member_call(&mut self, call: &'a CallExpr, target: &'a IdedExpr) -> Outcome {
        if let Expr::Ident(prefix) = &target.expr
            && !self.is_bound(prefix)
            && functions::is_qualified(prefix, &call.func_name)
        {
            let arguments = self.all(&call.args)?;
            return library::call(&call.func_name, Some(prefix), None, &arguments, self.meter);
        }
        let literal = call.args.first().and_then(crate::program::literal_text).is_some();
        let target = self.evaluate(target)?;
        let arguments = self.all(&call.args)?;
        if let Some(outcome) = self.names.call(&call.func_name, &target, &arguments, self.meter) {
            return outcome;
        }
        self.function(&call.func_name, Some(&target), &arguments, literal)
    }

    /// Calls a function; `literal` says whether its first argument is a literal.
    fn function(&self, name: &str, target: Option<&Value>, arguments: &[Value], literal: bool) -> Outcome {
        let known = self.program.patterns().filter(|_| literal);
        let patterns = known.unwrap_or(&self.dynamic);
        functions::call(name, target, arguments, patterns, self.meter)
    }

    fn list(&mut self, list: &'a ListExpr) -> Outcome {
        self.meter.take(list.elements.len() * meter::ITEM + meter::HEAD)?;
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let item = self.evaluate(element)?;
            if !list.optional_indices.contains(&index) {
                items.push(item);
            } else if let Some(item) = select::as_optional(&item)? {
                items.push(item);
            }
        }
        Ok(Value::List(Arc::new(items)))
    }

    fn map(&mut self, map: &'a MapExpr) -> Outcome {
        self.meter.take(map.entries.len() * meter::ENTRY + meter::HEAD)?;
        let mut entries = HashMap::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(EvaluationError::other("messages are not supported"));
            };
            let key: Key = self.evaluate(&entry.key)?.try_into().map_err(|_| EvaluationError::NoSuchOverload)?;
            let value = self.evaluate(&entry.value)?;
            let value = if entry.optional { select::as_optional(&value)? } else { Some(value) };
            if let Some(value) = value
                && entries.insert(key.clone(), value).is_some()
            {
                return Err(EvaluationError::other(format!("Failed with repeated key: {key}")));
            }
        }
        Ok(Value::Map(Map { map: Arc::new(entries) }))
    }
}
