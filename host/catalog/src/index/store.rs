//! The indexes of a directory.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use chandler_core::{Content, Digest};

use super::{BuildError, Index, IndexError, build};
use crate::{Finding, Limits};

/// The suffix of index files. Before it comes the hash of the catalog.
const SUFFIX: &str = ".index";
/// The prefix of files that are not complete.
const TEMPORARY: &str = ".building-";
/// The file whose lock a builder holds.
const LOCK: &str = "lock";

/// A directory with an index for each catalog. Processes may share it: files are complete from the moment that they have
/// their names, and never change.
#[derive(Clone, Debug)]
pub struct Indexes {
    directory: PathBuf,
}

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read or written, or others could write to it.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The index cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Indexes {
    /// Opens a directory, and creates it if it is missing. It must belong to this user alone.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        chandler_cache::directory(&directory).map_err(|source| StoreError::Io { path: directory.clone(), source })?;
        Ok(Self { directory })
    }

    /// The index of a catalog, or `None` if it was not built yet, or is damaged.
    pub fn get(&self, digest: &Digest) -> Result<Option<Index>, StoreError> {
        match Index::open(&self.path(digest)) {
            Ok(index) if index.reader.footer.digest == build::hash(digest) => Ok(Some(index)),
            Ok(_) | Err(IndexError::Damaged(_)) => Ok(None),
            Err(IndexError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The index of a catalog, built if it is missing or damaged. A document that cannot be part of a catalog is an error.
    /// Blocks while another process builds an index in this directory.
    pub fn get_or_build(&self, content: &dyn Content, limits: &Limits) -> Result<Index, StoreError> {
        if let Some(index) = self.get(content.digest())? {
            return Ok(index);
        }
        let _lock = self.lock()?;
        // Another process may have built it in the meantime.
        if let Some(index) = self.get(content.digest())? {
            return Ok(index);
        }
        let temporary = self.build(content, limits, &mut |finding| Err(BuildError::Finding(Box::new(finding))))?;
        let path = self.path(content.digest());
        temporary.persist(&path).map_err(|error| failure(&path)(error.error))?;
        Ok(Index::open(&path)?)
    }

    /// An index of what is readable of a catalog, and findings about the rest, `most` at most. It is built anew and not kept.
    pub fn build_for_lint(
        &self,
        content: &dyn Content,
        limits: &Limits,
        most: usize,
    ) -> Result<(Index, Vec<Finding>), StoreError> {
        let mut findings = Vec::new();
        let temporary = self.build(content, limits, &mut |finding| {
            if findings.len() < most {
                findings.push(finding);
            }
            Ok(())
        })?;
        Ok((Index::open(temporary.path())?, findings))
    }

    /// The bytes of all indexes.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0_u64;
        for entry in fs::read_dir(&self.directory).map_err(failure(&self.directory))? {
            let entry = entry.map_err(failure(&self.directory))?;
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
                bytes = bytes.saturating_add(entry.metadata().map_err(failure(&entry.path()))?.len());
            }
        }
        Ok(bytes)
    }

    /// Removes all indexes but these, and what interrupted processes left. Open indexes stay usable.
    pub fn retain(&self, digests: &BTreeSet<Digest>) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let kept: BTreeSet<String> = digests.iter().map(|digest| format!("{}{SUFFIX}", digest.hex())).collect();
        for entry in fs::read_dir(&self.directory).map_err(failure(&self.directory))? {
            let entry = entry.map_err(failure(&self.directory))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(TEMPORARY) || name.ends_with(SUFFIX) && !kept.contains(name) {
                fs::remove_file(entry.path()).map_err(failure(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// Removes the indexes that were built first, so that at most this many are kept, and what interrupted processes left. Open
    /// indexes stay usable.
    pub fn keep_newest(&self, most: usize) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let mut indexes = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failure(&self.directory))? {
            let entry = entry.map_err(failure(&self.directory))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(TEMPORARY) {
                fs::remove_file(entry.path()).map_err(failure(&entry.path()))?;
            } else if name.ends_with(SUFFIX) {
                let built = entry.metadata().and_then(|metadata| metadata.modified());
                indexes.push((built.map_err(failure(&entry.path()))?, entry.path()));
            }
        }
        indexes.sort();
        let superfluous = indexes.len().saturating_sub(most);
        for (_, path) in indexes.into_iter().take(superfluous) {
            fs::remove_file(&path).map_err(failure(&path))?;
        }
        Ok(())
    }

    fn build(
        &self,
        content: &dyn Content,
        limits: &Limits,
        on_finding: &mut dyn FnMut(Finding) -> Result<(), BuildError>,
    ) -> Result<tempfile::NamedTempFile, StoreError> {
        let temporary = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.directory);
        let temporary = temporary.map_err(failure(&self.directory))?;
        let file = temporary.as_file().try_clone().map_err(failure(temporary.path()))?;
        build::build(file, &self.directory, content, limits, on_finding)?;
        Ok(temporary)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}{SUFFIX}", digest.hex()))
    }

    fn lock(&self) -> Result<File, StoreError> {
        let path = self.directory.join(LOCK);
        let open = || {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map_err(failure(&path))
    }
}

fn failure(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, source }
}

#[cfg(test)]
mod tests;
