//! Kubernetes-faithful YAML and JSON.

use chandler_yaml::{Limits, Node, ParseError, flatten_lists};

use crate::{Content, Diagnostic};

/// The documents of a file of the bundle, `List` kinds flattened.
///
/// # Errors
/// A finding with file, line and column: `UnreadableFile` or `InvalidYaml`.
pub fn read_documents(content: &dyn Content, path: &str) -> Result<Vec<Node>, Diagnostic> {
    let bytes = content
        .read(path)
        .map_err(|error| Diagnostic::error("UnreadableFile", format!("cannot be read: {error}")).at(path))?;
    parse_documents(&bytes, path)
}

/// The same for bytes that were read already.
///
/// # Errors
/// A finding with file, line and column: `InvalidYaml`.
pub fn parse_documents(bytes: &[u8], path: &str) -> Result<Vec<Node>, Diagnostic> {
    let documents = chandler_yaml::parse(bytes, &Limits::default()).map_err(|error| invalid(&error, path))?;
    Ok(flatten_lists(documents))
}

fn invalid(error: &ParseError, path: &str) -> Diagnostic {
    Diagnostic::error("InvalidYaml", error.message.clone()).at(path).position(error.line, error.column)
}
