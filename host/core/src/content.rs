//! The unpacked files of a bundle.

use std::{collections::BTreeMap, ops::Bound};

use crate::Digest;

/// A regular file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path: UTF-8, separated by `/`, without a leading `/` and without `.` or `..` parts.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not exist.
    #[error("{0}: no such file")]
    NotFound(String),
    /// The path names a directory.
    #[error("{0}: is a directory")]
    NotAFile(String),
    /// The bytes could not be read, or differ from those that were verified.
    #[error("{path}: {source}")]
    Io {
        /// The path in the bundle.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// The files of a bundle, verified and immutable.
///
/// Reads may access a disk but never block for long, since the threads that run guests call them.
pub trait Content: Send + Sync {
    /// The digest of the tree, from [`Digest::of_tree`].
    fn digest(&self) -> &Digest;

    /// The total size of all files.
    fn total_bytes(&self) -> u64;

    /// At most `limit` files whose paths start with `prefix`, in byte order, starting after `after`.
    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry>;

    /// At most `len` bytes of a file, starting at `offset`; none after its end.
    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError>;

    /// A whole file.
    fn read_all(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = self.read(path, bytes.len() as u64, 1 << 20)?;
            if chunk.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&chunk);
        }
    }
}

/// Content in memory, for tests, small sources and tools.
#[derive(Clone, Debug)]
pub struct MemoryContent {
    digest: Digest,
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryContent {
    /// Content with these files. If a path occurs twice, the last one counts.
    pub fn new<P: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, B)>) -> Self {
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect();
        let hashes: Vec<Digest> = files.values().map(|bytes| Digest::of(bytes)).collect();
        let lines = files.iter().zip(&hashes).map(|((path, bytes), hash)| (path.as_str(), bytes.len() as u64, hash));
        Self { digest: Digest::of_tree(lines), files }
    }
}

impl Content for MemoryContent {
    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn total_bytes(&self) -> u64 {
        self.files.values().map(|bytes| bytes.len() as u64).sum()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        page(&self.files, prefix, after, limit, |bytes| bytes.len() as u64)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let Some(bytes) = self.files.get(path) else {
            return Err(missing(&self.files, path));
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }
}

/// One page of the files of a sorted map, as [`Content::entries`] specifies.
pub fn page<T>(
    files: &BTreeMap<String, T>,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
    size: impl Fn(&T) -> u64,
) -> Vec<Entry> {
    let start = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    files
        .range::<str, _>((start, Bound::Unbounded))
        .take_while(|(path, _)| path.starts_with(prefix))
        .take(limit)
        .map(|(path, file)| Entry { path: path.clone(), size: size(file) })
        .collect()
}

/// Why `path` is not among the files: it is a directory, or it does not exist.
pub fn missing<T>(files: &BTreeMap<String, T>, path: &str) -> ReadError {
    let directory = format!("{}/", path.trim_end_matches('/'));
    let below = files.range::<str, _>((Bound::Included(directory.as_str()), Bound::Unbounded)).next();
    if path.is_empty() || below.is_some_and(|(file, _)| file.starts_with(&directory)) {
        ReadError::NotAFile(path.to_owned())
    } else {
        ReadError::NotFound(path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> MemoryContent {
        MemoryContent::new([("manifests/a.yaml", "abc"), ("manifests/b.yaml", ""), ("metadata/x", "x")])
    }

    #[test]
    fn entries_are_paged_in_order() {
        let content = sample();
        let paths = |prefix, after, limit| -> Vec<String> {
            content.entries(prefix, after, limit).into_iter().map(|entry| entry.path).collect()
        };
        assert_eq!(paths("", None, 2), ["manifests/a.yaml", "manifests/b.yaml"]);
        assert_eq!(paths("", Some("manifests/b.yaml"), 2), ["metadata/x"]);
        assert_eq!(paths("manifests/", Some("a"), 9), ["manifests/a.yaml", "manifests/b.yaml"]);
        assert_eq!(paths("manifests/", Some("metadata/x"), 9), [""; 0]);
    }

    #[test]
    fn reads_stop_at_the_end() {
        let content = sample();
        assert_eq!(content.read("manifests/a.yaml", 1, 100).unwrap(), b"bc");
        assert_eq!(content.read("manifests/a.yaml", u64::MAX, usize::MAX).unwrap(), b"");
        assert_eq!(content.read_all("manifests/a.yaml").unwrap(), b"abc");
        assert!(matches!(content.read("manifests", 0, 1), Err(ReadError::NotAFile(_))));
        assert!(matches!(content.read("manifests/c", 0, 1), Err(ReadError::NotFound(_))));
    }
}
