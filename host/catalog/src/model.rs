//! What catalogs consist of.
//!
//! Lines refer to the file that contains the blob, and are counted from 1.

use chandler_resolver::version::blang::Range;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BundleVersion, VersionError};

/// The schema of a [`Package`].
pub const PACKAGE: &str = "olm.package";
/// The schema of a [`Channel`].
pub const CHANNEL: &str = "olm.channel";
/// The schema of a [`Bundle`].
pub const BUNDLE: &str = "olm.bundle";
/// The schema of [`Deprecations`].
pub const DEPRECATIONS: &str = "olm.deprecations";

/// The type of the property with the package and the version of a bundle.
pub const PROPERTY_PACKAGE: &str = "olm.package";
/// The type of a property with a group, version and kind that a bundle provides.
pub const PROPERTY_GVK: &str = "olm.gvk";
/// The type of a property with a group, version and kind that a bundle requires.
pub const PROPERTY_GVK_REQUIRED: &str = "olm.gvk.required";
/// The type of a property with one manifest of a bundle. Its value stays in the file.
pub const PROPERTY_OBJECT: &str = "olm.bundle.object";
/// The type of a property with the metadata of a ClusterServiceVersion. Its value stays in the file.
pub const PROPERTY_CSV_METADATA: &str = "olm.csv.metadata";

/// A package: what users install, by this name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The name.
    pub name: String,
    /// The channel that is used if none is chosen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default_channel: String,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether there is an icon. It stays in the file.
    #[serde(default)]
    pub has_icon: bool,
    /// Properties of the package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

/// A channel: an update graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// The name.
    pub name: String,
    /// The package.
    pub package: String,
    /// The bundles of the channel, each with the bundles that it updates.
    #[serde(default)]
    pub entries: Vec<ChannelEntry>,
    /// Properties of the channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

/// A bundle in a channel, and what it updates there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEntry {
    /// The name of the bundle.
    pub name: String,
    /// The bundle that it updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// More bundles that it updates, and that are not installed on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// A range of versions that it updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
    /// The line.
    #[serde(default)]
    pub line: u32,
}

impl ChannelEntry {
    /// Whether the entry has a `skipRange` that is not a version range. As in OLM, it updates nothing.
    pub fn has_invalid_skip_range(&self) -> bool {
        self.skip_range.as_deref().is_some_and(|range| Range::parse(range).is_err())
    }
}

/// A bundle: one version of a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// The name, unique in the package.
    pub name: String,
    /// The package.
    pub package: String,
    /// The image. Empty if the manifests are in the catalog.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What the bundle is, provides and requires.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// The images that the bundle runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_images: Vec<RelatedImage>,
    /// What a list of bundles shows, from the metadata of the ClusterServiceVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// What its ClusterServiceVersion says about kinds, versions and its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<Csv>,
}

/// A property.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value, or `None` if it stays in the file ([`PROPERTY_OBJECT`], [`PROPERTY_CSV_METADATA`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The line.
    #[serde(default)]
    pub line: u32,
}

/// An image that a bundle runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedImage {
    /// Its name; often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The reference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
}

/// Texts for people, shortened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// One sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Words to search for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The oldest Kubernetes version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
}

/// What the ClusterServiceVersion of a bundle says about kinds, versions and its namespace, from its metadata ([`PROPERTY_CSV_METADATA`]) or from
/// the manifest ([`PROPERTY_OBJECT`]), whichever comes first. It counts where the properties are silent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Csv {
    /// The kinds that the bundle provides. Empty if properties of type [`PROPERTY_GVK`] name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<Gvk>,
    /// The kinds that the bundle requires. Empty if properties of type [`PROPERTY_GVK_REQUIRED`] name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Gvk>,
    /// The oldest Kubernetes version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// The namespace that the bundle is meant for: the annotation `operatorframework.io/suggested-namespace`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_namespace: String,
}

/// The deprecations of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecations {
    /// The package.
    pub package: String,
    /// The deprecations.
    #[serde(default)]
    pub entries: Vec<Deprecation>,
}

/// A deprecation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation {
    /// What is deprecated.
    pub reference: Reference,
    /// What users should know.
    pub message: String,
    /// The line.
    #[serde(default)]
    pub line: u32,
}

/// What a deprecation is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// [`PACKAGE`], [`CHANNEL`] or [`BUNDLE`].
    pub schema: String,
    /// The name of the channel or bundle; empty for a package.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// The value of the property [`PROPERTY_PACKAGE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageProperty<'a> {
    /// The package.
    pub package: &'a str,
    /// The version.
    pub version: &'a str,
    /// The release, if it is explicit.
    pub release: Option<&'a str>,
}

/// Why the version of a bundle is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVersion {
    /// There is not exactly one property [`PROPERTY_PACKAGE`].
    #[error("the bundle has {0} properties of type {PROPERTY_PACKAGE}, but must have one")]
    Properties(usize),
    /// Its version is not text: YAML reads `1.1` without quotes as a number.
    #[error("the version {0} is not text; write it in quotes")]
    NotText(String),
    /// Its version is invalid.
    #[error(transparent)]
    Invalid(#[from] VersionError),
}

impl Bundle {
    /// The properties of a type.
    pub fn properties_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Property> {
        self.properties.iter().filter(move |property| property.kind == kind)
    }

    /// The values of the properties [`PROPERTY_PACKAGE`].
    pub fn package_properties(&self) -> impl Iterator<Item = PackageProperty<'_>> {
        self.properties_of(PROPERTY_PACKAGE).map(|property| {
            let text = |key| property.text(key).unwrap_or_default();
            let (package, version) = (text("packageName"), text("version"));
            PackageProperty { package, version, release: property.text("release") }
        })
    }

    /// The version, from the property [`PROPERTY_PACKAGE`].
    pub fn version(&self) -> Result<BundleVersion, NoVersion> {
        if let Some(number) = self.properties_of(PROPERTY_PACKAGE).find_map(|property| property.scalar("version")) {
            return Err(NoVersion::NotText(number));
        }
        let mut properties = self.package_properties();
        match (properties.next(), properties.count()) {
            (Some(property), 0) => Ok(BundleVersion::parse(property.version, property.release)?),
            (first, others) => Err(NoVersion::Properties(others + usize::from(first.is_some()))),
        }
    }

    /// The kinds that the bundle provides, from its properties, or else from its ClusterServiceVersion.
    pub fn provides(&self) -> impl Iterator<Item = Gvk> {
        let properties = self.properties_of(PROPERTY_GVK).map(|property| {
            let text = |key| property.text(key).unwrap_or_default().to_owned();
            Gvk { group: text("group"), version: text("version"), kind: text("kind") }
        });
        properties.chain(self.csv.iter().flat_map(|csv| csv.owned.iter().cloned()))
    }
}

impl Property {
    /// A text in the value. Keys are compared as Go's JSON does: case-insensitively.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.field(key)?.as_str()
    }

    /// A number or boolean in the value, as JSON writes it.
    fn scalar(&self, key: &str) -> Option<String> {
        let field = self.field(key)?;
        (field.is_number() || field.is_boolean()).then(|| field.to_string())
    }

    fn field(&self, key: &str) -> Option<&Value> {
        let fields = self.value.as_ref()?.as_object()?;
        let exact = fields.get(key);
        exact.or_else(|| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value))
    }
}
