//! The syntax tree.

use std::{fmt, rc::Rc};

use crate::{
    builtin::Callee,
    literal::{Number, quote},
};

/// The place of a node in its [`Source`].
pub(crate) type Id = u32;

/// A parsed text, with the nodes of all templates in it.
pub(crate) struct Source {
    /// The name under which the text was parsed.
    pub(crate) name: Rc<str>,
    pub(crate) text: Rc<str>,
    pub(crate) nodes: Vec<Node>,
}

/// A template of a source.
#[derive(Clone)]
pub(crate) struct Template {
    pub(crate) name: Rc<str>,
    pub(crate) source: Rc<Source>,
    /// The list of its nodes.
    pub(crate) root: Id,
}

/// A node with its position, in bytes.
pub(crate) struct Node {
    pub(crate) position: u32,
    pub(crate) kind: NodeKind,
}

/// What a node is.
pub(crate) enum NodeKind {
    Text { start: u32, end: u32 },
    List(Vec<Id>),
    Action(Id),
    If { pipe: Id, list: Id, otherwise: Option<Id> },
    With { pipe: Id, list: Id, otherwise: Option<Id> },
    Range { pipe: Id, list: Id, otherwise: Option<Id> },
    Template { name: Rc<str>, pipe: Option<Id> },
    Break,
    Continue,
    Pipe { assigns: bool, declared: Vec<Rc<str>>, commands: Vec<Id> },
    Command(Vec<Id>),
    Identifier { name: Rc<str>, callee: Callee },
    Dot,
    Nil,
    Bool(bool),
    Number { text: Rc<str>, number: Number },
    String { quoted: Rc<str>, value: crate::Str },
    Field(Vec<Rc<str>>),
    Variable(Vec<Rc<str>>),
    Chain { node: Id, fields: Vec<Rc<str>> },
}

/// Stands for a node that does not exist, which a parser never refers to.
const NOTHING: &Node = &Node { position: 0, kind: NodeKind::Nil };

impl Source {
    pub(crate) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(NOTHING)
    }

    /// The line (from 1) and column (in bytes, from 0) of a node.
    pub(crate) fn place(&self, id: Id) -> (usize, usize) {
        let before = self.text.as_bytes().get(..self.node(id).position as usize).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        (line, column)
    }

    /// A node as Go prints it, for error texts.
    pub(crate) fn print(&self, id: Id) -> String {
        Printed(self, id).to_string()
    }

    /// Whether a list has nothing but white space.
    pub(crate) fn is_empty(&self, id: Id) -> bool {
        match &self.node(id).kind {
            NodeKind::List(nodes) => nodes.iter().all(|node| self.is_empty(*node)),
            NodeKind::Text { start, end } => self.text(*start, *end).trim().is_empty(),
            _ => false,
        }
    }

    pub(crate) fn text(&self, start: u32, end: u32) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

struct Printed<'s>(&'s Source, Id);

impl Printed<'_> {
    fn branch(
        &self,
        formatter: &mut fmt::Formatter<'_>,
        word: &str,
        pipe: Id,
        list: Id,
        otherwise: Option<Id>,
    ) -> fmt::Result {
        let Self(source, _) = self;
        write!(formatter, "{{{{{word} {}}}}}{}", Self(source, pipe), Self(source, list))?;
        if let Some(otherwise) = otherwise {
            write!(formatter, "{{{{else}}}}{}", Self(source, otherwise))?;
        }
        formatter.write_str("{{end}}")
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(source, id) = self;
        let operand = |formatter: &mut fmt::Formatter<'_>, id: Id| match &source.node(id).kind {
            NodeKind::Pipe { .. } => write!(formatter, "({})", Self(source, id)),
            _ => Self(source, id).fmt(formatter),
        };
        match &source.node(*id).kind {
            NodeKind::Text { start, end } => formatter.write_str(source.text(*start, *end)),
            NodeKind::List(nodes) => nodes.iter().try_for_each(|node| Self(source, *node).fmt(formatter)),
            NodeKind::Action(pipe) => write!(formatter, "{{{{{}}}}}", Self(source, *pipe)),
            NodeKind::If { pipe, list, otherwise } => self.branch(formatter, "if", *pipe, *list, *otherwise),
            NodeKind::With { pipe, list, otherwise } => self.branch(formatter, "with", *pipe, *list, *otherwise),
            NodeKind::Range { pipe, list, otherwise } => self.branch(formatter, "range", *pipe, *list, *otherwise),
            NodeKind::Template { name, pipe } => {
                write!(formatter, "{{{{template {}", quote(name.as_bytes()))?;
                if let Some(pipe) = pipe {
                    write!(formatter, " {}", Self(source, *pipe))?;
                }
                formatter.write_str("}}")
            }
            NodeKind::Break => formatter.write_str("{{break}}"),
            NodeKind::Continue => formatter.write_str("{{continue}}"),
            NodeKind::Pipe { assigns, declared, commands } => {
                if !declared.is_empty() {
                    write!(formatter, "{} {} ", declared.join(", "), if *assigns { "=" } else { ":=" })?;
                }
                for (index, command) in commands.iter().enumerate() {
                    if index > 0 {
                        formatter.write_str(" | ")?;
                    }
                    Self(source, *command).fmt(formatter)?;
                }
                Ok(())
            }
            NodeKind::Command(arguments) => {
                for (index, argument) in arguments.iter().enumerate() {
                    if index > 0 {
                        formatter.write_str(" ")?;
                    }
                    operand(formatter, *argument)?;
                }
                Ok(())
            }
            NodeKind::Identifier { name, .. } => formatter.write_str(name),
            NodeKind::Dot => formatter.write_str("."),
            NodeKind::Nil => formatter.write_str("nil"),
            NodeKind::Bool(value) => write!(formatter, "{value}"),
            NodeKind::Number { text, .. } => formatter.write_str(text),
            NodeKind::String { quoted, .. } => formatter.write_str(quoted),
            NodeKind::Field(names) => names.iter().try_for_each(|name| write!(formatter, ".{name}")),
            NodeKind::Variable(names) => formatter.write_str(&names.join(".")),
            NodeKind::Chain { node, fields } => {
                operand(formatter, *node)?;
                fields.iter().try_for_each(|name| write!(formatter, ".{name}"))
            }
        }
    }
}
