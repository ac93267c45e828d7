//! Which artifact served each class last, noted beside the caches.
//!
//! A tag is resolved by its registry. Where that is away after a restart, the component that the class had before serves again:
//! its bytes are in the cache, and this note says which they are. The status says so, too, but whoever may write the status must
//! not decide what is run.

use std::{io, path::PathBuf};

use chandler_api::ProvisionerClass;
use chandler_content::{ImageReference, ResolvedImage};
use chandler_core::Digest;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

/// The notes of all classes, a file each.
pub(crate) struct Served {
    directory: PathBuf,
}

/// What is noted of a class.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// Of the ProvisionerClass: another one of its name is another class.
    uid: String,
    /// `spec.image`.
    image: String,
    /// The artifact that it stood for, by digest.
    resolved: String,
}

impl Served {
    /// The notes in a directory, which is made when there is something to note.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The artifact that served a class last, if it is noted for the image that the class names now.
    pub(crate) async fn last(&self, class: &ProvisionerClass) -> Option<ResolvedImage> {
        let text = tokio::fs::read(self.path(&class.name_any())).await.ok()?;
        let note: Note = serde_json::from_slice(&text).ok()?;
        let resolved: ImageReference = note.resolved.parse().ok()?;
        if Note::of(class, &resolved) != note {
            return None;
        }
        let digest = resolved.digest()?.clone();
        Some(ResolvedImage::new(resolved, digest))
    }

    /// Notes which artifact serves a class. A failure is logged: it matters only where the registry is away later.
    pub(crate) async fn note(&self, class: &ProvisionerClass, resolved: &ImageReference) {
        let note = Note::of(class, resolved);
        let known = self.last(class).await;
        if known.is_some_and(|known| known.pinned() == *resolved) {
            return;
        }
        if let Err(error) = self.write(&class.name_any(), &note).await {
            tracing::warn!(class = %class.name_any(), %error, "failed to note which component serves the class");
        }
    }

    /// Forgets a class.
    pub(crate) async fn forget(&self, name: &str) {
        // What is left over is for another UID, and is not used.
        let _ = tokio::fs::remove_file(self.path(name)).await;
    }

    async fn write(&self, name: &str, note: &Note) -> io::Result<()> {
        tokio::fs::create_dir_all(&self.directory).await?;
        let (path, text) = (self.path(name), serde_json::to_vec(note)?);
        let draft = path.with_extension("new");
        tokio::fs::write(&draft, text).await?;
        tokio::fs::rename(&draft, &path).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(Digest::of(name.as_bytes()).hex())
    }
}

impl Note {
    fn of(class: &ProvisionerClass, resolved: &ImageReference) -> Self {
        let (uid, image) = (class.uid().unwrap_or_default(), class.spec.image.clone());
        Self { uid, image, resolved: resolved.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(uid: &str, image: &str) -> ProvisionerClass {
        let mut class = ProvisionerClass::new("helm", chandler_api::ProvisionerClassSpec::default());
        class.metadata.uid = Some(uid.to_owned());
        class.spec.image = image.to_owned();
        class
    }

    #[tokio::test]
    async fn a_note_is_for_one_class_and_one_image() {
        let directory = tempfile::tempdir().expect("a directory");
        let served = Served::new(directory.path().join("classes"));
        let helm = class("1", "example.com/helm:v1");
        let digest = Digest::of(b"component");
        let pinned: ImageReference = format!("example.com/helm@{digest}").parse().expect("a reference");
        assert_eq!(served.last(&helm).await, None);
        served.note(&helm, &pinned).await;
        assert_eq!(served.last(&helm).await.map(|last| last.pinned()), Some(pinned));
        assert_eq!(served.last(&class("2", "example.com/helm:v1")).await, None, "another class of its name");
        assert_eq!(served.last(&class("1", "example.com/helm:v2")).await, None, "another image");
        served.forget("helm").await;
        assert_eq!(served.last(&helm).await, None);
    }
}
