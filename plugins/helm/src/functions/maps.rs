//! Maps. Some functions change their argument, as in Go.

use chandler_go_template::{Call, Function, Map, Type, Value};

use super::{Result, any, error, map, text, values, values::display};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Map as Dict, String};
    Some(match name {
        "dict" => Function::variadic(&[], Any, |call, a| {
            let map = Map::new();
            for pair in a.chunks(2) {
                let key = display(&any(pair, 0));
                call.charge(key.len() + 64)?;
                map.insert(key.shared(), pair.get(1).cloned().unwrap_or_else(|| Value::from("")));
            }
            Ok(Value::Map(map))
        }),
        "get" => Function::new(&[Dict, String], |_, a| {
            Ok(map(a, 0).and_then(|map| map.get(&text(a, 1))).unwrap_or_else(|| Value::from("")))
        }),
        "set" => Function::new(&[Dict, String, Any], |call, a| {
            let Some(map) = map(a, 0) else { return error("assignment to entry in nil map") };
            call.charge(text(a, 1).len() + 64)?;
            map.insert(&*text(a, 1), any(a, 2));
            Ok(Value::Map(map.unnamed()))
        }),
        "unset" => Function::new(&[Dict, String], |_, a| {
            if let Some(map) = map(a, 0) {
                map.remove(&text(a, 1));
            }
            Ok(map(a, 0).map_or(Value::Nil, |map| Value::Map(map.unnamed())))
        }),
        "hasKey" => {
            Function::new(&[Dict, String], |_, a| Ok(Value::Bool(map(a, 0).is_some_and(|map| map.has(&text(a, 1))))))
        }
        "pluck" => Function::variadic(&[String], Dict, |call, a| {
            call.charge(a.len() * 32)?;
            let key = text(a, 0);
            let maps = a.get(1..).unwrap_or_default().iter().filter_map(Value::as_map);
            Ok(Value::list(maps.filter_map(|map| map.get(&key)).collect()))
        }),
        "keys" => Function::variadic(&[], Dict, |call, a| {
            let mut keys = Vec::new();
            for map in a.iter().filter_map(Value::as_map) {
                call.charge(map.len().saturating_mul(48))?;
                keys.extend(map.keys());
            }
            Ok(Value::strings(keys))
        }),
        "values" => Function::new(&[Dict], |call, a| {
            let Some(map) = map(a, 0) else { return Ok(Value::list(Vec::new())) };
            call.charge(map.len().saturating_mul(32))?;
            Ok(Value::list(map.entries().into_iter().map(|(_, value)| value).collect()))
        }),
        "pick" => Function::variadic(&[Dict], String, |call, a| {
            let picked = Map::new();
            if let Some(map) = map(a, 0) {
                for at in 1..a.len() {
                    let key = text(a, at);
                    if let Some(value) = map.get(&key) {
                        call.charge(key.len() + 64)?;
                        picked.insert(&*key, value);
                    }
                }
            }
            Ok(Value::Map(picked))
        }),
        "omit" => Function::variadic(&[Dict], String, |call, a| {
            let left_out: Vec<_> = (1..a.len()).map(|at| text(a, at)).collect();
            let kept = Map::new();
            for (key, value) in map(a, 0).map(Map::entries).unwrap_or_default() {
                call.meter().step(left_out.len())?;
                if !left_out.iter().any(|name| **name == *key) {
                    call.charge(64)?;
                    kept.insert(key, value);
                }
            }
            Ok(Value::Map(kept))
        }),
        "merge" | "mustMerge" => Function::variadic(&[Dict], Dict, |call, a| merged(call, a, false)),
        "mergeOverwrite" | "mustMergeOverwrite" => Function::variadic(&[Dict], Dict, |call, a| merged(call, a, true)),
        "dig" => Function::variadic(&[], Any, dig),
        _ => return None,
    })
}

/// Merges maps into the first one.
fn merged(call: &mut Call<'_>, a: &[Value], overwrite: bool) -> Result {
    let Some(first) = map(a, 0) else { return Ok(any(a, 0)) };
    for source in a.get(1..).unwrap_or_default().iter().filter_map(Value::as_map) {
        merge(call, first, source, overwrite, 0)?;
    }
    Ok(Value::Map(first.unnamed()))
}

/// Merges maps deeper than this no further.
const MOST_DEEP: usize = 250;

fn merge(call: &mut Call<'_>, to: &Map, from: &Map, overwrite: bool, depth: usize) -> Result<()> {
    if to.is(from) {
        return Ok(());
    }
    if depth > MOST_DEEP {
        return error(format!("maps are nested more than {MOST_DEEP} levels deep"));
    }
    for (key, value) in from.entries() {
        call.charge(64)?;
        let own = to.get(&key);
        match (&own, &value) {
            (_, Value::Nil) if !overwrite => {}
            (Some(Value::Map(own)), Value::Map(value)) if !own.is_empty() => {
                merge(call, own, value, overwrite, depth + 1)?;
            }
            (Some(own), _) if !overwrite && !values::is_empty(own) => {}
            _ => {
                to.insert(key, value);
            }
        }
    }
    Ok(())
}

/// `dig "a" "b" DEFAULT MAP`.
fn dig(call: &mut Call<'_>, a: &[Value]) -> Result {
    let [keys @ .., default, last] = a else { return error("dig needs at least three arguments") };
    if keys.is_empty() {
        return error("dig needs at least three arguments");
    }
    let wrong = |value: &Value, wanted: &str| match value {
        Value::Nil => error(format!("interface conversion: interface {{}} is nil, not {wanted}")),
        other => error(format!("interface conversion: interface {{}} is {}, not {wanted}", other.type_name())),
    };
    let mut current = last.clone();
    for (at, key) in keys.iter().enumerate() {
        call.meter().step(1)?;
        let Value::String(key) = key else { return wrong(key, "string") };
        let next = match &current {
            Value::Map(map) if map.type_name() == "map[string]interface {}" => map.get(&key.text()),
            other => return wrong(other, "map[string]interface {}"),
        };
        match next {
            None => return Ok(default.clone()),
            Some(value) if at + 1 == keys.len() => return Ok(value),
            Some(value) => current = value,
        }
    }
    Ok(default.clone())
}
