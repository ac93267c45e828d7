//! Failed requests to registries.

use std::time::Duration;

use crate::ServerFailure;

/// A registry is unreachable, or refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image}: {message}")]
pub struct RegistryError {
    /// The requested image.
    pub image: String,
    /// What kind of failure it is.
    pub failure: ServerFailure,
    /// The error. The text is the same at each attempt: it has no local ports, times or signed URLs.
    pub message: String,
    /// Whether the registry was asked without TLS.
    pub is_plain: bool,
    /// How long the registry asks clients to wait.
    pub retry_after: Option<Duration>,
}

impl RegistryError {
    /// The registry, as the reference of the image writes it.
    pub fn registry(&self) -> &str {
        self.image.split('/').next().unwrap_or_default()
    }
}
