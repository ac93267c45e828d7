//! From an expression and an object to an outcome.

use cel::Value as CelValue;
use chandler_expression::{
    EvaluationError, Meter, Names, evaluate,
    evaluate::{Outcome as Evaluated, member},
    json::to_value,
};
use serde_json::Value;

use super::{bounded, compile::Expression};

/// The number of steps that one rule may take over one object.
const STEPS: u64 = 1_000_000;

/// The result of an expression.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Bool(bool),
    Text(String),
    /// A value of another type.
    Other,
    /// A field that the object does not have.
    Missing(String),
    /// The evaluation failed.
    Error(String),
}

/// An object as the context of expressions.
pub(super) struct Live(CelValue);

impl Names for Live {
    fn variable(&self, name: &str) -> Option<Evaluated> {
        (name == "self").then(|| Ok(self.0.clone()))
    }

    fn call(&self, function: &str, target: &CelValue, arguments: &[CelValue], meter: &Meter) -> Option<Evaluated> {
        member(function, target, arguments, meter)
    }
}

impl Live {
    pub(super) fn new(object: &Value) -> Self {
        Self(to_value(object))
    }

    /// Evaluates an expression within the remaining budget.
    pub(super) fn evaluate(&self, expression: &Expression, budget: &mut u64) -> Outcome {
        let limit = STEPS.min(*budget);
        let meter = Meter::new(limit);
        let value = evaluate(&expression.0, self, &meter);
        *budget = budget.saturating_sub(meter.used());
        match value {
            Ok(CelValue::Bool(met)) => Outcome::Bool(met),
            Ok(CelValue::String(text)) => Outcome::Text(bounded(&text)),
            Ok(_) => Outcome::Other,
            Err(EvaluationError::Exhausted) if limit < STEPS => {
                Outcome::Error("the rules of this release take too many steps in total".to_owned())
            }
            Err(error) => outcome(&error),
        }
    }
}

/// Errors quote whole values, which may be secret, so only the type of the error is reported.
fn outcome(error: &EvaluationError) -> Outcome {
    Outcome::Error(match error {
        EvaluationError::Exhausted => "the rule takes too many steps over an object of this size".to_owned(),
        EvaluationError::OutOfMemory { .. } => "the rule makes values that are too large".to_owned(),
        EvaluationError::NoSuchKey(field) => return Outcome::Missing(format!("field {}", bounded(field))),
        EvaluationError::OutOfBounds(_) => return Outcome::Missing("an entry of a list".to_owned()),
        EvaluationError::NoSuchAttribute(name) => format!("unknown name {}", bounded(name)),
        EvaluationError::Function { name, .. } => {
            format!("function {} does not accept its arguments", bounded(name))
        }
        EvaluationError::DivisionByZero | EvaluationError::RemainderByZero => "division by zero".to_owned(),
        EvaluationError::Overflow => "a number is too large".to_owned(),
        _ => "it compares or combines values of incompatible types".to_owned(),
    })
}
