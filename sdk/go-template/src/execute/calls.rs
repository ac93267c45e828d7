//! Calls of functions, methods and built-in functions.

use std::rc::Rc;

use super::{Execution, Result};
use crate::{
    Body, Call, Function, FunctionError, Map, Object, Returned, Value,
    builtin::{Builtin, Callee, Failure, Held},
    node::{Id, Source},
};

impl Execution<'_> {
    pub(super) fn method(
        &mut self,
        source: &Source,
        dot: &Held,
        (object, name, id): (&Rc<dyn Object>, &str, Id),
        arguments: &[Id],
        last: Option<Held>,
    ) -> Result<Held> {
        let parameters = object.parameters(name);
        let values = self.arguments(source, dot, (name, parameters, None), arguments, last)?;
        match object.method(name, &values) {
            Some(Ok(value)) => Ok(Held::new(value)),
            Some(Err(error)) => Err(self.function_error(id, name, error)),
            None => self.fail(format!("can't evaluate field {name} in type {}", object.type_name())),
        }
    }

    /// A method of a map of a named type.
    pub(super) fn map_method(
        &mut self,
        source: &Source,
        dot: &Held,
        (map, method, name, id): (&Map, Function, &str, Id),
        arguments: &[Id],
        last: Option<Held>,
    ) -> Result<Held> {
        let parameters = method.parameters.get(1..).unwrap_or_default();
        let mut values = self.arguments(source, dot, (name, parameters, method.rest), arguments, last)?;
        values.insert(0, Value::Map(map.clone()));
        let value = self.run(method.body, (name, id), &values)?;
        Ok(Held { boxed: value.is_nil(), value })
    }

    /// Calls a function. `id` is the node at which its errors are reported.
    pub(super) fn call(
        &mut self,
        source: &Source,
        dot: &Held,
        (callee, name, id): (Callee, &str, Id),
        arguments: &[Id],
        last: Option<Held>,
    ) -> Result<Held> {
        match callee {
            Callee::Function(function) => {
                let Function { parameters, rest, body } = function;
                let values = self.arguments(source, dot, (name, parameters, rest), arguments, last)?;
                let value = self.run(body, (name, id), &values)?;
                let value = self.watched(source, (name, id), value, || values)?;
                Ok(Held { boxed: value.is_nil(), value })
            }
            Callee::Builtin(builtin) => self.call_builtin(source, dot, (builtin, name, id), arguments, last),
        }
    }

    /// Runs the code of a function or method.
    fn run(&mut self, body: Body, (name, id): (&str, Id), values: &[Value]) -> Result<Value> {
        self.machine.meter().enter()?;
        let result = body(&mut Call { machine: self.machine }, values);
        self.machine.meter().leave();
        result.map_err(|error| self.function_error(id, name, error))
    }

    /// The result of a call, as the functions of the set want it.
    fn watched(
        &mut self,
        source: &Source,
        (name, id): (&str, Id),
        result: Value,
        arguments: impl FnOnce() -> Vec<Value>,
    ) -> Result<Value> {
        let functions = Rc::clone(&self.machine.functions);
        let mut call = Call { machine: self.machine };
        if !functions.is_watching(&call) {
            return Ok(result);
        }
        let place = || {
            let (line, column) = source.place(id);
            format!("{}:{line}:{column}", source.name)
        };
        let returned = Returned { name, arguments: &arguments(), result, place: &place };
        functions.returned(&mut call, returned).map_err(|error| self.function_error(id, name, error))
    }

    fn call_builtin(
        &mut self,
        source: &Source,
        dot: &Held,
        (builtin, name, id): (Builtin, &str, Id),
        arguments: &[Id],
        last: Option<Held>,
    ) -> Result<Held> {
        self.count(name, builtin.arity(), arguments.len(), last.is_some())?;
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (index, argument) in arguments.iter().enumerate() {
            let value = match builtin.parameter(index) {
                Some(parameter) => Held::new(self.argument(source, dot, parameter, *argument)?),
                None => self.argument_as_it_is(source, dot, *argument)?,
            };
            if matches!(builtin, Builtin::And | Builtin::Or) && value.value.truth() == (builtin == Builtin::Or) {
                return Ok(value);
            }
            values.push(value);
        }
        if let Some(last) = last {
            values.push(match builtin.parameter(arguments.len()) {
                Some(parameter) => Held::new(self.validate(last, parameter)?),
                None => last,
            });
        }
        match builtin.call(self.machine.meter(), &values) {
            Ok(Held { value, boxed }) => {
                let arguments = || values.iter().map(|argument| argument.value.clone()).collect();
                Ok(Held { value: self.watched(source, (name, id), value, arguments)?, boxed })
            }
            Err(Failure::Limit(limit)) => Err(limit.into()),
            Err(Failure::Message(message)) => {
                let callee = arguments.first().filter(|_| builtin == Builtin::Call).map(|callee| source.print(*callee));
                let message = callee.map_or(message.clone(), |callee| message.replacen("{}", &callee, 1));
                Err(self.function_error(id, name, FunctionError::Message(message)))
            }
        }
    }
}
