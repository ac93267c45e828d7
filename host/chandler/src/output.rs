//! Kubernetes objects as text on standard output.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::CommandError;

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML, one document per object
    Yaml,
    /// JSON, one `List` that holds the objects
    Json,
}

/// These objects in this format, with a line feed at the end. Both forms can be given to `kubectl apply -f -`.
pub fn write(objects: &[Value], format: Format) -> Result<String, CommandError> {
    match format {
        Format::Yaml => yaml(objects),
        Format::Json => json(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
    }
}

/// Documents of YAML, each after a `---` line. Strings that a YAML 1.1 or 1.2 reader would take for something else are
/// quoted, and text of several lines is literal.
pub fn yaml(documents: &[Value]) -> Result<String, CommandError> {
    let options = serde_saphyr::ser_options! {
        // A folded scalar reads back the same, but shows line breaks that are not there.
        folded_wrap_chars: usize::MAX,
    };
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        let document = serde_saphyr::to_string_with_options(document, options.clone())
            .map_err(|error| CommandError::failed("failed to write YAML").because(&error))?;
        text.push_str(&document);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// JSON, indented.
pub fn json(value: &Value) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandError::failed("failed to write JSON").because(&error))?;
    Ok(text + "\n")
}

/// Puts data on standard output.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| CommandError::output(&error))
}
