//! Failed requests to registries.

use std::time::Duration;

/// A registry is unreachable, or refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image}: {message}")]
pub struct RegistryError {
    /// The requested image.
    pub image: String,
    /// What kind of failure it is.
    pub failure: RegistryFailure,
    /// The error. The text is the same at each attempt: it has no local ports, times or signed URLs.
    pub message: String,
    /// How long the registry asks clients to wait.
    pub retry_after: Option<Duration>,
}

/// What kind of failure a registry error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryFailure {
    /// The registry cannot be reached, or the connection broke.
    Network,
    /// The name of the registry has no address: it is mistyped, or DNS fails.
    NameNotResolved,
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
    /// The response violates the protocol.
    Protocol,
    /// A body is slower than the minimum rate.
    TooSlow,
    /// The registry, or a host that it names, has a forbidden address.
    Address,
    /// The registry requests credentials over an unencrypted connection.
    Plaintext,
}

impl RegistryError {
    /// The registry, as the reference of the image writes it.
    pub fn registry(&self) -> &str {
        self.image.split('/').next().unwrap_or_default()
    }
}

impl RegistryFailure {
    /// Whether the registry did not answer, or could not. An answer that refuses the request is no silence.
    pub fn is_silence(self) -> bool {
        matches!(self, Self::Network | Self::Unavailable | Self::TooSlow)
    }

    /// Whether the registry answered, and refused the request.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::NotFound | Self::Unauthorized)
    }

    /// A CamelCase word for metrics and events.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Network => "NetworkFailed",
            Self::NameNotResolved => "NameNotResolved",
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
