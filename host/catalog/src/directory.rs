//! A directory of this machine as content.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use chandler_core::{Content, Digest, Entry, ReadError, content};
use sha2::{Digest as _, Sha256};

/// Directories nested deeper are refused.
const DEPTH: usize = 64;

/// The files of a directory. They are hashed when it is opened, and must not change afterwards.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    digest: Digest,
    total: u64,
    /// The sizes.
    files: BTreeMap<String, u64>,
}

/// Why a directory is not content.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file or a directory cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A link, a device or something else.
    #[error("{} is neither a file nor a directory; links are not followed", .0.display())]
    NotAFile(PathBuf),
    /// A name that is not UTF-8.
    #[error("{} is not UTF-8", .0.display())]
    Name(PathBuf),
    /// Too many files.
    #[error("more than {0} files")]
    Files(usize),
    /// Too many levels.
    #[error("{} is nested too deeply", .0.display())]
    Depth(PathBuf),
}

impl Directory {
    /// Lists and hashes the files of a directory, at most this many.
    pub fn open(root: impl Into<PathBuf>, limit: usize) -> Result<Self, DirectoryError> {
        let root = root.into();
        let mut paths = Vec::new();
        list(&root, "", 0, limit, &mut paths)?;
        let mut hashed = Vec::with_capacity(paths.len());
        for path in paths {
            let (size, digest) = hash(&root.join(&path))?;
            hashed.push((path, size, digest));
        }
        let digest = Digest::of_tree(hashed.iter().map(|(path, size, digest)| (path.as_str(), *size, digest)));
        let total = hashed.iter().map(|(_, size, _)| *size).fold(0, u64::saturating_add);
        Ok(Self { root, digest, total, files: hashed.into_iter().map(|(path, size, _)| (path, size)).collect() })
    }
}

impl Directory {
    /// One file as content, as if it were alone in its directory.
    pub fn file(path: &Path) -> Result<Self, DirectoryError> {
        let at = |source| DirectoryError::Io { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(at)?.is_file() {
            return Err(DirectoryError::NotAFile(path.to_owned()));
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| DirectoryError::Name(path.to_owned()))?.to_owned();
        let (size, hash) = hash(path)?;
        let digest = Digest::of_tree([(name.as_str(), size, &hash)]);
        let root = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { root, digest, total: size, files: BTreeMap::from([(name, size)]) })
    }
}

/// Collects the files below a directory.
fn list(root: &Path, prefix: &str, depth: usize, limit: usize, files: &mut Vec<String>) -> Result<(), DirectoryError> {
    let directory = root.join(prefix);
    if depth > DEPTH {
        return Err(DirectoryError::Depth(directory));
    }
    let at = |source| DirectoryError::Io { path: directory.clone(), source };
    for entry in fs::read_dir(&directory).map_err(at)? {
        let entry = entry.map_err(at)?;
        let kind = entry.file_type().map_err(at)?;
        let name = entry.file_name().into_string().map_err(|_| DirectoryError::Name(entry.path()))?;
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if kind.is_dir() {
            list(root, &path, depth + 1, limit, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            return Err(DirectoryError::NotAFile(entry.path()));
        }
        if files.len() > limit {
            return Err(DirectoryError::Files(limit));
        }
    }
    Ok(())
}

fn hash(path: &Path) -> Result<(u64, Digest), DirectoryError> {
    let at = |source| DirectoryError::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(at)?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = file.read(&mut buffer).map_err(at)?;
        if read == 0 {
            return Ok((size, Digest::from_hash(hash.finalize().into())));
        }
        hash.update(buffer.get(..read).unwrap_or_default());
        size += read as u64;
    }
}

impl Content for Directory {
    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn total_bytes(&self) -> u64 {
        self.total
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        content::page(&self.files, prefix, after, limit, |size| *size)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let Some(size) = self.files.get(path) else { return Err(content::missing(&self.files, path)) };
        let len = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(len);
        let mut bytes = vec![0; len];
        let read = |bytes: &mut [u8]| File::open(self.root.join(path))?.read_exact_at(bytes, offset);
        read(&mut bytes).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    #[test]
    fn a_directory_is_the_same_content_as_its_files() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("a/b")).unwrap();
        fs::write(directory.path().join("a/b/c.yaml"), "0123456789").unwrap();
        fs::write(directory.path().join("d.json"), "{}").unwrap();
        let opened = Directory::open(directory.path(), 2).unwrap();
        let expected = MemoryContent::new([("a/b/c.yaml", "0123456789"), ("d.json", "{}")]);
        assert_eq!(opened.digest(), expected.digest());
        assert_eq!(opened.total_bytes(), 12);
        assert_eq!(opened.entries("", None, 9), expected.entries("", None, 9));
        assert_eq!(opened.read("a/b/c.yaml", 8, 100).unwrap(), b"89");
        assert!(matches!(opened.read("a", 0, 1), Err(ReadError::NotAFile(_))));
        assert!(matches!(Directory::open(directory.path(), 1), Err(DirectoryError::Files(1))));
        let file = Directory::file(&directory.path().join("d.json")).unwrap();
        assert_eq!(file.digest(), MemoryContent::new([("d.json", "{}")]).digest());
        assert_eq!(file.read("d.json", 0, 9).unwrap(), b"{}");
        assert!(matches!(Directory::file(directory.path()), Err(DirectoryError::NotAFile(_))));
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        assert!(matches!(Directory::open(directory.path(), 9), Err(DirectoryError::NotAFile(_))));
    }
}
