//! Pushes images into the registry in memory, without a network.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use chandler_core::Digest;
use serde_json::{Value, json};

use crate::{
    PackError, Registry, StorageError,
    pack::{self, Packed},
    storage::StoredManifest,
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const WASM_LAYER: &str = "application/wasm";

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Layer {
    /// A gzip-compressed tar archive.
    pub fn tar_gzip(bytes: Vec<u8>) -> Self {
        Self { media_type: LAYER.to_owned(), bytes }
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The media type of the configuration.
    pub config_media_type: String,
    /// The configuration.
    pub config: Value,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
    /// The annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

impl Image {
    /// An image for `linux/amd64` with these layers.
    pub fn of_layers(layers: Vec<Layer>) -> Self {
        let config = json!({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}});
        Self { config_media_type: CONFIG.to_owned(), config, layers, annotations: BTreeMap::new() }
    }
}

/// An image that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// `127.0.0.1:<port>/<name>:<tag>`.
    pub reference: String,
    /// The digest of the manifest.
    pub digest: Digest,
}

impl Registry {
    /// Pushes a directory as an image of one layer. The same files give the same digest: they are sorted, and owners,
    /// modes and times are left out. The labels are set in the image configuration.
    ///
    /// # Errors
    /// The directory cannot be read, contains something other than files, directories and links to files inside it, or
    /// does not fit.
    pub async fn push_bundle_directory(
        &self,
        name: &str,
        tag: &str,
        directory: &Path,
        labels: &BTreeMap<String, String>,
    ) -> Result<Pushed, PackError> {
        let Packed { layer, diff_id } = pack::directory(directory).await?;
        let mut image = Image::of_layers(vec![Layer::tar_gzip(layer)]);
        image.config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        });
        Ok(self.push_image(name, tag, image)?)
    }

    /// Pushes a Wasm component in the layout of the CNCF Wasm OCI artifact.
    pub fn push_component(&self, name: &str, tag: &str, wasm: Vec<u8>) -> Result<Pushed, StorageError> {
        let digest = Digest::of(&wasm);
        let image = Image {
            config_media_type: WASM_CONFIG.to_owned(),
            config: json!({"architecture": "wasm", "os": "wasip2", "layerDigests": [digest]}),
            layers: vec![Layer { media_type: WASM_LAYER.to_owned(), bytes: wasm }],
            annotations: BTreeMap::new(),
        };
        self.push_image(name, tag, image)
    }

    /// Pushes an image.
    pub fn push_image(&self, name: &str, tag: &str, image: Image) -> Result<Pushed, StorageError> {
        let config = image.config.to_string().into_bytes();
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.push_blob(name, &image.config_media_type, config)?,
            "layers": image
                .layers
                .into_iter()
                .map(|layer| self.push_blob(name, &layer.media_type, layer.bytes))
                .collect::<Result<Vec<_>, _>>()?,
        });
        if let (Some(fields), false) = (manifest.as_object_mut(), image.annotations.is_empty()) {
            fields.insert("annotations".to_owned(), json!(image.annotations));
        }
        self.push_manifest(name, tag, MANIFEST, manifest.to_string().into_bytes())
    }

    /// Pushes a blob and returns its descriptor.
    pub fn push_blob(&self, name: &str, media_type: &str, bytes: Vec<u8>) -> Result<Value, StorageError> {
        let digest = Digest::of(&bytes);
        let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
        self.service.storage().put_blob(name, digest, bytes.into())?;
        Ok(descriptor)
    }

    /// Pushes bytes as a manifest without checking them, and moves the tag to it.
    pub fn push_manifest(
        &self,
        name: &str,
        tag: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<Pushed, StorageError> {
        let mut storage = self.service.storage();
        let manifest = StoredManifest { media_type: media_type.to_owned(), bytes: Bytes::from(bytes) };
        let digest = storage.put_manifest(name, manifest)?;
        storage.tag(name, tag, digest.clone())?;
        Ok(Pushed { reference: format!("{}/{name}:{tag}", self.host()), digest })
    }
}
