//! Reads the files of a catalog, one document at a time.

use chandler_core::{Content, ReadError, Severity, text::is_deceptive};
use chandler_yaml::{Kind, Mapping, Node};
use serde::{Deserialize, Serialize};

use crate::{
    Blob, Finding, Limits, Place, Problem, blob,
    fields::{Fields, Findings},
    ignored::Ignored,
    model,
    split::{Chunk, SplitError, Splitter},
};

/// Files that one call lists.
const PAGE: usize = 1000;
/// More findings of one document are not kept.
const FINDINGS: usize = 100;

/// The position of a document in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The place of its first byte.
    pub place: Place,
    /// The position of its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

/// A document of a catalog: what all schemas have in common, and the fields of the known ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// The schema. Never empty.
    pub schema: String,
    /// The package; empty if the document has none, as in documents of schema `olm.package`.
    pub package: String,
    /// The name; empty if the document has none.
    pub name: String,
    /// Its position.
    pub span: Span,
    /// The fields.
    pub blob: Blob,
    /// What is wrong with the document itself.
    pub findings: Vec<Finding>,
}

impl Meta {
    /// The package that the document belongs to: for a package, itself. Empty for what concerns the whole catalog.
    pub fn owner(&self) -> &str {
        if self.schema == model::PACKAGE { &self.name } else { &self.package }
    }
}

/// What the reader finds in the files, in the order of their paths.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A document.
    Meta(Box<Meta>),
    /// A document or a file that cannot be part of a catalog.
    Finding(Finding),
}

/// Why a catalog cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file cannot be read.
    #[error(transparent)]
    Content(#[from] ReadError),
    /// There are too many files.
    #[error("the catalog has more than {0} files")]
    Files(usize),
    /// The paths of the files are too long together.
    #[error("the paths of its files have more than {0} bytes together")]
    Paths(usize),
    /// There are too many documents.
    #[error("the catalog has more than {0} documents")]
    Metas(u64),
}

/// Reads all documents of a catalog and passes them to `visit`. One is in memory at a time.
///
/// Files that `.indexignore` files list are skipped; all others must be YAML or JSON.
pub fn read<E: From<CatalogError>>(
    content: &dyn Content,
    limits: &Limits,
    mut visit: impl FnMut(Item) -> Result<(), E>,
) -> Result<(), E> {
    let files = files(content, limits)?;
    let mut findings = Vec::new();
    let ignored = Ignored::read(content, &files, limits, &mut findings).map_err(CatalogError::Content)?;
    findings.into_iter().map(Item::Finding).try_for_each(&mut visit)?;
    let mut metas = 0;
    for (path, _) in files.iter().filter(|(path, _)| !ignored.contains(path)) {
        let mut splitter = Splitter::new(content, path, limits.document_bytes);
        loop {
            match splitter.next() {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    let Some(item) = document(path, &chunk, limits) else { continue };
                    metas += 1;
                    if metas > limits.metas {
                        return Err(CatalogError::Metas(limits.metas).into());
                    }
                    visit(item)?;
                }
                Err(SplitError::Read(error)) => return Err(CatalogError::Content(error).into()),
                Err(SplitError::TooLarge { line }) => {
                    let problem = Problem::TooLarge { limit: limits.document_bytes as u64 };
                    visit(Item::Finding(Finding::new(problem, Place::new(path, line))))?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The paths and sizes of all files.
fn files(content: &dyn Content, limits: &Limits) -> Result<Vec<(String, u64)>, CatalogError> {
    let mut files: Vec<(String, u64)> = Vec::new();
    let mut bytes = 0;
    loop {
        let page = content.entries("", files.last().map(|(path, _)| path.as_str()), PAGE);
        if page.is_empty() {
            return Ok(files);
        }
        bytes += page.iter().map(|entry| entry.path.len()).sum::<usize>();
        files.extend(page.into_iter().map(|entry| (entry.path, entry.size)));
        if files.len() > limits.files {
            return Err(CatalogError::Files(limits.files));
        }
        if bytes > limits.path_bytes {
            return Err(CatalogError::Paths(limits.path_bytes));
        }
    }
}

/// Parses a document. None if it is empty.
fn document(file: &str, chunk: &Chunk<'_>, limits: &Limits) -> Option<Item> {
    let refuse = |line: u32, problem| {
        let line = chunk.line.saturating_add(line.max(1) - 1);
        Some(Item::Finding(Finding::new(problem, Place::new(file, line))))
    };
    let mut documents = match chandler_yaml::parse(chunk.bytes, &limits.yaml()) {
        Ok(documents) => documents.into_iter(),
        Err(error) => {
            let message = format!("{} (column {})", error.message, error.column);
            return refuse(error.line, Problem::Unreadable { message });
        }
    };
    let document = documents.next()?;
    if let Some(other) = documents.next() {
        return refuse(other.root.line, Problem::SeveralDocuments);
    }
    let Node { kind: Kind::Mapping(mapping), .. } = &document.root else {
        return refuse(document.root.line, Problem::NotAnObject);
    };
    let mut findings = Findings::new(file, chunk.line);
    for warning in document.warnings {
        findings.report(warning.line, Problem::Suspicious { message: warning.message });
    }
    let names = ["schema", "package", "name"].map(|field| name(mapping, field, limits, &mut findings));
    let [Some(schema), Some(package), Some(name)] = names else {
        // Without its key a document cannot be found, so that it must not be missing silently.
        let is_error = |finding: &Finding| finding.problem.severity() == Severity::Error;
        return findings.found.into_iter().find(is_error).map(Item::Finding);
    };
    if schema.is_empty() {
        return refuse(document.root.line, Problem::SchemaMissing);
    }
    if schema == model::PACKAGE && !package.is_empty() && package != name {
        let message = format!("it is {package:?}, but the package defines {name:?}; remove the field");
        return refuse(document.root.line, Problem::FieldInvalid { field: "package".to_owned(), message });
    }
    let blob = blob::read(&schema, mapping, &mut findings);
    findings.found.truncate(FINDINGS);
    let place = Place::new(file, chunk.line);
    let span = Span { place, offset: chunk.offset, length: chunk.bytes.len() as u64 };
    Some(Item::Meta(Box::new(Meta { schema, package, name, span, blob, findings: findings.found })))
}

/// A text that documents are found by. None, with a finding, if it cannot be one.
fn name(mapping: &Mapping, field: &str, limits: &Limits, findings: &mut Findings<'_>) -> Option<String> {
    let before = findings.found.len();
    let fields = Fields::new(mapping);
    let text = fields.text(field, findings);
    let line = fields.get(field).map_or(1, |node| node.line);
    let problem = if text.len() > limits.name_bytes {
        Some(format!("longer than {} bytes", limits.name_bytes))
    } else if text.chars().any(char::is_control) {
        Some("control characters are not allowed".to_owned())
    } else {
        text.chars().find(|c| is_deceptive(*c)).map(|c| {
            let code = u32::from(c);
            format!("U+{code:04X} is not allowed: it is invisible, or changes the order of the text around it")
        })
    };
    if let Some(message) = problem {
        findings.report(line, Problem::FieldInvalid { field: field.to_owned(), message });
    }
    (findings.found.len() == before).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
