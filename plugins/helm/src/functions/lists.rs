//! Lists.

use chandler_go_template::{Call, Element, Function, List, Type, Value};

use super::{Result, any, error, int, items, nil_pointer, numbers::integer, values};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Int};
    Some(match name {
        "list" | "tuple" => Function::variadic(&[], Any, |call, a| made(call, a.to_vec())),
        "append" | "push" | "mustAppend" | "mustPush" => Function::new(&[Any, Any], |call, a| {
            let mut list = of(a, "Cannot push on type {}")?;
            list.push(any(a, 1));
            made(call, list)
        }),
        "prepend" | "mustPrepend" => Function::new(&[Any, Any], |call, a| {
            let mut list = of(a, "Cannot prepend on type {}")?;
            list.insert(0, any(a, 1));
            made(call, list)
        }),
        "concat" => Function::variadic(&[], Any, concat),
        "chunk" | "mustChunk" => Function::new(&[Int, Any], chunk),
        "first" | "mustFirst" => Function::new(&[Any], |_, a| {
            Ok(of(a, "Cannot find first on type {}")?.into_iter().next().unwrap_or_default())
        }),
        "last" | "mustLast" => {
            Function::new(&[Any], |_, a| Ok(of(a, "Cannot find last on type {}")?.pop().unwrap_or_default()))
        }
        "rest" | "mustRest" => Function::new(&[Any], |call, a| {
            let mut list = of(a, "Cannot find rest on type {}")?;
            if list.is_empty() {
                return Ok(nil());
            }
            made(call, list.split_off(1))
        }),
        "initial" | "mustInitial" => Function::new(&[Any], |call, a| {
            let mut list = of(a, "Cannot find initial on type {}")?;
            if list.pop().is_none() {
                return Ok(nil());
            }
            made(call, list)
        }),
        "reverse" | "mustReverse" => Function::new(&[Any], |call, a| {
            let mut list = of(a, "Cannot find reverse on type {}")?;
            list.reverse();
            made(call, list)
        }),
        "compact" | "mustCompact" => Function::new(&[Any], |call, a| {
            let mut list = of(a, "Cannot compact on type {}")?;
            list.retain(|item| !values::is_empty(item));
            made(call, list)
        }),
        "uniq" | "mustUniq" => Function::new(&[Any], |call, a| {
            let mut kept: Vec<Value> = Vec::new();
            for item in of(a, "Cannot find uniq on type {}")? {
                if !contains(call, &kept, &item)? {
                    kept.push(item);
                }
            }
            made(call, kept)
        }),
        "without" | "mustWithout" => Function::variadic(&[Any], Any, |call, a| {
            let left_out = a.get(1..).unwrap_or_default();
            let mut kept = Vec::new();
            for item in of(a, "Cannot find without on type {}")? {
                if !contains(call, left_out, &item)? {
                    kept.push(item);
                }
            }
            made(call, kept)
        }),
        "has" | "mustHas" => Function::new(&[Any, Any], |call, a| {
            let haystack = any(a, 1);
            if haystack.is_nil() {
                return Ok(Value::Bool(false));
            }
            let list = list_of(&haystack, "Cannot find has on type {}")?;
            Ok(Value::Bool(contains(call, &list, &any(a, 0))?))
        }),
        "slice" | "mustSlice" => Function::variadic(&[Any], Any, slice),
        _ => return None,
    })
}

fn made(call: &mut Call<'_>, items: Vec<Value>) -> Result {
    call.charge(items.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::list(items))
}

/// A nil `[]interface {}`, which some functions give for a list without items.
fn nil() -> Value {
    Value::List(List::nil(Element::Any))
}

/// The items of the first argument.
fn of(arguments: &[Value], refusal: &str) -> Result<Vec<Value>> {
    list_of(&any(arguments, 0), refusal)
}

fn list_of(value: &Value, refusal: &str) -> Result<Vec<Value>> {
    match items(value) {
        Some(items) => Ok(items),
        None if value.is_nil() => nil_pointer(),
        None => error(refusal.replace("{}", value.kind())),
    }
}

fn contains(call: &mut Call<'_>, list: &[Value], needle: &Value) -> Result<bool> {
    for item in list {
        if values::equal(call, item, needle, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn concat(call: &mut Call<'_>, a: &[Value]) -> Result {
    let mut all = Vec::new();
    for value in a {
        let items = match items(value) {
            Some(items) => items,
            None if value.is_nil() => return nil_pointer(),
            None => return error(format!("Cannot concat type {} as list", value.kind())),
        };
        call.charge(items.len().saturating_mul(size_of::<Value>()))?;
        all.extend(items);
    }
    Ok(if all.is_empty() { nil() } else { Value::list(all) })
}

fn chunk(call: &mut Call<'_>, a: &[Value]) -> Result {
    let list = list_of(&any(a, 1), "Cannot chunk type {}")?;
    let size = int(a, 0);
    let chunks = match usize::try_from(size) {
        Ok(size @ 1..) => {
            call.charge(list.len().saturating_mul(2 * size_of::<Value>()))?;
            list.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect()
        }
        // Sprig makes so many chunks: ⌊(items − 1) / size⌋ + 1. That is none for a negative size as large as the list.
        Err(_) if (2..=size.unsigned_abs().saturating_add(1)).contains(&(list.len() as u64)) => Vec::new(),
        _ => return error("runtime error: makeslice: len out of range"),
    };
    Ok(Value::List(List::of(Element::Object("[]interface {}"), chunks)))
}

fn slice(call: &mut Call<'_>, a: &[Value]) -> Result {
    let value = any(a, 0);
    let element = value.as_list().map_or(Element::Any, List::element);
    let list = match items(&value) {
        Some(items) => items,
        None if value.is_nil() => return nil_pointer(),
        None => return error(format!("list should be type of slice or array but {}", value.kind())),
    };
    if list.is_empty() {
        return Ok(Value::Nil);
    }
    let bound =
        |at: usize, default: usize| a.get(at).map_or(Some(default), |value| usize::try_from(integer(value)).ok());
    let range = bound(1, 0).zip(bound(2, list.len()));
    let Some(part) = range.and_then(|(start, end)| list.get(start..end)) else {
        return error("reflect.Value.Slice: slice index out of bounds");
    };
    call.charge(part.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::List(List::of(element, part.to_vec())))
}
