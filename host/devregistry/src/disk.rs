//! The directory that stores the content of a registry.
//!
//! Each repository has a directory, with a file for each blob (`blobs/HEX`), manifest (`manifests/HEX`: the media type in the first line,
//! then the bytes) and tag (`tags/TAG`: the digest). Files are replaced by renaming, and a digest that does not match its content drops
//! the file, so an interrupted write loses at most itself.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use chandler_core::Digest;

use crate::storage::StoredManifest;

const BLOBS: &str = "blobs";
const MANIFESTS: &str = "manifests";
const TAGS: &str = "tags";
/// Replaces `/` in the names of repositories, which cannot contain it.
const SEPARATOR: &str = "+";
/// The suffix of a file that is being written. Tags can end in it, too; such a tag is not restored.
const UNFINISHED: &str = ".next";

/// What a file holds.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// A blob.
    Blob(Digest, Bytes),
    /// A manifest.
    Manifest(StoredManifest),
    /// A tag and the digest of its manifest.
    Tag(String, Digest),
}

/// A directory for the content of a registry, readable by its owner only.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// A directory, which is created if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        create(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Writes one file.
    pub(crate) fn write(&self, name: &str, kept: &Kept) -> Result<(), (PathBuf, io::Error)> {
        let (folder, file, bytes) = match kept {
            Kept::Blob(digest, bytes) => (BLOBS, digest.hex().to_owned(), bytes.clone()),
            Kept::Manifest(manifest) => {
                let head = format!("{}\n", manifest.media_type.lines().next().unwrap_or_default());
                let bytes = [head.as_bytes(), &manifest.bytes].concat();
                (MANIFESTS, Digest::of(&manifest.bytes).hex().to_owned(), bytes.into())
            }
            Kept::Tag(tag, digest) => (TAGS, tag.clone(), digest.as_str().to_owned().into()),
        };
        let folder = self.0.join(name.replace('/', SEPARATOR)).join(folder);
        let path = folder.join(&file);
        let next = folder.join(format!("{file}{UNFINISHED}"));
        let written = create(&folder).and_then(|()| fs::write(&next, &bytes)).and_then(|()| fs::rename(&next, &path));
        written.map_err(|error| (path, error))
    }

    /// Reads all files, in an order in which the content of a manifest comes before the manifest. Unreadable and damaged files are
    /// skipped with a warning.
    pub(crate) fn read(&self, mut each: impl FnMut(&str, Kept)) -> io::Result<()> {
        for repository in entries(&self.0)? {
            let Some(name) = file_name(&repository) else { continue };
            let name = name.replace(SEPARATOR, "/");
            for folder in [BLOBS, MANIFESTS, TAGS] {
                let files = match entries(&repository.join(folder)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    files => files?,
                };
                for path in files {
                    match read(folder, &path) {
                        Ok(Some(kept)) => each(&name, kept),
                        Ok(None) => tracing::warn!(path = %path.display(), "a file of the registry is damaged"),
                        Err(error) => {
                            tracing::warn!(path = %path.display(), %error, "a file of the registry cannot be read");
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads a file; nothing if it is damaged or unfinished.
fn read(folder: &str, path: &Path) -> io::Result<Option<Kept>> {
    let Some(file) = file_name(path).filter(|file| !file.ends_with(UNFINISHED)) else { return Ok(None) };
    let bytes = Bytes::from(fs::read(path)?);
    Ok(match folder {
        BLOBS => {
            let digest = Digest::of(&bytes);
            (digest.hex() == file).then_some(Kept::Blob(digest, bytes))
        }
        MANIFESTS => manifest(file, &bytes),
        _ => {
            let digest = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
            digest.map(|digest| Kept::Tag(file.to_owned(), digest))
        }
    })
}

fn manifest(file: &str, bytes: &Bytes) -> Option<Kept> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let media_type = String::from_utf8(bytes.slice(..end).to_vec()).ok()?;
    let bytes = bytes.slice(end + 1..);
    (Digest::of(&bytes).hex() == file).then_some(Kept::Manifest(StoredManifest { media_type, bytes }))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The sorted paths in a directory.
fn entries(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
