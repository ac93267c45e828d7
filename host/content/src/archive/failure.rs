//! Failed requests for archives and repositories.

use std::{fmt, time::Duration};

use crate::ServerFailure;

/// The server of an archive or of a repository is unreachable, or refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {url}: {message}")]
pub struct DownloadError {
    /// What the URL is of.
    pub what: Downloaded,
    /// The URL.
    pub url: String,
    /// The server: `host` or `host:port`.
    pub server: String,
    /// What kind of failure it is.
    pub failure: ServerFailure,
    /// The error. The text is the same at each attempt: it has no local ports, times or signed URLs.
    pub message: String,
    /// How long the server asks clients to wait.
    pub retry_after: Option<Duration>,
}

/// The object that is downloaded from a server that is not a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downloaded {
    /// An archive.
    Archive,
    /// The index of a Helm repository.
    HelmIndex,
    /// Objects of a git repository.
    Repository,
}

impl Downloaded {
    /// A CamelCase word for its absence.
    fn absent(self) -> &'static str {
        match self {
            Self::Archive => "ArchiveNotFound",
            Self::HelmIndex => "IndexNotFound",
            Self::Repository => "RepositoryNotFound",
        }
    }
}

impl fmt::Display for Downloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "archive",
            Self::HelmIndex => "index of the Helm repository",
            Self::Repository => "git repository",
        })
    }
}

impl DownloadError {
    /// A CamelCase word for metrics and events.
    pub fn reason(&self) -> &'static str {
        match self.failure {
            ServerFailure::NotFound => self.what.absent(),
            ServerFailure::Unavailable => "ServerUnavailable",
            ServerFailure::Protocol => "InvalidResponse",
            failure => failure.reason(),
        }
    }
}
