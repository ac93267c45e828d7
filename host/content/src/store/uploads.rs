//! Which content was uploaded for which object.
//!
//! Content counts as uploaded only for the object that it was uploaded for: another object that names the digest does not prove that its
//! author has the content.

use std::{fs, io, path::PathBuf};

use chandler_core::Digest;
use serde::{Deserialize, Serialize};

use super::Store;
use crate::StoreError;

/// The purpose of the tag of a record.
const UPLOAD: &[u8] = b"chandler upload record 1";
/// How much content of one object is known.
const CONTENTS: usize = 4;
/// The directory of the records.
pub(super) const DIRECTORY: &str = "uploads";

/// Content that was uploaded for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The name of the object.
    pub name: String,
    /// Its UID: a later object of the same name is another one.
    pub uid: String,
    /// The digests of the content, the latest last.
    pub contents: Vec<Digest>,
}

impl Upload {
    /// Adds content. If there are more than a few, the earliest is forgotten, but never the `wanted` content, which the spec names: content
    /// is uploaded before a spec names it, and one of several uploads may be the one that a spec names next.
    pub fn add(&mut self, content: Digest, wanted: Option<&Digest>) {
        self.contents.retain(|other| *other != content);
        self.contents.push(content);
        while self.contents.len() > CONTENTS {
            let earliest = self.contents.iter().position(|content| Some(content) != wanted);
            self.contents.remove(earliest.unwrap_or_default());
        }
    }
}

impl Store {
    /// The content that was uploaded for the object of this name.
    ///
    /// # Errors
    /// The disk fails.
    pub fn upload(&self, name: &str) -> Result<Option<Upload>, StoreError> {
        let text = self.tagged(&self.upload_path(name), UPLOAD)?;
        let upload = text.and_then(|text| serde_json::from_slice::<Upload>(&text).ok());
        Ok(upload.filter(|upload| upload.name == name))
    }

    /// Records an upload.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remember_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        self.write_tagged(self.upload_path(&upload.name), UPLOAD, upload)
    }

    /// Forgets uploads for which `keep` is false. Returns the rest.
    ///
    /// # Errors
    /// The disk fails.
    pub fn retain_uploads(&self, keep: impl Fn(&Upload) -> bool) -> Result<Vec<Upload>, StoreError> {
        let directory = self.inner.root.join(DIRECTORY);
        let mut kept = Vec::new();
        for entry in fs::read_dir(&directory).map_err(StoreError::at("list", &directory))? {
            let entry = entry.map_err(StoreError::at("list", &directory))?;
            // It is being written.
            if entry.file_name().to_string_lossy().starts_with(chandler_cache::TEMPORARY) {
                continue;
            }
            let path = entry.path();
            let Some(text) = self.tagged(&path, UPLOAD)? else { continue };
            match serde_json::from_slice::<Upload>(&text) {
                Ok(upload) if keep(&upload) => kept.push(upload),
                _ => remove(&path)?,
            }
        }
        Ok(kept)
    }

    /// Forgets what was uploaded for an object of this name, unless it is the one with this UID.
    ///
    /// # Errors
    /// The disk fails.
    pub fn retain_upload_of(&self, name: &str, uid: &str) -> Result<(), StoreError> {
        match self.upload(name)? {
            Some(upload) if upload.uid != uid => remove(&self.upload_path(name)),
            _ => Ok(()),
        }
    }

    fn upload_path(&self, name: &str) -> PathBuf {
        self.inner.root.join(DIRECTORY).join(Digest::of(name.as_bytes()).hex())
    }
}

fn remove(path: &PathBuf) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::at("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn the_latest_content_is_known() {
        let digest = |number: u8| Digest::of(&[number]);
        let mut upload = Upload { name: "a".to_owned(), uid: "1".to_owned(), contents: Vec::new() };
        for number in [1, 2, 1, 3, 4, 5] {
            upload.add(digest(number), None);
        }
        assert_eq!(upload.contents, [1, 3, 4, 5].map(digest));
    }

    #[test]
    fn the_content_that_the_spec_names_stays() {
        let digest = |number: u8| Digest::of(&[number]);
        let mut upload = Upload { name: "a".to_owned(), uid: "1".to_owned(), contents: Vec::new() };
        for number in 1..9 {
            upload.add(digest(number), Some(&digest(2)));
        }
        assert_eq!(upload.contents, [2, 6, 7, 8].map(digest));
    }

    #[test]
    fn an_upload_is_for_one_object() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Limits::default()).unwrap();
        let upload = |name: &str, uid: &str| Upload {
            name: name.to_owned(),
            uid: uid.to_owned(),
            contents: vec![Digest::of(name.as_bytes())],
        };
        for (name, uid) in [("a", "1"), ("b", "2"), ("c", "3")] {
            store.remember_upload(&upload(name, uid)).unwrap();
        }
        assert_eq!(store.upload("a").unwrap(), Some(upload("a", "1")));
        store.retain_upload_of("a", "1").unwrap();
        assert_eq!(store.upload("a").unwrap(), Some(upload("a", "1")));
        store.retain_upload_of("a", "2").unwrap();
        assert_eq!(store.upload("a").unwrap(), None);
        assert_eq!(store.retain_uploads(|upload| upload.name == "b").unwrap(), [upload("b", "2")]);
        assert_eq!(store.upload("c").unwrap(), None);
        // A record that is being written is left alone.
        let written = directory.path().join(DIRECTORY).join(format!("{}1", chandler_cache::TEMPORARY));
        fs::copy(store.upload_path("b"), &written).unwrap();
        assert_eq!(store.retain_uploads(|upload| upload.name != "b").unwrap(), []);
        assert!(written.exists());
        store.remember_upload(&upload("b", "2")).unwrap();

        // Nothing but what the store wrote is a record, also under the name of another object.
        let (from, to) = (store.upload_path("b"), store.upload_path("d"));
        fs::copy(&from, &to).unwrap();
        assert_eq!(store.upload("d").unwrap(), None);
        fs::write(&from, b"forged").unwrap();
        assert_eq!(store.upload("b").unwrap(), None);
    }
}
