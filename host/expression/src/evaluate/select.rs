//! Fields, indexes, presence and optionals.

use std::sync::Arc;

use cel::{
    Value,
    common::ast::{Expr, SelectExpr},
    objects::{KeyRef, OptionalValue},
};

use super::{EvaluationError, Evaluator, Outcome};

impl<'a> Evaluator<'a> {
    /// `operand.field`, and `has(operand.field)`.
    pub(super) fn select(&mut self, select: &'a SelectExpr) -> Outcome {
        if let Expr::Ident(name) = &select.operand.expr
            && !self.is_bound(name)
            && let Some(found) = self.names.field(name, &select.field)
        {
            return if select.test { Ok(Value::Bool(true)) } else { found };
        }
        let operand = self.evaluate(&select.operand)?;
        let key = Value::String(Arc::new(select.field.clone()));
        if select.test {
            return Ok(Value::Bool(find(&unwrapped(&operand), &key)?.is_some()));
        }
        index(&operand, &key)
    }
}

/// `operand[key]`; of an optional it is an optional.
pub(super) fn index(operand: &Value, key: &Value) -> Outcome {
    if as_optional(operand).is_ok() {
        return optional_index(operand, key);
    }
    find(operand, key)?.ok_or_else(|| match operand {
        Value::List(_) => EvaluationError::OutOfBounds(shown(key)),
        _ => EvaluationError::NoSuchKey(shown(key)),
    })
}

/// `operand[?key]`.
pub(super) fn optional_index(operand: &Value, key: &Value) -> Outcome {
    Ok(optional(find(&unwrapped(operand), key)?))
}

/// The value at a key or index, if there is one. Only containers have such values.
fn find(operand: &Value, key: &Value) -> Result<Option<Value>, EvaluationError> {
    match operand {
        Value::Map(map) => {
            let key = KeyRef::try_from(key).map_err(|_| EvaluationError::NoSuchOverload)?;
            Ok(map.get(&key).cloned())
        }
        Value::List(list) => {
            let index = match key {
                Value::Int(index) => usize::try_from(*index).ok(),
                Value::UInt(index) => usize::try_from(*index).ok(),
                other => {
                    let kind = super::functions::type_name(other);
                    return Err(EvaluationError::other(format!("unsupported index type '{kind}' in list")));
                }
            };
            Ok(index.and_then(|index| list.get(index).cloned()))
        }
        _ => Ok(None),
    }
}

/// A key in a message.
fn shown(key: &Value) -> String {
    match key {
        Value::String(text) => text.chars().take(256).collect(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => "?".to_owned(),
    }
}

/// An optional value.
pub(super) fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// What an optional value holds; an error if the value is not optional.
pub(super) fn as_optional(value: &Value) -> Result<Option<Value>, EvaluationError> {
    let optional = <&OptionalValue>::try_from(value).map_err(|_| EvaluationError::NoSuchOverload)?;
    Ok(optional.value().cloned())
}

/// What an optional value holds, null if nothing; other values themselves.
fn unwrapped(value: &Value) -> Value {
    match as_optional(value) {
        Ok(held) => held.unwrap_or(Value::Null),
        Err(_) => value.clone(),
    }
}
