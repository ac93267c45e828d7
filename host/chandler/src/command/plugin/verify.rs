//! `chandler plugin verify`.

use chandler_content::ImageReference;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, signers::SignerArguments, values},
    read::{cache, component, signers},
    view::{output, terminal::Terminal},
};

/// Check the signatures of a component in a registry
///
/// As a controller does for spec.verification of a ProvisionerClass: by public keys, or by a policy with keys and identities
/// (docs/sources.md).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The artifact with its digest on standard output.

Exit codes: 0 it has the signatures, 1 failed, 2 wrong usage, 8 it lacks them

Examples:
  chandler plugin verify registry.example.com/provisioners/sail:v1.0.0 --key cosign.pub
  chandler plugin verify registry.example.com/provisioners/sail:v1.0.0 --verification policy.yaml")]
pub struct Verify {
    /// The artifact, such as registry.example.com/provisioners/sail:v1.0.0, or with @sha256:...
    #[arg(value_name = "IMAGE", value_parser = values::image)]
    pub image: ImageReference,

    /// Who must have signed it.
    #[command(flatten)]
    pub signers: SignerArguments,

    /// How the command connects to the registry, and where it keeps content.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Verify {
    /// Fails unless the artifact has the signatures.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let Some(required) = signers::required(&self.signers.options())? else {
            return Err(CommandError::usage("nothing says who must have signed the artifact")
                .hint("set --key, or --verification with a policy"));
        };
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let (name, _) = component::pull(&self.image, &cache, &self.fetching.registry.options(), Some(required)).await?;
        terminal.line("its signatures are verified");
        output::print(&format!("{name}\n"))
    }
}
