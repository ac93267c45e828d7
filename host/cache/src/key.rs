//! A secret key that authenticates cached files.

use std::{fmt, io, path::Path};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::file;

const KEY_BYTES: usize = 32;

/// The length of a tag.
pub const TAG_BYTES: usize = 32;

/// A random key in a file with mode 0600. A user who can read it could also change this process.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(redacted)")
    }
}

impl Key {
    /// Reads the key. If there is none, or none that can be trusted, creates a new key, which invalidates every existing tag.
    ///
    /// # Errors
    /// The file cannot be written, or the system returns no random bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let limit = KEY_BYTES as u64;
        if let Ok(Ok(key)) = file::read(path, limit).map(<[u8; KEY_BYTES]>::try_from) {
            return Ok(Self(key));
        }
        let mut key = [0; KEY_BYTES];
        let filled = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
        if filled != key.len() {
            return Err(io::Error::other("the system returned too few random bytes"));
        }
        let exists = path.symlink_metadata().is_ok();
        match file::write(path, &[&key], exists, true) {
            // Another process created the key first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => file::read(path, limit)?
                .try_into()
                .map(Self)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not a key")),
            result => result.map(|()| Self(key)),
        }
    }

    /// An HMAC-SHA256 over these parts. The first part should name the purpose of the tag. The tag covers the length of each
    /// part, so that bytes cannot move from one part to the next.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        self.mac(parts).map_or([0; TAG_BYTES], |mac| mac.finalize().into_bytes().into())
    }

    /// Whether a tag is valid for these parts. Takes constant time.
    pub fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.mac(parts).is_some_and(|mac| mac.verify_slice(tag).is_ok())
    }

    /// Never none: the algorithm accepts keys of any length.
    fn mac(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        Some(parts.iter().fold(mac, |mac, part| mac.chain_update((part.len() as u64).to_le_bytes()).chain_update(part)))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_key_that_other_users_can_read_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let tag = Key::open(&path).unwrap().tag(&[b"a"]);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Key::open(&path).unwrap().tag(&[b"a"]), tag);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_ne!(Key::open(&path).unwrap().tag(&[b"a"]), tag);
        fs::write(&path, b"short").unwrap();
        assert!(Key::open(&path).unwrap().verifies(&[b"a"], &Key::open(&path).unwrap().tag(&[b"a"])));
    }

    #[test]
    fn a_tag_is_valid_only_for_exactly_its_parts() {
        let directory = tempfile::tempdir().unwrap();
        let key = Key::open(&directory.path().join("key")).unwrap();
        let tag = key.tag(&[b"ab", b"c"]);
        assert!(key.verifies(&[b"ab", b"c"], &tag));
        for parts in [&[&b"a"[..], b"bc"][..], &[b"abc"], &[b"ab", b"c", b""], &[b"ab", b"d"]] {
            assert!(!key.verifies(parts, &tag), "{parts:?}");
        }
        assert!(!key.verifies(&[b"ab", b"c"], &tag[..31]) && !key.verifies(&[b"ab", b"c"], b""));
    }
}
