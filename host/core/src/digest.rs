//! SHA-256 digests of bytes, values and trees.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest in the form of the OCI image specification: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// The text is not a SHA-256 digest.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a digest: want `sha256:` and 64 lower-case hexadecimal digits")]
pub struct DigestError(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::digest(bytes).into())
    }

    /// The digest of the JSON of a value. The JSON is streamed. Keys of maps must be strings: the digest covers only the text
    /// before the first key that is not.
    pub fn of_json(value: &impl Serialize) -> Self {
        let mut hash = io::BufWriter::with_capacity(16 << 10, Hash(Sha256::new()));
        // Writing to a hash cannot fail, and neither can a value with string keys.
        let _ = serde_json::to_writer(&mut hash, value);
        let _ = io::Write::flush(&mut hash);
        Self::from_hash(hash.into_parts().0.0.finalize().into())
    }

    /// The digest with this hash.
    pub fn from_hash(hash: [u8; 32]) -> Self {
        Self(format!("sha256:{}", hex::encode(hash)))
    }

    /// The digest of a tree of regular files: the hash of the lines `<path> NUL <size> NUL <hex hash of the bytes> LF`, sorted
    /// by path. Modes, owners and times do not count, so that the same files have the same digest from every source.
    pub fn of_tree<'a>(files: impl IntoIterator<Item = (&'a str, u64, &'a Digest)>) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_unstable_by_key(|(path, ..)| *path);
        let mut hash = Sha256::new();
        for (path, size, digest) in files {
            hash.update(path.as_bytes());
            hash.update(b"\0");
            hash.update(size.to_string().as_bytes());
            hash.update(b"\0");
            hash.update(digest.hex().as_bytes());
            hash.update(b"\n");
        }
        Self::from_hash(hash.finalize().into())
    }

    /// The digest with its `sha256:` prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits without the prefix.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }

    /// The first twelve digits, for names and messages.
    pub fn short(&self) -> &str {
        self.hex().get(..12).unwrap_or(self.hex())
    }
}

/// A hash that implements `Write`.
struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix("sha256:").ok_or_else(|| DigestError(text.to_owned()))?;
        let legal = digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if legal { Ok(Self(text.to_owned())) } else { Err(DigestError(text.to_owned())) }
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_digest_does_not_depend_on_the_order_of_the_files() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let one = Digest::of_tree([("x", 1, &a), ("y", 1, &b)]);
        assert_eq!(one, Digest::of_tree([("y", 1, &b), ("x", 1, &a)]));
        assert_ne!(one, Digest::of_tree([("x", 1, &b), ("y", 1, &a)]));
    }

    #[test]
    fn only_lower_case_sha256_is_a_digest() {
        let good = Digest::of(b"");
        assert_eq!(good.as_str().parse::<Digest>().unwrap(), good);
        for bad in ["", "sha256:", "sha512:00", &good.as_str().to_uppercase(), &format!("{good}0")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
