//! The output formats of commands that print a summary or an object.

pub use crate::view::output::DataFormat;

/// How a command prints a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TreeFormat {
    /// Human-readable text
    Text,
    /// JSON, with every field
    Json,
    /// A Mermaid flowchart, for Markdown
    Mermaid,
    /// An SVG image
    Svg,
    /// An HTML page that loads nothing
    Html,
}

/// How a command prints its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Human-readable text
    Text,
    /// JSON, with every field
    Json,
}
