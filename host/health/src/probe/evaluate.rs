//! From an expression and an object to an outcome.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cel::{Context, ExecutionError, Value as CelValue};
use kube_cel::KubeCelExt as _;
use serde_json::Value;

use super::{bounded, compile::Expression, cost::cost};

/// The number of steps that one rule may take over one object.
const STEPS: u64 = 300_000;

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
pub(super) struct Live<'a> {
    object: &'a Value,
    context: Context<'static>,
}

impl<'a> Live<'a> {
    pub(super) fn new(object: &'a Value) -> Self {
        let mut context = Context::default().with_all();
        context.add_variable_from_value("self", value_of(object));
        Self { object, context }
    }

    /// Evaluates an expression within the remaining budget.
    pub(super) fn evaluate(&self, expression: &Expression, budget: &mut u64) -> Outcome {
        let steps = cost(expression, self.object);
        if steps > STEPS {
            return Outcome::Error("the rule takes too many steps over an object of this size".to_owned());
        }
        let Some(left) = budget.checked_sub(steps) else {
            return Outcome::Error("the rules of this release take too many steps in total".to_owned());
        };
        *budget = left;
        // The interpreter is third-party code, and both the rule and the object are untrusted.
        let value = catch_unwind(AssertUnwindSafe(|| CelValue::resolve(&expression.tree, &self.context)));
        match value {
            Ok(Ok(CelValue::Bool(met))) => Outcome::Bool(met),
            Ok(Ok(CelValue::String(text))) => Outcome::Text(bounded(&text)),
            Ok(Ok(_)) => Outcome::Other,
            Ok(Err(error)) => outcome(&error),
            Err(_) => Outcome::Error("the rule cannot be evaluated".to_owned()),
        }
    }
}

/// A value as Kubernetes presents it to CEL: every integer is an `int`. The interpreter's own conversion turns a non-negative
/// integer into a `uint`, which equals no literal.
fn value_of(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => CelValue::Int(int),
            (None, Some(uint)) => CelValue::UInt(uint),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(value_of).collect())),
        Value::Object(map) => {
            let map: HashMap<String, CelValue> =
                map.iter().map(|(name, value)| (name.clone(), value_of(value))).collect();
            CelValue::Map(map.into())
        }
    }
}

/// Errors quote whole values, which may be secret, so only the type of the error is reported.
fn outcome(error: &ExecutionError) -> Outcome {
    Outcome::Error(match error {
        ExecutionError::NoSuchKey(field) => return Outcome::Missing(format!("field {}", bounded(field))),
        ExecutionError::IndexOutOfBounds(_) => return Outcome::Missing("an entry of a list".to_owned()),
        ExecutionError::UndeclaredReference(name) => format!("unknown name {}", bounded(name)),
        ExecutionError::FunctionError { function, .. } => {
            format!("function {} does not accept its arguments", bounded(function))
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        _ => "it compares or combines values of incompatible types".to_owned(),
    })
}
