//! `chandler plugin pull`.

use std::path::PathBuf;

use chandler_content::ImageReference;
use indicatif::HumanBytes;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, signers::SignerArguments, values},
    read::{cache, component, signers},
    view::{output, terminal::Terminal, text::one_line},
    write::component_file,
};

/// Pull a component from a registry
///
/// Verifies its signatures first, if --key or --verification demands them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The artifact with its digest on standard output; the rest on standard error.

Exit codes: 0 pulled, 1 failed, 2 wrong usage, 8 the signatures that are demanded are missing

Examples:
  chandler plugin pull registry.example.com/provisioners/sail:v1.0.0 --to sail.wasm --key cosign.pub")]
pub struct Pull {
    /// The artifact, such as registry.example.com/provisioners/sail:v1.0.0, or with @sha256:...
    #[arg(value_name = "IMAGE", value_parser = values::image)]
    pub image: ImageReference,

    /// File for the component. It is replaced if it exists
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,

    /// Who must have signed it.
    #[command(flatten)]
    pub signers: SignerArguments,

    /// How the command connects to the registry, and where it keeps content.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Pull {
    /// Pulls the component, and writes the file.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let required = signers::required(&self.signers.options())?;
        let is_verified = required.is_some();
        let (name, wasm) = component::pull(&self.image, &cache, &self.fetching.registry.options(), required).await?;
        component::inspected(&wasm, &name)?;
        component_file::write(&self.to, &wasm)?;
        let (shown, size) = (one_line(&self.to.display().to_string()), HumanBytes(wasm.len() as u64));
        let signatures = if is_verified { "its signatures are verified" } else { "its signatures were not checked" };
        terminal.line(format!("wrote {shown} ({size}); {signatures}"));
        output::print(&format!("{name}\n"))
    }
}
