//! Failed requests for archives.

use std::time::Duration;

use crate::ServerFailure;

/// The server of an archive is unreachable, or refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("archive {url}: {message}")]
pub struct DownloadError {
    /// The URL of the archive.
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

impl DownloadError {
    /// A CamelCase word for metrics and events.
    pub fn reason(&self) -> &'static str {
        match self.failure {
            ServerFailure::NotFound => "ArchiveNotFound",
            ServerFailure::Unavailable => "ServerUnavailable",
            ServerFailure::Protocol => "InvalidResponse",
            failure => failure.reason(),
        }
    }
}
