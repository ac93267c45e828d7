//! Keeps the cache within a budget.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::SystemTime,
};

use chandler_core::Digest;

use super::{Store, room::counted};
use crate::{
    StoreError,
    tree::{INDEX, PACK},
};

/// The result of [`Store::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The number of trees that were removed.
    pub removed: usize,
    /// Their bytes on the disk.
    pub freed_bytes: u64,
    /// The bytes of the remaining trees.
    pub kept_bytes: u64,
}

/// A tree in the cache.
pub(super) struct Candidate {
    pub(super) digest: Digest,
    bytes: u64,
    /// What it counts for the limit.
    pub(super) counted: u64,
    pub(super) used: SystemTime,
}

impl Candidate {
    /// Reads the sizes and the time of use of a tree; what is missing counts nothing.
    pub(super) fn of(digest: Digest, tree: &Path) -> Self {
        let files = [INDEX, PACK].map(|name| fs::metadata(tree.join(name)).ok());
        let [index, _] = &files;
        let used = index.as_ref().and_then(|index| index.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
        let lengths = files.map(|file| file.map_or(0, |metadata| metadata.len()));
        Self { digest, bytes: lengths.into_iter().fold(0, u64::saturating_add), counted: counted(lengths), used }
    }
}

impl Store {
    /// Removes the least recently used trees until all trees take at most `budget_bytes`. Trees for which `keep` is true stay,
    /// and so do trees that are open in this or another process, even if the budget is then exceeded. Blocks on the disk.
    pub fn collect(&self, keep: &dyn Fn(&Digest) -> bool, budget_bytes: u64) -> Result<Collected, StoreError> {
        let mut candidates = self.candidates()?;
        candidates.sort_by_key(|candidate| candidate.used);
        let mut outcome = Collected {
            kept_bytes: candidates.iter().map(|candidate| candidate.bytes).fold(0, u64::saturating_add),
            ..Collected::default()
        };
        for candidate in candidates {
            if outcome.kept_bytes <= budget_bytes {
                break;
            }
            if keep(&candidate.digest) || !self.remove_unused(&candidate.digest)? {
                continue;
            }
            outcome.removed += 1;
            outcome.freed_bytes = outcome.freed_bytes.saturating_add(candidate.bytes);
            outcome.kept_bytes = outcome.kept_bytes.saturating_sub(candidate.bytes);
        }
        self.forget_images()?;
        self.recount()?;
        Ok(outcome)
    }

    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, StoreError> {
        let directory = self.trees();
        let mut candidates = Vec::new();
        for entry in fs::read_dir(&directory).map_err(StoreError::at("list", &directory))? {
            let entry = entry.map_err(StoreError::at("list", &directory))?;
            let name = entry.file_name();
            // The store did not create entries with other names, and does not remove them.
            let Ok(digest) = format!("sha256:{}", name.to_string_lossy()).parse() else { continue };
            candidates.push(Candidate::of(digest, &entry.path()));
        }
        Ok(candidates)
    }

    /// Removes a tree unless it is open somewhere. Returns whether it is gone.
    pub(super) fn remove_unused(&self, digest: &Digest) -> Result<bool, StoreError> {
        let path = self.tree_path(digest).join(INDEX);
        let lock = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove_tree(digest)?;
                return Ok(true);
            }
            Err(error) => return Err(StoreError::at("open", path)(error)),
        };
        match lock.try_lock() {
            // The lock is held until the directory has moved; a process that opens it later does not find it.
            Ok(()) => self.remove_tree(digest).map(|()| true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(StoreError::at("lock", path)(error)),
        }
    }
}
