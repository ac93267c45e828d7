//! The functions that render, and all of [`crate::functions`].

use chandler_go_template::{Call, Error, Function, FunctionError, Functions, Map, Returned, Str, Type, Value, quote};

use crate::functions::Environment;

/// Around the message of `fail` and `required`, so that the engine finds it in the text of an error.
pub(super) const START: &str = "HELM_ERR_START";
pub(super) const END: &str = "HELM_ERR_END";

/// All functions of a chart's templates.
#[derive(Debug)]
pub(super) struct All;

type Result = std::result::Result<Value, FunctionError>;

impl Functions for All {
    fn find(&self, name: &str) -> Option<Function> {
        use Type::{Any, String};
        Some(match name {
            "include" => Function::new(&[String, Any], include),
            "tpl" => Function::new(&[String, Any], tpl),
            "required" => Function::new(&[String, Any], required),
            "fail" => Function::new(&[String], |_, arguments| Err(wrapped(&text(arguments, 0)))),
            "lookup" => Function::new(&[String, String, String, String], |_, _| Ok(Value::Map(Map::new()))),
            _ => return crate::functions::find(name),
        })
    }

    fn method(&self, type_name: &str, name: &str) -> Option<Function> {
        if type_name == super::VALUES { super::values::method(name) } else { None }
    }

    fn is_watching(&self, call: &Call<'_>) -> bool {
        let entropy = call.extension::<Environment>().and_then(|environment| environment.entropy.as_ref());
        entropy.is_some_and(|entropy| entropy.is_watching())
    }

    fn returned(&self, call: &mut Call<'_>, returned: Returned<'_>) -> Result {
        match call.extension::<Environment>().and_then(|environment| environment.entropy.as_ref()) {
            Some(entropy) => entropy.returned(returned),
            None => Ok(returned.result),
        }
    }
}

fn text(arguments: &[Value], at: usize) -> Str {
    arguments.get(at).and_then(Value::as_string).cloned().unwrap_or_default()
}

fn value(arguments: &[Value], at: usize) -> Value {
    arguments.get(at).cloned().unwrap_or_default()
}

fn wrapped(message: &Str) -> FunctionError {
    FunctionError::new(format!("{START}{message}{END}"))
}

fn include(call: &mut Call<'_>, arguments: &[Value]) -> Result {
    Ok(Value::String(call.execute(&text(arguments, 0).text(), &value(arguments, 1))?))
}

fn tpl(call: &mut Call<'_>, arguments: &[Value]) -> Result {
    let template = text(arguments, 0);
    if !template.as_bytes().contains(&b'{') {
        return Ok(Value::String(super::without_no_value(&template)));
    }
    match call.evaluate("gotpl", &template.text(), &value(arguments, 1)) {
        Ok(text) => {
            call.charge(text.len())?;
            Ok(Value::String(super::without_no_value(&text)))
        }
        Err(FunctionError::Template(error)) => Err(within(call, &template, *error)),
        Err(error) => Err(error),
    }
}

/// The error of a text that `tpl` got. A refusal or limit inside keeps its kind.
fn within(call: &mut Call<'_>, template: &Str, error: Error) -> FunctionError {
    if let Some(refused) = super::refused(&error) {
        return FunctionError::Refused { function: "tpl".into(), reason: refused };
    }
    // The quoted text may be many times longer, and so again in each outer call.
    if let Err(limit) = call.charge(template.len().saturating_mul(4)) {
        return limit;
    }
    let quoted = quote(template.as_bytes());
    FunctionError::new(match error {
        Error::Parse { .. } => format!("cannot parse template {quoted}: {error}"),
        error => format!("error during tpl function execution for {quoted}: {error}"),
    })
}

fn required(_: &mut Call<'_>, arguments: &[Value]) -> Result {
    match value(arguments, 1) {
        Value::Nil => Err(wrapped(&text(arguments, 0))),
        Value::String(value) if value.is_empty() => Err(wrapped(&text(arguments, 0))),
        value => Ok(value),
    }
}
