//! Reading the bundle.

/// A regular file of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, with `/` between its parts and no leading `/`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

impl Entry {
    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file.
    #[error("no such file")]
    NotFound,
    /// The path names a directory.
    #[error("is a directory")]
    NotAFile,
    /// The host's limit on the bytes that one call may read is used up.
    #[error("more was read than the host allows")]
    BudgetExhausted,
    /// Another reason, as text.
    #[error("{0}")]
    Other(String),
}

/// The maximum number of bytes that the host returns at once.
const CHUNK: u32 = 1 << 20;
/// The number of entries requested at once.
const PAGE: u32 = 500;

/// The bundle. Content never changes while a call runs.
pub trait Content {
    /// The digest of the whole content, `sha256:` and 64 hexadecimal digits.
    fn digest(&self) -> String;

    /// One page of [`files`](Self::files): those after `after`, at most `limit`. An empty page is the last.
    fn page(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Entry>;

    /// Up to `len` bytes of a file from `offset` on; at most one mebibyte at once.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn read_at(&self, path: &str, offset: u64, len: u32) -> Result<Vec<u8>, ReadError>;

    /// All regular files whose paths begin with `prefix`, in byte order of their paths.
    fn files(&self, prefix: &str) -> Vec<Entry> {
        let mut files: Vec<Entry> = Vec::new();
        loop {
            let page = self.page(prefix, files.last().map(|entry| entry.path.as_str()), PAGE);
            if page.is_empty() {
                return files;
            }
            files.extend(page);
        }
    }

    /// Whether there is a regular file with this path, or a directory with regular files below it.
    fn exists(&self, path: &str) -> bool {
        let is_it =
            |entry: &Entry| entry.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.page(path, None, 1).first().is_some_and(is_it)
            || self.page(&format!("{path}/"), None, 1).first().is_some_and(is_it)
    }

    /// A whole file.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut bytes = self.read_at(path, 0, CHUNK)?;
        let mut last = bytes.len();
        // A short chunk may be the host's choice; only an empty one marks the end.
        while last > 0 {
            let chunk = self.read_at(path, bytes.len() as u64, CHUNK)?;
            last = chunk.len();
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}
