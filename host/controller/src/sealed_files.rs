//! Small records in a directory beside the caches, one file for each object. Each has an authentication tag: only records that this
//! controller wrote are read.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use chandler_cache::{Key, TAG_BYTES};
use chandler_core::Digest;
use serde::{Serialize, de::DeserializeOwned};

/// The maximum size of a record in bytes.
const RECORD_BYTES: u64 = 1 << 20;

/// The name of the file with the key.
const KEY: &str = "key";

/// The records of a directory, by the name of their object.
pub(crate) struct SealedFiles {
    directory: PathBuf,
    key: Key,
    /// Separates these tags from other tags of the same key.
    purpose: &'static [u8],
}

impl SealedFiles {
    /// Opens a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// Other users can access the directory, or it cannot be read or written.
    pub(crate) fn open(directory: &Path, purpose: &'static [u8]) -> io::Result<Self> {
        chandler_cache::directory(directory)?;
        let key = Key::open(&directory.join(KEY))?;
        Ok(Self { directory: directory.to_owned(), key, purpose })
    }

    /// The record of an object; `None` if it does not exist or is not authentic.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let bytes = chandler_cache::read(&self.path(name), RECORD_BYTES).ok()?;
        let (tag, text) = bytes.split_at_checked(TAG_BYTES)?;
        self.key.verifies(&[self.purpose, text], tag).then(|| serde_json::from_slice(text).ok())?
    }

    /// Writes the record of an object.
    pub(crate) fn write(&self, name: &str, record: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(record)?;
        let tag = self.key.tag(&[self.purpose, &text]);
        chandler_cache::write(&self.path(name), &[&tag, &text], true, true)
    }

    /// Deletes the record of an object. A failure is ignored: a record names the UID of its object, and no later object has it.
    pub(crate) fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    /// Deletes the records of all objects except these. Failures are ignored as above.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) {
        let kept: BTreeSet<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name() != KEY && !kept.contains(&entry.path()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(Digest::of(name.as_bytes()).hex())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};
    use serde_json::{Value, json};

    use super::*;

    const PURPOSE: &[u8] = b"test";

    #[test]
    fn records_of_objects_that_are_gone_are_deleted() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = SealedFiles::open(&directory.path().join("files"), PURPOSE).expect("a directory");
        for name in ["kept", "gone"] {
            files.write(name, &name).expect("a record");
        }
        files.retain(&["kept".to_owned()].into());
        let read = |name: &str| files.read::<String>(name);
        assert_eq!((read("kept").as_deref(), read("gone")), (Some("kept"), None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn only_authentic_records_are_read(
            bytes: Vec<u8>, edits in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4), cut: Index, how in 0_u8..5
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let files = SealedFiles::open(&directory.path().join("files"), PURPOSE).expect("a directory");
            let foreign = SealedFiles::open(&directory.path().join("others"), PURPOSE).expect("a directory");
            let record = json!({"uid": "1", "image": "example.com/helm:v1"});
            files.write("helm", &record).expect("a record");
            let recorded = std::fs::read(files.path("helm")).expect("a record");
            let text = &recorded[TAG_BYTES..];
            let mut forged = match how {
                0 => bytes,
                1 => [&recorded[..], &bytes].concat(),
                // Arbitrary text with the tag of another text, of another key, and for another purpose.
                2 => [&recorded[..TAG_BYTES], &bytes].concat(),
                3 => [&foreign.key.tag(&[PURPOSE, text])[..], text].concat(),
                _ => [&files.key.tag(&[b"another", text])[..], text].concat(),
            };
            let length = forged.len();
            for (place, edit) in edits.iter().filter(|_| length > 0) {
                forged[place.index(length)] ^= edit;
            }
            if how == 1 {
                forged.truncate(cut.index(forged.len() + 1));
            }
            chandler_cache::write(&files.path("helm"), &[&forged], true, false).expect("it is replaced");
            prop_assert_eq!(files.read::<Value>("helm"), (forged == recorded).then_some(record));
        }
    }
}
