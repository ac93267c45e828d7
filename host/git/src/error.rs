//! Failures.

/// Why a repository gives no files. Texts of servers in messages are short and have no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// A text is not the full name of a commit.
    #[error("a commit is named by all of its 40 hexadecimal digits")]
    Commit,
    /// A text is not a range of versions.
    #[error("{0:?} is not a range of versions, such as \">=1.2, <2\"")]
    Range(String),
    /// The server does not speak version 2 of the protocol.
    #[error("the server does not speak version 2 of the git protocol, or this is not a git repository")]
    Version,
    /// The server answers with an older version of the protocol over SSH.
    #[error(
        "the server does not speak version 2 of the git protocol over SSH: its git is older than 2.18, or it ignores GIT_PROTOCOL \
         (sshd_config needs the line `AcceptEnv GIT_PROTOCOL`)"
    )]
    OldVersion,
    /// The repository names objects by another hash.
    #[error("its objects are named by {0}; only sha1 is supported")]
    ObjectFormat(String),
    /// The server says that it failed.
    #[error("the server answered: {0}")]
    Server(String),
    /// The response violates the protocol.
    #[error("the response violates the git protocol: {0}")]
    Protocol(&'static str),
    /// The response ends too early.
    #[error("the response ends too early")]
    Truncated,
    /// There is no such branch, tag or version.
    #[error("it has no {0}")]
    NotFound(String),
    /// More refs match than are read.
    #[error("more than {0} of its branches or tags match")]
    Refs(usize),
    /// The pack has too many objects.
    #[error("it has {found} objects, and the limit is {most}")]
    Objects {
        /// The objects of the pack.
        found: u32,
        /// [`PackLimits::objects`](crate::PackLimits::objects).
        most: u32,
    },
    /// One object is too large.
    #[error("one of its objects is larger than {} MiB", .0 >> 20)]
    ObjectBytes(u64),
    /// Too many objects have to be in memory at the same time: those from which others are made, or directories in each other.
    #[error("its objects need more than {} MiB of memory at the same time", .0 >> 20)]
    Alive(u64),
    /// An object is made from another one, and that from a further one, and so on.
    #[error("an object is the last of a chain of more than {0} differences")]
    Chain(usize),
    /// Too much has to be read for the files of the directory.
    #[error("its directory needs more than {} MiB to be read; objects count each time they occur", .0 >> 20)]
    Work(u64),
    /// A path is too long.
    #[error("one of its paths is longer than {0} bytes")]
    Path(usize),
    /// The pack or an object of it is damaged or too large.
    #[error("its objects cannot be read: {0}")]
    Pack(String),
    /// An object that the commit needs is not in the pack, or is of another type.
    #[error("object {0} is missing or damaged")]
    Object(String),
    /// The directory does not exist.
    #[error("it has no directory {0:?} at this commit")]
    Directory(String),
    /// All objects together are too large.
    #[error("its objects are larger than {} MiB together", .0 >> 20)]
    Bytes(u64),
    /// The disk failed, or the caller stopped waiting.
    #[error("{0}")]
    Disk(String),
}

impl GitError {
    /// What a server says on standard error, if it says anything: the lines with words, since hosts frame them.
    pub fn said(standard_error: &[u8]) -> Option<Self> {
        let lines = standard_error.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let words: Vec<&[u8]> = lines.filter(|line| line.iter().any(u8::is_ascii_alphanumeric)).collect();
        if words.is_empty() { None } else { Some(Self::Server(text(&words.join(&b"; "[..])))) }
    }

    /// Whether the repository has to change, not the source, before another attempt can succeed.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Directory(_) | Self::Server(_))
    }
}

/// A text of a server or of a library: short, on one line.
pub(crate) fn text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_short_and_has_no_frame() {
        assert_eq!(GitError::said(b"\n=====\n"), None);
        let framed = GitError::said(b"remote:\n\n========\nERROR: no such\x1b[1m project\n\n=======\n");
        assert_eq!(framed, Some(GitError::Server("remote:; ERROR: no such [1m project".to_owned())));
        let long = GitError::said(&[b'x'; 5000]);
        assert_eq!(long, Some(GitError::Server("x".repeat(200))));
    }
}
