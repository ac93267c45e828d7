//! One file for each release.
//!
//! A file is written under another name and gets its own when it is complete. It is not brought to the disk before that:
//! whatever a crash leaves of it is found out when it is read, and the release is made again. A file begins with a tag that
//! only a process that can read the key of the directory can make: a release that another user put there is applied to no cluster.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chandler_cache::{Key, TAG_BYTES, is_left_over};
use chandler_core::Digest;

use crate::format;

/// The file with the key that vouches for all others.
const KEY: &str = "key";
/// What the tag of a file is for.
const DOMAIN: &[u8] = b"chandler releases 1";
/// When such a file is certainly left over from a crash.
const LEFT_OVER: Duration = Duration::from_hours(1);

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to use {path} for releases: {source}")]
pub struct OpenError {
    /// The directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// A directory of releases.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    vouching: Key,
}

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) key: Digest,
    pub(crate) bytes: u64,
    /// When it was written or noted as used.
    pub(crate) used: SystemTime,
}

impl Files {
    /// Makes the directory with the mode 0700 where it does not exist. Its content may be secret, and is applied to the cluster, so no
    /// other user may have access to it.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError { path: directory.to_owned(), source };
        chandler_cache::root(directory).map_err(failed)?;
        let vouching = Key::open(&directory.join(KEY)).map_err(failed)?;
        Ok(Self { directory: directory.to_owned(), vouching })
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.directory.join(key.hex())
    }

    /// The bytes of a file, if there is one that was written here under this key. It is noted as used.
    pub(crate) fn read(&self, key: &Digest) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(key);
        let mut bytes = match chandler_cache::read(&path, format::FILE_BYTES + TAG_BYTES as u64) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let vouched = bytes.split_at_checked(TAG_BYTES).is_some_and(|(tag, release)| {
            let parts: [&[u8]; 3] = [DOMAIN, key.as_str().as_bytes(), release];
            self.vouching.verifies(&parts, tag)
        });
        if !vouched {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its bytes are not those that were written"));
        }
        bytes.drain(..TAG_BYTES);
        // It only decides what is removed first.
        let _ = self.touch(key);
        Ok(Some(bytes))
    }

    /// Writes a file with the mode 0600, in the place of one that is there.
    pub(crate) fn write(&self, key: &Digest, bytes: &[u8]) -> io::Result<()> {
        let tag = self.vouching.tag(&[DOMAIN, key.as_str().as_bytes(), bytes]);
        chandler_cache::write(&self.path(key), &[&tag, bytes], true, false)
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, key: &Digest) -> io::Result<()> {
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Notes that a release is used, though it was not read.
    pub(crate) fn touch(&self, key: &Digest) -> io::Result<()> {
        File::options().append(true).open(self.path(key))?.set_modified(SystemTime::now())
    }

    /// What is there. Removes what crashed writers left; what has another name was not put there by us and is left alone.
    pub(crate) fn list(&self) -> io::Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // It may be gone by now.
            let Ok(metadata) = entry.metadata() else { continue };
            let (name, used) = (entry.file_name(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            if is_left_over(&name, used, LEFT_OVER) {
                let _ = fs::remove_file(entry.path());
            }
            if let Ok(key) = format!("sha256:{}", name.to_string_lossy()).parse() {
                kept.push(Kept { key, bytes: metadata.len(), used });
            }
        }
        Ok(kept)
    }
}
