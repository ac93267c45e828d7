//! The cache directory.
//!
//! ```text
//! lock                          held shared by writers, exclusively while leftovers are removed
//! work/<random>/                trees that are being written
//! trees/<hex>/index.json        paths, sizes, digests, offsets
//! trees/<hex>/pack              the bytes of all files
//! images/<hex>                  the tree of an image of one repository, for one platform, and the credentials with which the
//!                               registry served it
//! archives/<hex>                the archive that a URL named last, for the credentials of one user
//! uploads/<hex>                 the content that was uploaded for one object
//! key                           authenticates the files in `images`, `archives` and `uploads`, and hides credentials in them
//! ```
//!
//! A tree is written below `work` and moved into place as a whole, so that `trees/<hex>` is always complete, even after a crash.
//! Several processes may share the directory. It must be on one file system, and no other user may access it: a tree is verified
//! against its digest when it is opened, but not at each read.
//!
//! `room` counts what is in the directory and what is being written, and reserves room before a write; `shares` decides which content gives way.

mod collect;
mod images;
mod room;
mod shares;
mod uploads;
pub(crate) mod workspace;

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use chandler_cache::Key;
use chandler_core::{Content, Digest};
use chandler_turns::Requester;
use parking_lot::Mutex;

use self::room::Ledger;
pub use self::{collect::Collected, room::Users, uploads::Upload};
pub(crate) use self::{
    images::{Asking, ImageKey, Known, Latest, Place, Reader},
    room::{FILE, Room},
    workspace::{AddError, Workspace, own_file},
};
use crate::{
    ContentError, FileSet, Limits, StoreError, blocking, directory, files,
    tree::{Inner as TreeInner, Opened, Tree},
    unpack,
};

/// The age from which an incomplete record is a leftover.
const LEFTOVER: Duration = Duration::from_mins(10);
/// The directories of records.
const RECORDS: [&str; 3] = ["images", "archives", uploads::DIRECTORY];

/// A cache of trees by digest, and of the trees of images. A clone is the same store.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
    limits: Arc<Limits>,
    /// On whose behalf content is added.
    requester: Requester,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    key: Key,
    /// Open trees, which need no second verification.
    open: Mutex<HashMap<Digest, Weak<TreeInner>>>,
    ledger: Ledger,
}

impl Store {
    /// Opens the cache in `directory`, which is created with mode 0700 if it does not exist, and removes leftovers of crashed
    /// processes. Blocks on the disk.
    ///
    /// # Errors
    /// The directory, or one in it, cannot be created, belongs to another user, is a link, or is writable by other users, such
    /// as the root of most volumes in a cluster: name a directory in it.
    pub fn open(directory: &Path, limits: Limits) -> Result<Self, StoreError> {
        let prepared = chandler_cache::root(directory);
        prepared.map_err(|error| unfit(directory, error))?;
        for name in ["work", "trees"].into_iter().chain(RECORDS) {
            let directory = directory.join(name);
            chandler_cache::directory(&directory).map_err(|error| unfit(&directory, error))?;
        }
        let key = directory.join("key");
        let key = Key::open(&key).map_err(StoreError::at("open", key))?;
        let inner =
            Inner { root: directory.to_owned(), key, open: Mutex::new(HashMap::new()), ledger: Ledger::default() };
        let requester = Requester::controller();
        let store = Self { inner: Arc::new(inner), limits: Arc::new(limits), requester };
        store.remove_leftovers()?;
        Ok(store)
    }

    /// The limits of this store.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// This store, with other limits for content that is added to it.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits: Arc::new(limits), ..self.clone() }
    }

    /// This store, for content that is added on behalf of this account: it counts for its share.
    #[must_use]
    pub fn on_behalf_of(&self, requester: Requester) -> Self {
        Self { requester, ..self.clone() }
    }

    /// The tree of a directory on disk: its regular files, and the targets of links inside it.
    ///
    /// # Errors
    /// See [`ArchiveError`](crate::ArchiveError). Links that leave the directory and special files are refused.
    pub async fn import_directory(&self, path: &Path) -> Result<Tree, ContentError> {
        self.import_directory_without(path, |_, _| false).await
    }

    /// Like [`import_directory`](Self::import_directory), without the entries that the function leaves out. It gets the path of each entry,
    /// where bytes that are not UTF-8 are U+FFFD, and whether it is a directory or a link to one. Entries that are left out are not read, and
    /// do not count for the limits.
    ///
    /// # Errors
    /// As of [`import_directory`](Self::import_directory).
    pub async fn import_directory_without(
        &self,
        path: &Path,
        mut leaves_out: impl FnMut(&str, bool) -> bool + Send + 'static,
    ) -> Result<Tree, ContentError> {
        let (store, path) = (self.clone(), path.to_owned());
        blocking::run_long(move |cancel| {
            let mut work = store.begin()?.cancelled_by(cancel);
            let files = directory::read(&path, &mut leaves_out, &mut work, store.limits())?;
            work.commit(files)
        })
        .await
    }

    /// The tree of an archive on disk: tar, plain or compressed with gzip or zstd, or zip.
    ///
    /// # Errors
    /// See [`ArchiveError`](crate::ArchiveError).
    pub async fn import_archive(&self, path: &Path) -> Result<Tree, ContentError> {
        let (store, path) = (self.clone(), path.to_owned());
        blocking::run_long(move |cancel| {
            let mut work = store.begin()?.cancelled_by(cancel);
            let archive = File::open(&path).map_err(StoreError::at("open", &path))?;
            let files = unpack::archive(archive, &path, &mut work, store.limits())?;
            work.commit(files)
        })
        .await
    }

    /// The tree of these files, such as the files of ConfigMaps.
    ///
    /// # Errors
    /// [`ContentError::DuplicatePath`] if two sets contain the same path, [`ContentError::Archive`] for invalid paths.
    pub async fn import_files(&self, sets: Vec<FileSet>) -> Result<Tree, ContentError> {
        let store = self.clone();
        blocking::run_long(move |cancel| {
            let mut work = store.begin()?.cancelled_by(cancel);
            let files = files::store(sets, &mut work, store.limits())?;
            work.commit(files)
        })
        .await
    }

    /// Whether the cache has the tree of this digest. It is not verified.
    pub fn has(&self, digest: &Digest) -> bool {
        self.tree_path(digest).exists()
    }

    /// The tree of this digest, if the cache has it. Its bytes are verified unless it is already open. A damaged tree is
    /// removed and not returned, so that it is fetched again. Blocks on the disk, for about a millisecond per megabyte.
    pub fn tree(&self, digest: &Digest) -> Option<Tree> {
        match self.open_tree(digest) {
            Ok(tree) => tree,
            Err(error) => {
                tracing::warn!(%digest, %error, "a cached tree could not be opened");
                None
            }
        }
    }

    pub(crate) fn open_tree(&self, digest: &Digest) -> Result<Option<Tree>, StoreError> {
        if let Some(inner) = self.open_trees().get(digest).and_then(Weak::upgrade) {
            return Ok(Some(Tree::from_inner(inner)));
        }
        match Tree::open(&self.tree_path(digest), digest)? {
            Opened::Tree(tree) => {
                if let Err(error) = tree.inner().touch() {
                    tracing::debug!(%digest, %error, "the time of use could not be noted");
                }
                let mut open = self.open_trees();
                open.retain(|_, tree| tree.strong_count() > 0);
                open.insert(tree.digest().clone(), Arc::downgrade(tree.inner()));
                Ok(Some(tree))
            }
            Opened::Absent => Ok(None),
            Opened::Damaged(what) => {
                tracing::warn!(%digest, what, "a cached tree is damaged and is removed");
                self.remove_tree(digest)?;
                Ok(None)
            }
        }
    }

    fn open_trees(&self) -> parking_lot::MutexGuard<'_, HashMap<Digest, Weak<TreeInner>>> {
        self.inner.open.lock()
    }

    fn trees(&self) -> PathBuf {
        self.inner.root.join("trees")
    }

    fn tree_path(&self, digest: &Digest) -> PathBuf {
        self.trees().join(digest.hex())
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.inner.root.join("work")
    }

    fn lock_file(&self) -> Result<File, StoreError> {
        let path = self.inner.root.join("lock");
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        opened.map_err(StoreError::at("open", path))
    }

    /// A lock without which what is written below `work` can be removed as a leftover.
    pub(crate) fn lock_for_writing(&self) -> Result<File, StoreError> {
        let lock = self.lock_file()?;
        lock.lock_shared().map_err(StoreError::at("lock", self.inner.root.join("lock")))?;
        Ok(lock)
    }

    /// Removes leftovers below `work`, and records that were not completed, unless a process is writing.
    fn remove_leftovers(&self) -> Result<(), StoreError> {
        let lock = self.lock_file()?;
        match lock.try_lock() {
            Ok(()) => {
                let mut removed = remove_children(&self.work(), |_| true)?;
                for name in RECORDS {
                    removed += remove_children(&self.inner.root.join(name), is_old_leftover)?;
                }
                if removed > 0 {
                    tracing::info!(removed, "removed what an interrupted process left in the content cache");
                }
                Ok(())
            }
            Err(fs::TryLockError::WouldBlock) => Ok(()),
            Err(fs::TryLockError::Error(error)) => Err(StoreError::at("lock", self.inner.root.join("lock"))(error)),
        }
    }

    /// Moves a tree out of `trees` and removes it. Processes that have it open can still read it.
    fn remove_tree(&self, digest: &Digest) -> Result<(), StoreError> {
        // Without room of its own: it makes some.
        let _lock = self.lock_for_writing()?;
        let directory = tempfile::Builder::new().prefix("").tempdir_in(self.work());
        let directory = directory.map_err(StoreError::at("create directory in", self.work()))?;
        let path = self.tree_path(digest);
        match fs::rename(&path, directory.path().join("removed")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::at("remove", path)(error)),
            _ => {}
        }
        directory.close().map_err(StoreError::at("remove", &path))?;
        self.inner.ledger.removed(digest);
        Ok(())
    }
}

fn unfit(directory: &Path, error: io::Error) -> StoreError {
    let operation = if error.kind() == io::ErrorKind::PermissionDenied { "use as a cache" } else { "create directory" };
    StoreError::at(operation, directory)(error)
}

/// Removes these children of a directory. Returns how many.
fn remove_children(directory: &Path, which: impl Fn(&fs::DirEntry) -> bool) -> Result<usize, StoreError> {
    let mut number = 0;
    for child in fs::read_dir(directory).map_err(StoreError::at("list", directory))? {
        let child = child.map_err(StoreError::at("list", directory))?;
        if !which(&child) {
            continue;
        }
        let path = child.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(StoreError::at("remove", path))?;
        number += 1;
    }
    Ok(number)
}

/// Whether a record was not completed and never will be: records are written without the lock, in far less time.
fn is_old_leftover(entry: &fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| chandler_cache::is_left_over(&entry.file_name(), modified, LEFTOVER))
}
