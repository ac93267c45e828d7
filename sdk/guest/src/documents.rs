//! YAML and JSON, parsed as in Kubernetes.

#![cfg_attr(
    not(target_arch = "wasm32"),
    expect(
        clippy::result_large_err,
        reason = "a finding is made once for a bad file; boxes would burden every author"
    )
)]

use chandler_yaml::{Limits, Node, ParseError, flatten_lists};

use crate::{Content, Diagnostic};

/// The content of a file of the bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// Its documents, `List` kinds flattened.
    pub nodes: Vec<Node>,
    /// Valid YAML that is probably a mistake, such as a duplicate key; each with the code `SuspiciousYaml`.
    pub warnings: Vec<Diagnostic>,
}

/// The documents of a file of the bundle, `List` kinds flattened.
///
/// # Errors
/// A finding with file, line and column: `UnreadableFile` or `InvalidYaml`.
pub fn read_documents(content: &dyn Content, path: &str) -> Result<Vec<Node>, Diagnostic> {
    read_documents_with_warnings(content, path).map(|documents| documents.nodes)
}

/// The documents of a file of the bundle, with warnings about suspicious YAML.
///
/// # Errors
/// A finding with file, line and column: `UnreadableFile` or `InvalidYaml`.
pub fn read_documents_with_warnings(content: &dyn Content, path: &str) -> Result<Documents, Diagnostic> {
    let unreadable = |error| Diagnostic::error("UnreadableFile", format!("cannot be read: {error}")).at(path);
    let bytes = content.read(path).map_err(unreadable)?;
    parse_documents_with_warnings(&bytes, path)
}

/// The documents in bytes that are already in memory.
///
/// # Errors
/// A finding with file, line and column: `InvalidYaml`.
pub fn parse_documents(bytes: &[u8], path: &str) -> Result<Vec<Node>, Diagnostic> {
    parse_documents_with_warnings(bytes, path).map(|documents| documents.nodes)
}

/// The documents in bytes that are already in memory, with warnings about suspicious YAML.
///
/// # Errors
/// A finding with file, line and column: `InvalidYaml`.
pub fn parse_documents_with_warnings(bytes: &[u8], path: &str) -> Result<Documents, Diagnostic> {
    let mut documents = chandler_yaml::parse(bytes, &Limits::default()).map_err(|error| invalid(error, path))?;
    let warnings = documents.iter_mut().flat_map(|document| std::mem::take(&mut document.warnings));
    let warnings = warnings.map(|warning| {
        Diagnostic::warning("SuspiciousYaml", warning.message).at(path).position(warning.line, warning.column)
    });
    let warnings = warnings.collect();
    Ok(Documents { nodes: flatten_lists(documents), warnings })
}

fn invalid(error: ParseError, path: &str) -> Diagnostic {
    Diagnostic::error("InvalidYaml", error.message).at(path).position(error.line, error.column)
}
