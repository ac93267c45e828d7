//! Builds the guests: core modules for wasm32-unknown-unknown, converted to components.

use std::{fs, path::PathBuf};

use anyhow::Context as _;

use crate::{command, remap::Remap, wasm_target};

/// The target of the guests.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// A guest: its package and the path of its component below `target/plugins`.
#[derive(Clone)]
struct Guest {
    package: String,
    component: String,
}

impl Guest {
    fn new(package: &str, component: &str) -> Self {
        Self { package: package.to_owned(), component: component.to_owned() }
    }
}

/// The provisioners that the command contains: one in each directory of `plugins`.
fn built_in() -> anyhow::Result<Vec<Guest>> {
    let directory = command::root().join("plugins");
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut guests = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            guests.push(Guest::new(&format!("chandler-{name}"), &format!("{name}.wasm")));
        }
    }
    guests.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(guests)
}

/// The packages of these provisioners.
pub(crate) fn built_in_packages() -> anyhow::Result<Vec<String>> {
    Ok(built_in()?.into_iter().map(|guest| guest.package).collect())
}

/// What only tests run.
const TESTED: [(&str, &str); 2] = [("chandler-guest-hostile", "test/hostile.wasm"), ("lamps", "test/lamps.wasm")];

/// Builds every guest into `target/plugins`.
pub(crate) fn build_all() -> anyhow::Result<()> {
    let mut guests = built_in()?;
    guests.extend(TESTED.map(|(package, component)| Guest::new(package, component)));
    build(&guests)
}

/// Builds the provisioners that the command contains into `target/plugins`.
pub(crate) fn build_built_in() -> anyhow::Result<()> {
    build(&built_in()?)
}

/// Builds the guest that calls every function of the contract, and returns the path of its component.
pub(crate) fn build_contract() -> anyhow::Result<PathBuf> {
    build(&[Guest::new("chandler-guest-contract", "test/contract.wasm")])?;
    Ok(command::target_directory().join("plugins/test/contract.wasm"))
}

fn build(guests: &[Guest]) -> anyhow::Result<()> {
    wasm_target::ensure(TARGET)?;
    let mut build = command::cargo(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET]);
    // In addition to the flags of .cargo/config.toml: the same sources make the same components on every machine. A list of texts in JSON is
    // one in TOML too.
    let flags = serde_json::to_string(&Remap::of_machine()?.arguments())?;
    build.args(["--config", &format!("target.{TARGET}.rustflags={flags}")]);
    for guest in guests {
        build.args(["--package", &guest.package]);
    }
    // The gate compiles with clippy, which optimises less: tests run the guests that users run.
    command::run(build.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    let target = command::target_directory();
    let mut componentize = command::program("chandler-componentize")?;
    for guest in guests {
        let module = format!("{}.wasm", guest.package.replace('-', "_"));
        componentize.arg(target.join(TARGET).join("guest").join(module));
        componentize.arg(target.join("plugins").join(&guest.component));
    }
    command::run(&mut componentize)
}
