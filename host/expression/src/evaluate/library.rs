//! Functions of the library: what they cost, and calling them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::LazyLock,
};

use cel::{
    Context, IdedExpr, Value,
    common::ast::{CallExpr, Expr},
};
use kube_cel::KubeCelExt as _;

use super::{
    EvaluationError, Meter, Outcome,
    meter::{self, Extent, HEAD, as_u64},
};

/// The most digits after the point in a format, and of an exponent.
const DIGITS: usize = 2;
/// The longest number in a format, in bytes.
const FORMATTED: usize = 512;

/// The cost of an item of a list that the library makes: it is copied several times.
const ITEM: u64 = 8;
/// The memory of a text in a list that the library makes, besides its bytes.
const PART: usize = meter::ITEM + 2 * HEAD;
/// The memory that a function takes for each byte of the texts that it is given: it copies them, as characters or escaped in a message.
const COPIES: usize = 6;
/// The memory that a function takes for each value that it is given: it copies lists, and shows values in messages.
const SHOWN: usize = 128;

static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default();
    context.register_all();
    context
});

/// Calls a function of the library, on a target or with a prefix.
pub(crate) fn call(
    name: &str,
    prefix: Option<&str>,
    target: Option<&Value>,
    arguments: &[Value],
    meter: &Meter,
) -> Outcome {
    charge(name, prefix, target, arguments, meter)?;
    let before = meter.memory();
    meter.take(memory(name, prefix, target, arguments))?;
    let called = catch_unwind(AssertUnwindSafe(|| {
        let mut scope = LIBRARY.new_inner_scope();
        let mut bound = 0_usize;
        let mut bind = |value: &Value| {
            let name = format!("@{bound}");
            bound += 1;
            scope.add_variable_from_value(name.clone(), value.clone());
            IdedExpr { id: 0, expr: Expr::Ident(name) }
        };
        let prefix = prefix.map(|prefix| IdedExpr { id: 0, expr: Expr::Ident(prefix.to_owned()) });
        let target = prefix.or_else(|| target.map(&mut bind)).map(Box::new);
        let args = arguments.iter().map(&mut bind).collect();
        let call = Expr::Call(CallExpr { func_name: name.to_owned(), target, args });
        Value::resolve(&IdedExpr { id: 0, expr: call }, &scope)
    }));
    let value = called.map_err(|_| refused(name, format!("function {name} failed")))??;
    meter.charge_value(&value)?;
    meter.give_back(before);
    if !meter::is_scalar(&value) {
        meter.take(Extent::of([&value]).bytes())?;
    }
    Ok(value)
}

/// The most memory that a call takes, its result included. Its arguments are charged, so they can be walked.
fn memory(name: &str, prefix: Option<&str>, target: Option<&Value>, arguments: &[Value]) -> usize {
    let given = Extent::of(target.into_iter().chain(arguments));
    let made = match (prefix, name, target, arguments) {
        (Some("lists"), "range", _, [Value::Int(length)]) => {
            usize::try_from(*length).unwrap_or(0).saturating_mul(meter::ITEM)
        }
        (None, "split", Some(Value::String(text)), [Value::String(separator), ..]) => {
            occurrences(text, separator).saturating_add(2).saturating_mul(PART)
        }
        (None, "findAll", Some(Value::String(text)), _) => text.len().saturating_add(1).saturating_mul(PART),
        (None, "replace", Some(Value::String(text)), [Value::String(from), Value::String(to), ..]) => {
            // A text that grows is moved to one twice as long.
            occurrences(text, from).saturating_mul(to.len()).saturating_mul(3)
        }
        (None, "join", Some(Value::List(list)), [Value::String(separator)]) => {
            list.len().saturating_mul(separator.len())
        }
        (None, "format", ..) => given.values.saturating_mul(FORMATTED),
        _ => 0,
    };
    let copied = given.values.saturating_mul(SHOWN).saturating_add(given.text.saturating_mul(COPIES));
    copied.saturating_add(made).saturating_add(HEAD)
}

/// Takes the cost of a call: its values are copied, and some functions do more with them.
fn charge(
    name: &str,
    prefix: Option<&str>,
    target: Option<&Value>,
    arguments: &[Value],
    meter: &Meter,
) -> Result<(), EvaluationError> {
    let size = |value: &Value| {
        let before = meter.used();
        meter.charge_value(value).map(|()| meter.used().saturating_sub(before))
    };
    let target_size = target.map(size).transpose()?.unwrap_or(1);
    let mut sizes = Vec::with_capacity(arguments.len());
    for argument in arguments {
        sizes.push(size(argument)?);
    }
    let first = sizes.first().copied().unwrap_or(1);
    match (prefix, name, target, arguments) {
        (None, "indexOf" | "lastIndexOf", Some(_), _) => meter.charge(target_size.saturating_mul(first)),
        (Some("sets"), ..) => meter.charge(first.saturating_mul(sizes.get(1).copied().unwrap_or(1))),
        (None, "sort" | "flatten" | "isSorted", ..) => meter.charge(target_size.saturating_mul(20)),
        (Some("lists"), "range", _, [Value::Int(length)]) => {
            meter.charge(u64::try_from(*length).unwrap_or(0).saturating_mul(ITEM))
        }
        (None, "split", Some(Value::String(text)), [Value::String(separator), ..]) => {
            meter.charge(as_u64(occurrences(text, separator)).saturating_mul(ITEM))
        }
        (None, "findAll", Some(Value::String(text)), _) => meter.charge(as_u64(text.len()).saturating_mul(ITEM)),
        (None, "replace", Some(Value::String(text)), [Value::String(from), Value::String(to), ..]) => {
            meter.charge_text(occurrences(text, from).saturating_mul(to.len()))
        }
        // The sum is copied with each item.
        (None, "sum", Some(Value::List(list)), _) if !list.first().is_none_or(meter::is_scalar) => {
            meter.charge(target_size.saturating_mul(as_u64(list.len())))
        }
        (None, "join", Some(Value::List(list)), [Value::String(separator)]) => {
            meter.charge_text(list.len().saturating_mul(separator.len()))
        }
        (None, "format", Some(Value::String(text)), _) if precise(text) => {
            Err(refused(name, format!("the precision of a format has at most {DIGITS} digits")))
        }
        (None, "quantity" | "isQuantity", None, [Value::String(text)]) if exponential(text) => {
            Err(refused(name, format!("the exponent of a quantity has at most {DIGITS} digits")))
        }
        _ => Ok(()),
    }
}

/// How often a text has a part; the empty one is around each character.
fn occurrences(text: &str, part: &str) -> usize {
    if part.is_empty() { text.len().saturating_add(1) } else { text.matches(part).count() }
}

/// Whether a format asks for more digits than are given.
fn precise(format: &str) -> bool {
    format.split("%.").skip(1).any(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() > DIGITS)
}

/// Whether a number has a large exponent, or is very long.
fn exponential(text: &str) -> bool {
    let exponent = text.split_once(['e', 'E']).map_or(0, |(_, exponent)| exponent.trim_start_matches(['+', '-']).len());
    exponent > DIGITS || text.len() > 64
}

fn refused(name: &str, message: String) -> EvaluationError {
    EvaluationError::Function { name: name.to_owned(), message }
}
