//! Who must have signed an artifact.

use std::path::PathBuf;

use crate::read::signers::SignerOptions;

/// Who must have signed an artifact.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SignerArguments {
    /// File with a public key as PEM, whose holder must have signed the artifact. Repeatable: all must have signed
    #[arg(long = "key", value_name = "FILE")]
    pub keys: Vec<PathBuf>,

    /// File with a policy in YAML, as in spec.verification of a ProvisionerClass (docs/sources.md)
    #[arg(long, value_name = "FILE")]
    pub verification: Option<PathBuf>,

    /// File with the trusted root of a Sigstore instance, for keyless signatures and transparency logs [default: the public instance]
    #[arg(long, value_name = "FILE")]
    pub trusted_root: Option<PathBuf>,
}

impl SignerArguments {
    /// The options.
    pub fn options(&self) -> SignerOptions {
        SignerOptions {
            keys: self.keys.clone(),
            verification: self.verification.clone(),
            trusted_root: self.trusted_root.clone(),
        }
    }
}
