//! The files of a commit, under the rules for files of a bundle.

use std::fs::File;

use chandler_git::{CommitId, Entry, GitError, Objects, PackLimits, Stop};

use super::session::PACK;
use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits, StoreError, Tree,
    path::entry_path,
    store::{Workspace, workspace::AddError},
    unpack::{Overlay, RootedAt},
};

/// How many objects of a repository there may be for each entry of a bundle: a commit of a large repository holds many bundles.
const OBJECTS_PER_ENTRY: usize = 50;
/// What a pointer of Git LFS begins with, and how long it is at most (the specification of Git LFS).
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
const LFS_BYTES: usize = 1024;

/// Why there is no tree.
pub(super) enum Refused {
    Git(GitError),
    Archive(ArchiveError),
    Other(ContentError),
}

impl From<ArchiveError> for Refused {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

/// Reads the pack in a workspace, and stores what is below a directory of a commit.
pub(super) fn store(mut work: Workspace, commit: CommitId, directory: &str, limits: &Limits) -> Result<Tree, Refused> {
    let disk = |error: StoreError| Refused::Other(error.into());
    let path = work.path().join(PACK);
    let pack = File::open(&path).map_err(StoreError::at("open", &path)).map_err(disk)?;
    let objects = u32::try_from(limits.entries.saturating_mul(OBJECTS_PER_ENTRY)).unwrap_or(u32::MAX);
    let bounds = PackLimits { objects, object_bytes: limits.file_bytes };
    let mut objects = Objects::index(pack, work.path(), bounds, work.cancel().flag()).map_err(Refused::Git)?;
    let mut reader = Reader { work: &mut work, limits, overlay: Overlay::new(limits), bytes: 0 };
    objects.walk(commit, directory, &mut |entry| reader.one(entry)).map_err(|stop| match stop {
        Stop::Git(error) => Refused::Git(error),
        Stop::Visitor(refused) => refused,
    })?;
    let mut overlay = reader.overlay;
    overlay.merge()?;
    let files = overlay.finish(RootedAt::Nothing)?;
    work.commit(files).map_err(Refused::Other)
}

struct Reader<'a> {
    work: &'a mut Workspace,
    limits: &'a Limits,
    overlay: Overlay,
    /// The bytes of all files so far, copies included.
    bytes: u64,
}

impl Reader<'_> {
    fn one(&mut self, entry: Entry<'_>) -> Result<(), Refused> {
        self.overlay.count()?;
        let name = match entry {
            Entry::Directory(name) | Entry::File(name, _) | Entry::Link(name, _) | Entry::Submodule(name) => name,
        };
        let refuse = |problem: EntryProblem| Refused::Archive(problem.at(name));
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
                let stored = self.work.add(&mut bytes, self.limits.file_bytes).map_err(|error| match error {
                    AddError::TooLarge => refuse(EntryProblem::FileTooLarge(self.limits.file_bytes)),
                    AddError::Read(error) => Refused::Other(StoreError::at("read", "a file")(error).into()),
                    AddError::Write(error) => Refused::Other(error.into()),
                })?;
                self.overlay.file(path, stored)
            }
        }
        .map_err(refuse)
    }
}
