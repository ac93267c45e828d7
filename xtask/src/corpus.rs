//! `cargo xtask corpus`.

use crate::{command, guests};

/// Render a tree of registry+v1 bundles in every mode and compare with expected results.
#[derive(clap::Args)]
pub(crate) struct Corpus {
    /// DIR, then `--expected DIR`, `--native`, ...; `--help` after `--` shows all
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<String>,
}

impl Corpus {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        let component = command::target_directory().join("plugins/registry.wasm");
        let program = ["run", "--quiet", "--locked", "--release", "--package", "chandler-corpus", "--"];
        command::run(command::cargo(program).arg("--component").arg(component).args(self.arguments))
    }
}
