//! `cargo xtask test`.

use crate::{command, guests};

/// Build the guests and run all tests.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Further arguments of `cargo test`, for example --package chandler-tests
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Test {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        let mut test = command::cargo(["test", "--locked"]);
        if self.arguments.is_empty() {
            test.arg("--workspace");
            // It is no member of the workspace.
            let argocd = command::root().join("tests/argocd/Cargo.toml");
            command::run(command::cargo(["test", "--locked", "--manifest-path"]).arg(argocd))?;
        }
        command::run(test.args(self.arguments))
    }
}
