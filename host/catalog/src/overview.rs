//! What people see of a catalog: packages, channels and versions, without what only installations need.

use std::collections::BTreeMap;

use chandler_resolver::Kind;
use serde::Serialize;

use crate::{
    Bundle, BundleVersion, Channel, Deprecations, Index, IndexError, PackageBlobs, index_catalogs,
    lint::{self, Head},
    model, platform,
};

/// A package of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageOverview {
    /// The catalog.
    pub catalog: String,
    /// The name.
    pub name: String,
    /// The display name of the newest version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Words to search for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The channel that is used if none is chosen.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_channel: String,
    /// The version of the head of the default channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The message of the deprecation of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Whether the newest version is a platform operator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub platform_operator: bool,
    /// The channels, the default channel first, then by name.
    pub channels: Vec<ChannelOverview>,
    /// The versions, the newest first.
    pub versions: Vec<VersionOverview>,
}

/// A channel of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelOverview {
    /// The name.
    pub name: String,
    /// Whether it is used if none is chosen.
    pub default: bool,
    /// The bundle that nothing replaces; none in a channel with several, or with a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The version of the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of bundles.
    pub bundles: usize,
    /// The message of its deprecation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

/// A bundle of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionOverview {
    /// The name of the bundle.
    pub name: String,
    /// The version, as the catalog writes it.
    pub version: String,
    /// The channels.
    pub channels: Vec<String>,
    /// The image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The lowest version of Kubernetes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// The kinds that it provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<Kind>,
    /// What it requires, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The message of its deprecation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

/// All packages of a catalog, by name. Reads the documents of each, one package at a time.
pub fn packages(catalog: &str, index: &Index) -> Result<Vec<PackageOverview>, IndexError> {
    let mut packages = Vec::new();
    for entry in index.packages() {
        packages.extend(package(catalog, &entry?.name, index)?);
    }
    Ok(packages)
}

/// A package of a catalog, or `None` if the catalog does not define it.
pub fn package(catalog: &str, name: &str, index: &Index) -> Result<Option<PackageOverview>, IndexError> {
    let blobs = index.package(name)?;
    Ok(blobs.filter(|blobs| !blobs.packages.is_empty()).map(|blobs| PackageOverview::new(catalog, name, &blobs)))
}

impl PackageOverview {
    /// The overview of these documents.
    pub fn new(catalog: &str, name: &str, blobs: &PackageBlobs) -> Self {
        let defined = blobs.packages.first().map(|it| &it.value);
        let default_channel = defined.map(|it| it.default_channel.clone()).unwrap_or_default();
        let deprecations: Vec<&Deprecations> = blobs.deprecations.iter().map(|it| &it.value).collect();
        let mut bundles: Vec<&Bundle> = blobs.bundles.iter().map(|it| &it.value).collect();
        // The newest first; those without a version last, by name.
        bundles.sort_by_key(|bundle| (std::cmp::Reverse(version(bundle)), bundle.name.clone()));
        let texts = bundles.iter().find_map(|bundle| bundle.summary.clone()).unwrap_or_default();
        let by_name: BTreeMap<&str, &Bundle> = bundles.iter().map(|bundle| (bundle.name.as_str(), *bundle)).collect();
        let mut channels: Vec<ChannelOverview> =
            blobs.channels.iter().map(|it| channel(&it.value, &default_channel, &by_name, &deprecations)).collect();
        channels.sort_by_key(|channel| (!channel.default, channel.name.clone()));
        let versions = bundles.iter().map(|bundle| overview_of(bundle, blobs, &deprecations)).collect();
        Self {
            catalog: catalog.to_owned(),
            name: name.to_owned(),
            display_name: texts.display_name,
            summary: texts.description,
            description: defined.map(|it| it.description.clone()).unwrap_or_default(),
            provider: texts.provider,
            keywords: texts.keywords,
            version: channels.iter().find(|channel| channel.default).and_then(|channel| channel.version.clone()),
            default_channel,
            deprecated: deprecation(&deprecations, model::PACKAGE, ""),
            platform_operator: bundles.first().is_some_and(|newest| platform::is_platform_operator(newest)),
            channels,
            versions,
        }
    }

    /// Whether a text occurs in what people read of it, or in the kinds that it provides. Upper and lower case are the same.
    pub fn mentions(&self, text: &str) -> bool {
        let wanted = text.to_lowercase();
        let kinds = self.versions.first().into_iter().flat_map(|version| &version.provides).map(|it| &it.kind);
        [&self.name, &self.display_name, &self.summary, &self.description, &self.provider]
            .into_iter()
            .chain(&self.keywords)
            .chain(kinds)
            .any(|field| field.to_lowercase().contains(&wanted))
    }
}

fn channel(
    channel: &Channel,
    default: &str,
    bundles: &BTreeMap<&str, &Bundle>,
    deprecations: &[&Deprecations],
) -> ChannelOverview {
    let head = match lint::head(channel) {
        Head::One(head) => Some(head),
        Head::None | Head::Several(_) => None,
    };
    ChannelOverview {
        name: channel.name.clone(),
        default: channel.name == default,
        head: head.map(str::to_owned),
        version: head.and_then(|head| bundles.get(head)).map(|bundle| version_text(bundle)),
        bundles: channel.entries.len(),
        deprecated: deprecation(deprecations, model::CHANNEL, &channel.name),
    }
}

fn overview_of(bundle: &Bundle, blobs: &PackageBlobs, deprecations: &[&Deprecations]) -> VersionOverview {
    let holds = |channel: &&Channel| channel.entries.iter().any(|entry| entry.name == bundle.name);
    let mut channels: Vec<String> =
        blobs.channels.iter().map(|it| &it.value).filter(holds).map(|channel| channel.name.clone()).collect();
    channels.sort_unstable();
    let candidate = index_catalogs::candidate(bundle);
    VersionOverview {
        name: bundle.name.clone(),
        version: version_text(bundle),
        channels,
        image: bundle.image.clone(),
        min_kube_version: candidate.min_kubernetes.map(|version| version.to_string()).unwrap_or_default(),
        provides: candidate.provides.into_iter().collect(),
        requires: candidate.needs.iter().map(ToString::to_string).collect(),
        deprecated: deprecation(deprecations, model::BUNDLE, &bundle.name),
    }
}

fn deprecation(deprecations: &[&Deprecations], schema: &str, name: &str) -> Option<String> {
    let mut entries = deprecations.iter().flat_map(|it| &it.entries);
    let found = entries.find(|entry| entry.reference.schema == schema && entry.reference.name == name);
    found.map(|entry| entry.message.clone())
}

fn version(bundle: &Bundle) -> Option<BundleVersion> {
    bundle.version().ok()
}

/// The version as it is written, for people; empty if there is none.
pub fn version_text(bundle: &Bundle) -> String {
    match bundle.version() {
        Ok(version) => version.to_string(),
        Err(_) => bundle.package_properties().next().map(|it| it.version.to_owned()).unwrap_or_default(),
    }
}
