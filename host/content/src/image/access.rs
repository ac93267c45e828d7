//! With what rights a registry is asked.

use std::fmt;

/// Who asks, and how the registry shows that it is the right one.
#[derive(Clone, Debug, Default)]
pub struct ImageAccess {
    /// Who asks; nobody in particular where it is none.
    pub credentials: Option<Credentials>,
    /// Certificates in PEM that are trusted besides those of the system.
    pub certificate_authority: Option<Vec<u8>>,
    /// Whether any certificate will do. The connection is still encrypted, but with whom is unknown.
    pub insecure_skip_tls_verify: bool,
}

/// A secret to show to a registry. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password, or what a registry takes in their place.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A refresh token that the registry's token server trades for an access token: `identitytoken` in a pull secret.
    IdentityToken(String),
    /// An access token that is shown as it is: `registrytoken` in a pull secret.
    RegistryToken(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(redacted)",
            Self::IdentityToken(_) => "IdentityToken(redacted)",
            Self::RegistryToken(_) => "RegistryToken(redacted)",
        })
    }
}

/// What is given to reach the registry with cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The certificates cannot be read.
    #[error("the certificate data is not usable: {0}")]
    CertificateAuthority(String),
    /// The pull secret cannot be read.
    #[error("the pull secret is not usable: {0}")]
    PullSecret(String),
    /// No connection can be set up.
    #[error("the connection cannot be set up: {0}")]
    Connection(String),
}
