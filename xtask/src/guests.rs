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

/// The provisioners that are published as components, `target/plugins/NAME.wasm`: the command does not contain them, and a ProvisionerClass names one
/// by where it is.
const PUBLISHED: [&str; 1] = ["helm"];

/// The provisioners of this project: one in each directory of `plugins`.
fn first_party() -> anyhow::Result<Vec<Guest>> {
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

/// The provisioners that the command contains: `BUILTINS` of host/builtin lists the same ones.
fn built_in() -> anyhow::Result<Vec<Guest>> {
    let mut guests = first_party()?;
    guests.retain(|guest| !PUBLISHED.iter().any(|name| guest.package == format!("chandler-{name}")));
    Ok(guests)
}

/// The packages of these provisioners.
pub(crate) fn built_in_packages() -> anyhow::Result<Vec<String>> {
    Ok(built_in()?.into_iter().map(|guest| guest.package).collect())
}

/// The components of these provisioners, after [`build_built_in`].
pub(crate) fn built_in_components() -> anyhow::Result<Vec<PathBuf>> {
    let plugins = command::target_directory().join("plugins");
    Ok(built_in()?.into_iter().map(|guest| plugins.join(guest.component)).collect())
}

/// What only tests run.
const TESTED: [(&str, &str); 2] = [("chandler-guest-hostile", "test/hostile.wasm"), ("lamps", "test/lamps.wasm")];

/// Builds every guest into `target/plugins`: built-in and published ones, and what only tests run.
pub(crate) fn build_all() -> anyhow::Result<()> {
    let mut guests = first_party()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in `builtin!("NAME", …)` of host/builtin, sorted.
    fn embedded() -> Vec<String> {
        let source = fs::read_to_string(command::root().join("host/builtin/src/lib.rs")).unwrap();
        let mut names: Vec<String> =
            source.split("builtin!(\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect();
        names.sort();
        names
    }

    /// Each controller downloads and compiles it.
    #[test]
    fn the_provisioner_of_charts_stays_below_three_megabytes() {
        let component = command::target_directory().join("plugins/helm.wasm");
        let bytes = fs::metadata(&component).expect("cargo xtask plugins").len();
        assert!(bytes <= 3_000_000, "{} has {bytes} bytes", component.display());
    }

    #[test]
    fn a_provisioner_is_embedded_or_published() {
        let packages = |names: &[String]| names.iter().map(|name| format!("chandler-{name}")).collect::<Vec<_>>();
        assert_eq!(built_in_packages().unwrap(), packages(&embedded()));
        let all: Vec<String> = first_party().unwrap().into_iter().map(|guest| guest.package).collect();
        for name in PUBLISHED {
            assert!(all.contains(&format!("chandler-{name}")), "plugins/{name} does not exist");
        }
    }
}
