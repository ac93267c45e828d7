//! Builds the component of a version of the contract, which later hosts must run.

use std::process::Command;

use anyhow::Context as _;

use crate::{command, guests};

/// The newest version of the contract.
const VERSION: &str = "0.1.0";

/// Builds the component into `tests/guests/components`. Needs zstd.
///
/// # Errors
/// The version has its component already: a published one is never built again.
pub(crate) fn build() -> anyhow::Result<()> {
    let kept = command::root().join(format!("tests/guests/components/contract-{VERSION}.wasm.zst"));
    anyhow::ensure!(
        !kept.exists(),
        "{} exists, and the component of a published version is never built again: see docs/contributing/contract.md",
        kept.display()
    );
    let component = guests::build_contract()?;
    command::run(Command::new("zstd").args(["-q", "-19"]).arg(component).arg("-o").arg(&kept))
        .context("failed to compress the component")
}
