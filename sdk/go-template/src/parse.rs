//! The parser. As in Go, functions and variables must exist, and an error has the line of the token that was read last.

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    Error, Str,
    builtin::Callee,
    lex::{Keyword, Kind, Lexer, Token},
    literal::{character, number, quote, unquote},
    node::{Id, Node, NodeKind, Source, Template},
};

/// How deep blocks and parentheses may be within each other. Each level takes stack.
const DEPTH: usize = 300;

/// The templates of a text.
pub(crate) struct Parsed {
    /// The text itself.
    pub(crate) main: Template,
    /// All templates by their names, the text itself among them unless it is empty and one of its definitions has its name.
    pub(crate) templates: Vec<Template>,
}

/// Parses a text. `known` finds functions.
pub(crate) fn parse(
    name: &str,
    text: &str,
    known: &dyn Fn(&str) -> Option<Callee>,
) -> std::result::Result<Parsed, Box<Error>> {
    let error = |line, message: String| Box::new(Error::Parse { name: name.to_owned(), line, message });
    if u32::try_from(text.len()).is_err() {
        return Err(error(1, "the template is larger than 4 GiB".into()));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        known,
        name,
        pending: Vec::new(),
        latest: 0,
        action_line: 0,
        nodes: Vec::new(),
        variables: vec!["$".into()],
        range_depth: 0,
        depth: 0,
        trees: BTreeMap::new(),
    };
    let root = parser.main().map_err(|message| error(parser.latest, message))?;
    let Parser { nodes, trees, .. } = parser;
    let source = Rc::new(Source { name: name.into(), text: text.into(), nodes });
    let template = |name: &Rc<str>, root| Template { name: Rc::clone(name), source: Rc::clone(&source), root };
    Ok(Parsed {
        main: template(&source.name, root),
        templates: trees.iter().map(|(name, root)| template(name, *root)).collect(),
    })
}

struct Parser<'p> {
    lexer: Lexer<'p>,
    known: &'p dyn Fn(&str) -> Option<Callee>,
    name: &'p str,
    /// Tokens that were put back, the next one last.
    pending: Vec<Token>,
    /// The line of the token that was read last.
    latest: usize,
    /// The line where the current action began, or 0.
    action_line: usize,
    nodes: Vec<Node>,
    variables: Vec<Rc<str>>,
    range_depth: usize,
    depth: usize,
    trees: BTreeMap<Rc<str>, Id>,
}

/// How a list of nodes ended.
enum Ending {
    End,
    /// With the position of the `else`, for the list that follows.
    Else(usize),
}

/// A part of a list.
enum Item {
    Node(Id),
    Ending(Ending),
}

type Result<T> = std::result::Result<T, String>;

#[derive(Clone, Copy, PartialEq)]
enum Control {
    If,
    With,
    Range,
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        self.pending.pop().unwrap_or_else(|| {
            let token = self.lexer.next();
            self.latest = token.line;
            token
        })
    }

    fn back(&mut self, token: Token) {
        self.pending.push(token);
    }

    fn next_word(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek(&mut self) -> (Kind, usize) {
        let token = self.next();
        let seen = (token.kind, token.position);
        self.back(token);
        seen
    }

    /// The next token that is not a space; spaces before it are dropped.
    fn peek_word(&mut self) -> (Kind, usize) {
        let token = self.next_word();
        let seen = (token.kind, token.position);
        self.back(token);
        seen
    }

    fn add(&mut self, position: usize, kind: NodeKind) -> Id {
        // A text is smaller than 4 GiB, and has fewer nodes than bytes.
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { position: u32::try_from(position).unwrap_or(u32::MAX), kind });
        id
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Result<T> {
        if token.kind != Kind::Error {
            return Err(format!("unexpected {token} in {context}"));
        }
        let started = format!("started at {}:{}", self.name, self.action_line);
        Err(if self.action_line == 0 || self.action_line == token.line {
            token.value.clone()
        } else if token.value.ends_with(" action") {
            format!("{} {started}", token.value)
        } else {
            format!("{} in action {started}", token.value)
        })
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH { Err("max expression depth exceeded".into()) } else { Ok(()) }
    }

    /// Adds a tree, unless it is empty and another one of its name is not.
    fn define(&mut self, name: &Rc<str>, root: Id) -> Result<()> {
        match self.trees.get(name) {
            Some(old) if !self.is_empty(*old) => {
                if self.is_empty(root) {
                    Ok(())
                } else {
                    Err(format!("template: multiple definition of template {}", quote(name.as_bytes())))
                }
            }
            _ => {
                self.trees.insert(Rc::clone(name), root);
                Ok(())
            }
        }
    }

    fn is_empty(&self, list: Id) -> bool {
        match self.nodes.get(list as usize).map(|node| &node.kind) {
            Some(NodeKind::List(nodes)) => {
                nodes.iter().all(|node| match self.nodes.get(*node as usize).map(|node| &node.kind) {
                    Some(NodeKind::Text { start, end }) => {
                        self.lexer.slice(*start as usize, *end as usize).trim().is_empty()
                    }
                    _ => false,
                })
            }
            _ => true,
        }
    }

    fn main(&mut self) -> Result<Id> {
        let (_, position) = self.peek();
        let mut nodes = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                Kind::End => break,
                Kind::LeftDelimiter => {
                    let word = self.next_word();
                    if word.kind == Kind::Keyword(Keyword::Define) {
                        self.definition()?;
                        continue;
                    }
                    self.back(word);
                    self.back(token);
                }
                _ => self.back(token),
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending) => return Err(format!("unexpected {}", ending.name())),
            }
        }
        let root = self.add(position, NodeKind::List(nodes));
        self.define(&self.name.into(), root)?;
        Ok(root)
    }

    fn definition(&mut self) -> Result<()> {
        let context = "define clause";
        let token = self.next_word();
        let name = self.template_name(&token, context)?;
        let token = self.next_word();
        if token.kind != Kind::RightDelimiter {
            return self.unexpected(&token, context);
        }
        let root = self.separate(context)?;
        self.define(&name, root)
    }

    /// A list with variables of its own, up to its `end`.
    fn separate(&mut self, context: &str) -> Result<Id> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".into()]);
        let (range_depth, action_line) = (std::mem::take(&mut self.range_depth), std::mem::take(&mut self.action_line));
        let (root, ending) = self.list()?;
        (self.variables, self.range_depth, self.action_line) = (variables, range_depth, action_line);
        match ending {
            Ending::End => Ok(root),
            Ending::Else(_) => Err(format!("unexpected {} in {context}", ending.name())),
        }
    }

    fn list(&mut self) -> Result<(Id, Ending)> {
        self.enter()?;
        let (_, position) = self.peek_word();
        let mut nodes = Vec::new();
        while self.peek_word().0 != Kind::End {
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending) => {
                    self.depth -= 1;
                    return Ok((self.add(position, NodeKind::List(nodes)), ending));
                }
            }
        }
        Err("unexpected EOF".into())
    }

    fn text_or_action(&mut self) -> Result<Item> {
        let token = self.next_word();
        match token.kind {
            Kind::Text => {
                let end = token.position + token.value.len();
                let (start, end) =
                    (u32::try_from(token.position).unwrap_or_default(), u32::try_from(end).unwrap_or_default());
                Ok(Item::Node(self.add(token.position, NodeKind::Text { start, end })))
            }
            Kind::LeftDelimiter => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Result<Item> {
        let token = self.next_word();
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.jump(&token, "break", NodeKind::Break)?,
            Kind::Keyword(Keyword::Continue) => self.jump(&token, "continue", NodeKind::Continue)?,
            Kind::Keyword(Keyword::Else) => {
                let (kind, position) = self.peek_word();
                if !matches!(kind, Kind::Keyword(Keyword::If | Keyword::With)) {
                    let token = self.next_word();
                    if token.kind != Kind::RightDelimiter {
                        return self.unexpected(&token, "else");
                    }
                }
                return Ok(Item::Ending(Ending::Else(position)));
            }
            Kind::Keyword(Keyword::End) => {
                let token = self.next_word();
                if token.kind != Kind::RightDelimiter {
                    return self.unexpected(&token, "end");
                }
                return Ok(Item::Ending(Ending::End));
            }
            Kind::Keyword(Keyword::If) => self.control(Control::If)?,
            Kind::Keyword(Keyword::Range) => self.control(Control::Range)?,
            Kind::Keyword(Keyword::Template) => self.template()?,
            Kind::Keyword(Keyword::With) => self.control(Control::With)?,
            _ => {
                let position = token.position;
                self.back(token);
                let pipe = self.pipeline("command", Kind::RightDelimiter)?;
                self.add(position, NodeKind::Action(pipe))
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, word: &Token, name: &str, kind: NodeKind) -> Result<Id> {
        let token = self.next_word();
        if token.kind != Kind::RightDelimiter {
            return self.unexpected(&token, &format!("{{{{{name}}}}}"));
        }
        if self.range_depth == 0 {
            return Err(format!("{{{{{name}}}}} outside {{{{range}}}}"));
        }
        Ok(self.add(word.position, kind))
    }

    fn control(&mut self, control: Control) -> Result<Id> {
        let variables = self.variables.len();
        let context = match control {
            Control::If => "if",
            Control::With => "with",
            Control::Range => "range",
        };
        let pipe = self.pipeline(context, Kind::RightDelimiter)?;
        let ranges = usize::from(control == Control::Range);
        self.range_depth += ranges;
        let (list, ending) = self.list()?;
        self.range_depth -= ranges;
        let otherwise = match ending {
            Ending::End => None,
            Ending::Else(position) => {
                let chained = matches!(
                    (control, self.peek().0),
                    (Control::If, Kind::Keyword(Keyword::If)) | (Control::With, Kind::Keyword(Keyword::With))
                );
                if chained {
                    self.next();
                    self.enter()?;
                    let node = self.control(control)?;
                    self.depth -= 1;
                    Some(self.add(position, NodeKind::List(vec![node])))
                } else {
                    let (list, ending) = self.list()?;
                    if let Ending::Else(_) = ending {
                        return Err(format!("expected end; found {}", ending.name()));
                    }
                    Some(list)
                }
            }
        };
        self.variables.truncate(variables);
        let position = self.nodes.get(pipe as usize).map_or(0, |node| node.position as usize);
        let kind = match control {
            Control::If => NodeKind::If { pipe, list, otherwise },
            Control::With => NodeKind::With { pipe, list, otherwise },
            Control::Range => NodeKind::Range { pipe, list, otherwise },
        };
        Ok(self.add(position, kind))
    }

    fn block(&mut self) -> Result<Id> {
        let context = "block clause";
        let token = self.next_word();
        let name = self.template_name(&token, context)?;
        let pipe = self.pipeline(context, Kind::RightDelimiter)?;
        let root = self.separate(context)?;
        self.define(&name, root)?;
        Ok(self.add(token.position, NodeKind::Template { name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Result<Id> {
        let context = "template clause";
        let token = self.next_word();
        let name = self.template_name(&token, context)?;
        let after = self.next_word();
        let pipe = if after.kind == Kind::RightDelimiter {
            None
        } else {
            self.back(after);
            Some(self.pipeline(context, Kind::RightDelimiter)?)
        };
        Ok(self.add(token.position, NodeKind::Template { name, pipe }))
    }

    fn template_name(&self, token: &Token, context: &str) -> Result<Rc<str>> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        Ok(Str::from(unquote(&token.value).ok_or("invalid syntax")?).shared())
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Result<Id> {
        let (_, position) = self.peek_word();
        let mut assigns = false;
        let mut declared = Vec::new();
        while self.peek_word().0 == Kind::Variable {
            let variable = self.next();
            // A variable is an argument unless an operator follows; a space in between ends its fields.
            let adjacent = self.next();
            let space = (adjacent.kind == Kind::Space).then(|| adjacent.clone());
            self.back(adjacent);
            let operator = self.next_word();
            match operator.kind {
                Kind::Assign | Kind::Declare => {
                    assigns = operator.kind == Kind::Assign;
                    let name: Rc<str> = variable.value.into();
                    declared.push(Rc::clone(&name));
                    self.variables.push(name);
                    break;
                }
                Kind::Char if operator.value == "," => {
                    let name: Rc<str> = variable.value.into();
                    declared.push(Rc::clone(&name));
                    self.variables.push(name);
                    if context != "range" || declared.len() > 1 {
                        return Err(format!("too many declarations in {context}"));
                    }
                    if !matches!(self.peek_word().0, Kind::Variable | Kind::RightDelimiter | Kind::RightParenthesis) {
                        return Err("range can only initialize variables".into());
                    }
                }
                _ => {
                    self.back(operator);
                    if let Some(space) = space {
                        self.back(space);
                    }
                    self.back(variable);
                    break;
                }
            }
        }
        let mut commands = Vec::new();
        loop {
            let token = self.next_word();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Keyword(Keyword::Dot | Keyword::Nil)
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParenthesis => {
                    self.back(token);
                    commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if commands.is_empty() {
            return Err(format!("missing value for {context}"));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            let first = match self.nodes.get(*command as usize).map(|node| &node.kind) {
                Some(NodeKind::Command(arguments)) => {
                    arguments.first().and_then(|first| self.nodes.get(*first as usize))
                }
                _ => None,
            };
            if let Some(
                NodeKind::Bool(_) | NodeKind::Dot | NodeKind::Nil | NodeKind::Number { .. } | NodeKind::String { .. },
            ) = first.map(|node| &node.kind)
            {
                return Err(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(self.add(position, NodeKind::Pipe { assigns, declared, commands }))
    }

    fn command(&mut self) -> Result<Id> {
        let (_, position) = self.peek_word();
        let mut arguments = Vec::new();
        loop {
            if let Some(operand) = self.operand()? {
                arguments.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelimiter | Kind::RightParenthesis => {
                    self.back(token);
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(&token, "operand"),
            }
        }
        if arguments.is_empty() {
            return Err("empty command".into());
        }
        Ok(self.add(position, NodeKind::Command(arguments)))
    }

    /// A term with the fields behind it.
    fn operand(&mut self) -> Result<Option<Id>> {
        let Some(term) = self.term()? else { return Ok(None) };
        let (kind, position) = self.peek();
        if kind != Kind::Field {
            return Ok(Some(term));
        }
        let mut fields: Vec<Rc<str>> = Vec::new();
        while self.peek().0 == Kind::Field {
            fields.push(self.next().value.get(1..).unwrap_or_default().into());
        }
        let Some(node) = self.nodes.get_mut(term as usize) else { return Ok(None) };
        match &mut node.kind {
            NodeKind::Field(names) | NodeKind::Variable(names) => {
                names.append(&mut fields);
                node.position = u32::try_from(position).unwrap_or(u32::MAX);
                Ok(Some(term))
            }
            NodeKind::Bool(value) => Err(format!("unexpected . after term \"{value}\"")),
            NodeKind::String { quoted: text, .. } | NodeKind::Number { text, .. } => {
                Err(format!("unexpected . after term {}", quote(text.as_bytes())))
            }
            NodeKind::Nil => Err("unexpected . after term \"nil\"".into()),
            NodeKind::Dot => Err("unexpected . after term \".\"".into()),
            _ => Ok(Some(self.add(position, NodeKind::Chain { node: term, fields }))),
        }
    }

    fn term(&mut self) -> Result<Option<Id>> {
        let token = self.next_word();
        let kind = match token.kind {
            Kind::Identifier => {
                let Some(callee) = (self.known)(&token.value) else {
                    return Err(format!("function {} not defined", quote(token.value.as_bytes())));
                };
                NodeKind::Identifier { name: token.value.into(), callee }
            }
            Kind::Keyword(Keyword::Dot) => NodeKind::Dot,
            Kind::Keyword(Keyword::Nil) => NodeKind::Nil,
            Kind::Variable => {
                if !self.variables.iter().any(|name| **name == *token.value) {
                    return Err(format!("undefined variable {}", quote(token.value.as_bytes())));
                }
                NodeKind::Variable(vec![token.value.into()])
            }
            Kind::Field => NodeKind::Field(vec![token.value.get(1..).unwrap_or_default().into()]),
            Kind::Bool => NodeKind::Bool(token.value == "true"),
            Kind::CharConstant => NodeKind::Number { number: character(&token.value)?, text: token.value.into() },
            Kind::Number => NodeKind::Number { number: number(&token.value)?, text: token.value.into() },
            Kind::LeftParenthesis => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParenthesis)?;
                self.depth -= 1;
                return Ok(Some(pipe));
            }
            Kind::String | Kind::RawString => {
                let value = unquote(&token.value).ok_or("invalid syntax")?;
                NodeKind::String { quoted: token.value.into(), value: value.into() }
            }
            _ => {
                self.back(token);
                return Ok(None);
            }
        };
        Ok(Some(self.add(token.position, kind)))
    }
}

impl Ending {
    fn name(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else(_) => "{{else}}",
        }
    }
}
