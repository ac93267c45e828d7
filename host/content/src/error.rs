//! Failures between a source and its tree.

use std::{io, path::PathBuf, time::Duration};

use chandler_core::{Digest, descriptors_exhausted};
use chandler_git::{CommitId, GitError};
use chandler_registries::Blocked;
use chandler_verify::Refused;

use crate::{
    AccessError, ChartError, DownloadError, Downloaded, ImageError, LimitExceeded, ReferenceError, RegistryError,
    ServerFailure, limits::Bytes,
};

/// Why there is no tree. A cause has the same message at each attempt. Messages contain no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The image reference cannot be parsed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The certificate authority or the pull secret is not usable.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The registry is unreachable, or refused the request.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The response of the registry is invalid.
    #[error("image {image}: {error}")]
    Image {
        /// The image, by digest if it is known.
        image: String,
        /// What is wrong with it.
        error: ImageError,
    },
    /// The signatures of an image do not satisfy the policy.
    #[error("image {image}: {refused}")]
    Unverified {
        /// The image, by digest.
        image: String,
        /// Why.
        refused: Refused,
    },
    /// A layer of an image is refused.
    #[error("layer {} of image {image}: {error}", .layer.short())]
    Layer {
        /// The image, by digest.
        image: String,
        /// The layer's digest.
        layer: Digest,
        /// What is wrong with it.
        error: ArchiveError,
    },
    /// An archive, a directory or a set of files is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Two ConfigMaps contain the same file.
    #[error("duplicate path {path:?} found in configmaps [{}]", .sources.join(" "))]
    DuplicatePath {
        /// The path of the file.
        path: String,
        /// The names of the ConfigMaps, sorted.
        sources: Vec<String>,
    },
    /// The server of an archive is unreachable, or refused the request.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// An archive is not the one that the source names.
    #[error("archive {url}: its SHA-256 digest is {found}, not {expected}")]
    Checksum {
        /// The URL of the archive.
        url: String,
        /// The digest that the source names.
        expected: Digest,
        /// The digest of the bytes that the server sent.
        found: Digest,
    },
    /// An archive that was downloaded is refused.
    #[error("{what} {url}: {error}")]
    DownloadedArchive {
        /// An archive, or the index of a Helm repository.
        what: Downloaded,
        /// The URL of the archive.
        url: String,
        /// What is wrong with it.
        error: ArchiveError,
    },
    /// A Helm repository does not have the chart that the source names.
    #[error("Helm repository {repository}: {error}")]
    Chart {
        /// The URL of the repository.
        repository: String,
        /// What is wrong.
        error: ChartError,
    },
    /// A git repository has no such content, or its server violates the protocol.
    #[error("git repository {url}: {error}")]
    Git {
        /// The URL of the repository.
        url: String,
        /// What is wrong.
        error: GitError,
    },
    /// Files of a git repository are refused.
    #[error("git repository {url} at commit {commit}: {error}")]
    Checkout {
        /// The URL of the repository.
        url: String,
        /// The commit.
        commit: CommitId,
        /// What is wrong with them.
        error: ArchiveError,
    },
    /// The settings for registries forbid to pull the image.
    #[error("image {image}: {error}")]
    Blocked {
        /// The image.
        image: String,
        /// What blocks it.
        error: Blocked,
    },
    /// No mirror of an image has it, and neither has its own registry, where that may be asked.
    #[error("image {image}: no endpoint served it: {texts}")]
    Endpoints {
        /// The image.
        image: String,
        /// The failures, in order.
        texts: String,
        /// The failure that decides whether a retry helps.
        decisive: Box<ContentError>,
    },
    /// The request took too long.
    #[error("{what}: not fetched within {seconds} s")]
    Timeout {
        /// The content, such as `image quay.io/example/harbour:v1`.
        what: String,
        /// The time limit.
        seconds: u64,
    },
    /// The cache is full.
    #[error(transparent)]
    CacheFull(CacheFull),
    /// The cache directory failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ContentError {
    fn from(error: StoreError) -> Self {
        match error.source.get_ref().and_then(|inner| inner.downcast_ref::<CacheFull>()) {
            Some(full) => Self::CacheFull(*full),
            None => Self::Store(error),
        }
    }
}

/// Whether and when a retry helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The network, the registry or the disk failed. A retry may succeed soon.
    Transient,
    /// The content does not exist or access is denied. A retry succeeds after a push or a grant.
    Unavailable,
    /// The content is refused. A retry fails until the specification changes or the tag moves.
    Permanent,
}

impl ContentError {
    /// Whether and when a retry helps.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Registry(RegistryError { failure, .. }) | Self::Download(DownloadError { failure, .. }) => {
                match failure {
                    // DNS may fail for a moment, and the last good content stays in use meanwhile.
                    ServerFailure::Network
                    | ServerFailure::NoDescriptor
                    | ServerFailure::NameNotResolved
                    | ServerFailure::Unavailable
                    | ServerFailure::RateLimited
                    | ServerFailure::TooSlow => FailureClass::Transient,
                    ServerFailure::NotFound
                    | ServerFailure::Unauthorized
                    | ServerFailure::Tls
                    | ServerFailure::HostKey
                    | ServerFailure::Address
                    | ServerFailure::Blocked
                    | ServerFailure::Plaintext => FailureClass::Unavailable,
                    ServerFailure::Protocol => FailureClass::Permanent,
                }
            }
            // The transfer was truncated or corrupted; the next one may succeed.
            Self::Image { error: ImageError::DigestMismatch { .. } | ImageError::SizeMismatch { .. }, .. } => {
                FailureClass::Transient
            }
            Self::Store(_)
            | Self::CacheFull(_)
            | Self::Timeout { .. }
            | Self::Git { error: GitError::Truncated | GitError::Disk(_), .. } => FailureClass::Transient,
            // The server may have been changing the archive, and the next one may be right. An image may be signed later.
            Self::Access(_) | Self::Checksum { .. } | Self::Blocked { .. } | Self::Unverified { .. } => {
                FailureClass::Unavailable
            }
            // The publisher may add the version. The last good content stays in use.
            Self::Chart { .. } => FailureClass::Unavailable,
            Self::Endpoints { decisive, .. } => decisive.class(),
            // A push may change it. The last good content stays in use.
            Self::Git { error, .. } if error.is_absence() => FailureClass::Unavailable,
            Self::Reference(_)
            | Self::Image { .. }
            | Self::Layer { .. }
            | Self::Archive(_)
            | Self::DownloadedArchive { .. }
            | Self::Git { .. }
            | Self::Checkout { .. }
            | Self::DuplicatePath { .. } => FailureClass::Permanent,
        }
    }

    /// The registry, or the server of an archive, that did not answer, where that is the failure: `host` or `host:port`.
    pub fn silent_registry(&self) -> Option<&str> {
        match self {
            Self::Download(error) if error.failure.is_silence() => Some(&error.server),
            Self::Registry(error) if error.failure.is_silence() => Some(error.registry()),
            Self::Endpoints { decisive, .. } => decisive.silent_registry(),
            _ => None,
        }
    }

    /// How long the server asks clients to wait, if it does.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Download(error) => error.retry_after,
            Self::Registry(error) => error.retry_after,
            Self::Endpoints { decisive, .. } => decisive.retry_after(),
            _ => None,
        }
    }

    /// A CamelCase word for metrics and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Reference(_) => "InvalidReference",
            Self::Access(_) => "InvalidAccess",
            Self::Registry(error) => error.failure.reason(),
            Self::Blocked { .. } => "Blocked",
            Self::Endpoints { decisive, .. } => decisive.reason(),
            Self::Download(error) => error.reason(),
            Self::Checksum { .. } => "ChecksumMismatch",
            Self::Chart { error, .. } => error.reason(),
            Self::DownloadedArchive { what: Downloaded::HelmIndex, .. } => "InvalidIndex",
            Self::Layer { .. }
            | Self::Archive(_)
            | Self::DownloadedArchive { .. }
            | Self::Image { error: ImageError::Archive(_), .. } => "InvalidArchive",
            Self::Checkout { .. } => "InvalidRepository",
            Self::Git { error, .. } => git_reason(error),
            Self::Unverified { .. } => "NoMatchingSignature",
            Self::Image { .. } => "InvalidImage",
            Self::DuplicatePath { .. } => "DuplicatePath",
            Self::Timeout { .. } => "Timeout",
            Self::CacheFull(_) => "CacheFull",
            Self::Store(_) => "StoreFailed",
        }
    }
}

fn git_reason(error: &GitError) -> &'static str {
    match error {
        GitError::NotFound(_) => "RevisionNotFound",
        GitError::Directory(_) => "DirectoryNotFound",
        GitError::Server(_) => "ServerRefused",
        GitError::Version | GitError::OldVersion | GitError::Protocol(_) | GitError::Truncated => "InvalidResponse",
        GitError::Disk(_) => "StoreFailed",
        _ => "InvalidRepository",
    }
}

/// The cache is full: its limit is reached, and nothing else in it gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheFull {
    /// All of its content is in use.
    #[error(
        "the content cache of the controller is full: what is in use takes all of its {}; delete BundleDeployments that are not needed, or let \
         the administrator raise --content-cache-limit",
        Bytes(*.0)
    )]
    InUse(u64),
    /// The content was being written, and others with less content needed the room.
    #[error(
        "the content cache of the controller is full: this content gave way to other accounts that use less of its {}; delete BundleDeployments that \
         are not needed, or let the administrator raise --content-cache-limit",
        Bytes(*.0)
    )]
    GaveWay(u64),
}

/// The cache directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {}", .path.display(), io_message(.source))]
pub struct StoreError {
    /// The operation, such as `create directory`.
    pub operation: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl StoreError {
    pub(crate) fn at(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { operation, path, source }
    }
}

/// A number of bytes, in words.
fn bytes(number: u64) -> String {
    if number == 1 { "1 byte".to_owned() } else { format!("{number} bytes") }
}

fn io_message(error: &io::Error) -> String {
    descriptors_exhausted(error).map_or_else(|| error.to_string(), |exhausted| exhausted.to_string())
}

/// Why an archive, a directory or a set of files is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// One entry is refused.
    #[error("entry {entry:?}: {problem}")]
    Entry {
        /// The printable part of the name of the entry.
        entry: String,
        /// What is wrong with it.
        problem: EntryProblem,
    },
    /// A limit is exceeded.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// It is not an archive, or a damaged one.
    #[error("is not a readable tar archive: {0}")]
    Malformed(String),
    /// It is not the index of a Helm repository. The text quotes nothing of what was read.
    #[error("is not the index.yaml of a Helm repository: {0}")]
    HelmIndex(String),
    /// It begins like a zip archive, and is a damaged one.
    #[error("is not a readable zip archive: {0}")]
    MalformedZip(String),
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// It has no name.
    #[error("has no name")]
    NoName,
    /// It begins with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// It has a part `..`.
    #[error("the path has a `..` part")]
    Parent,
    /// It is not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// It has a control character.
    #[error("the path has a control character")]
    ControlCharacter,
    /// It is in a zip archive and has a backslash, which some tools take for a separator.
    #[error("the path has a backslash; paths in zip archives are separated by `/`")]
    Backslash,
    /// A part is longer than file systems allow.
    #[error("a part of the path is longer than 255 bytes")]
    NameTooLong,
    /// The path is too long.
    #[error("the path is longer than {0} bytes")]
    PathTooLong(usize),
    /// There are too many directories above it.
    #[error("lies deeper than {0} directories")]
    TooDeep(usize),
    /// It occurs twice.
    #[error("occurs twice")]
    Duplicate,
    /// A file or a link of the same archive has the name of a directory above it.
    #[error("lies below {0:?}, which is not a directory")]
    BelowFile(String),
    /// It is a file, or a link, but also a directory.
    #[error("occurs as a directory as well")]
    AlsoDirectory,
    /// It is a device, a fifo or of an unknown type.
    #[error("is a {0}; only regular files, directories and links are allowed")]
    Unsupported(&'static str),
    /// It is too large.
    #[error("is larger than {}", Bytes(*.0))]
    FileTooLarge(u64),
    /// It is not a file, but its header announces bytes. Readers interpret this differently.
    #[error("is not a file but has {}", bytes(*.0))]
    HasBytes(u64),
    /// An extended header is too large, or changes the size of the entry. Readers interpret this differently.
    #[error("has an extended header that is refused: {0}")]
    ExtendedHeader(&'static str),
    /// It is the commit of another repository.
    #[error("is a submodule; put its files into the repository, or use it as a source of its own")]
    Submodule,
    /// It is a pointer to a file that another server has.
    #[error("is a pointer of Git LFS; put the file itself into the repository")]
    LfsPointer,
    /// It is encrypted.
    #[error("is encrypted")]
    Encrypted,
    /// It is compressed with a method that is not supported.
    #[error("is compressed with method {0}; only stored and deflated entries are supported")]
    Compression(u16),
    /// The header before its bytes and the directory of the archive differ. Readers disagree about which one counts.
    #[error("has a header that differs from the directory of the archive; tools disagree about which one counts")]
    HeaderDiffers,
    /// It shares bytes with another entry, in whole or in part.
    #[error("shares its bytes with another entry")]
    SharedBytes,
    /// It changed between listing and opening.
    #[error("changed while it was read")]
    Changed,
    /// Two headers give it a name, and readers disagree about which one counts.
    #[error(transparent)]
    NamedTwice(Box<NamedTwice>),
    /// The link leaves the tree.
    #[error("links to {0:?}, which is outside")]
    LinkLeaves(String),
    /// The link's target does not exist.
    #[error("links to {0:?}, which does not exist")]
    LinkDangling(String),
    /// The target of a hard link is a symbolic link.
    #[error("is a hard link to {0:?}, which is a symbolic link")]
    HardLinkToLink(String),
    /// The link's target is a directory.
    #[error("links to {0:?}, which is a directory; only links to files are allowed")]
    LinkToDirectory(String),
    /// The link forms a loop, or passes through too many links.
    #[error("links to {0:?}, which leads through too many links")]
    LinkLoop(String),
}

/// The headers that give an entry a name: the kind and the position of each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "has its {what} from two headers, a {} at byte {} and a {} at byte {}; tools disagree about which one counts",
    .first.0, .first.1, .second.0, .second.1
)]
pub struct NamedTwice {
    /// `path` or `link`.
    pub what: &'static str,
    /// The first header.
    pub first: (&'static str, u64),
    /// The second header.
    pub second: (&'static str, u64),
}

impl EntryProblem {
    /// The error for the entry of this name. The name is truncated to fit a status message.
    pub(crate) fn at(self, entry: &[u8]) -> ArchiveError {
        let mut entry = String::from_utf8_lossy(entry).into_owned();
        if let Some((cut, _)) = entry.char_indices().nth(200) {
            entry.truncate(cut);
            entry.push('…');
        }
        ArchiveError::Entry { entry, problem: self }
    }
}
