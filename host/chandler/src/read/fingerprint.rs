//! Whether files changed, from names, sizes and times: of a few thousand files at most, as the sources of a project are.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// How many files and directories are looked at. Further ones are not noticed.
const FILES: usize = 20_000;
/// Directories with what tools write: a build must not cause the next one.
const WRITTEN: &[&str] = &["target", "node_modules", "__pycache__"];

/// The size and the time of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Fingerprint {
    /// The files of these paths; directories with everything below them, except for hidden files, directories that tools write, and links.
    /// A path that does not exist has no files.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut all = Self::default();
        let mut left: Vec<PathBuf> = paths.into_iter().map(Path::to_path_buf).collect();
        let mut seen = left.len();
        while let Some(path) = left.pop() {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if !metadata.is_dir() {
                all.0.insert(path, (metadata.len(), metadata.modified().ok()));
                continue;
            }
            let Ok(entries) = fs::read_dir(&path) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if name.starts_with('.') || WRITTEN.contains(&name.as_ref()) || seen >= FILES {
                    continue;
                }
                seen += 1;
                left.push(entry.path());
            }
        }
        all
    }

    /// All of these files but this one, by whichever path it was named.
    #[must_use]
    pub fn without(mut self, path: &Path) -> Self {
        if let Ok(path) = fs::canonicalize(path) {
            self.0.retain(|other, _| fs::canonicalize(other).map_or(true, |other| other != path));
        }
        self
    }

    /// How many files there are.
    pub fn files(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_and_what_tools_write_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let write = |name: &str, text: &str| {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("src/deep/lib.rs", "a");
        let before = Fingerprint::of([path]);
        assert_eq!(before.files(), 1);
        for name in ["target/x", "node_modules/y", ".git/z", "src/.swap"] {
            write(name, "a");
        }
        assert_eq!(Fingerprint::of([path]), before);
        std::os::unix::fs::symlink("/", path.join("root")).unwrap();
        assert_eq!(Fingerprint::of([path]).files(), 2, "a link is not followed");
        write("src/deep/lib.rs", "ab");
        assert_ne!(Fingerprint::of([path]), before);
        assert_eq!(Fingerprint::of([Path::new("/no/such/path")]), Fingerprint::default());
    }
}
