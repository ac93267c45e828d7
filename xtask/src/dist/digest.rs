//! SHA-256, as images and checksum files write it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The digest of these bytes, such as `sha256:2c26...`.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(bytes))
}

/// The SHA-256 of these bytes in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A file that `sha256sum --check` reads in the directory of the files.
pub(super) fn sums<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    files.into_iter().fold(String::new(), |mut sums, (name, bytes)| {
        let _ = writeln!(sums, "{}  {name}", hexadecimal(bytes));
        sums
    })
}
