//! `cargo xtask bench`.

use crate::{command, guests};

/// Measure the engine in a release build.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Further arguments of the benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        let example =
            ["run", "--quiet", "--locked", "--release", "--package", "chandler-engine", "--example", "bench", "--"];
        command::run(command::cargo(example).args(self.arguments))
    }
}
