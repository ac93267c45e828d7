//! The names of objects.

use std::{fmt, str::FromStr};

use gix_hash::ObjectId;

use crate::GitError;

/// The SHA-1 name of a commit: 40 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(pub(crate) ObjectId);

impl FromStr for CommitId {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        let id = ObjectId::from_hex(text.as_bytes()).ok().filter(|id| id.kind() == gix_hash::Kind::Sha1);
        id.map(Self).ok_or(GitError::Commit)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The SHA-1 name of the bytes of a file, or of the target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) ObjectId);
