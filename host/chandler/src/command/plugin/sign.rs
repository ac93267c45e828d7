//! `chandler plugin sign`.

use std::{path::PathBuf, sync::Arc};

use chandler_content::ImageReference;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, values},
    read::{component, signing_key},
    view::{output, terminal::Terminal, text::count},
    write::{image, signature_image},
};

/// Sign a component in a registry with a private key
///
/// Pushes the signature as cosign does, with the tag sha256-DIGEST.sig beside the artifact; signatures that are there stay. An artifact
/// that this key has signed already is not signed again. Controllers and `cosign verify --key` accept the signature. A tag is signed with the
/// digest that it has now. For keyless signatures, hardware keys, encrypted keys and transparency logs, use `cosign sign`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The artifact with its digest on standard output; the rest on standard error.

Exit codes: 0 signed, now or before, 1 failed, 2 wrong usage

Examples:
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub
  chandler plugin sign registry.example.com/provisioners/sail:v1.0.0 --key key.pem
  chandler plugin verify registry.example.com/provisioners/sail:v1.0.0 --key key.pub")]
pub struct Sign {
    /// The artifact, such as registry.example.com/provisioners/sail:v1.0.0, or with @sha256:...
    #[arg(value_name = "IMAGE", value_parser = values::image)]
    pub image: ImageReference,

    /// File with the private key: ECDSA P-256 or Ed25519, as PEM (PKCS#8), which no other user may read or write (`chmod 600 FILE`)
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,

    /// Sign nothing, and print the artifact that would be signed
    #[arg(long)]
    pub dry_run: bool,

    /// How the command connects to the registry, and where it keeps content.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Sign {
    /// Signs the artifact, and pushes the signature.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let key = signing_key::read(&self.key)?;
        let registry = self.fetching.registry.options();
        let cache = crate::read::cache::directory(self.fetching.cache_directory.as_deref())?;
        let pinned = component::resolved(&self.image, &cache, &registry).await?;
        let Some(digest) = pinned.digest().cloned() else {
            return Err(CommandError::failed(format!("the registry returned no digest of {pinned}")));
        };
        let place = signature_image::place(&pinned, &digest)?;
        if self.dry_run {
            terminal.line(format!("would sign {pinned} with the tag {place}; nothing was pushed"));
            return output::print(&format!("{pinned}\n"));
        }
        let earlier = image::existing(&place, &registry).await?;
        let Some(signature) = signature_image::pack(&pinned, &digest, &key, earlier.as_deref())? else {
            terminal.line(format!("{pinned} is signed with this key already: {place}; nothing was pushed"));
            return output::print(&format!("{pinned}\n"));
        };
        let number = signature.signatures();
        image::push(Arc::new(signature), &place, &registry).await?;
        terminal.line(format!("signed {pinned}, which has {} by keys now: {place}", count(number, "signature")));
        output::print(&format!("{pinned}\n"))
    }
}
