//! The host keys that a server is asked for, and their check.

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;
use russh::{
    Preferred,
    client::{DisconnectReason, Handler},
    keys::{Algorithm, EcdsaCurve, HashAlg, PublicKeyOrCertificate},
};

use crate::{HostKeyError, Known, SshError};

/// The algorithms of a connection: the library's own, of the types of keys that are known, so that a server with several
/// keys shows one that can be checked. Signatures of RSA keys are over SHA-2.
pub(crate) fn preferred(known: &Known) -> Preferred {
    let (p256, p384, p521) = (EcdsaCurve::NistP256, EcdsaCurve::NistP384, EcdsaCurve::NistP521);
    let all = [
        ("ssh-ed25519", Algorithm::Ed25519),
        ("ecdsa-sha2-nistp256", Algorithm::Ecdsa { curve: p256 }),
        ("ecdsa-sha2-nistp384", Algorithm::Ecdsa { curve: p384 }),
        ("ecdsa-sha2-nistp521", Algorithm::Ecdsa { curve: p521 }),
        ("ssh-rsa", Algorithm::Rsa { hash: Some(HashAlg::Sha512) }),
        ("ssh-rsa", Algorithm::Rsa { hash: Some(HashAlg::Sha256) }),
    ];
    let key = all.into_iter().filter(|(kind, _)| known.has(kind)).map(|(_, algorithm)| algorithm);
    Preferred { key: Cow::Owned(key.collect()), ..Preferred::DEFAULT }
}

/// Why the library ended the connection.
pub(crate) type Ended = Arc<Mutex<Option<SshError>>>;

/// Checks the host key. Everything else that a server may begin is refused by the library.
pub(crate) struct Checks {
    pub(crate) known: Known,
    pub(crate) user: String,
    pub(crate) ended: Ended,
}

/// A failure, with the server and the user left out.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(russh::Error),
    HostKey(HostKeyError),
}

impl From<russh::Error> for Failure {
    fn from(error: russh::Error) -> Self {
        Self::Library(error)
    }
}

impl Failure {
    pub(crate) fn named(self, name: &str, user: &str) -> SshError {
        match self {
            Self::Library(error) => SshError::of(&error, name, user),
            Self::HostKey(error) => error.into(),
        }
    }
}

impl Handler for Checks {
    type Error = Failure;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        // Certificates are never asked for.
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else { return Ok(false) };
        let bytes = key.to_bytes().map_err(|error| Failure::Library(russh::Error::from(error)))?;
        self.known.check(&bytes).map(|()| true).map_err(Failure::HostKey)
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Failure>) -> Result<(), Failure> {
        let error = match reason {
            DisconnectReason::ReceivedDisconnect(_) => SshError::Closed,
            DisconnectReason::Error(error) => error.named(self.known.name(), &self.user),
        };
        *self.ended.lock() = Some(error);
        Ok(())
    }
}
