//! Failures.

/// Why no command runs, or its output ended. A cause has the same text at each attempt, without text of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    /// The connection ended.
    #[error("broke the connection")]
    Closed,
    /// The server sent nothing for too long.
    #[error("did not answer in time")]
    TimedOut,
    /// The server sent more than [`Options::bytes`](crate::Options::bytes), or too much on standard error.
    #[error("sent too much")]
    TooMuch,
    /// The server violates the protocol, or has no algorithms in common with this client.
    #[error("{0}")]
    Protocol(&'static str),
    /// The server is not the one that the known hosts describe.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// The server does not accept the key of the user.
    #[error("does not accept the private key for user {user:?}")]
    Denied {
        /// The user.
        user: String,
    },
    /// The server accepts an RSA key only with a signature over SHA-1.
    #[error("accepts RSA keys with SHA-1 only, which is broken; use an Ed25519 key")]
    Sha1,
    /// The server accepts the user, and does not run the command.
    #[error("does not run commands for user {user:?}")]
    NoCommand {
        /// The user.
        user: String,
    },
}

/// Why a host key is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostKeyError {
    /// The known hosts have no key for the server.
    #[error("the known hosts have no key for {0}; ssh-keyscan prints the keys of a server")]
    Unknown(String),
    /// The known hosts have only a certificate authority for the server.
    #[error(
        "line {line} of the known hosts has a certificate authority for {name}, which is not supported; add the host key itself"
    )]
    Authority {
        /// The server, as known_hosts files name it.
        name: String,
        /// The number of the line.
        line: usize,
    },
    /// The key of the server is none of those that the known hosts have for it.
    #[error(
        "its host key {fingerprint} is none that the known hosts have for {name}: its key was replaced, or another server answers"
    )]
    Changed {
        /// The server, as known_hosts files name it.
        name: String,
        /// The fingerprint of the key, as `ssh-keygen -l` prints it.
        fingerprint: String,
    },
    /// The server has no key of a type that the known hosts have.
    #[error("it has no host key of the types that the known hosts have for {0}")]
    Type(String),
    /// The key of the server is revoked.
    #[error("line {0} of the known hosts revokes its host key")]
    Revoked(usize),
    /// The server has a key, and cannot sign with it.
    #[error("it does not prove that it has its host key")]
    Unproven,
}

impl SshError {
    /// A failure of the library. None of its texts are used, since some have texts of the server.
    pub(crate) fn of(error: &russh::Error, name: &str, user: &str) -> Self {
        use russh::{AlgorithmKind, Error};
        match error {
            Error::NoCommonAlgo { kind: AlgorithmKind::Key, .. } => HostKeyError::Type(name.to_owned()).into(),
            Error::NoCommonAlgo { .. } => Self::Protocol("has no algorithms in common with this client"),
            Error::Version => Self::Protocol("is not an SSH server"),
            Error::WrongServerSig => HostKeyError::Unproven.into(),
            Error::UnknownKey => HostKeyError::Unknown(name.to_owned()).into(),
            Error::NoAuthMethod => Self::Denied { user: user.to_owned() },
            Error::ChannelOpenFailure(_) => Self::NoCommand { user: user.to_owned() },
            Error::ConnectionTimeout | Error::KeepaliveTimeout | Error::InactivityTimeout | Error::Elapsed(_) => {
                Self::TimedOut
            }
            Error::IO(_) | Error::Disconnect | Error::HUP | Error::SendError | Error::RecvError | Error::Join(_) => {
                Self::Closed
            }
            _ => Self::Protocol("violates the SSH protocol"),
        }
    }
}
