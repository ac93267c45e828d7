//! Finds packages in the layout of the public catalogs: `PACKAGE/VERSION/manifests`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::version;

/// A package and its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name of its directory.
    pub name: String,
    /// The directories of its versions, oldest first; at least one.
    pub versions: Vec<PathBuf>,
}

impl Package {
    /// The name of a version, which is the name of its directory.
    pub fn version(directory: &Path) -> String {
        directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Removes all versions but the newest.
    pub fn keep_newest(&mut self) {
        let older = self.versions.len().saturating_sub(1);
        self.versions.drain(..older);
    }
}

/// The packages below a directory, by name. A version without `manifests` is in a catalog of another form, and is left out.
pub fn find(root: &Path) -> anyhow::Result<Vec<Package>> {
    let mut packages = Vec::new();
    for directory in directories(root)? {
        let mut versions: Vec<PathBuf> =
            directories(&directory)?.into_iter().filter(|version| version.join("manifests").is_dir()).collect();
        versions.sort_by(|one, other| version::compare(&Package::version(one), &Package::version(other)));
        if !versions.is_empty() {
            packages.push(Package { name: Package::version(&directory), versions });
        }
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

fn directories(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("failed to read {}", root.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_oldest_first() {
        let root = tempfile::tempdir().unwrap();
        for path in
            ["b/1.10.0/manifests", "b/1.9.0/manifests", "b/catalog-templates", "a/1.0.0/metadata", "c/0.1.0/manifests"]
        {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let mut found = find(root.path()).unwrap();
        let names = |package: &Package| package.versions.iter().map(|path| Package::version(path)).collect::<Vec<_>>();
        assert_eq!(found.iter().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(names(&found[0]), ["1.9.0", "1.10.0"]);
        found[0].keep_newest();
        assert_eq!(names(&found[0]), ["1.10.0"]);
    }
}
