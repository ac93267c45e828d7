//! Finds bundles and their expected results.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use chandler_expected::Mode;

/// The maximum depth of a bundle in the tree.
const DEPTH: usize = 8;

/// A bundle to render.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its directory, relative to the root of the tree; results are named after it.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// The modes, each with the file of its expected result.
    pub modes: Vec<(Mode, Option<PathBuf>)>,
}

/// Finds the bundles of a tree. With a directory of expected results, these are the bundles with a file `<bundle>.<mode>.json`.
/// Without, they are all directories with a subdirectory `manifests` or `metadata`, in the usual modes.
///
/// # Errors
/// If a directory cannot be read, or there is no bundle.
pub fn find(tree: &Path, expected: Option<&Path>) -> anyhow::Result<Vec<Case>> {
    // The path may also be a whole corpus, which contains both bundles and expected results.
    let inner = tree.join("bundles");
    let root = if inner.is_dir() { inner } else { tree.to_owned() };
    let mut cases = BTreeMap::new();
    match expected {
        Some(expected) => expected_results(&root, expected, expected, 0, &mut cases)?,
        None => bundles(&root, &root, 0, &mut cases)?,
    }
    if cases.is_empty() {
        bail!("no bundle in {}", tree.display());
    }
    Ok(cases.into_values().collect())
}

fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut entries = read().with_context(|| format!("failed to read {}", directory.display()))?;
    entries.sort();
    Ok(entries)
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn bundles(root: &Path, directory: &Path, depth: usize, into: &mut BTreeMap<String, Case>) -> anyhow::Result<()> {
    if ["manifests", "metadata"].iter().any(|name| directory.join(name).is_dir()) {
        let name = relative(directory, root);
        let modes = Mode::USUAL.map(|mode| (mode, None)).to_vec();
        into.insert(name.clone(), Case { name, directory: directory.to_owned(), modes });
        return Ok(());
    }
    for entry in entries(directory)?.iter().filter(|entry| depth < DEPTH && entry.is_dir()) {
        bundles(root, entry, depth + 1, into)?;
    }
    Ok(())
}

fn expected_results(
    root: &Path,
    expected: &Path,
    directory: &Path,
    depth: usize,
    into: &mut BTreeMap<String, Case>,
) -> anyhow::Result<()> {
    for entry in entries(directory)? {
        if entry.is_dir() {
            if depth < DEPTH {
                expected_results(root, expected, &entry, depth + 1, into)?;
            }
            continue;
        }
        let path = relative(&entry, expected);
        let Some((name, mode)) = path.strip_suffix(".json").and_then(|path| path.rsplit_once('.')) else { continue };
        let mode = mode.parse().map_err(|error: String| anyhow::anyhow!("{}: {error}", entry.display()))?;
        let case = into.entry(name.to_owned()).or_insert_with(|| Case {
            name: name.to_owned(),
            directory: root.join(name),
            modes: Vec::new(),
        });
        case.modes.push((mode, Some(entry)));
    }
    Ok(())
}
