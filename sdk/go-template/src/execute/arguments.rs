//! Arguments of functions, and the types that they must have.

use super::{Execution, Result};
use crate::{
    Element, IntKind, Type, Value,
    builtin::Held,
    node::{Id, NodeKind, Source},
};

impl Execution<'_> {
    /// The arguments of a function or method, checked and converted.
    pub(super) fn arguments(
        &mut self,
        source: &Source,
        dot: &Held,
        (name, parameters, rest): (&str, &[Type], Option<Type>),
        arguments: &[Id],
        last: Option<Held>,
    ) -> Result<Vec<Value>> {
        self.count(name, (parameters.len(), rest.is_some()), arguments.len(), last.is_some())?;
        let parameter = |index: usize| parameters.get(index).copied().or(rest).unwrap_or(Type::Any);
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(source, dot, parameter(index), *argument)?);
        }
        if let Some(last) = last {
            values.push(self.validate(last, parameter(arguments.len()))?);
        }
        Ok(values)
    }

    pub(super) fn count(&self, name: &str, (fixed, variadic): (usize, bool), given: usize, last: bool) -> Result<()> {
        let all = given + usize::from(last);
        if variadic && all < fixed {
            return self.fail(format!("wrong number of args for {name}: want at least {fixed} got {given}"));
        }
        if !variadic && all != fixed {
            return self.fail(format!("wrong number of args for {name}: want {fixed} got {all}"));
        }
        Ok(())
    }

    /// An argument for a parameter that takes values by reflection.
    pub(super) fn argument_as_it_is(&mut self, source: &Source, dot: &Held, id: Id) -> Result<Held> {
        self.frame.at = id;
        match &source.node(id).kind {
            NodeKind::Dot => Ok(dot.clone()),
            NodeKind::Nil => Ok(Held::default()),
            NodeKind::Field(_) | NodeKind::Variable(_) | NodeKind::Chain { .. } => {
                self.access(source, dot, id, &[], None)
            }
            NodeKind::Pipe { .. } => self.pipeline(source, dot, id),
            NodeKind::Identifier { name, callee } => self.call(source, dot, (*callee, name, id), &[], None),
            _ => self.constant(source, id),
        }
    }

    /// An argument for a parameter of a type.
    pub(super) fn argument(&mut self, source: &Source, dot: &Held, parameter: Type, id: Id) -> Result<Value> {
        self.frame.at = id;
        match &source.node(id).kind {
            NodeKind::Nil if can_be_nil(parameter) => return Ok(Value::Nil),
            NodeKind::Nil => return self.fail(format!("cannot assign nil to {}", parameter.name())),
            NodeKind::Bool(_) | NodeKind::Number { .. } | NodeKind::String { .. } => {}
            _ => {
                let value = self.argument_as_it_is(source, dot, id)?;
                return self.validate(value, parameter);
            }
        }
        let expected = match (parameter, &source.node(id).kind) {
            (Type::Any, _) => return Ok(self.constant(source, id)?.value),
            (Type::Bool, NodeKind::Bool(value)) => return Ok(Value::Bool(*value)),
            (Type::String, NodeKind::String { value, .. }) => return Ok(Value::String(value.clone())),
            (Type::Int | Type::Int64, NodeKind::Number { number, .. }) if number.int.is_some() => {
                let int = number.int.unwrap_or_default();
                return Ok(if parameter == Type::Int { Value::int(int) } else { Value::int64(int) });
            }
            (Type::Float, NodeKind::Number { number, .. }) if number.float.is_some() => {
                return Ok(Value::Float(number.float.unwrap_or_default()));
            }
            (Type::Bool, _) => "bool",
            (Type::String, _) => "string",
            (Type::Int | Type::Int64, _) => "integer",
            (Type::Float, _) => "float",
            (parameter, _) => {
                return self.fail(format!("can't handle {} for arg of type {}", source.print(id), parameter.name()));
            }
        };
        self.fail(format!("expected {expected}; found {}", source.print(id)))
    }

    /// Checks that a value can be assigned to a parameter.
    pub(super) fn validate(&self, held: Held, parameter: Type) -> Result<Value> {
        if held.is_invalid() {
            if can_be_nil(parameter) {
                return Ok(Value::Nil);
            }
            return self.fail(format!("invalid value; expected {}", parameter.name()));
        }
        let fits = match (&held.value, parameter) {
            (_, Type::Any)
            | (Value::Bool(_), Type::Bool)
            | (Value::Int(_, IntKind::Int), Type::Int)
            | (Value::Int(_, IntKind::Int64), Type::Int64)
            | (Value::Float(_), Type::Float)
            | (Value::String(_), Type::String) => true,
            (Value::List(list), Type::List) => list.element() == Element::Any,
            (Value::List(list), Type::Strings) => list.element() == Element::String,
            (Value::Map(map), Type::Map) => map.element() == Element::Any,
            (Value::Object(object), Type::Object(name)) => object.type_name() == name,
            _ => false,
        };
        if fits {
            return Ok(held.value);
        }
        let found = if held.value.is_nil() { "interface {}".into() } else { held.value.type_name() };
        self.fail(format!("wrong type for value; expected {}; got {found}", parameter.name()))
    }
}

fn can_be_nil(parameter: Type) -> bool {
    matches!(parameter, Type::Any | Type::List | Type::Strings | Type::Map)
}
