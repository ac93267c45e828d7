//! Manifests and indexes of images. Pure.

use std::{fmt, str::FromStr};

use chandler_core::{Digest, unique_json};
use serde::{Deserialize, de::IgnoredAny};

use super::reference::ImageReference;
use crate::{ArchiveError, ContentError, LimitExceeded, Limits};

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// All supported media types, for the `Accept` header.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// Media types of tar archives. The bytes of a layer determine its compression.
const LAYERS: &[&str] = &[
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];
/// Media types of component layers: the type of the CNCF's Wasm OCI artifact, and the types that earlier tools wrote.
const COMPONENTS: &[&str] = &[
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.module.wasm.content.layer.v1+wasm",
];

/// Media types of the artifact that `helm push` makes of a chart: the configuration, and the archive. A further layer may have the provenance, which
/// is not read.
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Why a response of a registry is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The combined layers are refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The manifest cannot be parsed.
    #[error("the manifest cannot be read: {0}")]
    Manifest(String),
    /// Its media type is not supported.
    #[error("the manifest has the media type {0:?}, which is not supported")]
    ManifestMediaType(String),
    /// Different readers could parse it as an index or as an image (CVE-2021-41190).
    #[error("the manifest is an image and an index at once")]
    Ambiguous,
    /// The index has nothing for the platform.
    #[error("the index has no image for {wanted}; it has {found}")]
    NoPlatform {
        /// The platform.
        wanted: Platform,
        /// The available platforms.
        found: String,
    },
    /// An index names an index.
    #[error("the index leads to another index")]
    NestedIndex,
    /// A component was asked for, but this is an index.
    #[error("it is an index; a component is one manifest for all platforms")]
    IndexForComponent,
    /// The configuration cannot be read.
    #[error("its configuration cannot be read: {0}")]
    Config(String),
    /// The configuration is larger than a manifest may be.
    #[error("its configuration is larger than {}", crate::limits::Bytes(*.0))]
    ConfigBytes(u64),
    /// The image lacks the label that names its files.
    #[error("it has no label {0}")]
    NoLabel(String),
    /// The label does not name a directory of the image.
    #[error("its label {label} is {value:?}, which is not a directory in it")]
    LabelValue {
        /// The label.
        label: String,
        /// Its value.
        value: String,
    },
    /// A layer is not a tar archive.
    #[error("layer {index} has the media type {media_type:?}, which is not a bundle's")]
    LayerMediaType {
        /// Its position, from 0.
        index: usize,
        /// Its media type.
        media_type: String,
    },
    /// It is a chart of Helm without exactly one layer with the archive.
    #[error("it is a Helm chart, which has one layer of the media type {CHART}; this has {0}")]
    ChartLayers(usize),
    /// It is a chart of Helm whose archive is not one directory with a chart.
    #[error("it is a Helm chart, and its archive is not one directory with Chart.yaml in it")]
    NoChart,
    /// There is not exactly one layer with a component.
    #[error("a component has one layer of the media type application/wasm; this has {0}")]
    ComponentLayers(String),
    /// The bytes do not match the digest.
    #[error("{what} has the digest {found}; {expected} was asked for")]
    DigestMismatch {
        /// The manifest, or which layer.
        what: String,
        /// The expected digest.
        expected: Digest,
        /// What came.
        found: Digest,
    },
    /// The bytes are fewer or more than announced.
    #[error("{what} has {found} bytes; the manifest says {expected}")]
    SizeMismatch {
        /// Which layer.
        what: String,
        /// The value in the manifest.
        expected: u64,
        /// What came; `more than` where reading stopped.
        found: String,
    },
}

/// An operating system and an architecture, as indexes name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Platform {
    os: String,
    architecture: String,
}

/// The text is not a platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a platform: want `os/architecture`, such as `linux/amd64`")]
pub struct PlatformError(String);

/// Operating system and architecture of entries that are for no platform, such as the attestations that buildx adds to an index.
const UNKNOWN: &str = "unknown";

impl Default for Platform {
    /// `linux/amd64`, on every machine: bundles contain the same files for all platforms, and an index without this entry is
    /// rare.
    fn default() -> Self {
        Self { os: "linux".to_owned(), architecture: "amd64".to_owned() }
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let legal =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match text.split_once('/') {
            Some((os, architecture)) if legal(os) && legal(architecture) => {
                Ok(Self { os: os.to_owned(), architecture: architecture.to_owned() })
            }
            _ => Err(PlatformError(text.to_owned())),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// A blob of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default)]
    platform: Option<DescriptorPlatform>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct DescriptorPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: Option<String>,
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Manifest {
    Image(ImageManifest),
    Index(Vec<Descriptor>),
}

/// What the manifest of an image names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageManifest {
    /// The layers, the lowest first.
    pub(super) layers: Vec<Descriptor>,
    /// The descriptor of the configuration, not parsed: only catalogs need it.
    config: serde_json::Value,
}

impl ImageManifest {
    /// The configuration.
    pub(super) fn config(&self) -> Result<Descriptor, ImageError> {
        let descriptor = Descriptor::deserialize(&self.config);
        descriptor.map_err(|error| ImageError::Config(error.to_string().chars().take(200).collect()))
    }

    /// Whether it is a chart of Helm.
    pub(super) fn is_chart(&self) -> bool {
        self.config.get("mediaType").and_then(serde_json::Value::as_str) == Some(CHART_CONFIG)
    }
}

/// The label of a configuration.
pub(super) fn label(config: &[u8], label: &str) -> Result<Option<String>, ImageError> {
    #[derive(Deserialize)]
    struct Outer {
        #[serde(default)]
        config: Option<Inner>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Inner {
        #[serde(default)]
        labels: Option<std::collections::BTreeMap<String, String>>,
    }
    let parsed: Outer = serde_json::from_slice(config)
        .map_err(|error| ImageError::Config(error.to_string().chars().take(200).collect()))?;
    let labels = parsed.config.and_then(|config| config.labels).unwrap_or_default();
    Ok(labels.get(label).cloned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    #[serde(default)]
    schema_version: u64,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    manifests: Option<IgnoredAny>,
    #[serde(default)]
    config: Option<IgnoredAny>,
    #[serde(default)]
    layers: Option<IgnoredAny>,
    #[serde(default)]
    fs_layers: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Lists {
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
    #[serde(default)]
    config: serde_json::Value,
}

/// Refuses duplicate keys: tools differ in which of two they use, so the image would not be what others see.
///
/// Any other error is refused, too: a duplicate key could follow what a full parse refuses, such as `1e999`, and serde skips both in fields
/// that it does not know.
fn unambiguous(text: &[u8]) -> Result<(), ImageError> {
    match unique_json::from_slice(text) {
        Ok(_) => Ok(()),
        // A key and its pointer have 512 bytes at most; other messages quote what they read, whatever its length.
        Err(error) => Err(ImageError::Manifest(format!("it {error}").chars().take(600).collect())),
    }
}

impl Manifest {
    /// Parses a manifest. Its own media type counts, not the response's, which no digest covers.
    pub(super) fn parse(text: &[u8]) -> Result<Self, ImageError> {
        // Parsers quote what they read, whatever its length.
        let unreadable = |error: serde_json::Error| ImageError::Manifest(error.to_string().chars().take(200).collect());
        let shape: Shape = serde_json::from_slice(text).map_err(unreadable)?;
        unambiguous(text)?;
        if shape.manifests.is_some() && (shape.layers.is_some() || shape.config.is_some() || shape.fs_layers.is_some())
        {
            return Err(ImageError::Ambiguous);
        }
        if shape.schema_version != 2 {
            return Err(ImageError::Manifest(format!("it has the schema version {}", shape.schema_version)));
        }
        let index = match shape.media_type.as_deref() {
            Some(OCI_INDEX | DOCKER_LIST) => true,
            Some(OCI_MANIFEST | DOCKER_MANIFEST) => false,
            // The OCI image specification does not require it.
            None => shape.manifests.is_some(),
            Some(other) => return Err(ImageError::ManifestMediaType(other.chars().take(200).collect())),
        };
        if index == (shape.layers.is_some() || shape.config.is_some()) || !index && shape.manifests.is_some() {
            return Err(ImageError::Manifest("it is not what its media type says".to_owned()));
        }
        let lists: Lists = serde_json::from_slice(text).map_err(unreadable)?;
        Ok(if index {
            Self::Index(lists.manifests)
        } else {
            Self::Image(ImageManifest { layers: lists.layers, config: lists.config })
        })
    }
}

/// The image for a platform, or the only image that there is: bundles contain the same files for all platforms, and some are built for one that
/// is not the usual one. Attestations are not images for a platform.
pub(super) fn choose<'a>(manifests: &'a [Descriptor], wanted: &Platform) -> Result<&'a Descriptor, ImageError> {
    let images =
        || manifests.iter().filter(|entry| matches!(entry.media_type.as_str(), "" | OCI_MANIFEST | DOCKER_MANIFEST));
    let matches = |entry: &&Descriptor| {
        let platform = entry.platform.as_ref();
        platform.is_some_and(|platform| platform.os == wanted.os && platform.architecture == wanted.architecture)
    };
    // The first, as container tools do; variants of the same architecture are in the order of preference.
    if let Some(entry) = images().find(matches) {
        return Ok(entry);
    }
    let is_attestation =
        |entry: &Descriptor| entry.platform.as_ref().is_some_and(|it| it.os == UNKNOWN && it.architecture == UNKNOWN);
    let mut others = images().filter(|entry| !is_attestation(entry));
    if let (Some(only), None) = (others.next(), others.next()) {
        return Ok(only);
    }
    let names: Vec<String> =
        images().filter_map(|entry| entry.platform.as_ref()).map(ToString::to_string).take(20).collect();
    let found = if names.is_empty() { "none that names its platform".to_owned() } else { names.join(", ") };
    Err(ImageError::NoPlatform { wanted: wanted.clone(), found })
}

impl fmt::Display for DescriptorPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = self.variant.as_deref().map(|variant| format!("/{variant}")).unwrap_or_default();
        let text = format!("{}/{}{variant}", self.os, self.architecture);
        f.write_str(&text.escape_debug().take(60).collect::<String>())
    }
}

/// Checks the media types, the number and the size of the layers of a bundle.
pub(super) fn check_layers(layers: &[Descriptor], limits: &Limits) -> Result<(), ImageError> {
    if layers.len() > limits.layers {
        return Err(LimitExceeded::Layers(limits.layers).into());
    }
    for (index, layer) in layers.iter().enumerate() {
        let media_type = layer.media_type.as_str();
        let base = media_type.split_once(['+']).map_or(media_type, |(base, _)| base);
        let base = base.strip_suffix(".gzip").or_else(|| base.strip_suffix(".zstd")).unwrap_or(base);
        if !LAYERS.contains(&base) {
            let media_type = media_type.chars().take(200).collect();
            return Err(ImageError::LayerMediaType { index, media_type });
        }
    }
    let total = layers.iter().map(|layer| layer.size).fold(0, u64::saturating_add);
    if total > limits.download_bytes { Err(LimitExceeded::DownloadBytes(limits.download_bytes).into()) } else { Ok(()) }
}

/// The archive of a chart: the one layer that has it. Its size is checked.
pub(super) fn chart_layer(layers: Vec<Descriptor>, limits: &Limits) -> Result<Descriptor, ImageError> {
    let mut archives = layers.into_iter().filter(|layer| layer.media_type == CHART);
    match (archives.next(), archives.count()) {
        (Some(layer), 0) if layer.size > limits.download_bytes => {
            Err(LimitExceeded::DownloadBytes(limits.download_bytes).into())
        }
        (Some(layer), 0) => Ok(layer),
        (first, others) => Err(ImageError::ChartLayers(usize::from(first.is_some()) + others)),
    }
}

/// The only layer of a component.
pub(super) fn component_layer(layers: &[Descriptor], most: u64) -> Result<&Descriptor, ImageError> {
    match layers {
        [layer] if COMPONENTS.contains(&layer.media_type.as_str()) && layer.size > most => {
            Err(LimitExceeded::ComponentBytes(most).into())
        }
        [layer] if COMPONENTS.contains(&layer.media_type.as_str()) => Ok(layer),
        [] => Err(ImageError::ComponentLayers("none".to_owned())),
        [layer] => {
            let media_type: String = layer.media_type.chars().take(200).collect();
            Err(ImageError::ComponentLayers(format!("one of the media type {media_type:?}")))
        }
        layers => Err(ImageError::ComponentLayers(format!("{} layers", layers.len()))),
    }
}

/// Converts an error of an image to an error of content.
pub(super) fn refused(image: &ImageReference, error: ImageError) -> ContentError {
    ContentError::Image { image: image.to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_with_a_duplicate_key_is_refused() {
        let with = |annotations: &str| {
            let text = format!(r#"{{"schemaVersion": 2, "config": {{}}, "layers": [], "annotations": {annotations}}}"#);
            Manifest::parse(text.as_bytes()).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(with(r#"{"a": "1", "b": "1"}"#), Ok(()));
        let refused = with(r#"{"a": "1", "a": "2"}"#).unwrap_err();
        assert!(refused.contains(r#"it has the key "a" twice, at "/annotations/a""#), "{refused}");
    }

    #[test]
    fn what_a_full_parse_refuses_hides_no_duplicate_key() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (unknown, accepted) in [("1", true), ("1e999", false), (r#""\ud800""#, false), (deep.as_str(), false)] {
            let parse = |annotations: &str| {
                let text = format!(
                    r#"{{"schemaVersion": 2, "x": {unknown}, "config": {{}}, "layers": [], "annotations": {annotations}}}"#
                );
                Manifest::parse(text.as_bytes()).map(|_| ()).map_err(|error| error.to_string())
            };
            assert!(parse(r#"{"a": "1", "a": "2"}"#).is_err(), "{unknown}");
            let single = parse(r#"{"a": "1"}"#);
            assert_eq!(single.is_ok(), accepted, "{unknown}: {single:?}");
            if let Err(refused) = single {
                assert!(refused.starts_with("the manifest cannot be read: it is not JSON: "), "{refused}");
            }
        }
    }
}
