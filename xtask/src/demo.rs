//! `cargo xtask demo`.

use std::path::PathBuf;

use crate::{command, guests};

/// Install a bundle on the embedded control plane.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// A registry+v1 or plain+v0 bundle directory; the sample operator where none is given
    bundle: Option<PathBuf>,
    /// Further arguments of `chandler dev`, for example --keep
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        let bundle = match self.bundle {
            Some(bundle) => std::path::absolute(bundle)?,
            None => command::root().join("tests/fixtures/registry/harbour-operator.v0.1.0"),
        };
        command::run(
            command::cargo(["run", "--quiet", "--locked", "--package", "chandler", "--", "dev", "--bundle"])
                .arg(bundle)
                .args(self.arguments),
        )
    }
}
