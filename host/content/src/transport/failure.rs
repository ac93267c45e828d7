//! Kinds of failed requests.

/// What kind of failure the error of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerFailure {
    /// The server cannot be reached, or the connection broke.
    Network,
    /// This process has no file descriptor left for a connection.
    NoDescriptor,
    /// The name of the server has no address: it is mistyped, or DNS fails.
    NameNotResolved,
    /// The server's certificate is not trusted.
    Tls,
    /// The server's host key for SSH is not the known one.
    HostKey,
    /// The server answered with a 5xx status.
    Unavailable,
    /// The server answered 429.
    RateLimited,
    /// There is no such image or archive.
    NotFound,
    /// The server, or the token server of a registry, answered 401 or 403, or the token server 404. Many do so for content that does not
    /// exist.
    Unauthorized,
    /// The response violates the protocol.
    Protocol,
    /// A body is slower than the minimum rate.
    TooSlow,
    /// The server, or a host that it names, has a forbidden address.
    Address,
    /// The settings for registries block the host that the server names.
    Blocked,
    /// The connection is not encrypted: others could read the credentials, or change the content.
    Plaintext,
}

impl ServerFailure {
    /// Whether the server did not answer, or could not. An answer that refuses the request does not count.
    pub fn is_silence(self) -> bool {
        matches!(self, Self::Network | Self::Unavailable | Self::TooSlow)
    }

    /// Whether the server answered, and refused the request.
    pub(crate) fn is_refusal(self) -> bool {
        matches!(self, Self::NotFound | Self::Unauthorized)
    }

    /// A CamelCase word for metrics and events, for an image.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Network => "NetworkFailed",
            Self::NoDescriptor => "FileDescriptorsExhausted",
            Self::NameNotResolved => "NameNotResolved",
            Self::Tls => "CertificateNotTrusted",
            Self::HostKey => "HostKeyNotTrusted",
            Self::Unavailable => "RegistryUnavailable",
            Self::RateLimited => "RateLimited",
            Self::NotFound => "ImageNotFound",
            Self::Unauthorized => "Unauthorized",
            Self::Protocol => "RegistryProtocol",
            Self::TooSlow => "TooSlow",
            Self::Address => "AddressNotAllowed",
            Self::Blocked => "Blocked",
            Self::Plaintext => "CredentialsNotSent",
        }
    }
}
