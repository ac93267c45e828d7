//! The files below a directory of a commit.

use std::collections::BTreeSet;

use gix_hash::{Kind, ObjectId};
use gix_object::{CommitRefIter, TreeRefIter, tree::EntryKind};

use crate::{CommitId, FileId, GitError, Objects};

/// Something below the directory, with its path from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A directory. Its entries follow.
    Directory(&'a [u8]),
    /// A file with its bytes.
    File(&'a [u8], &'a [u8]),
    /// A symbolic link with its target.
    Link(&'a [u8], &'a [u8]),
    /// A submodule: the commit of another repository.
    Submodule(&'a [u8]),
}

/// Why a walk ended early.
#[derive(Debug)]
pub enum Stop<E> {
    /// The objects cannot be read.
    Git(GitError),
    /// The visitor refused an entry.
    Visitor(E),
}

impl<E> From<GitError> for Stop<E> {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

/// One entry of a tree object.
struct Child<'a> {
    path: &'a [u8],
    kind: EntryKind,
    id: ObjectId,
}

/// A directory whose entries are visited: the tree object, how far it was read, and the length of the path of the directory.
struct Open {
    tree: Vec<u8>,
    id: ObjectId,
    read: usize,
    path: usize,
}

impl Objects {
    /// Passes on everything below a directory of a commit, in the order of the names. The directory is a path without `.` and `..`;
    /// an empty one is the root. The visitor bounds the walk: a tree may contain itself many times over, though never endlessly.
    ///
    /// # Errors
    /// The directory does not exist, an object is missing, or the visitor refuses an entry.
    pub fn walk<E>(
        &mut self,
        commit: CommitId,
        directory: &str,
        visit: &mut impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        self.names(commit, directory, &mut |objects, Child { path, kind, id }| {
            let visited = match kind {
                EntryKind::Tree => visit(Entry::Directory(path)),
                EntryKind::Blob | EntryKind::BlobExecutable => visit(Entry::File(path, &objects.file(&id)?)),
                EntryKind::Link => visit(Entry::Link(path, &objects.file(&id)?)),
                EntryKind::Commit => visit(Entry::Submodule(path)),
            };
            visited.map_err(Stop::Visitor)
        })
    }

    /// The files and links below a directory of a commit whose bytes are in no pack. `count` is called for each entry, and bounds the
    /// walk.
    ///
    /// # Errors
    /// The directory does not exist, an object other than a file is missing, or `count` refuses an entry.
    pub fn missing_files<E>(
        &mut self,
        commit: CommitId,
        directory: &str,
        count: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<FileId>, Stop<E>> {
        let mut missing = BTreeSet::new();
        self.names(commit, directory, &mut |objects, Child { kind, id, .. }| {
            if matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link) && !objects.has(&id) {
                missing.insert(FileId(id));
            }
            count().map_err(Stop::Visitor)
        })?;
        Ok(missing.into_iter().collect())
    }

    /// Visits the names below a directory. Directories come before what is in them. Only the directories above a name are in
    /// memory, and one path.
    fn names<E>(
        &mut self,
        commit: CommitId,
        directory: &str,
        visit: &mut impl FnMut(&mut Self, Child<'_>) -> Result<(), Stop<E>>,
    ) -> Result<(), Stop<E>> {
        let (most, most_path) = (self.limits.alive_bytes, self.limits.path_bytes);
        let id = self.directory(commit, directory)?;
        let (mut path, mut alive) = (Vec::new(), 0_u64);
        // A stack on the heap takes the place of recursion.
        let mut open = vec![Open { tree: self.read(&id, gix_object::Kind::Tree)?, id, read: 0, path: 0 }];
        while let Some(last) = open.last_mut() {
            let above = last.path;
            path.truncate(above);
            let Some(entry) = last.next()? else {
                alive = alive.saturating_sub(last.tree.len() as u64);
                open.pop();
                continue;
            };
            if above > 0 {
                path.push(b'/');
            }
            // A tree object is as large as its entries say, and so may be a name.
            if directory.len().saturating_add(path.len()).saturating_add(entry.name.len()) > most_path {
                return Err(GitError::Path(most_path).into());
            }
            path.extend_from_slice(entry.name);
            let (kind, id) = (entry.kind, entry.id);
            visit(self, Child { path: &path, kind, id })?;
            if kind == EntryKind::Tree {
                let tree = self.read(&id, gix_object::Kind::Tree)?;
                alive = alive.saturating_add(tree.len() as u64);
                if alive > most {
                    return Err(GitError::Alive(most).into());
                }
                open.push(Open { tree, id, read: 0, path: path.len() });
            }
        }
        Ok(())
    }

    fn file(&mut self, id: &ObjectId) -> Result<Vec<u8>, GitError> {
        self.read(id, gix_object::Kind::Blob)
    }

    /// The tree object of a directory.
    fn directory(&mut self, commit: CommitId, directory: &str) -> Result<ObjectId, GitError> {
        let bytes = self.read(&commit.0, gix_object::Kind::Commit)?;
        let tree = CommitRefIter::from_bytes(&bytes, Kind::Sha1).tree_id();
        let mut tree = tree.map_err(|_| GitError::Object(commit.to_string()))?;
        for part in directory.split('/').filter(|part| !part.is_empty()) {
            let mut above = Open { tree: self.read(&tree, gix_object::Kind::Tree)?, id: tree, read: 0, path: 0 };
            let mut found = None;
            while let Some(entry) = above.next()? {
                if entry.name == part.as_bytes() && entry.kind == EntryKind::Tree {
                    found = Some(entry.id);
                    break;
                }
            }
            tree = found.ok_or_else(|| GitError::Directory(directory.to_owned()))?;
        }
        Ok(tree)
    }
}

/// An entry of a tree object.
struct Named<'a> {
    name: &'a [u8],
    kind: EntryKind,
    id: ObjectId,
}

impl Open {
    /// The next entry.
    fn next(&mut self) -> Result<Option<Named<'_>>, GitError> {
        let damaged = || GitError::Object(self.id.to_string());
        let rest = self.tree.get(self.read..).unwrap_or_default();
        let Some(entry) = TreeRefIter::from_bytes(rest, Kind::Sha1).next() else { return Ok(None) };
        let entry = entry.map_err(|_| damaged())?;
        // A name with a slash could equal another entry's path.
        if entry.filename.is_empty() || entry.filename.contains(&b'/') {
            return Err(damaged());
        }
        // The name of the object ends an entry.
        let end = rest.iter().position(|byte| *byte == 0).map(|zero| zero + 1 + Kind::Sha1.len_in_bytes());
        self.read = self.read.saturating_add(end.ok_or_else(damaged)?);
        Ok(Some(Named { name: entry.filename, kind: entry.mode.kind(), id: entry.oid.to_owned() }))
    }
}
