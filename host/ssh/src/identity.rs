//! The private key of a user.

use std::{fmt, sync::Arc};

use russh::keys::{Algorithm, PrivateKey, decode_secret_key};

/// The longest text of a private key in bytes: more than an RSA key of 16,384 bits has.
const LONGEST: usize = 64 << 10;

/// A private key: Ed25519, ECDSA or RSA. It is never printed.
#[derive(Clone)]
pub struct Identity(Arc<PrivateKey>);

/// A text is not a supported private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It needs a passphrase.
    #[error(
        "is encrypted, and passphrase prompts are not supported: use a key without a passphrase (ssh-keygen -p removes it)"
    )]
    Encrypted,
    /// It is the public half of a key.
    #[error("is a public key; the private key is the file without .pub")]
    Public,
    /// It is a key of PuTTY.
    #[error("is in the format of PuTTY; puttygen exports it as an OpenSSH key")]
    Putty,
    /// It is a key for DSA, or for hardware.
    #[error("is neither an Ed25519, an ECDSA nor an RSA key")]
    Unsupported,
    /// It is something else, or damaged.
    #[error("is not a private key in the OpenSSH or PEM format")]
    Malformed,
}

impl Identity {
    /// Reads a private key in the OpenSSH format, or PEM (PKCS#1, PKCS#8, SEC 1).
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let start = text.trim_start();
        if text.len() > LONGEST {
            return Err(IdentityError::Malformed);
        }
        if start.starts_with("PuTTY-User-Key-File-") {
            return Err(IdentityError::Putty);
        }
        if ["ssh-", "ecdsa-", "sk-", "---- BEGIN SSH2 PUBLIC KEY"].iter().any(|it| start.starts_with(it))
            || start.starts_with("-----BEGIN PUBLIC KEY")
        {
            return Err(IdentityError::Public);
        }
        // PKCS#8 says so in its first line, the older PEM in a header.
        if start.lines().take(3).any(|line| line.contains("ENCRYPTED")) {
            return Err(IdentityError::Encrypted);
        }
        if start.starts_with("-----BEGIN DSA PRIVATE KEY") {
            return Err(IdentityError::Unsupported);
        }
        let lines: Vec<&str> = start.lines().map(str::trim).collect();
        let key = decode_secret_key(&lines.join("\n"), None).map_err(|error| match error {
            russh::keys::Error::KeyIsEncrypted => IdentityError::Encrypted,
            russh::keys::Error::UnsupportedKeyType { .. } => IdentityError::Unsupported,
            _ => IdentityError::Malformed,
        })?;
        if key.is_encrypted() {
            return Err(IdentityError::Encrypted);
        }
        match key.algorithm() {
            Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => Ok(Self(Arc::new(key))),
            _ => Err(IdentityError::Unsupported),
        }
    }

    pub(crate) fn key(&self) -> Arc<PrivateKey> {
        Arc::clone(&self.0)
    }

    pub(crate) fn is_rsa(&self) -> bool {
        self.0.algorithm().is_rsa()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_private_key_is_named() {
        let long = "x".repeat(LONGEST + 1);
        for (text, expected) in [
            ("", IdentityError::Malformed),
            ("secret", IdentityError::Malformed),
            (&long, IdentityError::Malformed),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI me@here", IdentityError::Public),
            ("-----BEGIN PUBLIC KEY-----\nMCow", IdentityError::Public),
            ("PuTTY-User-Key-File-3: ssh-ed25519", IdentityError::Putty),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIG", IdentityError::Encrypted),
            ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", IdentityError::Encrypted),
            ("-----BEGIN DSA PRIVATE KEY-----\nMIG", IdentityError::Unsupported),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU=\n", IdentityError::Malformed),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", IdentityError::Malformed),
        ] {
            assert_eq!(Identity::parse(text).err(), Some(expected), "{text:.60}");
        }
    }
}
