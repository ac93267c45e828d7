//! What one catalog has and another does not. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    Bundle, Index, IndexError, PackageBlobs,
    overview::{self, ChannelOverview, PackageOverview},
};

/// How a package differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Only the second catalog has it.
    Added,
    /// Only the first catalog has it.
    Removed,
    /// Both have it.
    Changed,
}

/// The differences of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageDifference {
    /// The package.
    pub package: String,
    /// How it differs.
    pub change: Change,
    /// The default channel of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<FromTo>,
    /// Channels of the second catalog alone, of the first alone, and those with another head.
    pub channels: Parts,
    /// Bundles of the second catalog alone, of the first alone, and those with another image or other properties.
    pub bundles: Parts,
    /// What only the second catalog deprecates: `package`, `channel NAME` or a bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deprecated: Vec<String>,
}

/// Two values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FromTo {
    /// The value in the first catalog.
    pub from: String,
    /// The value in the second catalog.
    pub to: String,
}

/// Names by how they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// Only the second catalog has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Only the first catalog has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Both have them, and they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl Parts {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The packages that differ, by name. One package of each catalog is in memory at a time.
pub fn of(before: &Index, after: &Index) -> Result<Vec<PackageDifference>, IndexError> {
    let mut names = BTreeSet::new();
    for entry in before.packages().chain(after.packages()) {
        names.insert(entry?.name);
    }
    let mut differences = Vec::new();
    for name in names {
        let (one, other) = (Half::read(&name, before)?, Half::read(&name, after)?);
        differences.extend(difference(&name, &one, &other));
    }
    Ok(differences)
}

/// A package of one catalog, empty where there is none.
#[derive(Default)]
struct Half {
    exists: bool,
    overview: PackageOverview,
    bundles: BTreeMap<String, Bundle>,
}

impl Half {
    fn read(name: &str, index: &Index) -> Result<Self, IndexError> {
        let blobs: Option<PackageBlobs> = index.package(name)?;
        Ok(blobs.map_or_else(Self::default, |blobs| Self {
            exists: true,
            overview: PackageOverview::new("", name, &blobs),
            bundles: blobs.bundles.into_iter().map(|it| (it.value.name.clone(), it.value)).collect(),
        }))
    }

    fn deprecated(&self) -> BTreeSet<String> {
        let overview = &self.overview;
        let package = overview.deprecated.iter().map(|_| "package".to_owned());
        let channels = overview.channels.iter().filter(|it| it.deprecated.is_some());
        let bundles = overview.versions.iter().filter(|it| it.deprecated.is_some()).map(|it| it.name.clone());
        package.chain(channels.map(|it| format!("channel {}", it.name))).chain(bundles).collect()
    }
}

fn difference(name: &str, before: &Half, after: &Half) -> Option<PackageDifference> {
    let change = match (before.exists, after.exists) {
        (false, _) => Change::Added,
        (_, false) => Change::Removed,
        _ => Change::Changed,
    };
    let channels = |half: &Half| -> BTreeMap<String, ChannelOverview> {
        half.overview.channels.iter().map(|channel| (channel.name.clone(), channel.clone())).collect()
    };
    let (from, to) = (&before.overview.default_channel, &after.overview.default_channel);
    let moved = change == Change::Changed && from != to;
    let found = PackageDifference {
        package: name.to_owned(),
        change,
        default_channel: moved.then(|| FromTo { from: from.clone(), to: to.clone() }),
        channels: parts(&channels(before), &channels(after), |one, other| one.head == other.head),
        bundles: parts(&before.bundles, &after.bundles, same),
        deprecated: after.deprecated().difference(&before.deprecated()).cloned().collect(),
    };
    let differs = found.default_channel.is_some() || !found.channels.is_empty() || !found.bundles.is_empty();
    (change != Change::Changed || differs || !found.deprecated.is_empty()).then_some(found)
}

fn parts<T>(before: &BTreeMap<String, T>, after: &BTreeMap<String, T>, same: impl Fn(&T, &T) -> bool) -> Parts {
    let only = |these: &BTreeMap<String, T>, those: &BTreeMap<String, T>| {
        these.keys().filter(|name| !those.contains_key(*name)).cloned().collect()
    };
    let differ = |name: &&String| before.get(*name).zip(after.get(*name)).is_some_and(|(one, other)| !same(one, other));
    Parts {
        added: only(after, before),
        removed: only(before, after),
        changed: before.keys().filter(differ).cloned().collect(),
    }
}

/// Whether two bundles are the same, wherever they are in their files.
fn same(one: &Bundle, other: &Bundle) -> bool {
    let properties = |bundle: &Bundle| -> Vec<_> {
        bundle.properties.iter().map(|it| (it.kind.clone(), it.value.clone())).collect()
    };
    one.image == other.image
        && one.csv == other.csv
        && overview::version_text(one) == overview::version_text(other)
        && properties(one) == properties(other)
}
