//! A few functions, of the types that matter.

use std::rc::Rc;

use chandler_go_template::{Call, Function, FunctionError, Functions, Limits, List, Machine, Map, Type, Value};

#[derive(Debug)]
pub(crate) struct Few;

type Result = std::result::Result<Value, FunctionError>;

#[expect(clippy::unnecessary_wraps, reason = "the signature of a function of templates")]
fn first(_: &mut Call<'_>, arguments: &[Value]) -> Result {
    Ok(arguments[0].clone())
}

fn count(count: usize) -> Value {
    Value::int(i64::try_from(count).unwrap())
}

fn text(value: &Value) -> String {
    value.as_string().unwrap().to_string()
}

impl Functions for Few {
    fn find(&self, name: &str) -> Option<Function> {
        Some(match name {
            "dict" => Function::variadic(&[], Type::Any, |call, arguments| {
                let mut map = Vec::new();
                for pair in arguments.chunks_exact(2) {
                    map.push((chandler_go_template::sprint(call.meter(), &pair[..1])?.shared(), pair[1].clone()));
                }
                Ok(Value::Map(map.into_iter().collect::<Map>()))
            }),
            "list" => Function::variadic(&[], Type::Any, |_, arguments| Ok(Value::list(arguments.to_vec()))),
            "str" => Function::new(&[Type::String], first),
            "int" => Function::new(&[Type::Int], first),
            "int64" => Function::new(&[Type::Int64], first),
            "flt" => Function::new(&[Type::Float], first),
            "any" => Function::new(&[Type::Any], first),
            "bool" => Function::new(&[Type::Bool], first),
            "strs" => {
                Function::variadic(&[], Type::String, |_, arguments| Ok(Value::strings(arguments.iter().map(text))))
            }
            "map" => Function::new(&[Type::Map], |_, arguments| Ok(count(arguments[0].as_map().map_or(0, Map::len)))),
            "slc" => {
                Function::new(&[Type::List], |_, arguments| Ok(count(arguments[0].as_list().map_or(0, List::len))))
            }
            "fail" => Function::new(&[Type::String], |_, arguments| Err(FunctionError::new(text(&arguments[0])))),
            "none" => Function::new(&[], |_, _| Ok(Value::Nil)),
            "bytes" => Function::new(&[Type::String], |_, arguments| {
                Ok(Value::List(List::bytes(text(&arguments[0]).as_bytes())))
            }),
            "two" => Function::new(&[Type::String, Type::Int], |call, arguments| {
                Ok(chandler_go_template::sprint(call.meter(), arguments)?.into())
            }),
            "include" => Function::new(&[Type::String, Type::Any], |call, arguments| {
                Ok(call.execute(&text(&arguments[0]), &arguments[1])?.into())
            }),
            "tpl" => Function::new(&[Type::String, Type::Any], |call, arguments| {
                Ok(call.evaluate("gotpl", &text(&arguments[0]), &arguments[1])?.into())
            }),
            "set" => Function::new(&[Type::Map, Type::String, Type::Any], |_, arguments| {
                if let Some(map) = arguments[0].as_map() {
                    map.insert(text(&arguments[1]), arguments[2].clone());
                }
                Ok(arguments[0].clone())
            }),
            _ => return None,
        })
    }
}

pub(crate) fn machine(limits: Limits) -> Machine {
    Machine::new(Rc::new(Few), Rc::new(()), limits).with_name("gotpl")
}

/// What a template gives, or its error.
pub(crate) fn render(limits: Limits, text: &str, dot: &Value) -> std::result::Result<String, String> {
    let mut machine = machine(limits);
    machine.parse("t", text).map_err(|error| error.to_string())?;
    machine.execute("t", dot).map(|text| text.to_string()).map_err(|error| error.to_string())
}

/// JSON as Go decodes it: every number is a float.
pub(crate) fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap()),
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Array(items) => Value::list(items.iter().map(value).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(key, item)| (key.as_str(), value(item))).collect::<Map>())
        }
    }
}
