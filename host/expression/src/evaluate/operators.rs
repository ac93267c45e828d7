//! Operators on values.

use std::{cmp::Ordering, sync::Arc};

use cel::{Value, common::ast::operators as named, objects::KeyRef};

use super::{
    EvaluationError, Meter, Outcome,
    meter::{HEAD, as_u64},
};

pub(super) fn is_unary(operator: &str) -> bool {
    matches!(operator, named::LOGICAL_NOT | named::NEGATE)
}

pub(super) fn unary(operator: &str, operand: Value) -> Outcome {
    match (operator, operand) {
        (named::LOGICAL_NOT, Value::Bool(value)) => Ok(Value::Bool(!value)),
        (named::NEGATE, Value::Int(value)) => value.checked_neg().map(Value::Int).ok_or(EvaluationError::Overflow),
        (named::NEGATE, Value::Float(value)) => Ok(Value::Float(-value)),
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

pub(super) fn is_binary(operator: &str) -> bool {
    matches!(
        operator,
        named::EQUALS
            | named::NOT_EQUALS
            | named::LESS
            | named::LESS_EQUALS
            | named::GREATER
            | named::GREATER_EQUALS
            | named::ADD
            | named::SUBSTRACT
            | named::MULTIPLY
            | named::DIVIDE
            | named::MODULO
            | named::IN
    )
}

pub(super) fn binary(operator: &str, left: Value, right: Value, meter: &Meter) -> Outcome {
    let compared = |fits: fn(Ordering) -> bool| compare(&left, &right, meter).map(|order| order.is_some_and(fits));
    Ok(match operator {
        named::EQUALS => Value::Bool(equal(&left, &right, meter)?),
        named::NOT_EQUALS => Value::Bool(!equal(&left, &right, meter)?),
        named::LESS => Value::Bool(compared(Ordering::is_lt)?),
        named::LESS_EQUALS => Value::Bool(compared(Ordering::is_le)?),
        named::GREATER => Value::Bool(compared(Ordering::is_gt)?),
        named::GREATER_EQUALS => Value::Bool(compared(Ordering::is_ge)?),
        named::IN => Value::Bool(contains(&right, &left, meter)?),
        named::ADD => add(left, right, meter)?,
        named::SUBSTRACT => (left - right)?,
        named::MULTIPLY => (left * right)?,
        named::DIVIDE => (left / right)?,
        named::MODULO => (left % right)?,
        _ => return Err(EvaluationError::NoSuchOverload),
    })
}

pub(super) fn equal(left: &Value, right: &Value, meter: &Meter) -> Result<bool, EvaluationError> {
    meter.charge_comparison(left, right)?;
    Ok(left == right)
}

/// The order of two values, or `None` if one is not a number.
fn compare(left: &Value, right: &Value, meter: &Meter) -> Result<Option<Ordering>, EvaluationError> {
    meter.charge_comparison(left, right)?;
    let is_nan = |value: &Value| matches!(value, Value::Float(number) if number.is_nan());
    match (left, right) {
        (Value::Null, Value::Null) => Err(EvaluationError::NoSuchOverload),
        (Value::Bytes(left), Value::Bytes(right)) => Ok(Some(left.cmp(right))),
        _ => match left.partial_cmp(right) {
            None if is_nan(left) || is_nan(right) => Ok(None),
            None => Err(EvaluationError::NoSuchOverload),
            order => Ok(order),
        },
    }
}

pub(super) fn contains(container: &Value, item: &Value, meter: &Meter) -> Result<bool, EvaluationError> {
    match container {
        Value::List(list) => {
            for candidate in list.iter() {
                meter.charge(1)?;
                if equal(candidate, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => match KeyRef::try_from(item) {
            Ok(key) => Ok(map.get(&key).is_some()),
            Err(_) => Ok(false),
        },
        _ => Err(EvaluationError::NoSuchOverload),
    }
}

fn add(left: Value, right: Value, meter: &Meter) -> Outcome {
    // A text or list may be copied into one that is twice as long, so that it can grow further.
    let make = |left: usize, right: usize, unit: usize| {
        meter.take(left.saturating_add(right).saturating_mul(2).saturating_mul(unit).saturating_add(HEAD))
    };
    match (&left, &right) {
        (Value::String(a), Value::String(b)) => {
            meter.charge_text(a.len().saturating_add(b.len()))?;
            make(a.len(), b.len(), 1)?;
        }
        (Value::List(a), Value::List(b)) => {
            meter.charge(as_u64(a.len().saturating_add(b.len())))?;
            make(a.len(), b.len(), size_of::<Value>())?;
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.charge_text(a.len().saturating_add(b.len()))?;
            make(a.len(), b.len(), 1)?;
            return Ok(Value::Bytes(Arc::new([a.as_slice(), b.as_slice()].concat())));
        }
        _ => {}
    }
    Ok((left + right)?)
}
