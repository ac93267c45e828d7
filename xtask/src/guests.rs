//! Builds the guests: core modules for wasm32-unknown-unknown, converted to components.

use std::{fs, path::Path};

use anyhow::Context as _;
use wit_component::ComponentEncoder;

use crate::{command, wasm_target};

const TARGET: &str = "wasm32-unknown-unknown";

/// A guest: its package and the path of its component below `target/plugins`.
struct Guest {
    package: &'static str,
    component: &'static str,
}

const GUESTS: &[Guest] = &[
    Guest { package: "chandler-plain", component: "plain.wasm" },
    Guest { package: "chandler-resolveset", component: "resolveset.wasm" },
    Guest { package: "chandler-registry", component: "registry.wasm" },
    Guest { package: "chandler-guest-hostile", component: "test/hostile.wasm" },
    Guest { package: "lamps", component: "test/lamps.wasm" },
];

/// Builds every guest into `target/plugins`.
pub(crate) fn build_all() -> anyhow::Result<()> {
    wasm_target::ensure(TARGET)?;
    let mut build = command::cargo(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET]);
    for guest in GUESTS {
        build.args(["--package", guest.package]);
    }
    command::run(&mut build)?;
    let plugins = command::target_directory().join("plugins");
    for guest in GUESTS {
        componentize(guest, &plugins)?;
    }
    Ok(())
}

fn componentize(guest: &Guest, plugins: &Path) -> anyhow::Result<()> {
    let module = format!("{}.wasm", guest.package.replace('-', "_"));
    let module = command::target_directory().join(TARGET).join("guest").join(module);
    let core = fs::read(&module).with_context(|| format!("failed to read {}", module.display()))?;
    let component = ComponentEncoder::default()
        .module(&core)
        .and_then(|encoder| encoder.validate(true).encode())
        .with_context(|| format!("failed to make a component of {}", module.display()))?;
    write_if_changed(&plugins.join(guest.component), &component)
}

/// Does not touch an unchanged file, so that the crates that embed it are not rebuilt.
fn write_if_changed(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
    eprintln!("built {} ({} KiB)", path.display(), bytes.len() / 1024);
    Ok(())
}
