//! A private directory in which a tree is written until it is complete.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use chandler_core::Digest;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{
    Store,
    room::{Room, WORKSPACE},
};
use crate::{
    ContentError, StoreError,
    blocking::Cancel,
    tree::{INDEX, Index, PACK, Stored, Tree},
};

/// The name of the directory in which the tree is assembled.
const TREE: &str = "tree";

/// A directory below `work` with the pack of a new tree. It is removed when dropped.
pub(crate) struct Workspace {
    store: Store,
    pack: BufWriter<File>,
    end: u64,
    /// The length of the pack. The bytes after `end` are written over.
    written: u64,
    /// The positions of bytes that are already in the pack: a bundle often contains the same file more than once.
    known: HashMap<Digest, u64>,
    directory: TempDir,
    cancel: Cancel,
    /// What the directory takes. Dropped after it.
    room: Room,
    /// A shared lock, so that no process removes the directory as a leftover. Dropped last.
    _lock: File,
}

/// Why bytes could not be added.
#[derive(Debug)]
pub(crate) enum AddError {
    /// The reader failed.
    Read(io::Error),
    /// There are more bytes than allowed.
    TooLarge,
    /// The disk failed.
    Write(StoreError),
}

impl Store {
    /// Starts a tree.
    pub(crate) fn begin(&self) -> Result<Workspace, StoreError> {
        let lock = self.lock_for_writing()?;
        let room = self.room();
        room.take(WORKSPACE)?;
        let directory = tempfile::Builder::new().prefix("").tempdir_in(self.work());
        let directory = directory.map_err(StoreError::at("create directory in", self.work()))?;
        let tree = directory.path().join(TREE);
        fs::create_dir(&tree).map_err(StoreError::at("create directory", &tree))?;
        let pack = own_file().open(tree.join(PACK));
        let pack = BufWriter::new(pack.map_err(StoreError::at("create", tree.join(PACK)))?);
        Ok(Workspace {
            store: self.clone(),
            pack,
            end: 0,
            written: 0,
            known: HashMap::new(),
            directory,
            cancel: Cancel::default(),
            room,
            _lock: lock,
        })
    }
}

impl Workspace {
    /// A directory for downloads, which are removed with the workspace.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The room for what is written below the directory. It must be taken before the write.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// Stops the work in this workspace when `cancel` fires.
    pub(crate) fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// The cancellation of the work in this workspace.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Adds the bytes of one file, at most `limit` of them.
    pub(crate) fn add(&mut self, reader: &mut impl Read, limit: u64) -> Result<Stored, AddError> {
        let offset = self.end;
        let mut hash = Sha256::new();
        let mut size = 0_u64;
        let mut buffer = [0; 16 << 10];
        loop {
            self.cancel.check().map_err(|error| AddError::Write(self.write_error(error)))?;
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(AddError::Read(error)),
            };
            let chunk = buffer.get(..count).unwrap_or_default();
            size = size.saturating_add(count as u64);
            if size > limit {
                return Err(AddError::TooLarge);
            }
            hash.update(chunk);
            let end = offset.saturating_add(size);
            if end > self.written {
                self.room.take(end - self.written).map_err(AddError::Write)?;
                self.written = end;
            }
            self.pack.write_all(chunk).map_err(|error| AddError::Write(self.write_error(error)))?;
        }
        let digest = Digest::from_hash(hash.finalize().into());
        if let Some(offset) = self.known.get(&digest).copied() {
            // The next file overwrites the second copy.
            let back = self.pack.seek(SeekFrom::Start(self.end));
            back.map_err(|error| AddError::Write(self.write_error(error)))?;
            return Ok(Stored { offset, size, digest });
        }
        self.known.insert(digest.clone(), offset);
        self.end = offset.saturating_add(size);
        Ok(Stored { offset, size, digest })
    }

    fn write_error(&self, error: io::Error) -> StoreError {
        StoreError::at("write to", self.store.work())(error)
    }

    /// Completes the tree, moves it into place, and opens it.
    pub(crate) fn commit(mut self, files: BTreeMap<String, Stored>) -> Result<Tree, ContentError> {
        let index = Index::new(files);
        let digest = index.digest();
        if let Some(tree) = self.store.open_tree(&digest)? {
            return Ok(tree);
        }
        self.seal(&index)?;
        self.cancel.check().map_err(|error| self.write_error(error))?;
        let from = self.path().join(TREE);
        let to = self.store.tree_path(&digest);
        match fs::rename(&from, &to) {
            Ok(()) => {
                self.room.completed(&digest);
                sync_directory(&self.store.trees())?;
            }
            // Another process was faster; its tree is the same.
            Err(error) if matches!(error.raw_os_error(), Some(libc_codes::EEXIST | libc_codes::ENOTEMPTY)) => {}
            Err(error) => return Err(StoreError::at("move into place", to)(error).into()),
        }
        self.store.open_tree(&digest)?.ok_or_else(|| {
            let lost = io::Error::new(io::ErrorKind::NotFound, "it was removed or altered while it was written");
            StoreError::at("open", to)(lost).into()
        })
    }

    /// Writes the index, and syncs everything to the disk before the tree is visible.
    fn seal(&mut self, index: &Index) -> Result<(), StoreError> {
        let tree = self.path().join(TREE);
        let end = self.end;
        let sealed = self.pack.flush().and_then(|()| self.pack.get_ref().set_len(end));
        sealed.and_then(|()| self.pack.get_ref().sync_all()).map_err(|error| self.write_error(error))?;
        let path = tree.join(INDEX);
        let text = serde_json::to_vec(index).map_err(|error| self.write_error(error.into()))?;
        self.room.take(text.len() as u64)?;
        write_synced(&path, &text).map_err(StoreError::at("write", path))?;
        sync_directory(&tree)
    }
}

/// The errors of `rename` if the target is a directory with files.
mod libc_codes {
    pub(super) const EEXIST: i32 = 17;
    pub(super) const ENOTEMPTY: i32 = 39;
}

/// Options for a new file that only this user can read, wherever its directory is moved.
pub(crate) fn own_file() -> OpenOptions {
    let mut options = File::options();
    options.create_new(true).write(true).mode(0o600);
    options
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = own_file().open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(StoreError::at("sync", path))
}
