//! Which tree an image is.

use std::{fs, io, path::PathBuf};

use chandler_core::Digest;
use serde::{Deserialize, Serialize};

use super::{Store, workspace};
use crate::{StoreError, tree::Tree};

/// What identifies the outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ImageKey {
    /// The digest of the manifest or of the index.
    pub(crate) image: Digest,
    /// `os/architecture`, by which an index is resolved, or what else decides what becomes of the image.
    pub(crate) view: String,
}

/// What is written for one.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    key: ImageKey,
    tree: Digest,
}

impl Store {
    fn image_path(&self, key: &ImageKey) -> PathBuf {
        let name = Digest::of(format!("{}\0{}", key.image, key.view).as_bytes());
        self.inner.root.join("images").join(name.hex())
    }

    /// The tree of an image that was fetched before, if it is still there.
    pub(crate) fn image(&self, key: &ImageKey) -> Result<Option<Tree>, StoreError> {
        let path = self.image_path(key);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::at("read", path)(error)),
        };
        match serde_json::from_slice::<Record>(&text) {
            Ok(record) if record.key == *key => self.open_tree(&record.tree),
            // Damaged: it is written again with the next fetch.
            _ => Ok(None),
        }
    }

    /// Notes which tree an image is.
    pub(crate) fn remember_image(&self, key: &ImageKey, tree: &Digest) -> Result<(), StoreError> {
        let work = self.begin()?;
        let from = work.path().join("image");
        let to = self.image_path(key);
        let record = Record { key: key.clone(), tree: tree.clone() };
        let text = serde_json::to_vec(&record).map_err(|error| StoreError::at("write", &from)(error.into()))?;
        workspace::write_synced(&from, &text).map_err(StoreError::at("write", &from))?;
        fs::rename(&from, &to).map_err(StoreError::at("move into place", &to))
    }

    /// Forgets the images whose trees are gone.
    pub(super) fn forget_images(&self) -> Result<(), StoreError> {
        let directory = self.inner.root.join("images");
        for entry in fs::read_dir(&directory).map_err(StoreError::at("list", &directory))? {
            let path = entry.map_err(StoreError::at("list", &directory))?.path();
            let record = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
            if !record.is_some_and(|record| self.tree_path(&record.tree).exists()) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(StoreError::at("remove", path)(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
