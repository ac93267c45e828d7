//! `cargo xtask packages`.

use crate::{command, guests};

/// Install the newest version of published operators on the embedded control plane as a user would, or upgrade through all versions, and
/// compare with the kept list.
#[derive(clap::Args)]
pub(crate) struct Packages {
    /// `--bundles DIR`, then `--versions all`, `--package NAME`, `--record`, ...; `--help` after `--` shows all
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<String>,
}

impl Packages {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        command::run(command::program("chandler-packages")?.args(self.arguments))
    }
}
