//! One bundle in the cache: an index and a file with the bytes of all its files.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::Arc,
};

use chandler_core::{Content, Digest, Entry, ReadError, content};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::StoreError;

/// The name of the index in the directory of a tree.
pub(crate) const INDEX: &str = "index.json";
/// The name of the file with the bytes.
pub(crate) const PACK: &str = "pack";
/// Readers refuse other versions, and the tree is then fetched anew.
const VERSION: u32 = 1;
/// Limits on entries and paths bound indexes; this limit keeps a damaged one from filling the memory.
const INDEX_BYTES: u64 = 256 << 20;

/// The position of the bytes of a file in the pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) digest: Digest,
}

/// The format of the index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) version: u32,
    pub(crate) files: BTreeMap<String, Stored>,
}

impl Index {
    pub(crate) fn new(files: BTreeMap<String, Stored>) -> Self {
        Self { version: VERSION, files }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of_tree(self.files.iter().map(|(path, file)| (path.as_str(), file.size, &file.digest)))
    }
}

/// A bundle's files, verified when opened and immutable. A clone is the same tree.
///
/// [`Store::collect`](crate::Store::collect) does not remove the directory of an open tree, in this process and in others.
#[derive(Clone)]
pub struct Tree {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    digest: Digest,
    total: u64,
    files: BTreeMap<String, Stored>,
    pack: File,
    /// Its shared lock keeps the directory.
    lock: File,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("digest", &self.inner.digest)
            .field("files", &self.inner.files.len())
            .field("total", &self.inner.total)
            .finish()
    }
}

/// The state of the directory of a tree.
pub(crate) enum Opened {
    Tree(Tree),
    Absent,
    /// The directory does not hold this tree: it is damaged, altered, or written by another version.
    Damaged(String),
}

impl Tree {
    /// Opens the tree of this digest in `directory` and verifies every byte of it.
    pub(crate) fn open(directory: &Path, digest: &Digest) -> Result<Opened, StoreError> {
        let index_path = directory.join(INDEX);
        let lock = match File::open(&index_path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let damaged = directory.try_exists().map_err(StoreError::at("look for", directory))?;
                return Ok(if damaged { Opened::Damaged("has no index".to_owned()) } else { Opened::Absent });
            }
            Err(error) => return Err(StoreError::at("open", index_path)(error)),
        };
        lock.lock_shared().map_err(StoreError::at("lock", &index_path))?;
        if !is_still(&lock, &index_path) {
            // Removed between opening and locking.
            return Ok(Opened::Absent);
        }
        let mut text = Vec::new();
        (&lock).take(INDEX_BYTES).read_to_end(&mut text).map_err(StoreError::at("read", &index_path))?;
        let index: Index = match serde_json::from_slice(&text) {
            Ok(index) => index,
            Err(error) => return Ok(Opened::Damaged(format!("its index cannot be read: {error}"))),
        };
        if index.version != VERSION {
            return Ok(Opened::Damaged(format!("its index has version {}", index.version)));
        }
        if index.digest() != *digest {
            return Ok(Opened::Damaged("its index does not have the digest".to_owned()));
        }
        let pack_path = directory.join(PACK);
        let mut pack = match File::open(&pack_path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Opened::Damaged("its files are missing".to_owned()));
            }
            Err(error) => return Err(StoreError::at("open", pack_path)(error)),
        };
        if let Some(path) = first_damaged(&mut pack, &index.files).map_err(StoreError::at("read", &pack_path))? {
            return Ok(Opened::Damaged(format!("its file {path:?} was altered")));
        }
        let total = index.files.values().map(|file| file.size).fold(0, u64::saturating_add);
        let inner = Inner { digest: digest.clone(), total, files: index.files, pack, lock };
        Ok(Opened::Tree(Self { inner: Arc::new(inner) }))
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.inner.files.len()
    }

    /// Whether the tree has no files.
    pub fn is_empty(&self) -> bool {
        self.inner.files.is_empty()
    }
}

impl Inner {
    /// Marks the tree as used now, for [`Store::collect`](crate::Store::collect).
    pub(crate) fn touch(&self) -> io::Result<()> {
        self.lock.set_modified(std::time::SystemTime::now())
    }
}

/// Whether `path` still names this open file.
pub(crate) fn is_still(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// The first file whose bytes do not match its digest, in the order of the pack.
fn first_damaged<'a>(pack: &mut File, files: &'a BTreeMap<String, Stored>) -> io::Result<Option<&'a str>> {
    let mut by_offset: Vec<_> = files.iter().collect();
    by_offset.sort_unstable_by_key(|(_, file)| file.offset);
    let mut previous = None;
    for (path, file) in by_offset {
        // Files with the same bytes share them.
        if previous == Some(file) {
            continue;
        }
        pack.seek(SeekFrom::Start(file.offset))?;
        let mut hash = Sha256::new();
        let copied = io::copy(&mut pack.take(file.size), &mut hash)?;
        if copied != file.size || Digest::from_hash(hash.finalize().into()) != file.digest {
            return Ok(Some(path));
        }
        previous = Some(file);
    }
    Ok(None)
}

impl Content for Tree {
    fn digest(&self) -> &Digest {
        &self.inner.digest
    }

    fn total_bytes(&self) -> u64 {
        self.inner.total
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        content::page(&self.inner.files, prefix, after, limit, |file| file.size)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let Some(file) = self.inner.files.get(path) else {
            return Err(content::missing(&self.inner.files, path));
        };
        let rest = file.size.saturating_sub(offset);
        // Never more than the size of the file, whatever a guest requests.
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(len);
        let mut bytes = vec![0; len];
        if len > 0 {
            self.inner
                .pack
                .read_exact_at(&mut bytes, file.offset.saturating_add(offset))
                .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        }
        Ok(bytes)
    }
}
