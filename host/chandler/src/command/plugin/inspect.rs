//! `chandler plugin inspect`.

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, format::DataFormat},
    read::{
        cache,
        component::{self, Described},
    },
    view::output,
};

/// Show what a component says about itself
///
/// Reads name, version, contract, formats, imports and the tools that made it. Nothing is compiled or run.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The facts on standard output.

Exit codes: 0 a controller of this version can load it, 1 it cannot, or failed, 2 wrong usage

Examples:
  chandler plugin inspect sail.wasm
  chandler plugin inspect registry.example.com/provisioners/sail:v1.0.0 -o json")]
pub struct Inspect {
    /// A component file, or its artifact in a registry
    #[arg(value_name = "FILE|IMAGE")]
    pub component: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the command connects to the registry, and where it keeps content.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Inspect {
    /// Prints the facts.
    pub async fn run(&self) -> Result<(), CommandError> {
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let (name, wasm) = component::read(&self.component, &cache, &self.fetching.registry.options()).await?;
        let inspection = component::inspected(&wasm, &name)?;
        let described = Described::new(&wasm, inspection);
        output::print(&output::data(&described, self.output, || described.text())?)?;
        described.usable(&name)
    }
}
