//! The cache: memory before disk.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use chandler_core::{Digest, RecordedFacts, Release, Target};
use parking_lot::Mutex;

use crate::{
    facts::{self, Known, Lists},
    files::{Files, Kept, OpenError},
    format::{self, DecodeError},
    recent::Recent,
};

/// How long an unused release stays in the cache, so that reverting an upgrade on the same day costs no call.
const UNUSED: Duration = Duration::from_hours(24);

/// The limits of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes in memory. Default 8 MiB, which is some hundred small releases or a few large ones.
    pub memory_bytes: usize,
    /// Bytes on the disk. Default 512 MiB: an operator with large CRDs takes some hundred kilobytes.
    pub disk_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { memory_bytes: 8 << 20, disk_bytes: 512 << 20 }
    }
}

/// The result of [`Releases::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The number of files that were removed.
    pub removed: usize,
    /// The bytes of the remaining files.
    pub kept_bytes: u64,
}

/// The digests that identify the inputs of a release. The cache keeps both entries while the release is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The digest of content, component and configuration.
    pub inputs: Digest,
    /// The digest of the inputs and of the facts that the provisioner read: the key of the release.
    pub key: Digest,
}

/// Releases, by the digest of all their inputs. A clone is the same cache, and several processes may share a directory.
#[derive(Clone)]
pub struct Releases {
    inner: Arc<Inner>,
}

struct Inner {
    files: Files,
    recent: Mutex<Recent>,
    known: Mutex<Known>,
    disk_bytes: u64,
    /// The approximate bytes on the disk: writes of other processes are only counted at the next collection.
    written: AtomicU64,
}

impl Releases {
    /// Opens the cache in a directory, which is created with mode 0700 if it does not exist. Blocks on the disk.
    ///
    /// # Errors
    /// The directory cannot be created or read, belongs to another user, or is writable by other users.
    pub fn open(directory: &Path, budget: Budget) -> Result<Self, OpenError> {
        let files = Files::open(directory)?;
        let kept = files.list().map_err(|source| OpenError { path: directory.to_owned(), source })?;
        let inner = Inner {
            files,
            recent: Mutex::new(Recent::new(budget.memory_bytes)),
            known: Mutex::default(),
            disk_bytes: budget.disk_bytes,
            written: AtomicU64::new(total(&kept)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The release with this key, if it is cached.
    pub async fn get(&self, key: &Digest) -> Option<Arc<Release>> {
        let recent = self.inner.recent().get(key);
        if recent.is_some() {
            return recent;
        }
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        // A failure is a panic, which was logged, or the end of the process.
        tokio::task::spawn_blocking(move || inner.read(&key)).await.ok().flatten()
    }

    /// Caches a release. Errors of the disk are logged; they only cost a call after the next restart.
    pub async fn insert(&self, key: Digest, release: Arc<Release>) {
        self.inner.recent().insert(key.clone(), Arc::clone(&release));
        let inner = Arc::clone(&self.inner);
        let _ = tokio::task::spawn_blocking(move || inner.write(&key, &release)).await;
    }

    /// A release of these inputs, for this target or one with the same values of the facts that the provisioner read.
    pub async fn get_for(&self, inputs: &Digest, target: &Target) -> Option<(Made, Arc<Release>)> {
        let lists = self.lists(inputs).await;
        for key in lists.keys(inputs, target) {
            if let Some(release) = self.get(&key).await {
                return Some((Made { inputs: inputs.clone(), key }, release));
            }
        }
        None
    }

    /// Caches a release of these inputs for a target, and the facts that the provisioner read.
    pub async fn insert_for(
        &self,
        inputs: &Digest,
        target: &Target,
        asked: &RecordedFacts,
        release: Arc<Release>,
    ) -> Made {
        let made = Made { inputs: inputs.clone(), key: facts::key(inputs, asked, target) };
        self.insert(made.key.clone(), release).await;
        let mut lists = self.lists(inputs).await;
        if lists.put(asked) {
            self.inner.known().insert(inputs.clone(), lists.clone());
            let (inner, inputs) = (Arc::clone(&self.inner), inputs.clone());
            let _ = tokio::task::spawn_blocking(move || inner.write_lists(&inputs, &lists)).await;
        }
        made
    }

    /// The lists of facts for these inputs. Concurrent additions of another process or task may be lost, which costs a call.
    async fn lists(&self, inputs: &Digest) -> Lists {
        let known = self.inner.known().get(inputs).cloned();
        if let Some(known) = known {
            return known;
        }
        let (inner, inputs) = (Arc::clone(&self.inner), inputs.clone());
        tokio::task::spawn_blocking(move || inner.read_lists(&inputs)).await.unwrap_or_default()
    }

    /// Marks entries as used, removes entries that were unused for a day, and then removes the least recently used entries until
    /// the rest is within the budget. Blocks on the disk.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn collect(&self, in_use: &BTreeSet<Digest>) -> io::Result<Collected> {
        self.inner.collect(in_use)
    }
}

impl Inner {
    fn recent(&self) -> parking_lot::MutexGuard<'_, Recent> {
        self.recent.lock()
    }

    fn known(&self) -> parking_lot::MutexGuard<'_, Known> {
        self.known.lock()
    }

    fn read_lists(&self, inputs: &Digest) -> Lists {
        let lists = match self.files.read(inputs) {
            Ok(Some(bytes)) => Lists::decode(&bytes),
            Ok(None) => return Lists::default(),
            Err(error) => {
                tracing::warn!(key = %inputs, %error, "recorded facts could not be read; releases are rendered again");
                None
            }
        };
        let Some(lists) = lists else {
            let _ = self.files.remove(inputs);
            return Lists::default();
        };
        self.known().insert(inputs.clone(), lists.clone());
        lists
    }

    fn write_lists(&self, inputs: &Digest, lists: &Lists) {
        let Some(bytes) = lists.encode() else { return };
        if let Err(error) = self.make_room(bytes.len() as u64).and_then(|()| self.files.write(inputs, &bytes)) {
            tracing::warn!(key = %inputs, %error, "recorded facts could not be written to the disk");
        }
    }

    fn read(&self, key: &Digest) -> Option<Arc<Release>> {
        let bytes = match self.files.read(key) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(%key, %error, "a cached release could not be read; it is rendered again");
                let _ = self.files.remove(key);
                return None;
            }
        };
        match format::decode(key, &bytes) {
            Ok(release) => {
                let release = Arc::new(release);
                self.recent().insert(key.clone(), Arc::clone(&release));
                Some(release)
            }
            Err(error) => {
                // This is expected after an upgrade of the controller.
                if matches!(error, DecodeError::Format) {
                    tracing::debug!(%key, %error, "a cached release is not used; it is rendered again");
                } else {
                    tracing::warn!(%key, %error, "a cached release is not used; it is rendered again");
                }
                let _ = self.files.remove(key);
                None
            }
        }
    }

    fn write(&self, key: &Digest, release: &Release) {
        let bytes = match format::encode(key, release) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::debug!(%key, %error, "a release is not written to the disk");
                return;
            }
        };
        let length = bytes.len() as u64;
        if length > self.disk_bytes {
            return;
        }
        if let Err(error) = self.make_room(length).and_then(|()| self.files.write(key, &bytes)) {
            tracing::warn!(%key, %error, "a release could not be written to the disk");
        }
    }

    /// Counts the bytes to write, and removes the least recently used entries if the budget is exceeded.
    fn make_room(&self, length: u64) -> io::Result<()> {
        let written = self.written.fetch_add(length, Ordering::Relaxed).saturating_add(length);
        if written <= self.disk_bytes {
            return Ok(());
        }
        // Frees extra room, so that not every write lists all files.
        self.shrink(self.disk_bytes / 4 * 3).map(drop)
    }

    /// Removes the least recently used entries until the rest is within a limit.
    fn shrink(&self, bound: u64) -> io::Result<Collected> {
        let mut kept = self.files.list()?;
        kept.sort_by_key(|file| file.used);
        let mut collected = Collected { removed: 0, kept_bytes: total(&kept) };
        for file in kept {
            if collected.kept_bytes <= bound {
                break;
            }
            self.files.remove(&file.key)?;
            collected.removed += 1;
            collected.kept_bytes = collected.kept_bytes.saturating_sub(file.bytes);
        }
        self.written.store(collected.kept_bytes, Ordering::Relaxed);
        Ok(collected)
    }

    fn collect(&self, in_use: &BTreeSet<Digest>) -> io::Result<Collected> {
        let mut removed = 0;
        let now = SystemTime::now();
        for file in self.files.list()? {
            if in_use.contains(&file.key) {
                // A release that was removed in the meantime is rendered again.
                let _ = self.files.touch(&file.key);
            } else if now.duration_since(file.used).is_ok_and(|age| age > UNUSED) {
                self.files.remove(&file.key)?;
                removed += 1;
            }
        }
        let collected = self.shrink(self.disk_bytes)?;
        Ok(Collected { removed: removed + collected.removed, ..collected })
    }
}

fn total(kept: &[Kept]) -> u64 {
    kept.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
