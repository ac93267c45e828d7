//! `chandler plugin annotate`.

use std::path::PathBuf;

use super::facts::{self, FactsArguments};
use crate::{
    CommandError,
    read::component,
    view::{terminal::Terminal, text::one_line},
};

/// Write name, version and formats into a component
///
/// Hosts read them before they compile anything, from the custom section `chandler:provisioner`. The Rust SDK writes it; for components in
/// other languages this command does. A component without formats is never detected: BundleDeployments must name its class.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What `chandler plugin inspect` prints, on standard output.

Exit codes: 0 done, 1 failed, 2 wrong usage

Examples:
  chandler plugin annotate app.wasm --to sail.wasm --name sail --version 1.0.0 --format sail+v0")]
pub struct Annotate {
    /// The component
    #[arg(value_name = "FILE")]
    pub component: PathBuf,

    /// File for the new component. It is replaced if it exists, and may be the same file
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,

    /// What the component declares.
    #[command(flatten)]
    pub facts: FactsArguments,
}

impl Annotate {
    /// Writes the component.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if self.facts.is_empty() {
            return Err(CommandError::usage("nothing to write").hint("set --name, --version or --format"));
        }
        let name = one_line(&self.component.display().to_string());
        let wasm = self.facts.annotated(&component::file(&self.component)?, &name)?;
        facts::write(&self.to, &wasm, &name, terminal)
    }
}
