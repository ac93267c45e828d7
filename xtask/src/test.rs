//! `cargo xtask test`.

use std::{env, thread};

use crate::{command, guests};

/// The variable of Rust's test harness.
const THREADS: &str = "RUST_TEST_THREADS";

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
        if env::var_os(THREADS).is_none() {
            // End-to-end tests wait most of the time, for watches, backoffs and debounces.
            let processors = thread::available_parallelism().map_or(1, usize::from);
            test.env(THREADS, (2 * processors).to_string());
        }
        if self.arguments.is_empty() {
            test.arg("--workspace");
            // It is no member of the workspace.
            let argocd = command::root().join("tests/argocd/Cargo.toml");
            command::run(command::cargo(["test", "--locked", "--manifest-path"]).arg(argocd))?;
        }
        command::run(test.args(self.arguments))
    }
}
