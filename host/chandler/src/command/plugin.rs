//! `chandler plugin`.

use clap::Subcommand;

use crate::{CommandError, view::terminal::Terminal};

#[cfg(feature = "dev")]
pub mod annotate;
#[cfg(feature = "dev")]
pub mod bench;
#[cfg(feature = "dev")]
pub mod build;
#[cfg(feature = "dev")]
pub mod conformance;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(feature = "dev")]
mod facts;
pub mod inspect;
pub mod list;
#[cfg(feature = "dev")]
pub mod new;
pub mod pull;
pub mod push;
#[cfg(feature = "dev")]
pub mod run;
#[cfg(feature = "dev")]
pub mod sign;
#[cfg(feature = "dev")]
mod templates;
#[cfg(feature = "dev")]
pub mod test;
pub mod verify;

/// Write, test, inspect and publish provisioners: WebAssembly components for bundle formats
///
/// A provisioner is one component in an OCI registry, and one ProvisionerClass in a cluster. docs/plugins.md leads from a source to a class.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "\
Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler plugin new sail
  chandler plugin build target/wasm32-unknown-unknown/release/sail.wasm --to sail.wasm
  chandler plugin test sail.wasm
  chandler plugin run sail.wasm ./bundle
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
    New(new::New),
    #[cfg(feature = "dev")]
    Build(build::Build),
    #[cfg(feature = "dev")]
    Dev(Box<dev::Dev>),
    #[cfg(feature = "dev")]
    Annotate(annotate::Annotate),
    #[cfg(feature = "dev")]
    Test(test::Test),
    #[cfg(feature = "dev")]
    Run(Box<run::Run>),
    #[cfg(feature = "dev")]
    Bench(Box<bench::Bench>),
    #[cfg(feature = "dev")]
    Conformance(conformance::Conformance),
    Inspect(inspect::Inspect),
    List(list::List),
    Push(Box<push::Push>),
    #[cfg(feature = "dev")]
    Sign(sign::Sign),
    Verify(verify::Verify),
    Pull(pull::Pull),
}

impl Plugin {
    /// Runs the command.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        match &self.command {
            #[cfg(feature = "dev")]
            PluginCommand::New(new) => new.run(terminal),
            #[cfg(feature = "dev")]
            PluginCommand::Build(build) => build.run(terminal),
            #[cfg(feature = "dev")]
            PluginCommand::Dev(dev) => Box::pin(dev.run(terminal)).await,
            #[cfg(feature = "dev")]
            PluginCommand::Annotate(annotate) => annotate.run(terminal),
            #[cfg(feature = "dev")]
            PluginCommand::Test(test) => Box::pin(test.run(terminal)).await,
            #[cfg(feature = "dev")]
            PluginCommand::Run(run) => Box::pin(run.run()).await,
            #[cfg(feature = "dev")]
            PluginCommand::Bench(bench) => Box::pin(bench.run(terminal)).await,
            #[cfg(feature = "dev")]
            PluginCommand::Conformance(conformance) => Box::pin(conformance.run(terminal)).await,
            PluginCommand::Inspect(inspect) => inspect.run().await,
            PluginCommand::List(list) => Box::pin(list.run(terminal)).await,
            PluginCommand::Push(push) => Box::pin(push.run(terminal)).await,
            #[cfg(feature = "dev")]
            PluginCommand::Sign(sign) => Box::pin(sign.run(terminal)).await,
            PluginCommand::Verify(verify) => Box::pin(verify.run(terminal)).await,
            PluginCommand::Pull(pull) => Box::pin(pull.run(terminal)).await,
        }
    }
}
