//! What a bundle's unpacked files look like to a reader.

use std::{collections::BTreeMap, ops::Bound};

use crate::Digest;

/// A regular file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, `/` between the parts, no leading `/`, UTF-8, no `.` or `..` part.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("{0}: no such file")]
    NotFound(String),
    /// The path names a directory.
    #[error("{0}: is a directory")]
    NotAFile(String),
    /// The bytes could not be had, or are no longer those that were verified.
    #[error("{path}: {source}")]
    Io {
        /// The path in the bundle.
        path: String,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// A bundle's files, verified and immutable.
///
/// Reads may touch a disk but never block for long; they are called from the threads that run guests.
pub trait Content: Send + Sync {
    /// The digest of the whole tree, as [`Digest::of_tree`] makes it.
    fn digest(&self) -> &Digest;

    /// The sum of the sizes of all files.
    fn total_bytes(&self) -> u64;

    /// The files whose paths begin with `prefix`, in byte order, those after `after`, at most `limit` of them.
    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry>;

    /// Up to `len` bytes of a file from `offset` on; none past its end.
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

/// Content that lives in memory: for tests, small sources and tools.
#[derive(Clone, Debug)]
pub struct MemoryContent {
    digest: Digest,
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryContent {
    /// Content of these files. A path that occurs twice keeps its last bytes.
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

/// One page of the files of a sorted map; what [`Content::entries`] promises.
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

/// Why `path` is not among the files: it is a directory, or it is not there at all.
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
