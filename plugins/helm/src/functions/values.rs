//! Kinds and types, defaults, equality, copies, and how values are printed.

use chandler_go_template::{Call, Function, List, Map, Str, Type, Value};

use crate::{json::MOST_BYTES, number};

use super::{Result, any, error, text};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Bool, String};
    Some(match name {
        "default" => Function::variadic(&[Any], Any, |_, a| match a.get(1) {
            Some(given) if !is_empty(given) => Ok(given.clone()),
            _ => Ok(any(a, 0)),
        }),
        "empty" => Function::new(&[Any], |_, a| Ok(Value::Bool(is_empty(&any(a, 0))))),
        "coalesce" => Function::variadic(&[], Any, |_, a| {
            Ok(a.iter().find(|value| !is_empty(value)).cloned().unwrap_or_default())
        }),
        "all" => Function::variadic(&[], Any, |_, a| Ok(Value::Bool(!a.iter().any(is_empty)))),
        "any" => Function::variadic(&[], Any, |_, a| Ok(Value::Bool(!a.iter().all(is_empty)))),
        "ternary" => Function::new(&[Any, Any, Bool], |_, a| {
            Ok(any(a, usize::from(!matches!(a.get(2), Some(Value::Bool(true))))))
        }),
        "typeOf" => Function::new(&[Any], |_, a| Ok(Value::from(any(a, 0).type_name()))),
        "typeIs" => Function::new(&[String, Any], |_, a| Ok(Value::Bool(*any(a, 1).type_name() == *text(a, 0)))),
        "typeIsLike" => Function::new(&[String, Any], |_, a| {
            let (target, name) = (text(a, 0), any(a, 1).type_name());
            Ok(Value::Bool(*target == *name || name.strip_prefix('*') == Some(&*target)))
        }),
        "kindOf" => Function::new(&[Any], |_, a| Ok(Value::from(any(a, 0).kind()))),
        "kindIs" => Function::new(&[String, Any], |_, a| Ok(Value::Bool(any(a, 1).kind() == &*text(a, 0)))),
        "deepEqual" => Function::new(&[Any, Any], |call, a| Ok(Value::Bool(equal(call, &any(a, 0), &any(a, 1), 0)?))),
        "deepCopy" | "mustDeepCopy" => Function::new(&[Any], |call, a| match any(a, 0) {
            Value::Nil => error("reflect: call of reflect.Value.Type on zero Value"),
            value => copy(call, &value, 0),
        }),
        _ => return None,
    })
}

/// Whether Sprig takes a value for absent: what is zero or has no items. A struct never is.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

const MOST_DEEP: usize = 250;

/// `reflect.DeepEqual`. Values that are nested too deep are different. Each comparison is a step: a value can be in a list many times.
pub(super) fn equal(call: &mut Call<'_>, one: &Value, other: &Value, depth: usize) -> Result<bool> {
    if depth > MOST_DEEP {
        return Ok(false);
    }
    call.meter().step(1)?;
    Ok(match (one, other) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one, kind), Value::Int(other, other_kind)) => one == other && kind == other_kind,
        #[expect(clippy::float_cmp, reason = "as in Go")]
        (Value::Float(one), Value::Float(other)) => one == other,
        (Value::String(one), Value::String(other)) => one == other,
        (Value::List(one), Value::List(other)) => {
            if one.element() != other.element() || one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.items().iter().zip(other.items()) {
                if !equal(call, one, other, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(one), Value::Map(other)) => {
            if one.is(other) {
                return Ok(true);
            }
            if one.type_name() != other.type_name() || one.len() != other.len() {
                return Ok(false);
            }
            for ((key, one), (other_key, other)) in one.entries().into_iter().zip(other.entries()) {
                if key != other_key || !equal(call, &one, &other, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(one), Value::Object(other)) => {
            one.type_name() == other.type_name() && equal(call, &one.data(), &other.data(), depth + 1)?
        }
        _ => false,
    })
}

fn copy(call: &mut Call<'_>, value: &Value, depth: usize) -> Result {
    if depth > MOST_DEEP {
        return error(format!("values are nested more than {MOST_DEEP} levels deep"));
    }
    Ok(match value {
        Value::List(list) => {
            call.charge(list.len().saturating_mul(32))?;
            let items = list.items().iter().map(|item| copy(call, item, depth + 1)).collect::<Result<_>>()?;
            Value::List(List::of(list.element(), items))
        }
        Value::Map(map) => {
            call.charge(map.len().saturating_mul(64))?;
            let copied = Map::of(map.element());
            for (key, value) in map.entries() {
                copied.insert(key, copy(call, &value, depth + 1)?);
            }
            Value::Map(copied)
        }
        other => other.clone(),
    })
}

/// A value as `fmt.Sprint` prints it, which is what Sprig makes of values that it needs as text.
pub fn display(value: &Value) -> Str {
    match value {
        Value::String(text) => text.clone(),
        Value::List(list) if list.as_bytes().is_some() => Str::from(list.as_bytes().unwrap_or_default()),
        _ => {
            let mut out = Vec::new();
            print(value, &mut out, 0);
            Str::from(out)
        }
    }
}

/// `%v`. What is nested too deep, or beyond the greatest length, is left out.
fn print(value: &Value, out: &mut Vec<u8>, depth: usize) {
    if depth > MOST_DEEP || out.len() > MOST_BYTES {
        return;
    }
    match value {
        Value::Nil => out.extend_from_slice(b"<nil>"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Int(value, kind) => out.extend_from_slice(crate::integer(*value, *kind).as_bytes()),
        Value::Float(value) => out.extend_from_slice(number::general(*value).as_bytes()),
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::List(list) => {
            out.push(b'[');
            for (at, item) in list.items().iter().enumerate() {
                if at > 0 {
                    out.push(b' ');
                }
                print(item, out, depth + 1);
            }
            out.push(b']');
        }
        Value::Map(map) => {
            out.extend_from_slice(b"map[");
            for (at, (key, value)) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push(b' ');
                }
                out.extend_from_slice(key.as_bytes());
                out.push(b':');
                print(value, out, depth + 1);
            }
            out.push(b']');
        }
        Value::Object(object) => match (object.string(), object.fields()) {
            (Some(text), _) => out.extend_from_slice(text.as_bytes()),
            (None, Some(fields)) => {
                out.push(b'{');
                for (at, (_, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(b' ');
                    }
                    print(value, out, depth + 1);
                }
                out.push(b'}');
            }
            (None, None) => print(&object.data(), out, depth + 1),
        },
    }
}
