//! The files of a commit, under the rules for files of a bundle.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use chandler_git::{Entry, FileId, GitError, Objects, PackLimits, Stop};

use super::Checkout;
use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits, StoreError, Tree,
    blocking::Cancel,
    path::entry_path,
    store::{FILE, Workspace},
    unpack::{self, Overlay, RootedAt},
};

/// How many objects of a repository there may be for each entry of a bundle: a commit of a large repository holds many bundles.
const OBJECTS_PER_ENTRY: usize = 50;
/// No object may be larger, whatever the limit on files: three are in memory at the same time, and hosts refuse files over 100 MiB.
const OBJECT_BYTES: u64 = 100 << 20;
/// The head of a pack: a signature, the version and the number of objects.
const PACK_HEAD: u64 = 12;
/// What an index has for each object at most (a name, a checksum and two offsets), and for all of them.
const INDEX_ENTRY: u64 = 20 + 4 + 4 + 8;
const INDEX_HEAD: u64 = 8 + 256 * 4 + 40;
/// What a pointer of Git LFS begins with, and how long it is at most (the specification of Git LFS).
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
const LFS_BYTES: usize = 1024;

/// The names of the packs in a workspace: the pack of the commit, and the pack of the files that it lacks.
pub(super) const PACK: &str = "received";
const PACK_OF_MISSING: &str = "received-files";

/// A commit in a workspace.
pub(super) struct Files {
    work: Workspace,
    checkout: Checkout,
    limits: Limits,
    objects: Objects,
    missing: Vec<FileId>,
}

impl Files {
    /// Reads the pack of a commit.
    pub(super) fn index(work: Workspace, checkout: Checkout, limits: Limits) -> Result<Self, ContentError> {
        let pack = open(&work.path().join(PACK))?;
        work.room().take(copy_of(&pack, &limits).map_err(StoreError::at("read", work.path()))?)?;
        let objects = Objects::index(pack, work.path(), bounds(&limits), work.cancel().flag());
        let mut objects = objects.map_err(|error| failed(&checkout, error))?;
        let mut overlay = Overlay::new(&limits);
        let missing = objects.missing_files(checkout.commit, &checkout.directory, &mut || {
            work.cancel().check().map_err(StoreError::at("work on", work.path()))?;
            Ok::<_, ContentError>(overlay.count()?)
        });
        let missing = missing.map_err(|stop| stopped(&checkout, stop))?;
        Ok(Self { work, checkout, limits, objects, missing })
    }

    /// The files of the directory that the pack has not.
    pub(super) fn missing(&self) -> &[FileId] {
        &self.missing
    }

    /// Where their pack belongs.
    pub(super) fn path_of_missing(&self) -> PathBuf {
        self.work.path().join(PACK_OF_MISSING)
    }

    /// Reads the pack of the missing files.
    pub(super) fn add_missing(mut self, cancel: &Cancel) -> Result<Self, ContentError> {
        self.work = self.work.cancelled_by(cancel);
        let pack = open(&self.path_of_missing())?;
        let copy = copy_of(&pack, &self.limits).map_err(StoreError::at("read", self.work.path()))?;
        self.work.room().take(copy)?;
        let added = self.objects.add(pack, self.work.path(), cancel.flag());
        added.map_err(|error| failed(&self.checkout, error))?;
        Ok(self)
    }

    /// Stores what is below the directory of the commit.
    pub(super) fn store(self, cancel: &Cancel) -> Result<Tree, ContentError> {
        let Self { work, checkout, limits, mut objects, .. } = self;
        let mut work = work.cancelled_by(cancel);
        let mut reader = Reader { work: &mut work, limits: &limits, overlay: Overlay::new(&limits), bytes: 0 };
        let walked = objects.walk(checkout.commit, &checkout.directory, &mut |entry| reader.one(entry));
        walked.map_err(|stop| stopped(&checkout, stop))?;
        let mut overlay = reader.overlay;
        overlay.merge()?;
        work.commit(overlay.finish(RootedAt::Nothing)?)
    }
}

fn open(path: &Path) -> Result<File, ContentError> {
    Ok(File::open(path).map_err(StoreError::at("open", path))?)
}

/// What the copy of a pack and its index take on the disk: an index has an entry for each object (gitformat-pack, "Version 2 pack-*.idx files").
fn copy_of(pack: &File, limits: &Limits) -> io::Result<u64> {
    let (mut number, bytes) = ([0; 4], pack.metadata()?.len());
    // A pack without a whole head is refused later.
    let objects =
        if bytes < PACK_HEAD { 0 } else { pack.read_exact_at(&mut number, 8).map(|()| u32::from_be_bytes(number))? };
    let entries = u64::from(objects.min(bounds(limits).objects)).saturating_mul(INDEX_ENTRY);
    Ok(bytes.saturating_add(entries).saturating_add(2 * FILE).saturating_add(INDEX_HEAD))
}

/// A repository may be larger than the directory that is a bundle, though not without bounds.
fn bounds(limits: &Limits) -> PackLimits {
    let object_bytes = limits.file_bytes.min(OBJECT_BYTES);
    PackLimits {
        objects: u32::try_from(limits.entries.saturating_mul(OBJECTS_PER_ENTRY)).unwrap_or(u32::MAX),
        object_bytes,
        // An object, the one that it is made from, and others that wait.
        alive_bytes: object_bytes.saturating_mul(3),
        all_bytes: limits.unpacked_bytes.saturating_mul(4),
        work_bytes: limits.unpacked_bytes.saturating_mul(16),
        path_bytes: limits.path_bytes,
    }
}

fn failed(checkout: &Checkout, error: GitError) -> ContentError {
    ContentError::Git { url: checkout.url.to_string(), error }
}

fn stopped(checkout: &Checkout, stop: Stop<impl Into<ContentError>>) -> ContentError {
    match stop {
        Stop::Git(error) => failed(checkout, error),
        Stop::Visitor(error) => error.into(),
    }
}

struct Reader<'a> {
    work: &'a mut Workspace,
    limits: &'a Limits,
    overlay: Overlay,
    /// The bytes of all files so far, copies included.
    bytes: u64,
}

impl Reader<'_> {
    fn one(&mut self, entry: Entry<'_>) -> Result<(), ContentError> {
        self.overlay.count()?;
        let name = match entry {
            Entry::Directory(name) | Entry::File(name, _) | Entry::Link(name, _) | Entry::Submodule(name) => name,
        };
        let refuse = |problem: EntryProblem| ContentError::from(problem.at(name));
        let path = entry_path(name, self.limits).map_err(refuse)?;
        match entry {
            Entry::Submodule(_) => Err(EntryProblem::Submodule),
            Entry::Directory(_) => self.overlay.directory(path),
            Entry::Link(_, target) => self.overlay.symbolic_link(path, target),
            Entry::File(_, bytes) if bytes.len() <= LFS_BYTES && bytes.starts_with(LFS) => {
                Err(EntryProblem::LfsPointer)
            }
            Entry::File(_, mut bytes) => {
                self.bytes = self.bytes.saturating_add(bytes.len() as u64);
                if self.bytes > self.limits.unpacked_bytes {
                    return Err(ArchiveError::from(LimitExceeded::UnpackedBytes(self.limits.unpacked_bytes)).into());
                }
                let stored = unpack::stored(self.work, &mut bytes, name, self.limits)?;
                self.overlay.file(path, stored)
            }
        }
        .map_err(refuse)
    }
}
