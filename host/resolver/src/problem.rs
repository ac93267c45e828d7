//! A question as plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{catalog::Content, kind::Kind, selector::Selector};

/// A question: what is wanted, what is there, and what is allowed. The order of its lists never matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Problem {
    /// The rules of the choice.
    #[serde(default)]
    pub mode: Mode,
    /// The packages that are asked for.
    #[serde(default)]
    pub required: Vec<Required>,
    /// What the set must meet as a whole: properties of the types `olm.package.required`, `olm.gvk.required` and `olm.constraint`, as bundles
    /// have them. Mode `Single` takes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Value>,
    /// The bundles that are installed.
    #[serde(default)]
    pub installed: Vec<Installed>,
    /// The catalogs to choose from.
    #[serde(default)]
    pub catalogs: Vec<Source>,
    /// Facts about the cluster.
    #[serde(default)]
    pub cluster: Cluster,
    /// What is allowed.
    #[serde(default)]
    pub policy: Policy,
    /// The files of bundles, where they are known.
    #[serde(default)]
    pub contents: Vec<Content>,
    /// Bundles whose files say that they are not possible here, where the catalog does not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Excluded>,
    /// The limits of the work.
    #[serde(default)]
    pub budget: Budget,
}

/// A bundle that is not chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Excluded {
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub bundle: String,
    /// Why, in words.
    pub why: String,
}

/// The rules of the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The rules of this crate.
    #[default]
    Default,
    /// Exactly the choice of OLM v1 for one package, or the same refusal.
    Single,
}

/// A package that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Required {
    /// The name of the package.
    pub package: String,
    /// The versions, as in OLM v1: `>=1.2, <2 || ^3`. Empty means all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub range: String,
    /// The channels. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// The catalogs, by their labels. Empty means all.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub catalogs: Selector,
}

/// A bundle that is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Installed {
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub name: String,
    /// The version.
    pub version: String,
    /// The release, if it is not the build metadata of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The catalog that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Whether it may change without being asked for.
    #[serde(default)]
    pub hold: Hold,
    /// Whether it was installed because others needed it. It is reported once nothing needs it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// Its image, for a bundle that no catalog has any more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its properties, for a bundle that no catalog has any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Value>,
}

/// Whether an installed bundle may change. One that is asked for is upgraded to the best version that its range allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    /// It stays as it is.
    #[default]
    Pinned,
    /// It stays as it is if that is possible. This comes before what is asked for.
    Flexible,
    /// It stays as it is, unless what is asked for is better with another version.
    Yielding,
    /// It gets its best candidate, after what is asked for.
    Newest,
}

/// A catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Source {
    /// The name.
    pub name: String,
    /// Higher wins where everything else is equal.
    #[serde(default)]
    pub priority: i32,
    /// Labels for selectors. `olm.operatorframework.io/metadata.name` is the name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether its user has switched it off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unavailable: bool,
}

/// Facts about the cluster. What is unknown limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cluster {
    /// The version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// The version of OpenShift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openshift: Option<String>,
    /// The kinds that are served. Kinds of installed bundles count as the bundles'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
}

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Policy {
    /// Which upgrades are allowed.
    pub upgrades: Upgrades,
    /// What happens with dependencies.
    pub dependencies: Dependencies,
    /// Whether pre-releases are candidates without being named by a range.
    pub prereleases: bool,
    /// Whether deprecated bundles are candidates.
    pub deprecated: bool,
}

impl Default for Policy {
    fn default() -> Self {
        let (upgrades, dependencies) = (Upgrades::default(), Dependencies::default());
        Self { upgrades, dependencies, prereleases: false, deprecated: true }
    }
}

/// Which upgrades are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upgrades {
    /// Upgrades along the catalog's channels.
    #[default]
    CatalogProvided,
    /// Any change of the version, downgrades too.
    SelfCertified,
}

/// What happens with dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dependencies {
    /// They are part of the answer.
    #[default]
    Install,
    /// They are listed apart in the answer, for the user to ask for.
    Report,
    /// They are not looked at.
    Ignore,
}

/// The limits of the work, so that a hostile catalog ends with an error. They count work and not time, so that the same question
/// has the same answer everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Budget {
    /// Comparisons and decisions.
    pub steps: u64,
    /// Bundles that may be candidates.
    pub bundles: usize,
    /// Literals in the clauses of the solver, which bound its memory.
    pub literals: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { steps: 5_000_000, bundles: 50_000, literals: 2_000_000 }
    }
}
