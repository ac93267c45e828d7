//! Builds the guests: core modules for wasm32-unknown-unknown, converted to components.

use std::fs;

use anyhow::Context as _;

use crate::{command, wasm_target};

const TARGET: &str = "wasm32-unknown-unknown";

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

fn build(guests: &[Guest]) -> anyhow::Result<()> {
    wasm_target::ensure(TARGET)?;
    let mut build = command::cargo(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET]);
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
