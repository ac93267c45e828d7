//! Execution of a template.
//!
//! As in Go, an error is reported at the node that was looked at last, which is what [`Execution::at`] remembers.

mod arguments;
mod calls;

use std::rc::Rc;

use crate::{
    Cause, Element, Error, FunctionError, Limit, Machine, Value,
    builtin::Held,
    format::{print_to, sprint},
    literal::quote,
    node::{Id, NodeKind, Source, Template},
};

/// One execution, with its output.
pub(crate) struct Execution<'m> {
    machine: &'m mut Machine,
    frame: Frame,
    out: Vec<u8>,
}

/// The execution of one template.
struct Frame {
    template: Template,
    variables: Vec<(Rc<str>, Held)>,
    at: Id,
}

impl Frame {
    fn new(template: Template, dot: Held) -> Self {
        let at = template.root;
        Self { template, variables: vec![("$".into(), dot)], at }
    }
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

type Result<T> = std::result::Result<T, Box<Error>>;

/// Executes a template, and gives its output.
pub(crate) fn execute(machine: &mut Machine, template: Template, dot: &Value) -> Result<Vec<u8>> {
    let dot = Held::new(dot.clone());
    let source = Rc::clone(&template.source);
    let root = template.root;
    let mut execution = Execution { machine, frame: Frame::new(template, dot.clone()), out: Vec::new() };
    execution.walk(&source, &dot, root)?;
    Ok(execution.out)
}

impl From<Limit> for Box<Error> {
    fn from(limit: Limit) -> Self {
        Box::new(Error::Limit(limit))
    }
}

impl Execution<'_> {
    #[cfg_attr(
        target_pointer_width = "32",
        expect(clippy::unnecessary_box_returns, reason = "large with pointers of 64 bits")
    )]
    fn error(&self, cause: Cause) -> Box<Error> {
        let Frame { template, at, .. } = &self.frame;
        let (line, column) = template.source.place(*at);
        Box::new(Error::Execution {
            name: template.source.name.to_string(),
            line,
            column,
            template: template.name.to_string(),
            node: template.source.print(*at),
            cause,
        })
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.error(Cause::Message(message.into())))
    }

    /// The error of a function. Limits have no position.
    #[cfg_attr(
        target_pointer_width = "32",
        expect(clippy::unnecessary_box_returns, reason = "large with pointers of 64 bits")
    )]
    fn function_error(&mut self, at: Id, name: &str, error: FunctionError) -> Box<Error> {
        match error {
            FunctionError::Limit(limit) => limit.into(),
            error => {
                self.frame.at = at;
                self.error(Cause::Function { function: name.to_owned(), error })
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.machine.meter().charge(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn walk(&mut self, source: &Source, dot: &Held, id: Id) -> Result<Flow> {
        self.machine.meter().enter()?;
        let flow = self.walk_inside(source, dot, id);
        self.machine.meter().leave();
        flow
    }

    fn walk_inside(&mut self, source: &Source, dot: &Held, id: Id) -> Result<Flow> {
        let NodeKind::List(nodes) = &source.node(id).kind else { return self.walk_node(source, dot, id) };
        for node in nodes {
            self.machine.meter().step(1)?;
            let flow = match &source.node(*node).kind {
                NodeKind::Text { start, end } => {
                    self.write(source.text(*start, *end).as_bytes())?;
                    Flow::Next
                }
                NodeKind::Action(pipe) => {
                    self.action(source, dot, *node, *pipe)?;
                    Flow::Next
                }
                _ => self.walk_node(source, dot, *node)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn action(&mut self, source: &Source, dot: &Held, id: Id, pipe: Id) -> Result<()> {
        let value = self.pipeline(source, dot, pipe)?;
        if matches!(&source.node(pipe).kind, NodeKind::Pipe { declared, .. } if declared.is_empty()) {
            self.frame.at = id;
            if value.value.is_nil() {
                self.write(b"<no value>")?;
            } else if let Value::Object(object) = &value.value
                && let Some(text) = object.addressed_string()
            {
                self.write(text.as_bytes())?;
            } else {
                print_to(self.machine.meter(), &mut self.out, &value.value)?;
            }
        }
        Ok(())
    }

    fn walk_node(&mut self, source: &Source, dot: &Held, id: Id) -> Result<Flow> {
        self.frame.at = id;
        match &source.node(id).kind {
            NodeKind::If { pipe, list, otherwise } => self.branch(source, dot, (*pipe, *list, *otherwise), false),
            NodeKind::With { pipe, list, otherwise } => self.branch(source, dot, (*pipe, *list, *otherwise), true),
            NodeKind::Range { pipe, list, otherwise } => {
                let mark = self.frame.variables.len();
                let flow = self.range(source, dot, (*pipe, *list, *otherwise));
                self.frame.variables.truncate(mark);
                flow
            }
            NodeKind::Template { name, pipe } => {
                self.template(source, dot, name, *pipe)?;
                Ok(Flow::Next)
            }
            NodeKind::Break => Ok(Flow::Break),
            NodeKind::Continue => Ok(Flow::Continue),
            // A list has no other nodes.
            _ => Ok(Flow::Next),
        }
    }

    fn branch(
        &mut self,
        source: &Source,
        dot: &Held,
        (pipe, list, otherwise): (Id, Id, Option<Id>),
        with: bool,
    ) -> Result<Flow> {
        let mark = self.frame.variables.len();
        let value = self.pipeline(source, dot, pipe)?;
        let flow = if value.value.truth() {
            self.walk(source, if with { &value } else { dot }, list)?
        } else if let Some(otherwise) = otherwise {
            self.walk(source, dot, otherwise)?
        } else {
            Flow::Next
        };
        self.frame.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, source: &Source, dot: &Held, (pipe, list, otherwise): (Id, Id, Option<Id>)) -> Result<Flow> {
        let value = self.pipeline(source, dot, pipe)?.value;
        let value = match &value {
            Value::Object(object) if matches!(object.kind(), "map" | "slice") => object.data(),
            _ => value,
        };
        let NodeKind::Pipe { assigns, declared, .. } = &source.node(pipe).kind else { return Ok(Flow::Next) };
        let flow = match &value {
            Value::Int(count, _) => {
                if declared.len() > 1 {
                    return self.fail(format!("can't use {count} to iterate over more than one variable"));
                }
                let kind = match value {
                    Value::Int(_, kind) => kind,
                    _ => crate::IntKind::Int,
                };
                let mut ran = false;
                for index in 0..*count {
                    ran = true;
                    if self.iteration(
                        source,
                        list,
                        (*assigns, declared),
                        Held::default(),
                        Held::new(Value::Int(index, kind)),
                    )? == Flow::Break
                    {
                        break;
                    }
                }
                ran
            }
            Value::List(items) => {
                let boxed = items.element() == Element::Any;
                for (index, item) in items.items().iter().enumerate() {
                    let index = Held::new(Value::int(i64::try_from(index).unwrap_or(i64::MAX)));
                    if self.iteration(source, list, (*assigns, declared), index, Held { value: item.clone(), boxed })?
                        == Flow::Break
                    {
                        break;
                    }
                }
                !items.is_empty()
            }
            Value::Map(map) => {
                let boxed = map.element() == Element::Any;
                self.machine.meter().charge(map.len().saturating_mul(size_of::<(Rc<str>, Value)>()))?;
                let entries = map.entries();
                let any = !entries.is_empty();
                for (key, item) in entries {
                    let key = Held::new(Value::String(key.into()));
                    if self.iteration(source, list, (*assigns, declared), key, Held { value: item, boxed })?
                        == Flow::Break
                    {
                        break;
                    }
                }
                any
            }
            Value::Nil => false,
            other => {
                let shown = sprint(self.machine.meter(), std::slice::from_ref(other))?;
                return self.fail(format!("range can't iterate over {shown}"));
            }
        };
        match otherwise {
            Some(otherwise) if !flow => self.walk(source, dot, otherwise),
            _ => Ok(Flow::Next),
        }
    }

    fn iteration(
        &mut self,
        source: &Source,
        list: Id,
        (assigns, declared): (bool, &[Rc<str>]),
        index: Held,
        item: Held,
    ) -> Result<Flow> {
        let mark = self.frame.variables.len();
        let values = if declared.len() > 1 { [Some(index), Some(item.clone())] } else { [Some(item.clone()), None] };
        for (position, (name, value)) in declared.iter().zip(values.into_iter().flatten()).enumerate() {
            if assigns {
                self.assign(name, value)?;
            } else if let Some((_, variable)) = self.frame.variables.get_mut(mark - declared.len() + position) {
                *variable = value;
            }
        }
        let flow = self.walk(source, &item, list)?;
        self.frame.variables.truncate(mark);
        Ok(flow)
    }

    fn assign(&mut self, name: &str, value: Held) -> Result<()> {
        match self.frame.variables.iter_mut().rev().find(|(variable, _)| **variable == *name) {
            Some((_, variable)) => {
                *variable = value;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    fn template(&mut self, source: &Source, dot: &Held, name: &str, pipe: Option<Id>) -> Result<()> {
        let Some(template) = self.machine.template(name) else {
            return self.fail(format!("template {} not defined", quote(name.as_bytes())));
        };
        let dot = match pipe {
            Some(pipe) => self.pipeline(source, dot, pipe)?,
            None => Held::default(),
        };
        let source = Rc::clone(&template.source);
        let root = template.root;
        let outer = std::mem::replace(&mut self.frame, Frame::new(template, dot.clone()));
        self.walk(&source, &dot, root)?;
        self.frame = outer;
        Ok(())
    }

    fn pipeline(&mut self, source: &Source, dot: &Held, id: Id) -> Result<Held> {
        self.frame.at = id;
        let NodeKind::Pipe { assigns, declared, commands } = &source.node(id).kind else { return Ok(Held::default()) };
        self.machine.meter().enter()?;
        let mut value: Option<Held> = None;
        for command in commands {
            value = Some(self.command(source, dot, *command, value)?.unboxed());
        }
        self.machine.meter().leave();
        let value = value.unwrap_or_default();
        for name in declared {
            if *assigns {
                self.assign(name, value.clone())?;
            } else {
                self.frame.variables.push((Rc::clone(name), value.clone()));
            }
        }
        Ok(value)
    }

    fn command(&mut self, source: &Source, dot: &Held, id: Id, last: Option<Held>) -> Result<Held> {
        let NodeKind::Command(arguments) = &source.node(id).kind else { return Ok(Held::default()) };
        let Some(first) = arguments.first().copied() else { return Ok(Held::default()) };
        match &source.node(first).kind {
            NodeKind::Identifier { name, callee } => {
                self.frame.at = first;
                return self.call(source, dot, (*callee, name, id), arguments.get(1..).unwrap_or_default(), last);
            }
            NodeKind::Field(_) | NodeKind::Variable(_) | NodeKind::Chain { .. } => {
                return self.access(source, dot, first, arguments, last);
            }
            NodeKind::Pipe { .. } => {
                self.not_a_function(source, arguments, last.as_ref())?;
                return self.pipeline(source, dot, first);
            }
            _ => {}
        }
        self.frame.at = first;
        self.not_a_function(source, arguments, last.as_ref())?;
        match &source.node(first).kind {
            NodeKind::Dot => Ok(dot.clone()),
            NodeKind::Nil => self.fail("nil is not a command"),
            _ => self.constant(source, first),
        }
    }

    fn not_a_function(&self, source: &Source, arguments: &[Id], last: Option<&Held>) -> Result<()> {
        match arguments {
            [first, rest @ ..] if !rest.is_empty() || last.is_some() => {
                self.fail(format!("can't give argument to non-function {}", source.print(*first)))
            }
            _ => Ok(()),
        }
    }

    /// A constant where no type is asked for.
    fn constant(&mut self, source: &Source, id: Id) -> Result<Held> {
        self.frame.at = id;
        Ok(Held::new(match &source.node(id).kind {
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::String { value, .. } => Value::String(value.clone()),
            NodeKind::Number { text, number } => match (number.is_float, number.float, number.int) {
                (true, Some(float), _) => Value::Float(float),
                (_, _, Some(int)) => Value::int(int),
                _ => return self.fail(format!("{text} overflows int")),
            },
            _ => return self.fail(format!("can't evaluate command {}", quote(source.print(id).as_bytes()))),
        }))
    }

    /// A field, a variable or a chain, with the arguments of a method (the first of which is the node itself).
    fn access(&mut self, source: &Source, dot: &Held, id: Id, arguments: &[Id], last: Option<Held>) -> Result<Held> {
        self.frame.at = id;
        let (mut receiver, names) = match &source.node(id).kind {
            NodeKind::Field(names) => (dot.clone(), names.as_slice()),
            NodeKind::Variable(names) => {
                let (name, fields) =
                    names.split_first().map_or(("", [].as_slice()), |(name, fields)| (&**name, fields));
                let Some((_, value)) = self.frame.variables.iter().rev().find(|(variable, _)| **variable == *name)
                else {
                    return self.fail(format!("undefined variable: {name}"));
                };
                let value = value.clone();
                if fields.is_empty() {
                    self.not_a_function(source, arguments, last.as_ref())?;
                    return Ok(value);
                }
                (value, fields)
            }
            NodeKind::Chain { node, fields } => {
                if matches!(source.node(*node).kind, NodeKind::Nil) {
                    return self.fail(format!("indirection through explicit nil in {}", source.print(id)));
                }
                (self.argument_as_it_is(source, dot, *node)?, fields.as_slice())
            }
            _ => return Ok(Held::default()),
        };
        let Some((method, fields)) = names.split_last() else { return Ok(receiver) };
        for name in fields {
            receiver = self.field(source, dot, name, (id, &[], None), receiver)?;
        }
        self.field(source, dot, method, (id, arguments.get(1..).unwrap_or_default(), last), receiver)
    }

    fn field(
        &mut self,
        source: &Source,
        dot: &Held,
        name: &str,
        (id, arguments, last): (Id, &[Id], Option<Held>),
        receiver: Held,
    ) -> Result<Held> {
        if receiver.is_invalid() {
            return Ok(Held::default());
        }
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &receiver.value {
            Value::Nil => self.fail(format!("nil pointer evaluating interface {{}}.{name}")),
            Value::Object(object) if object.has_method(name) => {
                self.method(source, dot, (object, name, id), arguments, last)
            }
            Value::Object(object) => {
                if let Some(value) = object.field(name) {
                    if has_arguments {
                        return self.fail(format!("{name} has arguments but cannot be invoked as function"));
                    }
                    return Ok(Held::new(value));
                }
                if object.kind() == "map" { Ok(Held::default()) } else { self.no_field(name, &receiver) }
            }
            Value::Map(map) => {
                if let Some(method) = map.name().and_then(|of| self.machine.functions.method(of, name)) {
                    return self.map_method(source, dot, (map, method, name, id), arguments, last);
                }
                if has_arguments {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                Ok(Held {
                    value: map.get(name).unwrap_or_else(|| map.element().zero()),
                    boxed: map.element() == Element::Any,
                })
            }
            _ => self.no_field(name, &receiver),
        }
    }

    fn no_field(&self, name: &str, receiver: &Held) -> Result<Held> {
        self.fail(format!("can't evaluate field {name} in type {}", receiver.type_name()))
    }
}
