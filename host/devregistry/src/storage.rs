//! The pushed content, in memory and, if there is a directory for it, on disk.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use bytes::Bytes;
use chandler_core::Digest;
use uuid::Uuid;

use crate::disk::{Directory, Kept};

/// The largest manifest: the size that the specification requires registries to accept.
pub(crate) const MANIFEST_BYTES: usize = 4 << 20;

/// Why content could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The registry is full.
    #[error("the registry is limited to {0} bytes")]
    Full(u64),
    /// The content does not match its digest.
    #[error("the content has digest {found}, but the request names {expected}")]
    Digest {
        /// The digest in the request.
        expected: Digest,
        /// The digest of the content.
        found: Digest,
    },
    /// The upload does not exist.
    #[error("unknown upload")]
    NoUpload,
    /// A chunk does not start at the end of the previous one.
    #[error("the chunk must start at byte {0}")]
    OutOfOrder(usize),
    /// The content cannot be written to the directory of the registry.
    #[error("failed to write {path}: {message}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        message: String,
    },
}

/// A manifest and its media type.
#[derive(Clone, Debug)]
pub(crate) struct StoredManifest {
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Default)]
struct Repository {
    blobs: HashMap<Digest, Bytes>,
    manifests: HashMap<Digest, StoredManifest>,
    tags: BTreeMap<String, Digest>,
    uploads: HashMap<Uuid, Vec<u8>>,
}

/// All repositories.
#[derive(Debug)]
pub(crate) struct Storage {
    repositories: BTreeMap<String, Repository>,
    bytes: u64,
    most: u64,
    directory: Option<Directory>,
}

impl Storage {
    pub(crate) fn new(most: u64) -> Self {
        Self { repositories: BTreeMap::new(), bytes: 0, most, directory: None }
    }

    /// The content of a directory, which also receives what is pushed.
    pub(crate) fn open(most: u64, directory: Directory) -> std::io::Result<Self> {
        let mut storage = Self::new(most);
        directory.read(|name, kept| {
            let stored = match kept {
                Kept::Blob(digest, bytes) => storage.put_blob(name, digest, bytes),
                Kept::Manifest(manifest) => storage.put_manifest(name, manifest).map(drop),
                Kept::Tag(tag, digest) => storage.tag(name, &tag, digest),
            };
            if let Err(error) = stored {
                tracing::warn!(repository = name, %error, "content of the registry was not restored");
            }
        })?;
        storage.directory = Some(directory);
        Ok(storage)
    }

    fn keep(&self, name: &str, kept: &Kept) -> Result<(), StorageError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let failed = |(path, error): (PathBuf, std::io::Error)| StorageError::Disk { path, message: error.to_string() };
        directory.write(name, kept).map_err(failed)
    }

    fn reserve(&mut self, count: usize) -> Result<(), StorageError> {
        let bytes = self.bytes.saturating_add(count as u64);
        if bytes > self.most {
            return Err(StorageError::Full(self.most));
        }
        self.bytes = bytes;
        Ok(())
    }

    fn release(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_sub(count as u64);
    }

    fn repository(&mut self, name: &str) -> &mut Repository {
        self.repositories.entry(name.to_owned()).or_default()
    }

    pub(crate) fn blob(&self, name: &str, digest: &Digest) -> Option<Bytes> {
        self.repositories.get(name)?.blobs.get(digest).cloned()
    }

    pub(crate) fn put_blob(&mut self, name: &str, digest: Digest, bytes: Bytes) -> Result<(), StorageError> {
        if self.blob(name, &digest).is_none() {
            self.reserve(bytes.len())?;
            if let Err(error) = self.keep(name, &Kept::Blob(digest.clone(), bytes.clone())) {
                self.release(bytes.len());
                return Err(error);
            }
            self.repository(name).blobs.insert(digest, bytes);
        }
        Ok(())
    }

    /// Makes a blob of one repository available in another.
    pub(crate) fn mount(&mut self, name: &str, from: &str, digest: &Digest) -> bool {
        let Some(bytes) = self.blob(from, digest) else { return false };
        self.put_blob(name, digest.clone(), bytes).is_ok()
    }

    /// The digest that a tag or a digest refers to.
    pub(crate) fn resolve(&self, name: &str, reference: &str) -> Option<Digest> {
        match reference.parse() {
            Ok(digest) => Some(digest),
            Err(_) => self.repositories.get(name)?.tags.get(reference).cloned(),
        }
    }

    pub(crate) fn manifest(&self, name: &str, digest: &Digest) -> Option<StoredManifest> {
        self.repositories.get(name)?.manifests.get(digest).cloned()
    }

    /// All manifests of a repository, by digest.
    pub(crate) fn manifests(&self, name: &str) -> BTreeMap<&Digest, &StoredManifest> {
        self.repositories.get(name).map(|repository| repository.manifests.iter().collect()).unwrap_or_default()
    }

    pub(crate) fn put_manifest(&mut self, name: &str, manifest: StoredManifest) -> Result<Digest, StorageError> {
        let digest = Digest::of(&manifest.bytes);
        if self.manifest(name, &digest).is_none() {
            self.reserve(manifest.bytes.len())?;
            if let Err(error) = self.keep(name, &Kept::Manifest(manifest.clone())) {
                self.release(manifest.bytes.len());
                return Err(error);
            }
            self.repository(name).manifests.insert(digest.clone(), manifest);
        }
        Ok(digest)
    }

    /// Moves a tag to a manifest.
    pub(crate) fn tag(&mut self, name: &str, tag: &str, digest: Digest) -> Result<(), StorageError> {
        self.keep(name, &Kept::Tag(tag.to_owned(), digest.clone()))?;
        self.repository(name).tags.insert(tag.to_owned(), digest);
        Ok(())
    }

    /// The sorted tags of a repository, or `None` if the repository does not exist.
    pub(crate) fn tags(&self, name: &str) -> Option<Vec<String>> {
        Some(self.repositories.get(name)?.tags.keys().cloned().collect())
    }

    pub(crate) fn begin_upload(&mut self, name: &str) -> Uuid {
        let id = Uuid::new_v4();
        self.repository(name).uploads.insert(id, Vec::new());
        id
    }

    /// Appends a chunk, which must start at `offset` if that is known, and returns the new length.
    pub(crate) fn append(
        &mut self,
        name: &str,
        id: Uuid,
        offset: Option<usize>,
        chunk: &[u8],
    ) -> Result<usize, StorageError> {
        let length = self.upload(name, id)?.len();
        if offset.is_some_and(|offset| offset != length) {
            return Err(StorageError::OutOfOrder(length));
        }
        self.reserve(chunk.len())?;
        let upload = self.upload(name, id)?;
        upload.extend_from_slice(chunk);
        Ok(upload.len())
    }

    fn upload(&mut self, name: &str, id: Uuid) -> Result<&mut Vec<u8>, StorageError> {
        self.repositories.get_mut(name).and_then(|it| it.uploads.get_mut(&id)).ok_or(StorageError::NoUpload)
    }

    /// The length of an upload so far.
    pub(crate) fn upload_length(&mut self, name: &str, id: Uuid) -> Result<usize, StorageError> {
        self.upload(name, id).map(|upload| upload.len())
    }

    /// Stores an upload as a blob if its digest matches, and removes it in any case.
    pub(crate) fn finish_upload(&mut self, name: &str, id: Uuid, expected: &Digest) -> Result<(), StorageError> {
        let bytes = self.cancel_upload(name, id)?;
        let found = Digest::of(&bytes);
        if found != *expected {
            return Err(StorageError::Digest { expected: expected.clone(), found });
        }
        self.put_blob(name, found, bytes.into())
    }

    /// Removes an upload.
    pub(crate) fn cancel_upload(&mut self, name: &str, id: Uuid) -> Result<Vec<u8>, StorageError> {
        let upload = self.repositories.get_mut(name).and_then(|it| it.uploads.remove(&id));
        let bytes = upload.ok_or(StorageError::NoUpload)?;
        self.release(bytes.len());
        Ok(bytes)
    }
}
