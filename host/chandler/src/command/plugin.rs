//! `chandler plugin`.

use clap::Subcommand;

use crate::{CommandError, view::terminal::Terminal};

#[cfg(feature = "dev")]
pub mod annotate;
#[cfg(feature = "dev")]
pub mod build;
#[cfg(feature = "dev")]
mod facts;
pub mod inspect;
pub mod push;

/// Build, inspect and publish provisioners: WebAssembly components for bundle formats
///
/// A provisioner is one component in an OCI registry, and one ProvisionerClass in a cluster. docs/plugins.md leads from a source to a class.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "\
Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler plugin build target/wasm32-unknown-unknown/release/sail.wasm --to sail.wasm
  chandler plugin inspect sail.wasm
  chandler render ./bundle --provisioner sail.wasm
  chandler plugin push sail.wasm registry.example.com/provisioners/sail:v1.0.0"
)]
pub struct Plugin {
    /// What is done.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// The commands about provisioners.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment would replace the help text of the arguments type")]
pub enum PluginCommand {
    #[cfg(feature = "dev")]
    Build(build::Build),
    #[cfg(feature = "dev")]
    Annotate(annotate::Annotate),
    Inspect(inspect::Inspect),
    Push(Box<push::Push>),
}

impl Plugin {
    /// Runs the command.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        match &self.command {
            #[cfg(feature = "dev")]
            PluginCommand::Build(build) => build.run(terminal),
            #[cfg(feature = "dev")]
            PluginCommand::Annotate(annotate) => annotate.run(terminal),
            PluginCommand::Inspect(inspect) => inspect.run().await,
            PluginCommand::Push(push) => Box::pin(push.run(terminal)).await,
        }
    }
}
