//! The artifact that last served each class, recorded beside the caches.
//!
//! Only its registry can resolve a tag. If the registry is unavailable after a restart, the earlier component of the class serves again:
//! its bytes are in the cache, and this record identifies them. The status also identifies them, but a user who may write the status must
//! not decide which component runs.

use std::{io, path::Path};

use chandler_api::ProvisionerClass;
use chandler_content::{ImageReference, ResolvedImage};
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

use crate::sealed_files::SealedFiles;

/// Separates these records from others.
const PURPOSE: &[u8] = b"class";

/// The records of all classes.
pub(super) struct ServedArtifacts(SealedFiles);

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
        SealedFiles::open(directory, PURPOSE).map(Self)
    }

    /// The artifact that last served a class, if it is recorded for the image that the class names now.
    pub(super) fn last(&self, class: &ProvisionerClass) -> Option<ResolvedImage> {
        let record: Record = self.0.read(&class.name_any())?;
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
        if let Err(error) = self.0.write(&class.name_any(), &Record::of(class, resolved)) {
            tracing::warn!(class = %class.name_any(), %error, "failed to record which component serves the class");
        }
    }

    /// Deletes the record of a class.
    pub(super) fn forget(&self, name: &str) {
        self.0.remove(name);
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
    use chandler_core::Digest;

    use super::*;

    fn class(uid: &str, image: &str) -> ProvisionerClass {
        let mut class = ProvisionerClass::new("helm", chandler_api::ProvisionerClassSpec::default());
        class.metadata.uid = Some(uid.to_owned());
        class.spec.image = image.to_owned();
        class
    }

    #[test]
    fn a_record_is_valid_for_one_class_and_one_image() {
        let directory = tempfile::tempdir().expect("a directory");
        let served = ServedArtifacts::open(&directory.path().join("classes")).expect("a directory");
        let helm = class("1", "example.com/helm:v1");
        let digest = Digest::of(b"component");
        let pinned: ImageReference = format!("example.com/helm@{digest}").parse().expect("a reference");
        let last = |class: &ProvisionerClass| served.last(class).map(|last| last.pinned());
        assert_eq!(last(&helm), None);
        served.record(&helm, &pinned);
        assert_eq!(last(&helm), Some(pinned));
        assert_eq!(last(&class("2", "example.com/helm:v1")), None, "another class of the same name");
        assert_eq!(last(&class("1", "example.com/helm:v2")), None, "another image");
        served.forget("helm");
        assert_eq!(last(&helm), None);
    }
}
