//! One file for each release.
//!
//! A file is written under another name and gets its own when it is complete. It is not brought to the disk before that:
//! whatever a crash leaves of it is found out when it is read, and the release is made again.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chandler_core::Digest;

use crate::format;

/// What the names of files begin with that are being written.
const TEMPORARY: &str = ".new-";
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
    /// Makes the directory with the mode 0700 where it does not exist. What is in it may be secret, and is applied to the
    /// cluster, so nobody else may have rights to it.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let prepare = || {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let mode = fs::metadata(directory)?.permissions().mode();
            if mode & 0o022 != 0 {
                let open = "others may write to it; name a directory in it";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, open));
            }
            Ok(())
        };
        prepare().map_err(|source| OpenError { path: directory.to_owned(), source })?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.directory.join(key.hex())
    }

    /// The bytes of a file, if there is one, which is noted as used.
    pub(crate) fn read(&self, key: &Digest) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.path(key)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        if length > format::FILE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        (&file).take(format::FILE_BYTES).read_to_end(&mut bytes)?;
        // It only decides what is removed first.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(bytes))
    }

    /// Writes a file with the mode 0600, in the place of one that is there.
    pub(crate) fn write(&self, key: &Digest, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.directory)?;
        file.write_all(bytes)?;
        file.persist(self.path(key))?;
        Ok(())
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
            let name = name.to_string_lossy();
            if name.starts_with(TEMPORARY) && used.elapsed().is_ok_and(|age| age > LEFT_OVER) {
                let _ = fs::remove_file(entry.path());
            }
            if let Ok(key) = format!("sha256:{name}").parse() {
                kept.push(Kept { key, bytes: metadata.len(), used });
            }
        }
        Ok(kept)
    }
}
