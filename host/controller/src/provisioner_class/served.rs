//! Which artifact served each class last, noted beside the caches.
//!
//! A tag is resolved by its registry. Where that is away after a restart, the component that the class had before serves again:
//! its bytes are in the cache, and this note says which they are. The status says so, too, but whoever may write the status must
//! not decide what is run.

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

/// The most bytes of a note.
const NOTE_BYTES: u64 = 16 << 10;
/// What a tag is for.
const PURPOSE: &[u8] = b"class";

/// The notes of all classes, a file each: a tag, and the text that it vouches for.
pub(crate) struct Served {
    directory: PathBuf,
    key: Key,
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
    /// The notes in a directory, which is made where there is none.
    ///
    /// # Errors
    /// The directory is not this user's alone, or the disk failed.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        chandler_cache::directory(directory)?;
        let key = Key::open(&directory.join("key"))?;
        Ok(Self { directory: directory.to_owned(), key })
    }

    /// The artifact that served a class last, if it is noted for the image that the class names now.
    pub(crate) fn last(&self, class: &ProvisionerClass) -> Option<ResolvedImage> {
        let bytes = chandler_cache::read(&self.path(&class.name_any()), NOTE_BYTES).ok()?;
        let (tag, text) = bytes.split_at_checked(TAG_BYTES)?;
        let note: Note = self.key.verifies(&[PURPOSE, text], tag).then(|| serde_json::from_slice(text).ok())??;
        let resolved: ImageReference = note.resolved.parse().ok()?;
        if Note::of(class, &resolved) != note {
            return None;
        }
        let digest = resolved.digest()?.clone();
        Some(ResolvedImage::new(resolved, digest))
    }

    /// Notes which artifact serves a class. A failure is logged: it matters only where the registry is away later.
    pub(crate) fn note(&self, class: &ProvisionerClass, resolved: &ImageReference) {
        if self.last(class).is_some_and(|known| known.pinned() == *resolved) {
            return;
        }
        if let Err(error) = self.write(&class.name_any(), &Note::of(class, resolved)) {
            tracing::warn!(class = %class.name_any(), %error, "failed to note which component serves the class");
        }
    }

    /// Forgets a class. What is left over is for another UID, and is not used.
    pub(crate) fn forget(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    fn write(&self, name: &str, note: &Note) -> io::Result<()> {
        let text = serde_json::to_vec(note)?;
        chandler_cache::write(&self.path(name), &[&self.key.tag(&[PURPOSE, &text]), &text], true, true)
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
    use proptest::{prelude::*, sample::Index};

    use super::*;

    fn class(uid: &str, image: &str) -> ProvisionerClass {
        let mut class = ProvisionerClass::new("helm", chandler_api::ProvisionerClassSpec::default());
        class.metadata.uid = Some(uid.to_owned());
        class.spec.image = image.to_owned();
        class
    }

    #[test]
    fn a_note_is_for_one_class_and_one_image_and_from_nobody_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let served = Served::open(&directory.path().join("classes")).expect("a directory");
        let helm = class("1", "example.com/helm:v1");
        let digest = Digest::of(b"component");
        let pinned: ImageReference = format!("example.com/helm@{digest}").parse().expect("a reference");
        let last = |class: &ProvisionerClass| served.last(class).map(|last| last.pinned());
        assert_eq!(last(&helm), None);
        served.note(&helm, &pinned);
        assert_eq!(last(&helm), Some(pinned.clone()));
        assert_eq!(last(&class("2", "example.com/helm:v1")), None, "another class of its name");
        assert_eq!(last(&class("1", "example.com/helm:v2")), None, "another image");
        let path = served.path("helm");
        let mut bytes = std::fs::read(&path).expect("a note");
        let place = bytes.len() - 5;
        bytes[place] ^= 1;
        std::fs::write(&path, bytes).expect("it is altered");
        assert_eq!(last(&helm), None, "somebody altered it");
        served.note(&helm, &pinned);
        served.forget("helm");
        assert_eq!(last(&helm), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn nothing_but_what_was_noted_is_believed(
            bytes: Vec<u8>, edits in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4), cut: Index, how in 0_u8..5
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let served = Served::open(&directory.path().join("classes")).expect("a directory");
            let foreign = Served::open(&directory.path().join("others")).expect("a directory");
            let helm = class("1", "example.com/helm:v1");
            let pinned: ImageReference = format!("example.com/helm@{}", Digest::of(b"component")).parse().expect("a reference");
            served.note(&helm, &pinned);
            let noted = std::fs::read(served.path("helm")).expect("a note");
            let text = &noted[TAG_BYTES..];
            let mut forged = match how {
                0 => bytes,
                1 => [&noted[..], &bytes].concat(),
                // Text of anybody's choice, with the tag of another text, of another key, and for another purpose.
                2 => [&noted[..TAG_BYTES], &bytes].concat(),
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
            let believed = served.last(&helm).map(|last| last.pinned());
            prop_assert_eq!(believed, (forged == noted).then_some(pinned));
        }
    }
}
