//! An image in a directory, as `cargo xtask dist`, skopeo and buildah write it.
//!
//! <https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md>

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use chandler_core::Digest;
use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE,
    OciDescriptor, OciImageIndex, OciImageManifest,
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{CommandError, view::invocation::quoted};

/// The file by which a layout is recognised.
const MARKER: &str = "oci-layout";
/// The largest manifest or index; registries accept about as much.
const MAX_MANIFEST: u64 = 4 << 20;
/// The largest layer: each is read as a whole, so that what was checked is pushed.
const MAX_BLOB: u64 = 1 << 30;
/// The most manifests of an image, one for each platform, and the most blobs of all of them.
const MAX_COUNT: usize = 1000;

/// Whether a directory holds an image, and not the files of a bundle.
pub fn is_layout(directory: &Path) -> bool {
    directory.join(MARKER).is_file()
}

/// An image in a directory, whose manifests have been read and checked.
#[derive(Debug)]
pub struct ImageLayout {
    directory: PathBuf,
    /// The manifests in the order in which a registry accepts them: the last one is the image.
    manifests: Vec<Manifest>,
    /// The sizes of the configurations and layers.
    blobs: BTreeMap<Digest, u64>,
}

/// A manifest or an index, unchanged.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its text.
    pub bytes: Vec<u8>,
}

/// The text of the marker.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    image_layout_version: String,
}

impl ImageLayout {
    /// Reads the manifests of the image in a directory. The layers are read when they are pushed ([`Self::blob`]). Blocks on the disk.
    ///
    /// # Errors
    /// The directory is damaged, has another number of images than one, or has more than an image has.
    pub fn open(directory: &Path) -> Result<Self, CommandError> {
        let mut layout = Self { directory: directory.to_owned(), manifests: Vec::new(), blobs: BTreeMap::new() };
        let marker: Marker = layout.parsed(MARKER, &layout.file(MARKER, MAX_MANIFEST)?)?;
        if marker.image_layout_version != "1.0.0" {
            return Err(layout.unusable(&format!(
                "it has version {} of the OCI image layout, and this command knows 1.0.0",
                marker.image_layout_version
            )));
        }
        let index: OciImageIndex = layout.parsed("index.json", &layout.file("index.json", MAX_MANIFEST)?)?;
        let [image] = index.manifests.as_slice() else {
            let count = index.manifests.len();
            let one = CommandError::failed(format!(
                "{} has {count} images, and one can be pushed to a tag",
                directory.display()
            ));
            return Err(one.hint(format!(
                "`skopeo copy --all oci:{}:NAME docker://IMAGE` pushes one of them",
                quoted(&directory.display().to_string())
            )));
        };
        layout.add_manifest(&image.media_type, &image.digest, image.size, true)?;
        Ok(layout)
    }

    fn add_manifest(
        &mut self,
        media_type: &str,
        digest: &str,
        size: i64,
        may_be_index: bool,
    ) -> Result<(), CommandError> {
        if self.manifests.len() >= MAX_COUNT {
            return Err(self.unusable(&format!("it has more than {MAX_COUNT} manifests")));
        }
        let (digest, size) = self.described(digest, size)?;
        let bytes = self.checked(&digest, size, MAX_MANIFEST)?;
        let name = digest.as_str();
        match media_type {
            OCI_IMAGE_MEDIA_TYPE | IMAGE_MANIFEST_MEDIA_TYPE => {
                let manifest: OciImageManifest = self.parsed(name, &bytes)?;
                self.check_type(name, manifest.media_type.as_deref(), media_type)?;
                for blob in manifest.layers.iter().chain([&manifest.config]) {
                    self.add_blob(blob)?;
                }
            }
            OCI_IMAGE_INDEX_MEDIA_TYPE | IMAGE_MANIFEST_LIST_MEDIA_TYPE if may_be_index => {
                let index: OciImageIndex = self.parsed(name, &bytes)?;
                self.check_type(name, index.media_type.as_deref(), media_type)?;
                for entry in &index.manifests {
                    self.add_manifest(&entry.media_type, &entry.digest, entry.size, false)?;
                }
            }
            other => return Err(self.unusable(&format!("{name} has the media type {other:?}, which no image has"))),
        }
        self.manifests.push(Manifest { media_type: media_type.to_owned(), digest, bytes });
        Ok(())
    }

    fn add_blob(&mut self, descriptor: &OciDescriptor) -> Result<(), CommandError> {
        let (digest, size) = self.described(&descriptor.digest, descriptor.size)?;
        // The largest one decides about memory before anything is sent.
        if size > MAX_BLOB {
            return Err(self.unusable(&format!("{digest} has {size} bytes, more than {MAX_BLOB}")));
        }
        if self.blobs.len() >= MAX_COUNT {
            return Err(self.unusable(&format!("it has more than {MAX_COUNT} layers")));
        }
        let known = self.blobs.insert(digest.clone(), size);
        if known.is_some_and(|known| known != size) {
            return Err(self.unusable(&format!("{digest} is described with two sizes")));
        }
        Ok(())
    }

    fn described(&self, digest: &str, size: i64) -> Result<(Digest, u64), CommandError> {
        let parsed: Digest =
            digest.parse().map_err(|_| self.unusable(&format!("{digest:?} is not a SHA-256 digest")))?;
        let size =
            u64::try_from(size).map_err(|_| self.unusable(&format!("{parsed} is described with {size} bytes")))?;
        Ok((parsed, size))
    }

    /// The manifest of the image.
    pub fn image(&self) -> Option<&Manifest> {
        self.manifests.last()
    }

    /// All manifests; one comes after all that it names.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The digests and sizes of the configurations and layers.
    pub fn blobs(&self) -> impl Iterator<Item = (&Digest, u64)> {
        self.blobs.iter().map(|(digest, size)| (digest, *size))
    }

    /// Reads a configuration or a layer, and checks its size and its digest. Blocks on the disk.
    ///
    /// # Errors
    /// It is missing or differs from its description.
    pub fn blob(&self, digest: &Digest) -> Result<Vec<u8>, CommandError> {
        let size = self.blobs.get(digest).copied().unwrap_or_default();
        self.checked(digest, size, MAX_BLOB)
    }

    fn checked(&self, digest: &Digest, size: u64, limit: u64) -> Result<Vec<u8>, CommandError> {
        let name = format!("blobs/sha256/{}", digest.hex());
        let bytes = self.file(&name, limit.min(size))?;
        if bytes.len() as u64 != size {
            return Err(self.unusable(&format!("{name} has {} bytes instead of {size}", bytes.len())));
        }
        if Digest::of(&bytes) != *digest {
            return Err(self.unusable(&format!("the content of {name} has another digest than its name")));
        }
        Ok(bytes)
    }

    /// A file with at most this many bytes.
    fn file(&self, name: &str, limit: u64) -> Result<Vec<u8>, CommandError> {
        let failed = |error: std::io::Error| self.unusable(&format!("failed to read {name}: {error}"));
        let mut bytes = Vec::new();
        let file = File::open(self.directory.join(name)).map_err(failed)?;
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(self.unusable(&format!("{name} has more than {limit} bytes")));
        }
        Ok(bytes)
    }

    fn parsed<T: DeserializeOwned>(&self, name: &str, bytes: &[u8]) -> Result<T, CommandError> {
        serde_json::from_slice(bytes).map_err(|error| self.unusable(&format!("failed to read {name}: {error}")))
    }

    /// A text that is a manifest and an index at once would be another image to other tools.
    fn check_type(&self, name: &str, own: Option<&str>, described: &str) -> Result<(), CommandError> {
        match own {
            Some(own) if own != described => {
                Err(self.unusable(&format!("{name} is described as {described}, and says that it is {own}")))
            }
            _ => Ok(()),
        }
    }

    fn unusable(&self, cause: &str) -> CommandError {
        CommandError::failed(format!("{} is not a complete image", self.directory.display()))
            .cause(cause.to_owned())
            .hint("make it again: `cargo xtask dist` for the controller, `skopeo copy docker://IMAGE oci:DIR` for other images")
    }
}
