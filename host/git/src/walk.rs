//! The files below a directory of a commit.

use std::collections::BTreeSet;

use gix_hash::{Kind, ObjectId};
use gix_object::{CommitRefIter, TreeRefIter, tree::EntryKind};

use crate::{CommitId, FileId, GitError, Objects};

/// Something below the directory, with its path from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A directory. What is in it follows.
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
struct Child {
    path: Vec<u8>,
    kind: EntryKind,
    id: ObjectId,
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
                EntryKind::Blob | EntryKind::BlobExecutable => visit(Entry::File(path, &objects.file(id)?)),
                EntryKind::Link => visit(Entry::Link(path, &objects.file(id)?)),
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
            if matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link) && !objects.has(id) {
                missing.insert(FileId(*id));
            }
            count().map_err(Stop::Visitor)
        })?;
        Ok(missing.into_iter().collect())
    }

    /// Visits the names below a directory. Directories come before what is in them.
    fn names<E>(
        &mut self,
        commit: CommitId,
        directory: &str,
        visit: &mut impl FnMut(&mut Self, &Child) -> Result<(), Stop<E>>,
    ) -> Result<(), Stop<E>> {
        let tree = self.directory(commit, directory)?;
        // The last child is the next, so that a stack on the heap takes the place of recursion.
        let mut children = self.children(&tree, b"")?;
        while let Some(child) = children.pop() {
            visit(self, &child)?;
            if child.kind == EntryKind::Tree {
                children.extend(self.children(&child.id, &child.path)?);
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
            let children = self.children(&tree, b"")?;
            let child = children.into_iter().find(|child| child.path == part.as_bytes());
            let found = child.filter(|child| child.kind == EntryKind::Tree).map(|child| child.id);
            tree = found.ok_or_else(|| GitError::Directory(directory.to_owned()))?;
        }
        Ok(tree)
    }

    /// What is in a tree object, the last first.
    fn children(&mut self, tree: &ObjectId, above: &[u8]) -> Result<Vec<Child>, GitError> {
        let damaged = || GitError::Object(tree.to_string());
        let bytes = self.read(tree, gix_object::Kind::Tree)?;
        let mut children = Vec::new();
        for entry in TreeRefIter::from_bytes(&bytes, Kind::Sha1) {
            let entry = entry.map_err(|_| damaged())?;
            // A name with a slash could stand for a path that another entry has.
            if entry.filename.is_empty() || entry.filename.contains(&b'/') {
                return Err(damaged());
            }
            let mut path = above.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.filename);
            children.push(Child { path, kind: entry.mode.kind(), id: entry.oid.to_owned() });
        }
        children.reverse();
        Ok(children)
    }
}
