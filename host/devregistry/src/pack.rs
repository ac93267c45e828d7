//! Packs a directory as the layer of an image.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use chandler_core::Digest;
use flate2::{Compression, write::GzEncoder};

use crate::StorageError;

/// Why a directory could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or directory cannot be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A path is not a file, a directory or a link to a file inside.
    #[error("{}: is neither a file, a directory nor a link to a file inside", .0.display())]
    NotAFile(PathBuf),
    /// The image could not be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A packed layer.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The compressed archive.
    pub(crate) layer: Vec<u8>,
    /// The digest of the uncompressed archive.
    pub(crate) diff_id: Digest,
}

pub(crate) async fn directory(root: &Path) -> Result<Packed, PackError> {
    let root = root.to_owned();
    let path = root.clone();
    let packed = tokio::task::spawn_blocking(move || pack(&root)).await;
    packed.unwrap_or_else(|error| Err(PackError::Read { path, source: io::Error::other(error) }))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PackError {
    let path = path.to_owned();
    move |source| PackError::Read { path, source }
}

fn pack(root: &Path) -> Result<Packed, PackError> {
    let root = fs::canonicalize(root).map_err(at(root))?;
    let mut files = Vec::new();
    find(&root, &root, &mut files)?;
    files.sort();
    let mut archive = tar::Builder::new(Vec::new());
    for (name, source) in files {
        let bytes = fs::read(&source).map_err(at(&source))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, &name, bytes.as_slice()).map_err(at(&source))?;
    }
    let tar = archive.into_inner().map_err(at(&root))?;
    let diff_id = Digest::of(&tar);
    // The gzip header contains no time and no name.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let layer = gzip.write_all(&tar).and_then(|()| gzip.finish()).map_err(at(&root))?;
    Ok(Packed { layer, diff_id })
}

/// All files below a directory: the path in the archive and the path of the content.
fn find(root: &Path, directory: &Path, files: &mut Vec<(PathBuf, PathBuf)>) -> Result<(), PackError> {
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let entry = entry.map_err(at(directory))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(at(&path))?;
        if kind.is_dir() {
            find(root, &path, files)?;
            continue;
        }
        let target = if kind.is_symlink() { fs::canonicalize(&path).map_err(at(&path))? } else { path.clone() };
        if !target.starts_with(root) || !target.is_file() {
            return Err(PackError::NotAFile(path));
        }
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        files.push((name, target));
    }
    Ok(())
}
