//! The layers of an image in files of this machine, such as an OCI image layout.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use chandler_core::Digest;
use sha2::{Digest as _, Sha256};

use super::{
    ImageError,
    fetch::{Kept, blob_name, unpack_layers},
};
use crate::{
    ContentError, LimitExceeded, Limits, Store, StoreError, Tree, blocking,
    path::entry_path,
    store::{FILE, Workspace, own_file},
};

/// The bytes that are copied at once.
const CHUNK: usize = 64 << 10;

impl Store {
    /// The files below a directory of an image whose layers are files on disk, each with its digest, the lowest first. `image` names the
    /// image in messages, and `label` is the label of its configuration that names the directory. Other content of the layers, such as
    /// programs, is read over and not kept.
    ///
    /// # Errors
    /// A file differs from its digest, the layers exceed the limits of the store, or `below` is not a directory in the image.
    pub async fn import_layers(
        &self,
        image: String,
        layers: Vec<(Digest, PathBuf)>,
        (label, below): (&str, &str),
    ) -> Result<Tree, ContentError> {
        let refused = |error: ImageError| ContentError::Image { image: image.clone(), error };
        let limits = self.limits().clone();
        if layers.len() > limits.layers {
            return Err(refused(LimitExceeded::Layers(limits.layers).into()));
        }
        let path = entry_path(below.trim_start_matches('/').as_bytes(), &limits).ok().filter(|path| !path.is_empty());
        let Some(below) = path else {
            let value = below.chars().take(200).collect();
            return Err(refused(ImageError::LabelValue { label: label.to_owned(), value }));
        };
        let store = self.clone();
        blocking::run_long(move |cancel| {
            let work = store.begin()?.cancelled_by(cancel);
            let mut left = limits.download_bytes;
            for (digest, path) in &layers {
                copy(&image, digest, path, &work, &limits, &mut left)?;
            }
            let digests = layers.into_iter().map(|(digest, _)| digest).collect::<Vec<_>>();
            unpack_layers(&image, &digests, Kept::Below(below), work, &limits)
        })
        .await
    }
}

/// Copies a layer into the workspace, so that it does not change after its digest was verified.
fn copy(
    image: &str,
    digest: &Digest,
    from: &Path,
    work: &Workspace,
    limits: &Limits,
    left: &mut u64,
) -> Result<(), ContentError> {
    let refused = |error: ImageError| ContentError::Image { image: image.to_owned(), error };
    let path = work.path().join(blob_name(digest));
    if path.exists() {
        return Ok(());
    }
    let mut source = File::open(from).map_err(StoreError::at("open", from))?;
    work.room().take(FILE)?;
    let mut file = own_file().open(&path).map_err(StoreError::at("create", &path))?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let count = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(StoreError::at("read", from)(error).into()),
        };
        let bytes = chunk.get(..count).unwrap_or_default();
        *left = left
            .checked_sub(count as u64)
            .ok_or_else(|| refused(LimitExceeded::DownloadBytes(limits.download_bytes).into()))?;
        hash.update(bytes);
        work.room().take(count as u64)?;
        file.write_all(bytes).map_err(StoreError::at("write to", &path))?;
    }
    file.flush().map_err(StoreError::at("write to", &path))?;
    let found = Digest::from_hash(hash.finalize().into());
    if found != *digest {
        let what = format!("layer {}", from.display());
        return Err(refused(ImageError::DigestMismatch { what, expected: digest.clone(), found }));
    }
    Ok(())
}
