//! Failures.

/// Why a repository gives no files. Texts of servers in messages are short and have no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// A text is no full name of a commit.
    #[error("a commit is named by all of its 40 hexadecimal digits")]
    Commit,
    /// A text is no range of versions.
    #[error("{0:?} is not a range of versions, such as \">=1.2, <2\"")]
    Range(String),
    /// The server does not speak version 2 of the protocol.
    #[error("the server does not speak version 2 of the git protocol, or this is no git repository")]
    Version,
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
    /// The pack or an object of it is damaged or too large.
    #[error("its objects cannot be read: {0}")]
    Pack(String),
    /// An object that the commit needs is not in the pack, or is of another type.
    #[error("object {0} is missing or damaged")]
    Object(String),
    /// The directory does not exist.
    #[error("it has no directory {0:?} at this commit")]
    Directory(String),
    /// All files together are too large.
    #[error("its files are larger than {} MiB together", .0 >> 20)]
    Bytes(u64),
    /// The disk failed, or the caller stopped waiting.
    #[error("{0}")]
    Disk(String),
}

impl GitError {
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
