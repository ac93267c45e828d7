//! An OCI image layout, made without a container tool: a directory with blobs that are named by their digests, and an archive of it.
//!
//! The same files and the same time make the same bytes, wherever and whenever it is made.
//! <https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md>

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use serde_json::{Value, json};

use super::{
    digest::sha256,
    files::{self, ENTRYPOINT, Entry, USER},
    json::set,
    release,
    time::BuildTime,
};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Where a layout has its blobs.
pub(super) const BLOBS: &str = "blobs/sha256";

/// What an image says about itself.
pub(super) struct About {
    /// The version of the software.
    pub(super) version: String,
    /// The commit that it was built from, unless the sources are in no repository.
    pub(super) revision: Option<String>,
    /// As images name it, such as `amd64`.
    pub(super) architecture: String,
    /// The time of all files.
    pub(super) time: BuildTime,
}

/// The label of an image that has the files of its version.
fn release_label() -> (&'static str, String) {
    (release::LABEL, format!("/{}", release::DIRECTORY))
}

/// An image: blobs by digest, and the manifest or the index among them that is the image.
pub(super) struct Image {
    blobs: BTreeMap<String, Vec<u8>>,
    /// Points to the image.
    descriptor: Value,
    version: String,
    time: BuildTime,
}

impl Image {
    /// The image with this binary, and with the files of its version.
    pub(super) fn of_release(binary: Vec<u8>, release: Vec<Entry>, about: About) -> anyhow::Result<Self> {
        let labels = labels(&about)?.into_iter().chain([release_label()]).collect();
        Self::of_layers([files::system(), release, files::program(binary)], about, labels)
    }

    /// An image with this binary alone, for tests.
    pub(super) fn of_binary(binary: Vec<u8>, about: About) -> anyhow::Result<Self> {
        let labels = labels(&about)?;
        Self::of_layers([files::system(), files::program(binary)], about, labels)
    }

    /// An image with these layers, and these labels in its configuration.
    fn of_layers(
        layers: impl IntoIterator<Item = Vec<Entry>>,
        about: About,
        config_labels: BTreeMap<&'static str, String>,
    ) -> anyhow::Result<Self> {
        let mut blobs = BTreeMap::new();
        let (mut descriptors, mut unpacked, mut history) = (Vec::new(), Vec::new(), Vec::new());
        let created = about.time.rfc3339()?;
        for entries in layers {
            let archive = archive(&entries, about.time)?;
            unpacked.push(sha256(&archive));
            descriptors.push(add(&mut blobs, LAYER, compressed(&archive)?));
            history.push(json!({"created": created, "created_by": "cargo xtask dist"}));
        }
        let config = json!({
            "created": created,
            "architecture": about.architecture,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/usr/local/bin"],
                "Entrypoint": [ENTRYPOINT],
                "WorkingDir": "/",
                "Labels": config_labels,
            },
            "rootfs": {"type": "layers", "diff_ids": unpacked},
            "history": history,
        });
        let config = add(&mut blobs, CONFIG, serde_json::to_vec(&config)?);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": descriptors,
            "annotations": labels(&about)?,
        });
        let mut descriptor = add(&mut blobs, MANIFEST, serde_json::to_vec(&manifest)?);
        set(&mut descriptor, "platform", json!({"architecture": about.architecture, "os": "linux"}));
        Ok(Self { blobs, descriptor, version: about.version, time: about.time })
    }

    /// An image whose manifest or index describes these blobs.
    pub(super) fn of_blobs(
        mut blobs: BTreeMap<String, Vec<u8>>,
        media_type: &str,
        manifest: Vec<u8>,
        time: BuildTime,
    ) -> Self {
        let descriptor = add(&mut blobs, media_type, manifest);
        Self { blobs, descriptor, version: env!("CARGO_PKG_VERSION").to_owned(), time }
    }

    /// The digest of the manifest, by which a Deployment can name the image.
    pub(super) fn digest(&self) -> &str {
        self.descriptor.get("digest").and_then(Value::as_str).unwrap_or_default()
    }

    /// How many bytes a node loads.
    pub(super) fn bytes(&self) -> usize {
        self.blobs.values().map(Vec::len).sum()
    }

    /// The files of the layout by path, sorted.
    fn layout(&self) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        let mut descriptor = self.descriptor.clone();
        let annotations = json!({
            // Tools that read layouts find the image by this name.
            "org.opencontainers.image.ref.name": format!("v{}", self.version),
            "org.opencontainers.image.title": TITLE,
            "org.opencontainers.image.version": self.version,
        });
        set(&mut descriptor, "annotations", annotations);
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]});
        let blobs = self.blobs.iter().map(|(digest, bytes)| {
            (format!("{BLOBS}/{}", digest.strip_prefix("sha256:").unwrap_or(digest)), bytes.clone())
        });
        let mut layout: BTreeMap<String, Vec<u8>> = blobs.collect();
        layout.insert("index.json".to_owned(), serde_json::to_vec(&index)?);
        layout.insert("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        Ok(layout)
    }

    /// Writes the layout to `image` and `image.tar` in this directory, and returns their paths. An image that is there is replaced.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
        let layout = self.layout()?;
        let path = directory.join("image");
        if path.exists() {
            // Blobs of an earlier image would stay. Only a layout is removed.
            ensure!(
                path.join("oci-layout").is_file(),
                "{} exists and is not an OCI image layout: remove it, or name another directory",
                path.display()
            );
            fs::remove_dir_all(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        }
        for (name, bytes) in &layout {
            let file = path.join(name);
            let parent = file.parent().unwrap_or(&path);
            fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))?;
            fs::write(&file, bytes).with_context(|| format!("failed to write {}", file.display()))?;
        }
        let mut entries = vec![Entry::directory("blobs"), Entry::directory(BLOBS)];
        entries.extend(layout.into_iter().map(|(name, bytes)| Entry::file(&name, bytes)));
        let packed = directory.join("image.tar");
        fs::write(&packed, archive(&entries, self.time)?)
            .with_context(|| format!("failed to write {}", packed.display()))?;
        Ok((path, packed))
    }
}

const TITLE: &str = "chandler";

/// What the image says about itself: labels of its configuration, and annotations of its manifest.
/// <https://github.com/opencontainers/image-spec/blob/v1.1.0/annotations.md>
fn labels(about: &About) -> anyhow::Result<BTreeMap<&'static str, String>> {
    let mut labels = BTreeMap::from([
        ("org.opencontainers.image.created", about.time.rfc3339()?),
        ("org.opencontainers.image.description", "Installs software bundles on Kubernetes".to_owned()),
        ("org.opencontainers.image.licenses", env!("CARGO_PKG_LICENSE").to_owned()),
        ("org.opencontainers.image.source", env!("CARGO_PKG_REPOSITORY").to_owned()),
        ("org.opencontainers.image.title", TITLE.to_owned()),
        ("org.opencontainers.image.version", about.version.clone()),
    ]);
    if let Some(revision) = &about.revision {
        labels.insert("org.opencontainers.image.revision", revision.clone());
    }
    Ok(labels)
}

/// Adds a blob, and returns its descriptor.
fn add(blobs: &mut BTreeMap<String, Vec<u8>>, media_type: &str, bytes: Vec<u8>) -> Value {
    let digest = sha256(&bytes);
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
    blobs.insert(digest, bytes);
    descriptor
}

/// A tar archive of these entries in this order.
pub(super) fn archive(entries: &[Entry], time: BuildTime) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        let kind = if entry.is_directory() { tar::EntryType::Directory } else { tar::EntryType::Regular };
        header.set_entry_type(kind);
        header.set_mode(entry.mode);
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        header.set_mtime(time.seconds());
        header.set_size(entry.content.len().try_into()?);
        archive.append_data(&mut header, &entry.path, entry.content.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

/// With a header that has no time, no name and no system.
pub(super) fn compressed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut compressed: GzEncoder<Vec<u8>> =
        GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    compressed.write_all(bytes)?;
    Ok(compressed.finish()?)
}

#[cfg(test)]
impl About {
    /// What images of tests say.
    pub(super) fn of_test(architecture: &str) -> Self {
        Self {
            version: "0.1.0".to_owned(),
            revision: Some("c0ffee".to_owned()),
            architecture: architecture.to_owned(),
            time: super::time::tests::of_test(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
