//! The methods of `chartutil.Values`, which `.Values` and the dot of a template have.

use chandler_go_template::{Call, Element, Function, FunctionError, Map, Type, Value};

use super::VALUES;

type Result = std::result::Result<Value, FunctionError>;

/// A method by its name. The first argument is the map.
pub(super) fn method(name: &str) -> Option<Function> {
    use Type::{Any, String};
    Some(match name {
        "AsMap" => Function::new(&[Any], |_, arguments| Ok(Value::Map(map(arguments).unnamed()))),
        "Table" => Function::new(&[Any, String], |_, arguments| {
            Ok(Value::Map(table(map(arguments), text(arguments).split('.'))?.named(VALUES)))
        }),
        "PathValue" => Function::new(&[Any, String], |_, arguments| path_value(&map(arguments), &text(arguments))),
        "YAML" => Function::new(&[Any], yaml),
        // No template has an io.Writer, so each call fails, as in Go.
        "Encode" => Function::new(&[Any, Type::Object("io.Writer")], |_, _| Ok(Value::Nil)),
        _ => return None,
    })
}

fn map(arguments: &[Value]) -> Map {
    arguments.first().and_then(Value::as_map).cloned().unwrap_or_default()
}

fn text(arguments: &[Value]) -> String {
    arguments.get(1).and_then(Value::as_string).map(|text| text.text().into_owned()).unwrap_or_default()
}

/// The table at a path.
fn table<'a>(map: Map, mut path: impl Iterator<Item = &'a str>) -> std::result::Result<Map, FunctionError> {
    path.try_fold(map, |map, key| match map.get(key) {
        Some(Value::Map(inner)) if inner.element() == Element::Any => Ok(inner),
        _ => Err(FunctionError::new(format!("{key:?} is not a table"))),
    })
}

/// The value at a path; an error for a table.
fn path_value(map: &Map, path: &str) -> Result {
    if path.is_empty() {
        return Err(FunctionError::new("YAML path cannot be empty"));
    }
    let (parents, key) = path.rsplit_once('.').map_or((None, path), |(parents, key)| (Some(parents), key));
    let found = match parents {
        Some(parents) => table(map.clone(), parents.split('.')).ok().and_then(|table| table.get(key)),
        None => map.get(key),
    };
    let is_table =
        |value: &Value| matches!(value, Value::Map(map) if map.name().is_none() && map.element() == Element::Any);
    found.filter(|value| !is_table(value)).ok_or_else(|| FunctionError::new(format!("{key:?} is not a value")))
}

fn yaml(call: &mut Call<'_>, arguments: &[Value]) -> Result {
    let text = crate::yaml::write(&Value::Map(map(arguments))).map_err(FunctionError::new)?;
    call.charge(text.len())?;
    Ok(Value::from(text))
}
