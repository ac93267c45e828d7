//! Images of bundles and catalogs, and pushing them to a registry.

use std::{collections::BTreeMap, error::Error, fs::File, io::Read as _, sync::Arc, time::Duration};

use bytes::Bytes;
use chandler_content::{
    ContentError, ImageOptions, ImageReference, PushRepository, RegistryError, ServerFailure, Store,
};
use chandler_core::{Content, Digest};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    CommandError,
    read::{
        image_layout::{ImageLayout, Manifest},
        registry_settings::{self, RegistryOptions},
        source,
    },
};

/// Media types of the OCI image specification.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// How long a registry may be silent.
const SILENCE: Duration = Duration::from_mins(1);

/// An image with one layer.
pub struct Image {
    manifest: Vec<u8>,
    config: Vec<u8>,
    layer: Bytes,
}

impl Image {
    /// An image of these files, below a directory of the image. The same files and labels make the same image: it has no time. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn pack(
        store: &Store,
        files: &dyn Content,
        below: &str,
        labels: BTreeMap<String, String>,
    ) -> Result<Self, CommandError> {
        let failed = |error: &(dyn Error + 'static)| CommandError::failed("failed to make the image").because(error);
        let mut layer = Vec::new();
        let mut archive = store.archived(files, below).map_err(|error| failed(&error))?;
        archive.read_to_end(&mut layer).map_err(|error| failed(&error))?;
        let unpacked = unpacked_digest(archive.into_file()).map_err(|error| failed(&error))?;
        // Kubernetes objects run on every platform, but tools expect one.
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [unpacked]},
        });
        let config = config.to_string().into_bytes();
        let described = |media_type: &str, bytes: &[u8]| json!({"mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(CONFIG, &config),
            "layers": [described(LAYER, &layer)],
        });
        Ok(Self::new(&manifest, config, layer.into()))
    }

    /// The image with this manifest, which describes the configuration and the layer.
    pub(super) fn new(manifest: &Value, config: Vec<u8>, layer: Bytes) -> Self {
        Self { manifest: manifest.to_string().into_bytes(), config, layer }
    }

    /// The digest of the manifest.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    /// The size of the layer.
    pub fn layer_bytes(&self) -> u64 {
        self.layer.len() as u64
    }
}

/// The digest of an archive without its compression, which the configuration of an image has.
fn unpacked_digest(mut archive: File) -> std::io::Result<Digest> {
    use std::io::Seek as _;
    archive.rewind()?;
    let (mut hash, mut unpacked) = (Sha256::new(), GzDecoder::new(archive));
    let mut buffer = vec![0; 256 << 10];
    loop {
        match unpacked.read(&mut buffer)? {
            0 => return Ok(Digest::from_hash(hash.finalize().into())),
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// What can be pushed.
pub trait Pushed {
    /// The digests of what the manifests describe: configurations and layers.
    fn blobs(&self) -> Vec<Digest>;

    /// One of them.
    ///
    /// # Errors
    /// It cannot be read.
    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError>;

    /// The manifests; one comes after all that it names, and the last one is the image.
    fn manifests(&self) -> Vec<Manifest>;
}

impl Pushed for Image {
    fn blobs(&self) -> Vec<Digest> {
        vec![Digest::of(&self.layer), Digest::of(&self.config)]
    }

    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError> {
        let is_config = *digest == Digest::of(&self.config);
        Ok(if is_config { Bytes::from(self.config.clone()) } else { self.layer.clone() })
    }

    fn manifests(&self) -> Vec<Manifest> {
        vec![Manifest { media_type: MANIFEST.to_owned(), digest: self.digest(), bytes: self.manifest.clone() }]
    }
}

impl Pushed for ImageLayout {
    fn blobs(&self) -> Vec<Digest> {
        self.blobs().map(|(digest, _)| digest.clone()).collect()
    }

    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError> {
        self.blob(digest).map(Bytes::from)
    }

    fn manifests(&self) -> Vec<Manifest> {
        self.manifests().to_vec()
    }
}

/// Pushes an image with the settings and the credentials of this machine. Returns the digest of its manifest.
pub async fn push(
    image: Arc<dyn Pushed + Send + Sync>,
    to: &ImageReference,
    registry: &RegistryOptions,
) -> Result<Digest, CommandError> {
    registry_settings::of(registry)?.may_push(to).map_err(|error| {
        CommandError::failed(format!("failed to push {to}"))
            .because(&error)
            .hint("push to another registry, or change registries.conf; --registries-conf names another file")
    })?;
    let failed = |error: ContentError| {
        CommandError::failed(format!("failed to push {to}")).because(&error).hint(hint(&error, to))
    };
    let repository = repository(to, registry).await?;
    for digest in image.blobs() {
        let (image, wanted) = (Arc::clone(&image), digest.clone());
        let blob = tokio::task::spawn_blocking(move || image.blob(&wanted)).await;
        let blob = blob.map_err(|error| CommandError::failed("failed to read the image").because(&error))??;
        repository.push_blob(&digest, blob).await.map_err(failed)?;
    }
    let mut manifests = image.manifests();
    let last = manifests.pop().ok_or_else(|| CommandError::failed("the image has no manifest"))?;
    for Manifest { media_type, digest, bytes } in manifests {
        // A part of the image has no tag.
        repository.push_manifest(&digest.to_string(), &media_type, bytes.into()).await.map_err(failed)?;
    }
    repository.push_manifest(&version(to), &last.media_type, last.bytes.into()).await.map_err(failed)?;
    Ok(last.digest)
}

/// The manifest of an image that may exist.
///
/// # Errors
/// The registry does not answer, or refuses access.
pub async fn existing(image: &ImageReference, registry: &RegistryOptions) -> Result<Option<Vec<u8>>, CommandError> {
    let found = repository(image, registry).await?.manifest(&version(image), MANIFEST).await;
    found.map_err(|error| {
        CommandError::failed(format!("failed to read {image}")).because(&error).hint(hint(&error, image))
    })
}

/// The repository of an image, with the settings and the credentials of this machine.
async fn repository(image: &ImageReference, registry: &RegistryOptions) -> Result<PushRepository, CommandError> {
    let access = source::access(image, registry).await?;
    let options = ImageOptions { idle_timeout: SILENCE, ..source::image_options(registry)? };
    PushRepository::open(image, &access, options).await.map_err(|error| {
        CommandError::failed(format!("failed to connect to {}", image.registry_name()))
            .because(&error)
            .hint(hint(&error, image))
    })
}

/// The tag or the digest that an image is pushed with.
fn version(image: &ImageReference) -> String {
    image.digest().map_or_else(|| image.tag().unwrap_or("latest").to_owned(), ToString::to_string)
}

/// What helps.
fn hint(error: &ContentError, image: &ImageReference) -> String {
    let host = image.registry();
    match error {
        ContentError::Registry(RegistryError { failure: ServerFailure::Unauthorized, .. }) => format!(
            "check that you may push to {}: `docker login {host}` writes the credentials (--registry-config)",
            image.repository()
        ),
        ContentError::Registry(RegistryError { failure: ServerFailure::NotFound, .. }) => format!(
            "check the name; some registries need the repository {} to be created before the first push",
            image.repository()
        ),
        error => source::hint(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_that_is_refused_has_a_hint_of_its_own() {
        let image: ImageReference = "registry.example.com/team/bundle:v1".parse().unwrap();
        let hint = |failure| {
            let (image_text, message) = (image.to_string(), String::new());
            let error = RegistryError { image: image_text, failure, message, is_plain: false, retry_after: None };
            hint(&error.into(), &image)
        };
        assert!(hint(ServerFailure::Unauthorized).contains("may push to team/bundle: `docker login registry.example"));
        assert!(hint(ServerFailure::NotFound).contains("created before the first push"));
        assert!(hint(ServerFailure::Tls).contains("certs.d/registry.example.com/ca.crt"));
    }
}
