//! Access to a server: credentials and trusted certificates.

use std::{fmt, sync::Arc};

use super::{Keyring, RequiredSignatures};
use crate::{SshKey, transport::Trust};

/// The credentials of the client, and how the registry, or the server of an archive, is authenticated.
#[derive(Clone, Debug, Default)]
pub struct ImageAccess {
    /// The credentials; none for anonymous access.
    pub credentials: Option<Credentials>,
    /// PEM certificates that are trusted in addition to the system's.
    pub certificate_authority: Option<Vec<u8>>,
    /// Whether any certificate is accepted. The connection is encrypted, but the server is not authenticated.
    pub insecure_skip_tls_verify: bool,
    /// The credentials for mirrors. Without one, they are asked anonymously.
    pub keyring: Option<Arc<dyn Keyring>>,
    /// The signatures that an image must have. Archives and repositories are not signed in this way.
    pub signatures: Option<RequiredSignatures>,
}

impl ImageAccess {
    /// How the server is authenticated.
    pub(crate) fn trust(&self) -> Trust<'_> {
        Trust {
            certificate_authority: self.certificate_authority.as_deref(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            host: None,
        }
    }
}

/// A secret for a server. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user name and a password, or a token in place of the password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A refresh token that the registry's token server trades for an access token: `identitytoken` in a pull secret.
    IdentityToken(String),
    /// An access token that is sent unchanged: `registrytoken` in a pull secret, `bearerToken` for an archive.
    RegistryToken(String),
    /// A private key for a git repository over SSH, and the host keys of its server.
    SshKey(SshKey),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(redacted)",
            Self::IdentityToken(_) => "IdentityToken(redacted)",
            Self::RegistryToken(_) => "RegistryToken(redacted)",
            Self::SshKey(_) => "SshKey(redacted)",
        })
    }
}

/// The certificates or credentials for a server are not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The certificates cannot be read.
    #[error("the certificate data is not usable: {0}")]
    CertificateAuthority(String),
    /// The pull secret cannot be read.
    #[error("the pull secret is not usable: {0}")]
    PullSecret(String),
    /// The certificates that the administrator set for a registry cannot be used.
    #[error("the certificates for registry {registry} are not usable: {problem}")]
    HostCertificates {
        /// The registry.
        registry: String,
        /// What is wrong.
        problem: String,
    },
    /// A program that keeps credentials failed.
    #[error("{0}")]
    Helper(String),
    /// There is no private key for a repository over SSH.
    #[error("a git repository over SSH needs a Secret with the keys ssh-privatekey and ssh-knownhosts")]
    SshKey,
    /// No connection can be set up.
    #[error("the connection cannot be set up: {0}")]
    Connection(String),
}
