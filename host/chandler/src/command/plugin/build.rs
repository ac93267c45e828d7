//! `chandler plugin build`.

use std::path::PathBuf;

use chandler_componentize::ComponentError;

use super::facts::{self, FactsArguments};
use crate::{
    CommandError,
    read::component,
    view::{terminal::Terminal, text::one_line},
};

/// Make a component of the core module that a compiler wrote
///
/// The module is compiled with bindings of the contract, such as the Rust SDK has, for `wasm32-unknown-unknown` or `wasm32-wasip1`.
/// Tools of other languages write components by themselves; `chandler plugin annotate` gives those a name and formats.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What `chandler plugin inspect` prints, on standard output.

Exit codes: 0 done, 1 failed, 2 wrong usage

Examples:
  cargo build --release --target wasm32-unknown-unknown
  chandler plugin build target/wasm32-unknown-unknown/release/sail.wasm --to sail.wasm")]
pub struct Build {
    /// The core module
    #[arg(value_name = "MODULE")]
    pub module: PathBuf,

    /// File for the component. It is replaced if it exists
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,

    /// What the component declares.
    #[command(flatten)]
    pub facts: FactsArguments,
}

impl Build {
    /// Writes the component.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = one_line(&self.module.display().to_string());
        let module = component::file(&self.module)?;
        let mut wasm = chandler_componentize::component(&module).map_err(|error| {
            let hint = match &error {
                ComponentError::IsAComponent => {
                    "tools for JavaScript, Python and other languages write components: push it as it is"
                }
                ComponentError::Refused(_) => "compile the provisioner with the SDK, or with bindings of wit/0.1.0, as a cdylib for wasm32-unknown-unknown",
            };
            CommandError::failed(format!("failed to make a component of {name}")).because(&error).hint(hint)
        })?;
        if !self.facts.is_empty() {
            wasm = self.facts.annotated(&wasm, &name)?;
        }
        facts::write(&self.to, &wasm, &name, terminal)
    }
}
