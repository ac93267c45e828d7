//! Where the locations of findings are in their files.

use chandler_core::{Diagnostic, pointer::unescape};
use chandler_yaml::Document;

use super::diagnostics::Sources;

/// A line and a column, both counted from 1.
pub(super) type Position = (u32, Option<u32>);

/// Finds the lines of JSON pointers. Findings that are in the order of their files have each file parsed once.
pub(super) struct Positions<'a> {
    sources: Sources<'a>,
    /// The file that was parsed last, if it is one document.
    parsed: Option<(String, Option<Document>)>,
}

impl<'a> Positions<'a> {
    /// None is parsed yet.
    pub(super) fn new(sources: &Sources<'a>) -> Self {
        Self { sources: *sources, parsed: None }
    }

    /// The line of a finding: the line that it names, else the line of its pointer.
    pub(super) fn of(&mut self, diagnostic: &Diagnostic) -> Option<Position> {
        let location = diagnostic.location.as_ref()?;
        match (location.line, location.pointer.as_deref()) {
            (Some(line), _) => Some((line, location.column)),
            (None, pointer) => Some(position(self.document(&location.path)?, pointer?)),
        }
    }

    fn document(&mut self, path: &str) -> Option<&Document> {
        if self.parsed.as_ref().is_none_or(|(parsed, _)| parsed != path) {
            self.parsed = Some((path.to_owned(), parse(&self.sources, path)));
        }
        self.parsed.as_ref()?.1.as_ref()
    }
}

/// A YAML or JSON file of one document. Files above the parser's size limit are not read.
fn parse(sources: &Sources<'_>, path: &str) -> Option<Document> {
    let limits = chandler_yaml::Limits::default();
    let mut text = Vec::new();
    loop {
        let more = sources.read(path, text.len() as u64, 1 << 20)?;
        if more.is_empty() {
            break;
        }
        text.extend_from_slice(&more);
        if text.len() > limits.bytes {
            return None;
        }
    }
    let mut documents = chandler_yaml::parse(&text, &limits).ok()?;
    documents.pop().filter(|_| documents.is_empty())
}

/// The line and column of a JSON pointer: the position of the key, else of the nearest parent that exists.
fn position(document: &Document, pointer: &str) -> Position {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or((pointer, ""));
    let name = unescape(name);
    let key = document.root.at(parent).and_then(|parent| parent.as_mapping()?.iter().find(|entry| *entry.key == *name));
    let nearest = document.root.nearest(pointer);
    let (line, column) = key.map_or((nearest.line, nearest.column), |entry| (entry.line, entry.column));
    (line, Some(column))
}
