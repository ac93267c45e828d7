//! What a registry did not do.

use std::time::Duration;

/// A registry could not be asked, or refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image}: {message}")]
pub struct RegistryError {
    /// The image that was asked for.
    pub image: String,
    /// What kind of failure it is.
    pub failure: RegistryFailure,
    /// What happened. The same text at each attempt: no ports of this end, no times, no URLs with signatures.
    pub message: String,
    /// How long the registry wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// What kind of failure a registry error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryFailure {
    /// The registry cannot be reached, or the connection broke.
    Network,
    /// The registry's certificate is not trusted.
    Tls,
    /// The registry answered with a 5xx status.
    Unavailable,
    /// The registry answered 429.
    RateLimited,
    /// There is no such image.
    NotFound,
    /// The registry, or its token server, answered 401 or 403. Many do so for images that do not exist.
    Unauthorized,
    /// The answer makes no sense.
    Protocol,
    /// A body comes slower than it must.
    TooSlow,
    /// The registry, or a host that it names, has an address that is not connected to.
    Address,
    /// The registry wants credentials, and would get them over a connection that others can read.
    Plaintext,
}

impl RegistryFailure {
    /// A word for metrics and events.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Network => "NetworkFailed",
            Self::Tls => "CertificateNotTrusted",
            Self::Unavailable => "RegistryUnavailable",
            Self::RateLimited => "RateLimited",
            Self::NotFound => "ImageNotFound",
            Self::Unauthorized => "Unauthorized",
            Self::Protocol => "RegistryProtocol",
            Self::TooSlow => "TooSlow",
            Self::Address => "AddressNotAllowed",
            Self::Plaintext => "CredentialsNotSent",
        }
    }
}
