//! What proves a user to an SSH server, and the server to this process.

use std::{fmt, sync::Arc};

use chandler_ssh::{Identity, IdentityError, KnownHosts, KnownHostsError};

/// A private key, and the host keys of the servers that it is for. It is never printed.
#[derive(Clone)]
pub struct SshKey {
    username: Option<String>,
    private_key: Arc<str>,
    identity: Identity,
    known_hosts_text: Arc<str>,
    known_hosts: Arc<KnownHosts>,
}

/// A private key or host keys are not usable. The texts call them as Secrets do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SshKeyError {
    /// The private key is refused.
    #[error("the key ssh-privatekey {0}")]
    Identity(#[from] IdentityError),
    /// The host keys cannot be read.
    #[error("the key ssh-knownhosts {0}")]
    KnownHosts(#[from] KnownHostsError),
    /// The user name has other characters than letters, digits, `.`, `_`, `+` and `-`, or is too long.
    #[error("the key username is not a user name")]
    Username,
}

impl SshKey {
    /// Reads a private key without a passphrase, and a known_hosts file. The user name counts where a URL has none.
    ///
    /// # Errors
    /// One of them is not usable.
    pub fn parse(username: Option<String>, private_key: &str, known_hosts: &str) -> Result<Self, SshKeyError> {
        if username.as_deref().is_some_and(|name| !super::ssh_url::is_user(name)) {
            return Err(SshKeyError::Username);
        }
        Ok(Self {
            username,
            identity: Identity::parse(private_key)?,
            private_key: private_key.into(),
            known_hosts: Arc::new(known_hosts.parse()?),
            known_hosts_text: known_hosts.into(),
        })
    }

    pub(crate) fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    pub(crate) fn private_key(&self) -> &str {
        &self.private_key
    }

    pub(crate) fn known_hosts_text(&self) -> &str {
        &self.known_hosts_text
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn known_hosts(&self) -> &KnownHosts {
        &self.known_hosts
    }
}

impl fmt::Debug for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SshKey(redacted)")
    }
}

impl PartialEq for SshKey {
    fn eq(&self, other: &Self) -> bool {
        let texts = |key: &Self| (key.username.clone(), key.private_key.clone(), key.known_hosts_text.clone());
        texts(self) == texts(other)
    }
}

impl Eq for SshKey {}
