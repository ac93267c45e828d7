//! The artifact that served each class last, recorded beside the caches.
//!
//! Only its registry can resolve a tag. Where the registry is unavailable after a restart, the earlier component of the class serves
//! again: its bytes are in the cache, and this record identifies them. The status does so too, but a user who may write the status
//! must not decide which component runs.

use std::{
    io,
    path::{Path, PathBuf},
};

use chandler_api::ProvisionerClass;
use chandler_cache::{Key, TAG_BYTES};
use chandler_content::{ImageReference, ResolvedImage};
use chandler_core::Digest;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

/// The maximum size of a record in bytes.
const RECORD_BYTES: u64 = 16 << 10;
/// Separates these tags from other tags of the same key.
const PURPOSE: &[u8] = b"class";

/// The records of all classes. Each is a file with an authentication tag and the text that it authenticates.
pub(super) struct ServedArtifacts {
    directory: PathBuf,
    key: Key,
}

/// The record of a class.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The UID of the ProvisionerClass: a later object of the same name is another class.
    uid: String,
    /// `spec.image`.
    image: String,
    /// The artifact that it resolved to, by digest.
    resolved: String,
}

impl ServedArtifacts {
    /// Opens the records in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// Other users can access the directory, or it cannot be read or written.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        chandler_cache::directory(directory)?;
        let key = Key::open(&directory.join("key"))?;
        Ok(Self { directory: directory.to_owned(), key })
    }

    /// The artifact that served a class last, if it is recorded for the image that the class names now.
    pub(super) fn last(&self, class: &ProvisionerClass) -> Option<ResolvedImage> {
        let bytes = chandler_cache::read(&self.path(&class.name_any()), RECORD_BYTES).ok()?;
        let (tag, text) = bytes.split_at_checked(TAG_BYTES)?;
        let record: Record = self.key.verifies(&[PURPOSE, text], tag).then(|| serde_json::from_slice(text).ok())??;
        let resolved: ImageReference = record.resolved.parse().ok()?;
        if Record::of(class, &resolved) != record {
            return None;
        }
        let digest = resolved.digest()?.clone();
        Some(ResolvedImage::new(resolved, digest))
    }

    /// Records the artifact that serves a class. A failure is only logged: the record is needed only if the registry is unavailable
    /// later.
    pub(super) fn record(&self, class: &ProvisionerClass, resolved: &ImageReference) {
        if self.last(class).is_some_and(|known| known.pinned() == *resolved) {
            return;
        }
        if let Err(error) = self.write(&class.name_any(), &Record::of(class, resolved)) {
            tracing::warn!(class = %class.name_any(), %error, "failed to record which component serves the class");
        }
    }

    /// Deletes the record of a class. If that fails, the record is never used, since it has another UID.
    pub(super) fn forget(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    fn write(&self, name: &str, record: &Record) -> io::Result<()> {
        let text = serde_json::to_vec(record)?;
        chandler_cache::write(&self.path(name), &[&self.key.tag(&[PURPOSE, &text]), &text], true, true)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(Digest::of(name.as_bytes()).hex())
    }
}

impl Record {
    fn of(class: &ProvisionerClass, resolved: &ImageReference) -> Self {
        let (uid, image) = (class.uid().unwrap_or_default(), class.spec.image.clone());
        Self { uid, image, resolved: resolved.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    fn class(uid: &str, image: &str) -> ProvisionerClass {
        let mut class = ProvisionerClass::new("helm", chandler_api::ProvisionerClassSpec::default());
        class.metadata.uid = Some(uid.to_owned());
        class.spec.image = image.to_owned();
        class
    }

    #[test]
    fn a_record_is_valid_for_one_class_and_one_image_and_only_if_authentic() {
        let directory = tempfile::tempdir().expect("a directory");
        let served = ServedArtifacts::open(&directory.path().join("classes")).expect("a directory");
        let helm = class("1", "example.com/helm:v1");
        let digest = Digest::of(b"component");
        let pinned: ImageReference = format!("example.com/helm@{digest}").parse().expect("a reference");
        let last = |class: &ProvisionerClass| served.last(class).map(|last| last.pinned());
        assert_eq!(last(&helm), None);
        served.record(&helm, &pinned);
        assert_eq!(last(&helm), Some(pinned.clone()));
        assert_eq!(last(&class("2", "example.com/helm:v1")), None, "another class of the same name");
        assert_eq!(last(&class("1", "example.com/helm:v2")), None, "another image");
        let path = served.path("helm");
        let mut bytes = std::fs::read(&path).expect("a record");
        let place = bytes.len() - 5;
        bytes[place] ^= 1;
        std::fs::write(&path, bytes).expect("the file is altered");
        assert_eq!(last(&helm), None, "the record was altered");
        served.record(&helm, &pinned);
        served.forget("helm");
        assert_eq!(last(&helm), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn only_authentic_records_are_used(
            bytes: Vec<u8>, edits in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4), cut: Index, how in 0_u8..5
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let served = ServedArtifacts::open(&directory.path().join("classes")).expect("a directory");
            let foreign = ServedArtifacts::open(&directory.path().join("others")).expect("a directory");
            let helm = class("1", "example.com/helm:v1");
            let pinned: ImageReference = format!("example.com/helm@{}", Digest::of(b"component")).parse().expect("a reference");
            served.record(&helm, &pinned);
            let recorded = std::fs::read(served.path("helm")).expect("a record");
            let text = &recorded[TAG_BYTES..];
            let mut forged = match how {
                0 => bytes,
                1 => [&recorded[..], &bytes].concat(),
                // Arbitrary text with the tag of another text, of another key, and for another purpose.
                2 => [&recorded[..TAG_BYTES], &bytes].concat(),
                3 => [&foreign.key.tag(&[PURPOSE, text])[..], text].concat(),
                _ => [&served.key.tag(&[b"another", text])[..], text].concat(),
            };
            let length = forged.len();
            for (place, edit) in edits.iter().filter(|_| length > 0) {
                forged[place.index(length)] ^= edit;
            }
            if how == 1 {
                forged.truncate(cut.index(forged.len() + 1));
            }
            chandler_cache::write(&served.path("helm"), &[&forged], true, false).expect("it is replaced");
            let used = served.last(&helm).map(|last| last.pinned());
            prop_assert_eq!(used, (forged == recorded).then_some(pinned));
        }
    }
}
