//! Fields of a document, read as Go's JSON does: keys are case-insensitive, null is absent.

use chandler_yaml::{Kind, Mapping, Node};

use crate::{Finding, Place, Problem};

/// A document or a part of it, while its fields are read. Values of wrong types become findings.
pub(crate) struct Fields<'a> {
    mapping: &'a Mapping,
    /// The path to it, for findings: empty or with a dot at its end.
    path: String,
}

/// Where findings go, and how their lines are counted.
pub(crate) struct Findings<'a> {
    file: &'a str,
    /// The line of the document in the file.
    first: u32,
    /// The findings.
    pub(crate) found: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, first: u32) -> Self {
        Self { file, first, found: Vec::new() }
    }

    /// The line in the file of a line in the document.
    pub(crate) fn line(&self, line: u32) -> u32 {
        self.first.saturating_add(line.max(1) - 1)
    }

    pub(crate) fn report(&mut self, line: u32, problem: Problem) {
        let place = Place::new(self.file, self.line(line));
        self.found.push(Finding::new(problem, place));
    }

    fn wrong(&mut self, node: &Node, field: String, expected: &str) {
        let message = format!("{expected} is required, but this is {}", describe(node));
        self.report(node.line, Problem::FieldInvalid { field, message });
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn new(mapping: &'a Mapping) -> Self {
        Self { mapping, path: String::new() }
    }

    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        let mut found = None;
        for entry in self.mapping {
            // The exact name wins; of others the last one.
            if &*entry.key == name {
                return Some(&entry.value).filter(|value| !value.is_null());
            }
            if entry.key.eq_ignore_ascii_case(name) {
                found = Some(&entry.value);
            }
        }
        found.filter(|value| !value.is_null())
    }

    /// A text; empty if it is absent.
    pub(crate) fn text(&self, name: &str, findings: &mut Findings<'_>) -> &'a str {
        match self.get(name) {
            None => "",
            Some(Node { kind: Kind::String(text), .. }) => text,
            Some(node) => {
                findings.wrong(node, format!("{}{name}", self.path), "text");
                ""
            }
        }
    }

    /// The items of a sequence.
    pub(crate) fn items(&self, name: &str, findings: &mut Findings<'_>) -> &'a [Node] {
        match self.get(name) {
            None => &[],
            Some(Node { kind: Kind::Sequence(items), .. }) => items,
            Some(node) => {
                findings.wrong(node, format!("{}{name}", self.path), "a sequence");
                &[]
            }
        }
    }

    /// The texts of a sequence.
    pub(crate) fn texts(&self, name: &str, findings: &mut Findings<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.items(name, findings) {
            match &item.kind {
                Kind::String(text) => texts.push(String::from(&**text)),
                _ => findings.wrong(item, format!("{}{name}", self.path), "text"),
            }
        }
        texts
    }

    /// An object.
    pub(crate) fn object(&self, name: &str, findings: &mut Findings<'_>) -> Option<Fields<'a>> {
        let node = self.get(name)?;
        self.below(node, name, findings)
    }

    /// The objects of a sequence, with their lines in the document.
    pub(crate) fn objects(&self, name: &str, findings: &mut Findings<'_>) -> Vec<(u32, Fields<'a>)> {
        let items = self.items(name, findings).iter();
        items.filter_map(|node| Some((node.line, self.below(node, name, findings)?))).collect()
    }

    fn below(&self, node: &'a Node, name: &str, findings: &mut Findings<'_>) -> Option<Fields<'a>> {
        let path = format!("{}{name}", self.path);
        if let Kind::Mapping(mapping) = &node.kind {
            return Some(Fields { mapping, path: path + "." });
        }
        findings.wrong(node, path, "an object");
        None
    }
}

fn describe(node: &Node) -> &'static str {
    match node.kind {
        Kind::Null => "null",
        Kind::Bool(_) => "a boolean; write it in quotes",
        Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => "a number; write it in quotes",
        Kind::String(_) => "text",
        Kind::Sequence(_) => "a sequence",
        Kind::Mapping(_) => "an object",
    }
}
