//! The output formats of commands that print a summary, an object or a list. Every command that prints data takes `json` and `yaml`.

pub use crate::view::output::DataFormat;
use crate::view::terminal::{Frame, Terminal};

/// How a command prints a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ListFormat {
    /// A table that fits the terminal
    Text,
    /// A table with all columns in full
    Wide,
    /// JSON, with every field
    Json,
    /// YAML, as JSON
    Yaml,
}

impl ListFormat {
    /// The format of the data.
    pub fn data(self) -> DataFormat {
        match self {
            Self::Text | Self::Wide => DataFormat::Text,
            Self::Json => DataFormat::Json,
            Self::Yaml => DataFormat::Yaml,
        }
    }

    /// The columns that a table has on standard output; `None` if nothing limits them.
    pub fn columns(self) -> Option<usize> {
        // With so many, a table has all columns, also those that need a wide terminal.
        if self == Self::Wide { Some(usize::MAX) } else { Terminal::output().columns() }
    }

    /// The columns, and how a table is drawn on standard output.
    pub fn frame(self) -> Frame {
        Frame { width: self.columns(), look: Terminal::output().look() }
    }

    /// Whether people read it.
    pub fn is_table(self) -> bool {
        self.data() == DataFormat::Text
    }
}

/// How a command prints a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TreeFormat {
    /// Human-readable text
    Text,
    /// JSON, with every field
    Json,
    /// YAML, as JSON
    Yaml,
    /// A Mermaid flowchart, for Markdown
    Mermaid,
    /// An SVG image
    Svg,
    /// An HTML page that loads nothing
    Html,
}
