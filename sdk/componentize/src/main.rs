//! `chandler-componentize MODULE COMPONENT [MODULE COMPONENT ...]`: makes a component of each core module.
//!
//! This is a program of its own, not a part of xtask: what it needs is compiled with the features that the rest of the workspace selects,
//! and so once.

use std::{env, fs, path::Path};

use anyhow::{Context as _, ensure};

fn main() -> anyhow::Result<()> {
    let paths: Vec<_> = env::args_os().skip(1).collect();
    let pairs = paths.chunks_exact(2);
    ensure!(pairs.remainder().is_empty(), "usage: chandler-componentize MODULE COMPONENT [MODULE COMPONENT ...]");
    for pair in pairs {
        let [module, component] = pair else { continue };
        componentize(Path::new(module), Path::new(component))?;
    }
    Ok(())
}

fn componentize(module: &Path, component: &Path) -> anyhow::Result<()> {
    let core = fs::read(module).with_context(|| format!("failed to read {}", module.display()))?;
    let bytes = chandler_componentize::component(&core)
        .with_context(|| format!("failed to make a component of {}", module.display()))?;
    write_if_changed(component, &bytes)
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
