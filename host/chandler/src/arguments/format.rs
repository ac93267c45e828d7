//! The output formats of commands that print a summary or an object.

/// How a command prints its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Human-readable text
    Text,
    /// JSON, with every field
    Json,
}
