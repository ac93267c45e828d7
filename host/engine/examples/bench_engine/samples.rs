//! Selects the bundles to measure.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::Result;

/// The bundles below the directories, largest first; by default the available samples.
pub(crate) fn find(root: &Path, directories: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let shared = root.join("../shared/fixtures");
    let defaults = [shared.join("registry"), shared.join("corpus/bundles"), root.join("tests/fixtures/registry")];
    let mut found = Vec::new();
    for directory in if directories.is_empty() { &defaults[..] } else { directories } {
        // Default samples may be missing; requested directories may not.
        if directory.is_dir() || !directories.is_empty() {
            collect(directory, &mut found)?;
        }
    }
    found.sort();
    found.sort_by_cached_key(|(size, _)| std::cmp::Reverse(*size));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn collect(directory: &Path, found: &mut Vec<(u64, PathBuf)>) -> Result<()> {
    let failed = |error| format!("{}: {error}", directory.display());
    let manifests = directory.join("manifests");
    if manifests.is_dir() {
        let mut size = 0;
        for entry in fs::read_dir(&manifests).map_err(failed)? {
            size += entry?.metadata()?.len();
        }
        found.push((size, directory.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        }
    }
    Ok(())
}
