//! `chandler plugin push`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use chandler_content::ImageReference;
use indicatif::HumanBytes;

use crate::{
    CommandError,
    arguments::{registry::RegistryArguments, values},
    read::component::{self, Described},
    view::{output, terminal::Terminal, text::one_line},
    write::{component_image, image},
};

/// Push a component to a registry
///
/// Makes the artifact that the CNCF specifies for WebAssembly in OCI registries, which `wkg` and ORAS also write and read: one layer of the
/// type application/wasm. The same component and annotations make the same artifact, with the same digest. What the component declares
/// becomes annotations of the manifest. A component that a controller of this version cannot load is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The artifact with its digest on standard output, for spec.image of a ProvisionerClass and for
  `cosign sign`; the rest on standard error.

Exit codes: 0 pushed, 1 failed, 2 wrong usage

Examples:
  chandler plugin push sail.wasm registry.example.com/provisioners/sail:v1.0.0 \\
    --annotation org.opencontainers.image.source=https://example.com/sail \\
    --annotation org.opencontainers.image.licenses=Apache-2.0")]
pub struct Push {
    /// The component
    #[arg(value_name = "FILE")]
    pub component: PathBuf,

    /// The artifact, with its registry and tag, such as registry.example.com/provisioners/sail:v1.0.0
    #[arg(value_name = "IMAGE", value_parser = values::tagged_image)]
    pub image: ImageReference,

    /// Annotation of the manifest. Repeatable
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = values::annotation)]
    pub annotations: Vec<(String, String)>,

    /// Check the component and print the artifact that would be pushed, and push nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How the command connects to the registry.
    #[command(flatten)]
    pub registry: RegistryArguments,
}

impl Push {
    /// Checks the component, pushes it, and prints the artifact.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = one_line(&self.component.display().to_string());
        let wasm = component::file(&self.component)?;
        let inspection = component::inspected(&wasm, &name)?;
        let described = Described::new(&wasm, inspection);
        described.usable(&name)?;
        for warning in described.warnings() {
            terminal.line(format!("warning: {warning}"));
        }
        let annotations: BTreeMap<String, String> = self.annotations.iter().cloned().collect();
        let artifact = component_image::pack(wasm, &described.inspection, annotations);
        let (size, digest) = (HumanBytes(artifact.layer_bytes()), artifact.digest());
        if self.dry_run {
            terminal.line(format!("would push {} ({size}); nothing was pushed", self.image));
        } else {
            image::push(Arc::new(artifact), &self.image, &self.registry.options()).await?;
            terminal.line(format!("pushed {} ({size})", self.image));
        }
        output::print(&format!("{}\n", self.image.at(&digest)))
    }
}
